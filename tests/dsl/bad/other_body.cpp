#include "latile/dsl.h"
using namespace latile;

void other_body(Operator& op) {
  auto [H, HV] = op.heads("H", "HV % H");
  auto [K, V] = op.dims("K", "V");
  auto q = op.sequence("q", {H, K}), k = op.sequence("k", {H, K}), v = op.sequence("v", {HV, V});
  auto g = op.gate("g", {HV});
  auto o = op.output("o", {HV, V});
  auto S = op.carry("S", {HV, K, V});
  Tile left;
  op.reference([&](Token) {
    S = exp2(g) * S + outer(k, v);
    left = dot(q, S);
    o = left;
  });
  op.chunk([&](Chunk) {
    Tile G = cumsum(g), Gl = last(G);
    Tile A = dot(q, k.T()) * decay(G, G, lower);
    o = left + dot(A, v);  // MISTAKE a tile of another body is used
    S = exp2(Gl) * S + dot(k.T(), v);
  });
}
