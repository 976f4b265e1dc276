#include "ops/Gates.h"
using namespace latile;

/// The gated delta rule that reads with k and writes with a preconditioned key κ: S = e^g S, S += κ (beta (v − Sᵀ k))ᵀ,
/// o = Sᵀ (scale q). Options: key_gate, a decay for each key channel beside g; and for modes recurrent and step
/// value_gate, one for each value channel.
void precond_gated_delta_rule(Operator& op) {
  auto [H, HV] = op.heads("H", "HV % H");
  auto [K, V] = op.dims("K", "V");
  auto q = op.sequence("q", {H, K}), k = op.sequence("k", {H, K}), v = op.sequence("v", {HV, V});
  auto g = op.gate("g", {HV}).optional();
  auto beta = op.sequence("beta", {HV}, Type::any);
  auto scale = op.scalar("scale");
  auto o = op.output("o", {HV, V});
  auto S = op.carry("S", {HV, K, V});
  const FurtherDecays further(op, HV, K, V);
  Preconditioner preconditioned(op, H, K);

  if (op.flag("qk_l2norm", true)) q.through(l2norm), k.through(l2norm);
  factor_form(op, beta);

  op.reference([&](Token) {
    Tile kappa = preconditioned.token(k);
    S = further(exp2(g) * S);
    S = S + outer(kappa, beta * (v - dot(k, S)));
    o = scale * dot(q, S);
  });

  if (further.gv) return op.no_prefill(one_inverse_each);
  if (further.gk)
    return op.chunk([&](Chunk) {
      Tile G = cumsum(further.rows(g)), Gl = last(G), kappa = preconditioned.chunk(k);
      Tile T = inverse_unit_lower(beta * decayed_scores(k, kappa, G, G, strict));
      Tile v_new = dot(T, beta * (v - dot(k * exp2(G), S)));
      o = scale * (dot(q * exp2(G), S) + dot(decayed_scores(q, kappa, G, G, lower), v_new));
      S = exp2(Gl).col() * S + dot((kappa * exp2(Gl - G)).T(), v_new);
    });
  op.chunk([&](Chunk) {
    Tile G = cumsum(g), Gl = last(G), kappa = preconditioned.chunk(k);
    Tile T = inverse_unit_lower(beta * dot(k, kappa.T()) * decay(G, G, strict));
    Tile v_new = dot(T, beta * (v - exp2(G) * dot(k, S)));
    o = scale * (exp2(G) * dot(q, S) + dot(dot(q, kappa.T()) * decay(G, G, lower), v_new));
    S = exp2(Gl) * S + dot((exp2(Gl - G) * kappa).T(), v_new);
  });
}
