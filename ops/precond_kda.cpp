#include "ops/Gates.h"
using namespace latile;

/// kda that reads with k and writes with a preconditioned key κ: S = diag(e^g) S, S += κ (beta (v − Sᵀ k))ᵀ,
/// o = Sᵀ (scale q).
void precond_kda(Operator& op) {
  auto [H, HV] = op.heads("H", "HV % H");
  auto [K, V] = op.dims("K", "V");
  auto q = op.sequence("q", {H, K}), k = op.sequence("k", {H, K}), v = op.sequence("v", {HV, V});
  auto g = op.gate("g", {HV, K});
  auto beta = op.sequence("beta", {HV}, Type::any);
  auto scale = op.scalar("scale");
  auto o = op.output("o", {HV, V});
  auto S = op.carry("S", {HV, K, V});
  Preconditioner preconditioned(op, H, K);

  if (op.flag("qk_l2norm", true)) q.through(l2norm), k.through(l2norm);
  channel_gate(op, g, HV, K);
  factor_form(op, beta);

  op.reference([&](Token) {
    Tile kappa = preconditioned.token(k);
    S = exp2(g).col() * S;
    S = S + outer(kappa, beta * (v - dot(k, S)));
    o = scale * dot(q, S);
  });

  op.chunk([&](Chunk) {
    Tile G = cumsum(g), Gl = last(G), kappa = preconditioned.chunk(k);
    Tile T = inverse_unit_lower(beta * decayed_scores(k, kappa, G, G, strict));
    Tile v_new = dot(T, beta * (v - dot(k * exp2(G), S)));
    o = scale * (dot(q * exp2(G), S) + dot(decayed_scores(q, kappa, G, G, lower), v_new));
    S = exp2(Gl).col() * S + dot((kappa * exp2(Gl - G)).T(), v_new);
  });
}
