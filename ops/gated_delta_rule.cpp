#include "latile/dsl.h"
using namespace latile;

/// S = e^g S, S += k (beta (v − Sᵀ k))ᵀ, o = Sᵀ (scale q).
void gated_delta_rule(Operator& op) {
  auto [H, HV] = op.heads("H", "HV % H");
  auto [K, V] = op.dims("K", "V");
  auto q = op.sequence("q", {H, K}), k = op.sequence("k", {H, K}), v = op.sequence("v", {HV, V});
  auto g = op.gate("g", {HV}).optional();
  auto beta = op.sequence("beta", {HV}, Type::any);
  auto scale = op.scalar("scale");
  auto o = op.output("o", {HV, V});
  auto S = op.carry("S", {HV, K, V});

  if (op.flag("qk_l2norm")) q.through(l2norm), k.through(l2norm);
  if (op.flag("gate_in_kernel")) {
    op.require(g.given(), "gate_in_kernel needs the gate's input g, which is not bound");
    auto A_log = op.param("A_log", {HV}), bias = op.param("dt_bias", {HV}).optional();
    g.through([&](Tile x) { return -exp(A_log) * softplus(bias.given() ? x + bias : x); });
  }
  auto form = op.choice("beta", {"given", "sigmoid", "twice_sigmoid"});  // twice: eigenvalues from −1
  if (form != "given") beta.through([&](Tile x) { return (form == "sigmoid" ? 1 : 2) * sigmoid(x); });

  op.reference([&](Token) {
    S = exp2(g) * S;
    S = S + outer(k, beta * (v - dot(k, S)));
    o = scale * dot(q, S);
  });

  op.chunk([&](Chunk) {
    Tile G = cumsum(g), Gl = last(G);
    Tile T = inverse_unit_lower(beta * dot(k, k.T()) * decay(G, G, strict));
    Tile v_new = dot(T, beta * (v - exp2(G) * dot(k, S)));
    o = scale * (exp2(G) * dot(q, S) + dot(dot(q, k.T()) * decay(G, G, lower), v_new));
    S = exp2(Gl) * S + dot((exp2(Gl - G) * k).T(), v_new);
  });
}
