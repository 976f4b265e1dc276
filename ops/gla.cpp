#include "latile/dsl.h"
using namespace latile;

/// S = diag(e^g) S diag(e^gv) + k vᵀ, o = Sᵀ (scale q): a decay for each key channel and, with the option value_gate,
/// one for each value channel.
void gla(Operator& op) {
  auto [H, HV] = op.heads("H", "HV % H");
  auto [K, V] = op.dims("K", "V");
  auto q = op.sequence("q", {H, K}), k = op.sequence("k", {H, K}), v = op.sequence("v", {HV, V});
  auto g = op.gate("g", {HV, K});
  auto scale = op.scalar("scale");
  auto o = op.output("o", {HV, V});
  auto S = op.carry("S", {HV, K, V});

  if (op.flag("value_gate")) {
    auto gv = op.gate("gv", {HV, V});
    op.reference([&](Token) {
      S = exp2(g).col() * S * exp2(gv) + outer(k, v);
      o = scale * dot(q, S);
    });
    op.chunk([&](Chunk) {
      Tile G = cumsum(g), Gl = last(G), W = cumsum(gv), Wl = last(W);
      Tile A = decayed_scores(q, k, G, G, lower);
      o = scale * (dot(q * exp2(G), S) * exp2(W) + decayed_apply(A, v, W, W, lower));
      S = exp2(Gl).col() * S * exp2(Wl) + dot((k * exp2(Gl - G)).T(), v * exp2(Wl - W));
    });
    return;
  }

  op.reference([&](Token) {
    S = exp2(g).col() * S + outer(k, v);
    o = scale * dot(q, S);
  });
  op.chunk([&](Chunk) {
    Tile G = cumsum(g), Gl = last(G);
    o = scale * (dot(q * exp2(G), S) + dot(decayed_scores(q, k, G, G, lower), v));
    S = exp2(Gl).col() * S + dot((k * exp2(Gl - G)).T(), v);
  });
}
