#include "latile/dsl.h"
using namespace latile;

void window_other_rows(Operator& op) {
  auto [D, W] = op.dims("D", "W");
  auto x = op.sequence("x", {D});
  auto w = op.param("w", {W, D});
  auto y = op.output("y", {D});
  auto h = op.carry("h", {W, D});
  op.kernel([&](Kernel k) {
    Rows i = k.rows();
    y(i - 1) = 2 * x(i);  // MISTAKE 'y' is written at other rows than the program's own
    y(i) = x(i);
  });
  op.kernel([&](Kernel k) {
    Rows e = k.last(W);
    h(e) = x(e, h);
  });
}
