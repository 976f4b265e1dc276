// An operator of one's own, outside latile's tree: the gated delta rule read before it is written, where the token
// itself counts with a learned bonus instead (as in RWKV). The program is the `latile` command with one operator more.
#include "latile/dsl.h"
#include "latile/table.h"
#include "latile/tool.h"
using namespace latile;

/// o = Sᵀ (scale q) + (scale q · u ∘ k) v; then S = e^g S, S += k (beta (v − Sᵀ k))ᵀ.
void bonus_delta(Operator& op) {
  auto [H, HV] = op.heads("H", "HV % H");
  auto [K, V] = op.dims("K", "V");
  auto q = op.sequence("q", {H, K}), k = op.sequence("k", {H, K}), v = op.sequence("v", {HV, V});
  auto g = op.gate("g", {HV}).optional();
  auto beta = op.sequence("beta", {HV}, Type::any);
  auto u = op.param("u", {H, K}).optional();
  auto scale = op.scalar("scale");
  auto o = op.output("o", {HV, V});
  auto S = op.carry("S", {HV, K, V});

  if (op.flag("qk_l2norm")) q.through(l2norm), k.through(l2norm);
  auto bonus = [&] { return u.given() ? rowsum(q * u * k) * v : 0 * v; };

  op.reference([&](Token) {
    o = scale * (dot(q, S) + bonus());
    S = exp2(g) * S;
    S = S + outer(k, beta * (v - dot(k, S)));
  });

  op.chunk([&](Chunk) {
    Tile G = cumsum(g), Gl = last(G);
    Tile before = cumsum(g, {.exclusive = true});
    Tile T = inverse_unit_lower(beta * dot(k, k.T()) * decay(G, G, strict));
    Tile v_new = dot(T, beta * (v - exp2(G) * dot(k, S)));
    Tile scores = dot(q, k.T()) * decay(before, G, strict);
    o = scale * (exp2(before) * dot(q, S) + dot(scores, v_new) + bonus());
    S = exp2(Gl) * S + dot((exp2(Gl - G) * k).T(), v_new);
  });
}

int main(int argc, char** argv) {
  register_operator({"bonus_delta", bonus_delta, "the gated delta rule, read before it is written", 5e-3, 5e-3});
  return tool_main(argc, argv);
}
