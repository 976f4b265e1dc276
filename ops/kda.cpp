#include "ops/Gates.h"
using namespace latile;

/// S = diag(e^g) S, S += k (beta (v − Sᵀ k))ᵀ, o = Sᵀ (scale q).
void kda(Operator& op) {
  auto [H, HV] = op.heads("H", "HV % H");
  auto [K, V] = op.dims("K", "V");
  auto q = op.sequence("q", {H, K}), k = op.sequence("k", {H, K}), v = op.sequence("v", {HV, V});
  auto g = op.gate("g", {HV, K});
  auto beta = op.sequence("beta", {HV}, Type::any);
  auto scale = op.scalar("scale");
  auto o = op.output("o", {HV, V});
  auto S = op.carry("S", {HV, K, V});

  if (op.flag("qk_l2norm")) q.through(l2norm), k.through(l2norm);
  channel_gate(op, g, HV, K);
  factor_form(op, beta);

  op.reference([&](Token) {
    S = exp2(g).col() * S;
    S = S + outer(k, beta * (v - dot(k, S)));
    o = scale * dot(q, S);
  });

  op.chunk([&](Chunk) {
    Tile G = cumsum(g), Gl = last(G);
    Tile T = inverse_unit_lower(beta * decayed_scores(k, k, G, G, strict));
    Tile v_new = dot(T, beta * (v - dot(k * exp2(G), S)));
    o = scale * (dot(q * exp2(G), S) + dot(decayed_scores(q, k, G, G, lower), v_new));
    S = exp2(Gl).col() * S + dot((k * exp2(Gl - G)).T(), v_new);
  });
}
