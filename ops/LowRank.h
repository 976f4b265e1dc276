// The bodies that dplr and rwkv7 share: S = diag(e^g) S + b (Sᵀ a)ᵀ + k vᵀ, where a reads the state before the decay,
// and o = Sᵀ (scale q).
#pragma once
#include "latile/dsl.h"

namespace latile {

struct LowRank {
  Operand &q, &k, &v, &g, &scale;
  Output& o;
  Carry& S;

  void token(Arg a, Arg b) {
    S = exp2(g).col() * S + outer(b, dot(a, S)) + outer(k, v);
    o = scale * dot(q, S);
  }
  void chunk(Arg a, Arg b) {
    Tile G = cumsum(g), before = cumsum(g, {.exclusive = true}), Gl = last(G), rest = exp2(Gl - G);
    Tile P = inverse_unit_lower(-decayed_scores(a, b, before, G, strict));
    Tile u = dot(P, dot(a * exp2(before), S) + dot(decayed_scores(a, k, before, G, strict), v));
    o = scale *
        (dot(q * exp2(G), S) + dot(decayed_scores(q, k, G, G, lower), v) + dot(decayed_scores(q, b, G, G, lower), u));
    S = exp2(Gl).col() * S + dot((k * rest).T(), v) + dot((b * rest).T(), u);
  }
};

}  // namespace latile
