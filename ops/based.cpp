#include "ops/Taylor.h"
using namespace latile;

/// s = scale q·k, o_i = Σ_{j≤i} (1 + s_ij + s_ij²/2) v_j; normalised: over the sum of the weights + 1e-6. States of
/// order 0, 1 and 2: S0 = Σ v, S1 = Σ k vᵀ, S2 = Σ (k⊗k) vᵀ, and z0, z1, z2 with 1 in the place of v.
void based(Operator& op) {
  auto [H, HV] = op.heads("H", "HV % H");
  auto [K, V] = op.dims("K", "V");
  op.limit(K, taylor_limit, taylor_why);
  auto q = op.sequence("q", {H, K}), k = op.sequence("k", {H, K}), v = op.sequence("v", {HV, V});
  auto scale = op.scalar("scale");
  auto o = op.output("o", {HV, V});
  auto S0 = op.carry("S0", {HV, V}), S1 = op.carry("S1", {HV, K, V}), S2 = op.carry("S2", {HV, K * K, V});

  auto token = [&] {
    S0 = S0 + v, S1 = S1 + outer(k, v), S2 = S2 + outer(kron_rows(k), v);
    Tile Q = scale * q;
    return S0 + dot(Q, S1) + 0.5 * dot(kron_rows(Q), S2);
  };
  auto chunk = [&](Tile& weights) {
    Tile Q = scale * q, s = scale * dot(q, k.T());
    weights = masked(1 + s + 0.5 * s * s, lower);
    Tile y = S0 + dot(Q, S1) + 0.5 * dot(kron_rows(Q), S2) + dot(weights, v);
    S0 = S0 + colsum(v), S1 = S1 + dot(k.T(), v), S2 = S2 + dot(kron_rows(k).T(), v);
    return y;
  };

  if (!op.flag("normalize", true)) {
    op.reference([&](Token) { o = token(); });
    op.chunk([&](Chunk) {
      Tile weights;
      o = chunk(weights);
    });
    return;
  }

  auto z0 = op.carry("z0", {H}), z1 = op.carry("z1", {H, K}), z2 = op.carry("z2", {H, K * K});
  op.reference([&](Token) {
    z0 = z0 + 1, z1 = z1 + k, z2 = z2 + kron_rows(k);
    Tile Q = scale * q;
    o = token() / (z0 + rowsum(Q * z1) + 0.5 * rowsum(kron_rows(Q) * z2) + 1e-6);
  });
  op.chunk([&](Chunk c) {
    Tile weights, y = chunk(weights), Q = scale * q;
    o = y / (z0 + rowsum(Q * z1) + 0.5 * rowsum(kron_rows(Q) * z2) + rowsum(weights) + 1e-6);
    z0 = z0 + c.count(), z1 = z1 + colsum(k), z2 = z2 + colsum(kron_rows(k));
  });
}
