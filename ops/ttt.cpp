#include "ops/InnerLoss.h"
using namespace latile;

/// Test-time training of a linear model y = hᵀ k + hb, one gradient step a mini-batch of C tokens, the gradients taken
/// at its start: u_j = ∇_y ½‖w x̂ + b − (v_j − k_j)‖² (x̂: y standardised), h −= eta_last Σ k_j u_jᵀ, hb −= eta_last Σ
/// u_j; y_i = hᵀ (scale q_i) + hb − eta_i Σ_{j≤i} (scale q_i·k_j + 1) u_j, o = y + w ŷ + b.
void ttt(Operator& op) {
  auto [H, HV] = op.heads("H", "HV % H");
  auto [K] = op.dims("K");
  const int C = op.mini_batch();
  auto q = op.sequence("q", {H, K}), k = op.sequence("k", {H, K}), v = op.sequence("v", {HV, K});
  auto eta = op.sequence("eta", {HV}, Type::any).optional().typical(0, 0.05);
  auto w = op.param("w", {HV, K}), b = op.param("b", {HV, K});
  auto scale = op.scalar("scale"), rate = op.scalar("rate", 1), eps = op.scalar("eps", 1e-6);
  auto o = op.output("o", {HV, K});
  auto h = op.carry("h", {HV, K, K}), hb = op.carry("hb", {HV, K});
  op.no_segment("its state is not an affine function of the state before: the inner model is normalised");

  auto start = op.hidden("start", {HV, K, K}), sum = op.hidden("sum", {HV, K, K});
  auto start_b = op.hidden("start_b", {HV, K}), sum_b = op.hidden("sum_b", {HV, K});
  auto place = op.hidden("place", {HV});  // in the mini-batch
  op.reference([&](Token) {
    start = select(place, start, h), start_b = select(place, start_b, hb);
    Tile u = inner_gradient(dot(k, start) + start_b, v - k, w, b, eps), r = eta.given() ? rate * eta : rate.read();
    sum = select(place, sum, 0) + outer(k, u), sum_b = select(place, sum_b, 0) + u;
    h = start - r * sum, hb = start_b - r * sum_b;
    Tile y = scale * dot(q, h) + hb;
    o = y + w * standardised(y, eps) + b;
    place = select(place + (1 - C), place + 1, 0);
  });

  op.chunk([&](Chunk c) {
    Tile u = inner_gradient(dot(k, h) + hb, v - k, w, b, eps) * c.valid();
    Tile r = eta.given() ? rate * eta : rate.read(), last_r = eta.given() ? last_valid(r) : r;
    Tile y = scale * dot(q, h) + hb - r * dot(masked(scale * dot(q, k.T()) + 1, lower), u);
    o = y + w * standardised(y, eps) + b;
    h = h - last_r * dot(k.T(), u);
    hb = hb - last_r * colsum(u);
  });
}
