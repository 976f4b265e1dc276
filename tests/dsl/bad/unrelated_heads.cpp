#include "latile/dsl.h"
using namespace latile;

void unrelated_heads(Operator& op) {
  auto [H, HV] = op.heads("H", "HV % H");
  auto [K, V] = op.dims("K", "V");
  auto q = op.sequence("q", {H, K}), k = op.sequence("k", {H, K}), v = op.sequence("v", {HV, V});
  auto g = op.gate("g", {HV});
  auto o = op.output("o", {HV, V});
  auto S = op.carry("S", {HV, K, V});
  auto [other] = op.heads("G");
  auto x = op.sequence("x", {other});
  op.chunk([&](Chunk) {
    Tile G = cumsum(g), Gl = last(G);
    Tile A = dot(q, k.T()) * decay(G, G, lower);
    o = dot(q, S) + dot(A * x.row(), v);  // MISTAKE values over heads HV and G meet, and neither groups the other
    S = exp2(Gl) * S + dot(k.T(), v);
  });
}
