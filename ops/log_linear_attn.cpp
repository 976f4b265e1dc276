#include "latile/dsl.h"
using namespace latile;

/// o_i = Σ_(j ≤ i) e^(c_i − c_j) λ_i,level(i, j) (q_i · k_j) v_j, with c the running sum of g. Levels are those of a
/// Fenwick tree over positions: 0 for j = i, otherwise 1 + the highest bit in which i and j differ. What L levels do
/// not reach has the weight 0. `position` is the position of the first token; `S` holds, for each b < L, the decayed
/// sum of k vᵀ over the tokens before it in its block of 2^b positions, one below the other.
void log_linear_attn(Operator& op) {
  auto [H, HV] = op.heads("H", "HV % H");
  auto [K, V, L] = op.dims("K", "V", "L");
  op.limit(L, 24, "positions are whole numbers of float32");
  auto q = op.sequence("q", {H, K}), k = op.sequence("k", {H, K}).typical_key(), v = op.sequence("v", {HV, V});
  auto g = op.gate("g", {HV});
  auto scales = op.sequence("level_scales", {HV, L}, Type::any).typical(0, 1);
  auto o = op.output("o", {HV, V});
  auto S = op.carry("S", {HV, L * K, V});
  auto position = op.carry("position", {HV}, Type::f32);
  position.typical(0, 100);

  // Whether two positions lie in one block of 2^b: [R, L], 1 or 0. The half keeps clear of the borders.
  auto together = [](Tile b, Tile x, Tile y) {
    Tile d = floor((x + 0.5) * exp2(-b)) - floor((y + 0.5) * exp2(-b));
    return max(1 - d * d, 0);
  };
  // The tokens of level b are those of block b without those of block b − 1: block b counts with λ_b − λ_(b+1).
  auto weights = [&] {
    Tile columns = scales.T();
    return scales - next(columns, 0 * pick(columns, 0)).T();
  };

  op.reference([&](Token t) {
    Tile b = t.iota(L), ones = 0 * t.iota(K) + 1, p = floor(position);
    Tile keep = together(b, p + 1, p);
    S = exp2(g) * S;
    o = dot(kron_rows(weights(), q), S) + rowsum(scales * max(1 - b, 0)) * dot(q, k.T()) * v;
    S = kron_rows(keep, ones).col() * S + outer(kron_rows(keep, k), v);
    position = p + 1;
  });

  op.chunk([&](Chunk c) {
    Tile b = c.iota(L), ones = 0 * c.iota(K) + 1, p = floor(position), end = p + c.count(), i = p + c.iota();
    Tile G = cumsum(g), Gl = last(G);
    Tile A = dot(q, k.T()) * decay(G, G, lower) * lookup(scales, Table::fenwick, p);
    o = exp2(G) * dot(kron_rows(weights() * together(b, i, p), q), S) + dot(A, v);
    Tile keep = kron_rows(together(b, end, p), ones).col();
    S = exp2(Gl) * (keep * S) + dot(kron_rows(together(b, end, i), exp2(Gl - G) * k).T(), v);
    position = end;
  });
}
