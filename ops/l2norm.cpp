#include "latile/dsl.h"
using namespace latile;

/// y = x / √(Σ x² + eps), over the last extent.
void l2norm(Operator& op) {
  auto [H] = op.heads("H");
  auto [D] = op.dims("D");
  auto x = op.sequence("x", {H, D});
  auto eps = op.scalar("eps", 1e-6);
  auto y = op.output("y", {H, D}, Type::any);

  op.reference([&](Token) { y = x * rsqrt(rowsum(x * x) + eps); });

  op.kernel([&](Kernel k) {
    Rows i = k.rows();
    Tile squares = k.rowsum(D, [&](Columns j) {
      Tile X = x(i, j);
      return X * X;
    });
    k.columns(D, [&](Columns j) { y(i, j) = x(i, j) * rsqrt(squares + eps); });
  });
}
