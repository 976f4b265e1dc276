#include "latile/dsl.h"
using namespace latile;

void kernel_two_grids(Operator& op) {
  auto [D, W] = op.dims("D", "W");
  auto x = op.sequence("x", {D});
  auto w = op.param("w", {W, D});
  auto y = op.output("y", {D});
  auto h = op.carry("h", {W, D});
  op.kernel([&](Kernel k) {
    Rows i = k.rows();
    Rows e = k.last(W);  // MISTAKE a kernel has one grid
    y(i) = x(i) + colsum(x(e));
  });
  op.kernel([&](Kernel k) {
    Rows e = k.last(W);
    h(e) = x(e, h);
  });
}
