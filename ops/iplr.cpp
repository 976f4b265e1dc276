#include "latile/dsl.h"
using namespace latile;

/// Identity plus low rank: S += b (Sᵀ a)ᵀ + k vᵀ, o = Sᵀ (scale q).
void iplr(Operator& op) {
  auto [H, HV] = op.heads("H", "HV % H");
  auto [K, V] = op.dims("K", "V");
  auto q = op.sequence("q", {H, K}), k = op.sequence("k", {H, K}), v = op.sequence("v", {HV, V});
  auto a = op.sequence("a", {H, K}), b = op.sequence("b", {H, K}).typical(a, -1, 0);
  auto scale = op.scalar("scale");
  auto o = op.output("o", {HV, V});
  auto S = op.carry("S", {HV, K, V});

  op.reference([&](Token) {
    S = S + outer(b, dot(a, S)) + outer(k, v);
    o = scale * dot(q, S);
  });

  op.chunk([&](Chunk) {
    Tile P = inverse_unit_lower(-dot(a, b.T()));
    Tile u = dot(P, dot(a, S) + dot(masked(dot(a, k.T()), strict), v));
    o = scale * (dot(q, S) + dot(masked(dot(q, k.T()), lower), v) + dot(masked(dot(q, b.T()), lower), u));
    S = S + dot(k.T(), v) + dot(b.T(), u);
  });
}
