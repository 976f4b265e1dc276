#include "ops/InnerLoss.h"
using namespace latile;

/// A linear memory M learnt at test time with momentum and forgetting; the gradients of a mini-batch of C tokens are
/// taken at its start M₀: u_t = ∇_y ½‖w x̂ + b − (v_t − k_t)‖² at y = M₀ᵀ k_t (x̂: y standardised),
/// S = eta_t S − 2 theta_t k_t u_tᵀ, M = (1 − alpha_t) M + S, y = Mᵀ (scale q_t), o = y + w ŷ + b.
void titans(Operator& op) {
  auto [H, HV] = op.heads("H", "HV % H");
  auto [K] = op.dims("K");
  const int C = op.mini_batch();
  auto q = op.sequence("q", {H, K}), k = op.sequence("k", {H, K}), v = op.sequence("v", {HV, K});
  auto theta = op.sequence("theta", {HV}, Type::any).typical(0, 0.05);
  auto alpha = op.sequence("alpha", {HV}, Type::any).typical(0, 1);
  auto eta = op.sequence("eta", {HV}, Type::any).neutral(1).typical(0, 1);
  auto w = op.param("w", {HV, K}), b = op.param("b", {HV, K});
  auto scale = op.scalar("scale", 1), eps = op.scalar("eps", 1e-6);
  auto o = op.output("o", {HV, K});
  auto M = op.carry("M", {HV, K, K}), S = op.carry("S", {HV, K, K});
  op.no_segment("its state is not an affine function of the state before: the inner model is normalised");

  auto start = op.hidden("start", {HV, K, K}), place = op.hidden("place", {HV});
  op.reference([&](Token) {
    start = select(place, start, M);
    Tile u = inner_gradient(dot(k, start), v - k, w, b, eps);
    S = eta * S - 2 * theta * outer(k, u);
    M = (1 - alpha) * M + S;
    Tile y = scale * dot(q, M);
    o = y + w * standardised(y, eps) + b;
    place = select(place + (1 - C), place + 1, 0);
  });

  op.chunk([&](Chunk) {
    Tile u = inner_gradient(dot(k, M), v - k, w, b, eps);
    Tile A = cumsum(max(log2(1 - alpha), -126)), E = cumsum(max(log2(eta), -126));
    // Two chained decays: what token j adds to S reaches M through every token between.
    Tile forget = decay(A, A, lower), both = dot(forget, decay(E, E, lower), Dot::precise) * (-2 * theta).row();
    Tile from_S = dot(forget, exp2(E), Dot::precise), from_M = exp2(A);
    Tile y = scale * (from_M * dot(q, M) + from_S * dot(q, S) + dot(dot(q, k.T()) * both, u));
    o = y + w * standardised(y, eps) + b;
    // No row is neutral, since M goes on adding S: the states are those after the last row that exists.
    Tile old = S, reach = last_valid(decay(E, E, lower) * (-2 * theta).row());
    M = last_valid(from_M) * M + last_valid(from_S) * old + dot((last_valid(both).col() * k).T(), u);
    S = last_valid(exp2(E)) * old + dot((reach.col() * k).T(), u);
  });
}
