#include "latile/dsl.h"
using namespace latile;

void window_before(Operator& op) {
  auto [D, W] = op.dims("D", "W");
  auto x = op.sequence("x", {D});
  auto y = op.output("y", {D});
  auto h = op.carry("h", {W});
  op.kernel([&](Kernel k) {
    Rows i = k.rows();
    y(i) = x(i - 1, h) * 2;  // MISTAKE window of 'x': state 'h' of [1, W] cannot hold rows before it
  });
  op.kernel([&](Kernel k) {
    Rows e = k.last();
    h(e) = rowsum(x(e));
  });
}
