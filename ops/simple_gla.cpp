#include "latile/dsl.h"
using namespace latile;

/// S = e^g S + k vᵀ, o = Sᵀ (scale q); g for each token and head, or a constant g_gamma for each head, or both, or
/// none.
void simple_gla(Operator& op) {
  auto [H, HV] = op.heads("H", "HV % H");
  auto [K, V] = op.dims("K", "V");
  auto q = op.sequence("q", {H, K}), k = op.sequence("k", {H, K}), v = op.sequence("v", {HV, V});
  auto g = op.gate("g", {HV}).optional();
  auto gamma = op.param("g_gamma", {HV}).optional();
  if (gamma.given()) g.through([&](Tile x) { return x + gamma; });
  auto scale = op.scalar("scale");
  auto o = op.output("o", {HV, V});
  auto S = op.carry("S", {HV, K, V});

  op.reference([&](Token) {
    S = exp2(g) * S + outer(k, v);
    o = scale * dot(q, S);
  });

  op.chunk([&](Chunk) {
    Tile G = cumsum(g), Gl = last(G);
    o = scale * (exp2(G) * dot(q, S) + dot(dot(q, k.T()) * decay(G, G, lower), v));
    S = exp2(Gl) * S + dot((exp2(Gl - G) * k).T(), v);
  });
}
