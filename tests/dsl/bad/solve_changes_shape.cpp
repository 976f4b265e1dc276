#include "latile/dsl.h"
using namespace latile;

void solve_changes_shape(Operator& op) {
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
    Tile x = solve(q, 3, [&](Tile t) { return dot(t, S); });  // MISTAKE solve: the region turns [C, K] into [C, V]
    S = S + dot(k.T(), dot(x, S));
  });
}
