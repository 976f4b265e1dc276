#include "ops/SlotAttention.h"
#include <limits>
using namespace latile;

/// gsa whose slots forget by what they take in: token i enters slot m with the weight e^(s_im) of all that entered, so
/// Hk and Hv are weighted means. What entered is n e^z: n is 0 where nothing did, else 1 once a token has passed.
void abc(Operator& op) {
  auto [H, HQ] = op.heads("H", "HQ % H");
  SlotAttention a(op, H, HQ);
  a.s.neutral(-std::numeric_limits<double>::infinity());
  auto z = op.carry("z", {H, a.M}), n = op.carry("n", {H, a.M});
  op.no_segment("its weights are relative to a running sum of exponentials, kept as a logarithm");

  auto weights = [&](auto&& body) {
    Tile before = z + log(n), Z = logcumsumexp(a.s, before), Zl = last(Z);
    body(log2_gate(prev(Z, before) - Z), exp(a.s - Z));
    z = Zl;
    n = exp(Zl - Zl);
  };
  op.reference([&](Token) { weights([&](Tile g, Tile s) { a.token(g, s); }); });
  op.chunk([&](Chunk) { weights([&](Tile g, Tile s) { a.chunk(g, s); }); });
}
