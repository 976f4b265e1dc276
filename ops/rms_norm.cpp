#include "latile/dsl.h"
using namespace latile;

/// r = x + residual, y = r / √(mean r² + eps) · weight + bias, times swish(gate) or sigmoid(gate). With the option
/// gate_first the gate multiplies r before it is normalised. `sum` is r, for the next layer. Each head is normalised on
/// its own; weight_per_head gives it weights of its own too.
void rms_norm(Operator& op) {
  auto [H] = op.heads("H");
  auto [D] = op.dims("D");
  bool per_head = op.flag("weight_per_head"), gate_first = op.flag("gate_first");
  auto activation = op.choice("activation", {"swish", "sigmoid"});
  auto x = op.sequence("x", {H, D});
  auto residual = op.sequence("residual", {H, D}, Type::any).optional();
  auto gate = op.sequence("gate", {H, D}).optional();
  auto weight = (per_head ? op.param("weight", {H, D}, Type::any) : op.param("weight", {D}, Type::any)).optional();
  auto bias = (per_head ? op.param("bias", {H, D}, Type::any) : op.param("bias", {D}, Type::any)).optional();
  auto eps = op.scalar("eps", 1e-5);
  auto y = op.output("y", {H, D});
  auto sum = op.output("sum", {H, D}, Type::any);
  sum.optional();

  auto act = [&](Tile g) { return activation == "swish" ? silu(g) : sigmoid(g); };

  op.reference([&](Token) {
    Tile r = x;
    if (residual.given()) r = r + residual;
    if (sum.given()) sum = r;
    if (gate.given() && gate_first) r = r * act(gate);
    Tile z = r * rsqrt(rowmean(r * r) + eps);
    if (weight.given()) z = z * weight;
    if (bias.given()) z = z + bias;
    y = gate.given() && !gate_first ? z * act(gate) : z;
  });

  op.kernel([&](Kernel k) {
    Rows i = k.rows();
    auto added = [&](Columns j) -> Tile { return residual.given() ? x(i, j) + residual(i, j) : Tile(x(i, j)); };
    auto normed = [&](Columns j) { return gate.given() && gate_first ? added(j) * act(gate(i, j)) : added(j); };
    Tile mean = k.rowmean(D, [&](Columns j) {
      Tile r = normed(j);
      return r * r;
    });
    Tile scale = rsqrt(mean + eps);
    k.columns(D, [&](Columns j) {
      if (sum.given()) sum(i, j) = added(j);
      Tile z = normed(j) * scale;
      if (weight.given()) z = z * weight(j);
      if (bias.given()) z = z + bias(j);
      y(i, j) = gate.given() && !gate_first ? z * act(gate(i, j)) : z;
    });
  });
}
