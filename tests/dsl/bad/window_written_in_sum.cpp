#include "latile/dsl.h"
using namespace latile;

void window_written_in_sum(Operator& op) {
  auto [D, W] = op.dims("D", "W");
  auto x = op.sequence("x", {D});
  auto w = op.param("w", {W, D});
  auto y = op.output("y", {D});
  auto h = op.carry("h", {W, D});
  op.kernel([&](Kernel k) {
    Rows i = k.rows();
    Tile s = k.rowsum(D, [&](Columns j) {
      y(i, j) = 2 * x(i, j);  // MISTAKE 'y' is written inside a sum or loop
      return x(i, j) + 0;
    });
    y(i) = s;
  });
  op.kernel([&](Kernel k) {
    Rows e = k.last(W);
    h(e) = x(e, h);
  });
}
