#include "ops/Gates.h"
using namespace latile;

/// S = diag(e^g) S, S += k (w v − Sᵀ (b k))ᵀ, o = Sᵀ (scale q): b gates what is erased, w what is written.
void gdn2(Operator& op) {
  auto [H, HV] = op.heads("H", "HV % H");
  auto [K, V] = op.dims("K", "V");
  auto q = op.sequence("q", {H, K}), k = op.sequence("k", {H, K}), v = op.sequence("v", {HV, V});
  auto g = op.gate("g", {HV, K});
  auto b = op.sequence("b", {HV, K}, Type::any).typical(0, 1), w = op.sequence("w", {HV, V}, Type::any).typical(0, 1);
  auto scale = op.scalar("scale");
  auto o = op.output("o", {HV, V});
  auto S = op.carry("S", {HV, K, V});

  if (op.flag("qk_l2norm")) q.through(l2norm), k.through(l2norm);
  channel_gate(op, g, HV, K);

  op.reference([&](Token) {
    S = exp2(g).col() * S;
    S = S + outer(k, w * v - dot(b * k, S));
    o = scale * dot(q, S);
  });

  op.chunk([&](Chunk) {
    Tile G = cumsum(g), Gl = last(G), erase = b * k;
    Tile T = inverse_unit_lower(decayed_scores(erase, k, G, G, strict));
    Tile v_new = dot(T, w * v - dot(erase * exp2(G), S));
    o = scale * (dot(q * exp2(G), S) + dot(decayed_scores(q, k, G, G, lower), v_new));
    S = exp2(Gl).col() * S + dot((k * exp2(Gl - G)).T(), v_new);
  });
}
