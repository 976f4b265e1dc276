#include "ops/Gates.h"
using namespace latile;

/// e = Sᵀ p, S = e^g S + k (beta (v − e))ᵀ, o = Sᵀ (scale q): the delta rule with a key p of its own for what it
/// erases, read before the decay. Without p it is k.
void comba(Operator& op) {
  auto [H, HV] = op.heads("H", "HV % H");
  auto [K, V] = op.dims("K", "V");
  auto q = op.sequence("q", {H, K}), k = op.sequence("k", {H, K}),
       p = op.sequence("p", {H, K}).typical(k, 0, 1).optional();
  auto v = op.sequence("v", {HV, V});
  auto g = op.gate("g", {HV}).optional();
  const bool headwise = op.flag("headwise_beta");  // a factor for each column of S
  auto beta = headwise ? op.sequence("beta", {HV, V}, Type::any).typical(0, 1) : op.sequence("beta", {HV}, Type::any);
  auto scale = op.scalar("scale");
  auto o = op.output("o", {HV, V});
  auto S = op.carry("S", {HV, K, V});

  if (op.flag("qk_l2norm")) {
    q.through(l2norm), k.through(l2norm);
    if (p.given()) p.through(l2norm);
  }
  const Input& erase = p.given() ? p : k;

  op.reference([&](Token) {
    Tile e = dot(erase, S);
    S = exp2(g) * S + outer(k, beta * (v - e));
    o = scale * dot(q, S);
  });

  if (headwise) return op.no_prefill(one_inverse_each);
  op.chunk([&](Chunk) {
    Tile G = cumsum(g), before = cumsum(g, {.exclusive = true}), Gl = last(G);
    Tile T = inverse_unit_lower(beta * dot(erase, k.T()) * decay(before, G, strict));
    Tile v_new = dot(T, beta * (v - exp2(before) * dot(erase, S)));
    o = scale * (exp2(G) * dot(q, S) + dot(dot(q, k.T()) * decay(G, G, lower), v_new));
    S = exp2(Gl) * S + dot((exp2(Gl - G) * k).T(), v_new);
  });
}
