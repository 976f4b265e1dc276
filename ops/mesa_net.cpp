#include "latile/dsl.h"
using namespace latile;

/// A = e^g A + beta k kᵀ, B = e^g B + beta k vᵀ, o = Bᵀ x where (A + diag lamb) x = q, by `steps` steps of conjugate
/// gradients. A and lamb must be such that A + diag lamb is symmetric and positive definite.
void mesa_net(Operator& op) {
  auto [H, HV] = op.heads("H", "HV % H");
  auto [K, V] = op.dims("K", "V");
  auto q = op.sequence("q", {H, K}), k = op.sequence("k", {H, K}), v = op.sequence("v", {HV, V});
  auto g = op.gate("g", {HV}).optional();
  auto beta = op.sequence("beta", {HV}, Type::any);
  auto lamb = op.param("lamb", {HV, K}).typical(0.25, 1);
  auto o = op.output("o", {HV, V});
  auto A = op.carry("A", {HV, K, K}), B = op.carry("B", {HV, K, V});
  const int steps = op.integer("steps", 30, 1, 100);
  if (op.flag("qk_l2norm")) q.through(l2norm), k.through(l2norm);

  op.reference([&](Token) {
    A = exp2(g) * A + beta * outer(k, k);
    B = exp2(g) * B + beta * outer(k, v);
    Tile x = solve(q, steps, [&](Tile p) { return dot(p, A) + lamb * p; });
    o = dot(x, B);
  });

  op.chunk([&](Chunk) {
    Tile G = cumsum(g), Gl = last(G), e = exp2(G), D = decay(G, G, lower) * beta.row();
    // A search direction that is rounded is no longer conjugate, so the products of the solve are not.
    auto read = [&](Tile x, Tile Y, Tile state) {
      return dot(D * dot(x, k.T(), Dot::precise), Y, Dot::precise) + e * dot(x, state, Dot::precise);
    };
    Tile old = A;
    Tile x = solve(q, steps, [&](Tile p) { return read(p, k, old) + lamb * p; });
    o = read(x, v, B);
    Tile kept = (beta * exp2(Gl - G) * k).T();
    A = exp2(Gl) * A + dot(kept, k);
    B = exp2(Gl) * B + dot(kept, v);
  });
}
