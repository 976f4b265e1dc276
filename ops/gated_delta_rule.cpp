#include "ops/Gates.h"
using namespace latile;

/// S = e^g S, S += k (beta (v − Sᵀ k))ᵀ, o = Sᵀ (scale q). Options: key_gate, a decay for each key channel beside g;
/// and for modes recurrent and step value_gate, one for each value channel, and headwise_beta, a factor for each.
void gated_delta_rule(Operator& op) {
  auto [H, HV] = op.heads("H", "HV % H");
  auto [K, V] = op.dims("K", "V");
  auto q = op.sequence("q", {H, K}), k = op.sequence("k", {H, K}), v = op.sequence("v", {HV, V});
  auto g = op.gate("g", {HV}).optional();
  const bool headwise = op.flag("headwise_beta");
  auto beta = headwise ? op.sequence("beta", {HV, V}, Type::any).typical(0, 1) : op.sequence("beta", {HV}, Type::any);
  auto scale = op.scalar("scale");
  auto o = op.output("o", {HV, V});
  auto S = op.carry("S", {HV, K, V});
  const FurtherDecays further(op, HV, K, V);

  if (op.flag("qk_l2norm")) q.through(l2norm), k.through(l2norm);
  if (op.flag("gate_in_kernel")) {
    op.require(g.given(), "gate_in_kernel needs the gate's input g, which is not bound");
    auto A_log = op.param("A_log", {HV}), bias = op.param("dt_bias", {HV}).optional();
    g.through([&](Tile x) { return -exp(A_log) * softplus(bias.given() ? x + bias : x); });
  }
  factor_form(op, beta);

  op.reference([&](Token) {
    S = further(exp2(g) * S);
    S = S + outer(k, beta * (v - dot(k, S)));
    o = scale * dot(q, S);
  });

  if (headwise || further.gv) return op.no_prefill(one_inverse_each);
  if (further.gk)
    return op.chunk([&](Chunk) {
      Tile G = cumsum(further.rows(g)), Gl = last(G);
      Tile T = inverse_unit_lower(beta * decayed_scores(k, k, G, G, strict));
      Tile v_new = dot(T, beta * (v - dot(k * exp2(G), S)));
      o = scale * (dot(q * exp2(G), S) + dot(decayed_scores(q, k, G, G, lower), v_new));
      S = exp2(Gl).col() * S + dot((k * exp2(Gl - G)).T(), v_new);
    });
  op.chunk([&](Chunk) {
    Tile G = cumsum(g), Gl = last(G);
    Tile T = inverse_unit_lower(beta * dot(k, k.T()) * decay(G, G, strict));
    Tile v_new = dot(T, beta * (v - exp2(G) * dot(k, S)));
    o = scale * (exp2(G) * dot(q, S) + dot(dot(q, k.T()) * decay(G, G, lower), v_new));
    S = exp2(Gl) * S + dot((exp2(Gl - G) * k).T(), v_new);
  });
}
