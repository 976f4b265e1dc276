#include "latile/dsl.h"
using namespace latile;

/// y_t = act(Σ_w weight_w x_(t − W + 1 + w) + bias) + residual_t, channel by channel. `state` holds the last W inputs
/// of a sequence, the newest last; of the initial one the oldest is not read.
void causal_conv1d(Operator& op) {
  auto [D, W] = op.dims("D", "W");
  op.limit(W, 32, "the sum over the window is unrolled");
  auto x = op.sequence("x", {D});
  auto weight = op.param("weight", {W, D}, Type::any).typical(-0.5, 0.5);
  auto bias = op.param("bias", {D}, Type::any).optional();
  auto residual = op.sequence("residual", {D}).optional();
  auto y = op.output("y", {D});
  auto state = op.carry("state", {W, D});
  auto activation = op.choice("activation", {"silu", "none"});
  auto act = [&](Tile z) { return activation == "silu" ? silu(z) : z; };

  op.reference([&](Token) {
    state = next(state, x);
    Tile z = colsum(weight * state);
    Tile a = act(bias.given() ? z + bias : z);
    y = residual.given() ? a + residual : a;
  });

  op.kernel([&](Kernel k) {
    Rows i = k.rows();
    k.columns(D, [&](Columns j) {
      Tile z = k.sum(W, [&](Tap w) { return weight(w, j) * x(i - w.reversed(), j, state); });
      Tile a = act(bias.given() ? z + bias(j) : z);
      y(i, j) = residual.given() ? a + residual(i, j) : a;
    });
  });
  op.kernel([&](Kernel k) {
    Rows e = k.last(W);
    k.columns(D, [&](Columns j) { state(e, j) = x(e, j, state); });
  });
}
