#include "latile/dsl.h"
using namespace latile;

void carry_rows(Operator& op) {
  auto [D, W] = op.dims("D", "W");
  auto x = op.sequence("x", {D});
  auto w = op.param("w", {W, D});
  auto y = op.output("y", {D});
  auto h = op.carry("h", {W, D});
  op.kernel([&](Kernel k) {
    Rows i = k.rows();
    y(i) = x(i) * 2;
    h(i) = x(i) * 2;  // MISTAKE carry 'h' is written by a kernel over last(W)
  });
}
