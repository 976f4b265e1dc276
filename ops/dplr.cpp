#include "ops/Gates.h"
#include "ops/LowRank.h"
using namespace latile;

/// Diagonal plus low rank: S = diag(e^gk) S + b (Sᵀ a)ᵀ + k vᵀ, o = Sᵀ (scale q); a reads the state before the decay.
void dplr(Operator& op) {
  auto [H, HV] = op.heads("H", "HV % H");
  auto [K, V] = op.dims("K", "V");
  auto q = op.sequence("q", {H, K}), k = op.sequence("k", {H, K}), v = op.sequence("v", {HV, V});
  auto a = op.sequence("a", {H, K}), b = op.sequence("b", {H, K}).typical(a, -1, 0);
  auto gk = op.gate("gk", {HV, K});
  auto scale = op.scalar("scale");
  auto o = op.output("o", {HV, V});
  auto S = op.carry("S", {HV, K, V});
  promised_gate(op, gk);

  LowRank form{q, k, v, gk, scale, o, S};
  op.reference([&](Token) { form.token(a, b); });
  op.chunk([&](Chunk) { form.chunk(a, b); });
}
