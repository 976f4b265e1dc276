#include "latile/dsl.h"
using namespace latile;

/// S += k vᵀ, o = Sᵀ (scale q); normalised: o / (scale q · Σ k + 1e-10).
void linear_attn(Operator& op) {
  auto [H, HV] = op.heads("H", "HV % H");
  auto [K, V] = op.dims("K", "V");
  auto q = op.sequence("q", {H, K}), k = op.sequence("k", {H, K}), v = op.sequence("v", {HV, V});
  auto scale = op.scalar("scale");
  auto o = op.output("o", {HV, V});
  auto S = op.carry("S", {HV, K, V});

  if (!op.flag("normalize", true)) {
    op.reference([&](Token) {
      S = S + outer(k, v);
      o = scale * dot(q, S);
    });
    op.chunk([&](Chunk) {
      o = scale * (dot(q, S) + dot(masked(dot(q, k.T()), lower), v));
      S = S + dot(k.T(), v);
    });
    return;
  }

  auto z = op.carry("z", {H, K});
  op.reference([&](Token) {
    S = S + outer(k, v);
    z = z + k;
    o = scale * dot(q, S) / (scale * rowsum(q * z) + 1e-10);
  });
  op.chunk([&](Chunk) {
    Tile y = dot(q, S) + dot(masked(dot(q, k.T()), lower), v);
    Tile Z = z + cumsum(k);
    o = scale * y / (scale * rowsum(q * Z) + 1e-10);
    S = S + dot(k.T(), v);
    z = last(Z);
  });
}
