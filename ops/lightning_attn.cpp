#include "ops/ConstantDecay.h"
using namespace latile;

/// S = e^((1 − layer_idx/num_layers) γ) S + k vᵀ, o = Sᵀ (scale q). In the published operator head h of all H has
/// γ = −8 h / H.
void lightning_attn(Operator& op) {
  const int layers = op.integer("num_layers", 32, 1, 4096), layer = op.integer("layer_idx", 0, 0, 4095);
  op.require(layer < layers, "layer_idx counts from 0 and must be less than num_layers");
  constant_decay(op, 1 - static_cast<double>(layer) / layers);
}
