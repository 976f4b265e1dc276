#include "latile/dsl.h"
using namespace latile;

void output_read(Operator& op) {
  auto [H, HV] = op.heads("H", "HV % H");
  auto [K, V] = op.dims("K", "V");
  auto q = op.sequence("q", {H, K}), k = op.sequence("k", {H, K}), v = op.sequence("v", {HV, V});
  auto g = op.gate("g", {HV});
  auto o = op.output("o", {HV, V});
  auto S = op.carry("S", {HV, K, V});
  op.chunk([&](Chunk) {
    Tile G = cumsum(g), Gl = last(G);
    Tile A = dot(q, k.T()) * decay(G, G, lower);
    o = exp2(G) * dot(q, S) + dot(A, v);
    Tile twice = 2 * o;  // MISTAKE output 'o' is read
    S = S * exp2(Gl) + dot(k.T(), twice);
  });
}
