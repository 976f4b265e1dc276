#include "latile/dsl.h"
using namespace latile;

void broadcast(Operator& op) {
  auto [H, HV] = op.heads("H", "HV % H");
  auto [K, V] = op.dims("K", "V");
  auto q = op.sequence("q", {H, K}), k = op.sequence("k", {H, K}), v = op.sequence("v", {HV, V});
  auto g = op.gate("g", {HV});
  auto o = op.output("o", {HV, V});
  auto S = op.carry("S", {HV, K, V});
  op.chunk([&](Chunk) {
    Tile G = cumsum(g), Gl = last(G);
    Tile A = dot(q, k.T()) * decay(G, G, lower);
    o = dot(q, S) + dot(A + k, v);  // MISTAKE '+' of [C, C] and [C, K]: extents C and K neither match nor are 1
    S = exp2(Gl) * S + dot(k.T(), v);
  });
}
