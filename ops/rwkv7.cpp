#include "ops/Gates.h"
#include "ops/LowRank.h"
using namespace latile;

/// S = diag(e^w) S − (kk a) (Sᵀ kk)ᵀ + k vᵀ, o = Sᵀ (scale r): kk is the key to remove, a how much of it. With the
/// option form = a_b the caller gives the two factors themselves: S = diag(e^w) S + b (Sᵀ a)ᵀ + k vᵀ.
void rwkv7(Operator& op) {
  auto [H, HV] = op.heads("H", "HV % H");
  auto [K, V] = op.dims("K", "V");
  const bool factors = op.choice("form", {"kk_a", "a_b"}) == "a_b";
  auto r = op.sequence("r", {H, K}), k = op.sequence("k", {H, K}), v = op.sequence("v", {HV, V});
  auto first = op.sequence(factors ? "a" : "kk", {H, K}), second = op.sequence(factors ? "b" : "a", {H, K});
  auto w = op.gate("w", {HV, K});
  auto scale = op.scalar("scale", 1);
  auto o = op.output("o", {HV, V});
  auto S = op.carry("S", {HV, K, V});
  promised_gate(op, w);
  factors ? second.typical(first, -1, 0) : second.typical(0, 1);

  LowRank form{r, k, v, w, scale, o, S};
  op.reference([&](Token) { factors ? form.token(first, second) : form.token(-first, first * second); });
  op.chunk([&](Chunk) { factors ? form.chunk(first, second) : form.chunk(-first, first * second); });
}
