#include "latile/dsl.h"
using namespace latile;

void tap_of_sequence(Operator& op) {
  auto [D, W] = op.dims("D", "W");
  auto x = op.sequence("x", {D});
  auto w = op.param("w", {W, D});
  auto y = op.output("y", {D});
  auto h = op.carry("h", {W, D});
  op.kernel([&](Kernel k) {
    Rows i = k.rows();
    y(i) = k.sum(W, [&](Tap t) { return x(t) * 2; });  // MISTAKE window of 'x': a tap of W picks a row of a parameter
  });
  op.kernel([&](Kernel k) {
    Rows e = k.last(W);
    h(e) = x(e, h);
  });
}
