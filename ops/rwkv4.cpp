#include "latile/dsl.h"
using namespace latile;

/// For each channel, with the decay e^(−e^w) and the bonus u: o = Σ e^(k_j + decays) v_j / Σ e^(k_j + decays), where
/// the token itself has e^(u + k) instead. alpha and beta are the two sums, both divided by e^eps.
void rwkv4(Operator& op) {
  auto [D] = op.dims("D");
  auto k = op.sequence("k", {D}), v = op.sequence("v", {D});
  auto w = op.param("w", {D}), u = op.param("u", {D});
  w.through([](Tile x) { return -exp(x); });
  auto o = op.output("o", {D});
  auto alpha = op.carry("alpha", {D}), beta = op.carry("beta", {D}), eps = op.carry("eps", {D});
  op.no_segment("its sums are kept relative to a running maximum, which is not affine in the state");

  auto output = [&](Arg a, Arg b, Arg e) {
    Tile now = u + k, top = max(now, e), past = exp(e - top), own = exp(now - top);
    o = (past * a + own * v) / (past * b + own);
  };
  op.reference([&](Token) {
    output(alpha, beta, eps);
    Tile top = max(w + eps, k), past = exp(w + eps - top), own = exp(k - top);
    alpha = past * alpha + own * v;
    beta = past * beta + own;
    eps = top;
  });

  op.chunk([&](Chunk c) {
    // Row i has decayed i + 1 times. Without these decays the maximum is a running one.
    Tile times = c.iota() + 1, x = k - times * w, top = cummax(x, eps), top_before = prev(top, eps);
    Tile step = log2_gate(top_before - top), own = exp(x - top);
    Tile a = affine_scan(step, own * v, alpha), b = affine_scan(step, own, beta);
    output(prev(a, alpha), prev(b, beta), top_before + c.iota() * w);
    alpha = last_valid(a), beta = last_valid(b);
    eps = last_valid(top) + c.count() * w;
  });
}
