#include "latile/dsl.h"
using namespace latile;

void columns_reduced(Operator& op) {
  auto [D, W] = op.dims("D", "W");
  auto x = op.sequence("x", {D});
  auto w = op.param("w", {W, D});
  auto y = op.output("y", {D});
  auto h = op.carry("h", {W, D});
  op.kernel([&](Kernel k) {
    Rows i = k.rows();
    y(i) = x(i) * k.rowsum(D, [&](Columns j) { return rowsum(x(i, j)); });  // MISTAKE the function gives [C, 1]
  });
  op.kernel([&](Kernel k) {
    Rows e = k.last(W);
    h(e) = x(e, h);
  });
}
