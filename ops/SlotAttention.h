// The bodies that gsa and abc share: memories of M slots, Hk = Hk diag(e^g) + k sᵀ and Hv = diag(e^g) Hv + s vᵀ,
// p = softmax(Hkᵀ (scale q)), o = Hvᵀ p.
#pragma once
#include "latile/dsl.h"

namespace latile {

struct SlotAttention {
  Dim HQ, K, V, M;
  Input q, k, v, s;
  Operand scale;
  Output o;
  Carry Hk, Hv;

  /// The memories are functions of keys, values, slots and gates alone: query heads that share those share them.
  SlotAttention(Operator& op, Dim H, Dim heads)
      : HQ(heads), K(op.dims("K")[0]), V(op.dims("V")[0]), M(op.dims("M")[0]), q(op.sequence("q", {HQ, K})),
        k(op.sequence("k", {H, K})), v(op.sequence("v", {H, V})), s(op.sequence("s", {H, M})),
        scale(op.scalar("scale")), o(op.output("o", {HQ, V})), Hk(op.carry("Hk", {H, K, M})),
        Hv(op.carry("Hv", {H, M, V})) {}

  void token(Arg g, Arg s) {
    Tile e = exp2(g);
    Hk = Hk * e + outer(k, s);
    Hv = e.col() * Hv + outer(s, v);
    o = dot(softmax_rows(scale * dot(q, Hk)), Hv);
  }
  void chunk(Arg g, Arg s) {
    Tile G = cumsum(g), Gl = last(G), e = exp2(G), rest = s * exp2(Gl - G);
    Tile p = softmax_rows(scale * (e * dot(q, Hk) + decayed_apply(dot(q, k.T()), s, G, G, lower)));
    o = dot(p * e, Hv) + dot(decayed_scores(p, s, G, G, lower), v);
    Hk = Hk * exp2(Gl) + dot(k.T(), rest);
    Hv = exp2(Gl).col() * Hv + dot(rest.T(), v);
  }
};

}  // namespace latile
