#include "latile/dsl.h"
using namespace latile;

/// o = (S + diag(u) k vᵀ)ᵀ (scale r), then S = diag(e^w) S + k vᵀ: the output sees the state before the update and the
/// token itself with the bonus u.
void rwkv6(Operator& op) {
  auto [H, HV] = op.heads("H", "HV % H");
  auto [K, V] = op.dims("K", "V");
  auto r = op.sequence("r", {H, K}), k = op.sequence("k", {H, K}), v = op.sequence("v", {HV, V});
  auto w = op.gate("w", {HV, K});
  auto u = op.param("u", {HV, K});
  auto scale = op.scalar("scale");
  auto o = op.output("o", {HV, V});
  auto S = op.carry("S", {HV, K, V});

  op.reference([&](Token) {
    Tile now = outer(k, v);
    o = scale * dot(r, S + u.col() * now);
    S = exp2(w).col() * S + now;
  });

  op.chunk([&](Chunk) {
    Tile G = cumsum(w), before = cumsum(w, {.exclusive = true}), Gl = last(G);
    Tile A = decayed_scores(r, k, before, G, strict) + diagonal(rowsum(r * u * k));
    o = scale * (dot(r * exp2(before), S) + dot(A, v));
    S = exp2(Gl).col() * S + dot((k * exp2(Gl - G)).T(), v);
  });
}
