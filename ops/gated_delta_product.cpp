#include "ops/Gates.h"
using namespace latile;

/// S = e^g S once, then for each of the token's num_householder rows S += k (beta (v − Sᵀ k))ᵀ; o = Sᵀ (scale q).
void gated_delta_product(Operator& op) {
  auto [H, HV] = op.heads("H", "HV % H");
  auto [K, V] = op.dims("K", "V");
  const int n = op.integer("num_householder", 2, 1, 8);
  auto q = op.sequence("q", {H, K}), k = op.sequence("k", {H, K}).rate(n), v = op.sequence("v", {HV, V}).rate(n);
  auto g = op.gate("g", {HV}).optional();
  auto beta = op.sequence("beta", {HV}, Type::any).rate(n);
  auto scale = op.scalar("scale");
  auto o = op.output("o", {HV, V});
  auto S = op.carry("S", {HV, K, V});

  if (op.flag("qk_l2norm")) q.through(l2norm), k.through(l2norm);
  factor_form(op, beta);

  op.reference([&](Token) {
    S = exp2(g) * S;
    for (int j = 0; j < n; ++j) {
      Tile key = pick(k, j);
      S = S + outer(key, pick(beta, j) * (pick(v, j) - dot(key, S)));
    }
    o = scale * dot(q, S);
  });

  op.chunk([&](Chunk) {
    Tile G = cumsum(g), Gl = last(G), Gs = repeat_rows(G, n);  // of tokens, of their rows
    Tile T = inverse_unit_lower(beta * dot(k, k.T()) * decay(Gs, Gs, strict));
    Tile v_new = dot(T, beta * (v - exp2(Gs) * dot(k, S)));
    o = scale * (exp2(G) * dot(q, S) + dot(dot(q, k.T()) * decay(G, Gs, lower, n), v_new));
    S = exp2(Gl) * S + dot((exp2(Gl - Gs) * k).T(), v_new);
  });
}
