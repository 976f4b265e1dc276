// Pieces of definitions that several operators share: gates and factors computed in the kernel, second keys.
#pragma once
#include "latile/dsl.h"
#include <optional>

namespace latile {

/// Of options that treat the columns of a delta rule's state differently.
inline constexpr const char* one_inverse_each =
    "each column of the state has a triangular system of its own, and a body solves one for all columns";

/// Option beta: the factor as it is given, or in the kernel σ of it, or 2σ, which lets eigenvalues go down to −1.
inline void factor_form(Operator& op, Input beta) {
  auto form = op.choice("beta", {"given", "sigmoid", "twice_sigmoid"});
  if (form != "given") beta.through([&](Tile x) { return (form == "sigmoid" ? 1 : 2) * sigmoid(x); });
}

/// Options of a gate for each channel. gate_in_kernel: g is −e^A softplus(g + bias) or, with the option lower_bound,
/// which is negative, lower_bound · σ(e^A (g + bias)). safe_gate: the caller promises that no gate is less than −5.
inline void channel_gate(Operator& op, Input g, Dim heads, Dim K) {
  const bool safe = op.flag("safe_gate");
  if (safe) g.within(-5, 0);
  if (!op.flag("gate_in_kernel")) return;
  op.require(g.given(), "gate_in_kernel needs the gate's input, which is not bound");
  const auto bound = op.number("lower_bound", -5, 0);
  op.require(!safe || bound, "safe_gate together with gate_in_kernel needs lower_bound, from -5 to 0");
  auto A_log = op.param("A_log", {heads}), bias = op.param("dt_bias", {heads, K}).optional();
  if (bound) A_log.optional(), g.within(*bound, 0);
  g.through([&](Tile x) {
    if (bias.given()) x = x + bias;
    if (!bound) return -exp(A_log) * softplus(x);
    return *bound * sigmoid(A_log.given() ? exp(A_log) * x : x);
  });
}

/// What a caller promises of its gates: safe_gate, that none is less than −5, or the least one as lower_bound.
inline void promised_gate(Operator& op, Input g) {
  const bool safe = op.flag("safe_gate");
  const auto bound = op.number("lower_bound", -5, 0);
  if (safe || bound) g.within(bound ? *bound : -5, 0);
}

/// Decays beside a scalar one: option key_gate brings in gk for the rows of a state, value_gate gv for its columns.
struct FurtherDecays {
  std::optional<Input> gk, gv;

  FurtherDecays(Operator& op, Dim heads, Dim K, Dim V) {
    if (op.flag("key_gate")) gk.emplace(op.gate("gk", {heads, K}));
    if (op.flag("value_gate")) gv.emplace(op.gate("gv", {heads, V}));
  }
  Tile operator()(Tile S) const {
    if (gk) S = exp2(*gk).col() * S;
    return gv ? S * exp2(*gv) : S;
  }
  /// Of both gates of the rows together, for a chunk.
  Tile rows(Arg g) const { return max(*gk + g, -126); }
};

/// A second key for writing, k x^(−s) with s = r / (1 + |r|), r = ln(A + eps) − c, from a decaying sum of squared keys
/// A = e^(g_atk) A + beta_atk k²; both are those of a key head.
struct Preconditioner {
  Input g, beta, c;
  Operand x, eps;
  Carry A;

  Preconditioner(Operator& op, Dim H, Dim K)
      : g(op.gate("g_atk", {H})), beta(op.sequence("beta_atk", {H}, Type::any)),
        c(op.param("log_atk_scale", {H}).optional()), x(op.scalar("x", 1.5)), eps(op.scalar("eps", 1e-6)),
        A(op.carry("A", {H, K})) {
    A.typical(0, 2);
  }

  Tile token(Arg k) {
    A = exp2(g) * A + beta * k * k;
    return write_key(k, A);
  }
  Tile chunk(Arg k) {
    Tile G = cumsum(g), sums = exp2(G) * A + dot(decay(G, G, lower), beta * k * k, Dot::precise);
    A = last(sums);
    return write_key(k, sums);
  }

private:
  Tile write_key(Arg k, Arg sums) const {
    Tile r = log(sums + eps) - (c.given() ? Arg(c) : Arg(-0.2));
    return k * exp2(-(r / (1 + max(r, -r))) * log2(x));
  }
};

}  // namespace latile
