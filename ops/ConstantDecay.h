// The bodies that retention and lightning_attn share: S = e^γ S + k vᵀ, o = Sᵀ (scale q), γ constant for each head.
#pragma once
#include "latile/dsl.h"

namespace latile {

inline void constant_decay(Operator& op, double factor) {
  auto [H, HV] = op.heads("H", "HV % H");
  auto [K, V] = op.dims("K", "V");
  auto q = op.sequence("q", {H, K}), k = op.sequence("k", {H, K}), v = op.sequence("v", {HV, V});
  auto gamma = op.param("g_gamma", {HV});
  gamma.through([&](Tile x) { return log2_gate(factor * x); });
  auto scale = op.scalar("scale");
  auto o = op.output("o", {HV, V});
  auto S = op.carry("S", {HV, K, V});

  op.reference([&](Token) {
    S = exp2(gamma) * S + outer(k, v);
    o = scale * dot(q, S);
  });

  op.chunk([&](Chunk c) {
    Tile G = cumsum(gamma * c.valid()), Gl = last(G);  // rows that do not exist decay nothing
    o = scale * (exp2(G) * dot(q, S) + dot(dot(q, k.T()) * decay(G, G, lower), v));
    S = exp2(Gl) * S + dot((exp2(Gl - G) * k).T(), v);
  });
}

}  // namespace latile
