#include "latile/dsl.h"
using namespace latile;

void window_columns(Operator& op) {
  auto [D, W] = op.dims("D", "W");
  auto x = op.sequence("x", {D});
  auto w = op.param("w", {W, D});
  auto y = op.output("y", {D});
  auto h = op.carry("h", {W, D});
  op.kernel([&](Kernel k) {
    Rows i = k.rows();
    Tile s = k.rowsum(W, [&](Columns j) { return w(j) * 1; });  // MISTAKE window of 'w': columns of W, while its last extent is D
    y(i) = x(i);
  });
  op.kernel([&](Kernel k) {
    Rows e = k.last(W);
    h(e) = x(e, h);
  });
}
