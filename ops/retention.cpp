#include "ops/ConstantDecay.h"
using namespace latile;

/// S = e^γ S + k vᵀ, o = Sᵀ (scale q). In the published operator head h of all H has γ = ln(1 − 2^(−5−h)).
void retention(Operator& op) { constant_decay(op, 1); }
