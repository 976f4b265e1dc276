#include "latile/dsl.h"
using namespace latile;

void window_shape(Operator& op) {
  auto [D, W] = op.dims("D", "W");
  auto x = op.sequence("x", {D});
  auto w = op.param("w", {W, D});
  auto y = op.output("y", {D});
  auto h = op.carry("h", {W, D});
  op.kernel([&](Kernel k) {
    Rows i = k.rows();
    y(i) = rowsum(x(i)).T() * 2;  // MISTAKE 'y' is written as [C, D], the assigned tile is [1, C]
  });
  op.kernel([&](Kernel k) {
    Rows e = k.last(W);
    h(e) = x(e, h);
  });
}
