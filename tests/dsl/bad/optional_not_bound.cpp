#include "latile/dsl.h"
using namespace latile;

void optional_not_bound(Operator& op) {
  auto [H, HV] = op.heads("H", "HV % H");
  auto [K, V] = op.dims("K", "V");
  auto q = op.sequence("q", {H, K}), k = op.sequence("k", {H, K}), v = op.sequence("v", {HV, V});
  auto g = op.gate("g", {HV});
  auto o = op.output("o", {HV, V});
  auto S = op.carry("S", {HV, K, V});
  auto bias = op.param("bias", {HV}).optional();
  op.chunk([&](Chunk) {
    Tile G = cumsum(g), Gl = last(G);
    Tile A = dot(q, k.T()) * decay(G, G, lower);
    o = exp2(G) * dot(q, S) + dot(A, v);
    S = bias * S + dot(k.T(), v);  // MISTAKE 'bias' is optional and not bound
  });
}
