#include "ops/Taylor.h"
using namespace latile;

/// s = scale q·k, o_i = Σ_{j≤i} s_ij² v_j; normalised: over the sum of the weights + eps. With return_both o is not
/// normalised and the sum of the weights is an output, weight_sum. States: S = Σ (k⊗k) vᵀ, z = Σ k⊗k.
void rebased(Operator& op) {
  auto [H, HV] = op.heads("H", "HV % H");
  auto [K, V] = op.dims("K", "V");
  op.limit(K, taylor_limit, taylor_why);
  auto q = op.sequence("q", {H, K}), k = op.sequence("k", {H, K}), v = op.sequence("v", {HV, V});
  auto scale = op.scalar("scale");
  auto o = op.output("o", {HV, V});
  auto S = op.carry("S", {HV, K * K, V});
  const bool both = op.flag("return_both");

  if (!op.flag("normalize", true) && !both) {
    op.reference([&](Token) {
      S = S + outer(kron_rows(k), v);
      o = dot(kron_rows(scale * q), S);
    });
    op.chunk([&](Chunk) {
      Tile s = scale * dot(q, k.T());
      o = dot(kron_rows(scale * q), S) + dot(masked(s * s, lower), v);
      S = S + dot(kron_rows(k).T(), v);
    });
    return;
  }

  auto z = op.carry("z", {H, K * K});
  auto bodies = [&](auto&& results) {
    op.reference([&](Token) {
      S = S + outer(kron_rows(k), v);
      z = z + kron_rows(k);
      Tile Q = kron_rows(scale * q);
      results(dot(Q, S), rowsum(Q * z));
    });
    op.chunk([&](Chunk) {
      Tile s = scale * dot(q, k.T()), weights = masked(s * s, lower), Q = kron_rows(scale * q);
      results(dot(Q, S) + dot(weights, v), rowsum(Q * z) + rowsum(weights));
      S = S + dot(kron_rows(k).T(), v);
      z = z + colsum(kron_rows(k));
    });
  };
  if (both) {
    auto sum = op.output("weight_sum", {HV});
    bodies([&](Tile y, Tile weights) { o = y, sum = weights; });
  } else {
    auto eps = op.scalar("eps", 1e-5);
    bodies([&](Tile y, Tile weights) { o = y / (weights + eps); });
  }
}
