#include "ops/Gates.h"
using namespace latile;

/// S += k (beta (v − Sᵀ k))ᵀ, o = Sᵀ (scale q). With headwise_beta each value channel has its own beta, which only
/// modes recurrent and step take.
void delta_rule(Operator& op) {
  auto [H, HV] = op.heads("H", "HV % H");
  auto [K, V] = op.dims("K", "V");
  auto q = op.sequence("q", {H, K}), k = op.sequence("k", {H, K}), v = op.sequence("v", {HV, V});
  const bool headwise = op.flag("headwise_beta");
  auto beta = headwise ? op.sequence("beta", {HV, V}, Type::any) : op.sequence("beta", {HV}, Type::any);
  beta.optional();
  auto scale = op.scalar("scale");
  auto o = op.output("o", {HV, V});
  auto S = op.carry("S", {HV, K, V});

  if (op.flag("qk_l2norm")) q.through(l2norm), k.through(l2norm);
  factor_form(op, beta);
  auto factor = [&] { return beta.given() ? Arg(beta) : Arg(1); };

  op.reference([&](Token) {
    S = S + outer(k, factor() * (v - dot(k, S)));
    o = scale * dot(q, S);
  });
  if (headwise) return op.no_prefill(one_inverse_each);

  op.chunk([&](Chunk) {
    Tile T = inverse_unit_lower(factor() * dot(k, k.T()));
    Tile v_new = dot(T, factor() * (v - dot(k, S)));
    o = scale * (dot(q, S) + dot(masked(dot(q, k.T()), lower), v_new));
    S = S + dot(k.T(), v_new);
  });
}
