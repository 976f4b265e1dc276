#include "ops/SlotAttention.h"
using namespace latile;

/// Memories of M slots that forget by gates: Hk = Hk diag(e^g) + k sᵀ, Hv = diag(e^g) Hv + s vᵀ,
/// o = Hvᵀ softmax(Hkᵀ (scale q)).
void gsa(Operator& op) {
  auto [H, HQ] = op.heads("H", "HQ % H");
  SlotAttention a(op, H, HQ);
  auto g = op.gate("g", {H, a.M});
  op.reference([&](Token) { a.token(g, a.s); });
  op.chunk([&](Chunk) { a.chunk(g, a.s); });
}
