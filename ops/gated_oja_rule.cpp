#include "ops/Gates.h"
using namespace latile;

/// S = S diag(e^g), S += (beta (k − S v)) vᵀ, o = Sᵀ (scale q): the delta rule on keys, with a decay for each value
/// channel.
void gated_oja_rule(Operator& op) {
  auto [H, HV] = op.heads("H", "HV % H");
  auto [K, V] = op.dims("K", "V");
  auto q = op.sequence("q", {H, K}), k = op.sequence("k", {H, K}), v = op.sequence("v", {HV, V}).typical_key();
  auto g = op.gate("gv", {HV, V});
  auto beta = op.sequence("beta", {HV}, Type::any);
  auto scale = op.scalar("scale");
  auto o = op.output("o", {HV, V});
  auto S = op.carry("S", {HV, K, V});

  if (op.flag("q_l2norm")) q.through(l2norm);
  if (op.flag("k_l2norm")) k.through(l2norm);
  factor_form(op, beta);

  op.reference([&](Token) {
    S = S * exp2(g);
    S = S + outer(beta * (k - dot(v, S.T())), v);
    o = scale * dot(q, S);
  });

  op.chunk([&](Chunk) {
    Tile G = cumsum(g), Gl = last(G);
    Tile T = inverse_unit_lower(beta * decayed_scores(v, v, G, G, strict));
    Tile k_new = dot(T, beta * (k - dot(v * exp2(G), S.T())));
    o = scale * (exp2(G) * dot(q, S) + decayed_apply(dot(q, k_new.T()), v, G, G, lower));
    S = S * exp2(Gl) + dot(k_new.T(), v * exp2(Gl - G));
  });
}
