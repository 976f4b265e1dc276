#include "latile/dsl.h"
using namespace latile;

void three_mistakes(Operator& op) {
  auto [H, HV] = op.heads("H", "HV % H");
  auto [K, V] = op.dims("K", "V");
  auto q = op.sequence("q", {H, K}), k = op.sequence("k", {H, K}), v = op.sequence("v", {HV, V});
  auto g = op.gate("g", {HV});
  auto o = op.output("o", {HV, V});
  auto S = op.carry("S", {HV, K, V});
  op.chunk([&](Chunk) {
    Tile G = cumsum(g), Gl = last(G);
    Tile A = dot(q, k.T()) * decay(G, G, lower);
    Tile w = dot(q, S.T()) * G;  // MISTAKE dot of [C, K] and [V, K]
    o = exp2(w) * dot(q, S) + dot(A, v);
    Tile z = decay(G, k, strict) + A;  // MISTAKE decay of [C, 1] and [C, K]: it takes two columns
    S = S + z;
    Tile y = A + v;  // MISTAKE '+' of [C, C] and [C, V]
    S = S * rowsum(y).T();
  });
}
