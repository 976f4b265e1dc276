#include "ops/Gates.h"
using namespace latile;

/// The preconditioned key of precond_kda and precond_gated_delta_rule by itself: A = e^g_atk A + beta_atk k²,
/// r = ln(A + eps) − log_atk_scale, o = k x^(−r / (1 + |r|)), element by element.
void atk(Operator& op) {
  auto [H] = op.heads("H");
  auto [K] = op.dims("K");
  auto k = op.sequence("k", {H, K});
  auto o = op.output("o", {H, K});
  Preconditioner preconditioned(op, H, K);
  op.reference([&](Token) { o = preconditioned.token(k); });
  op.chunk([&](Chunk) { o = preconditioned.chunk(k); });
}
