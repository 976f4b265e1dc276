#include "latile/dsl.h"
using namespace latile;

void kernel_never_writes(Operator& op) {
  auto [D, W] = op.dims("D", "W");
  auto x = op.sequence("x", {D});
  auto y = op.output("y", {D});
  auto h = op.carry("h", {W, D});  // MISTAKE no kernel writes 'h'
  op.kernel([&](Kernel k) {
    Rows i = k.rows();
    y(i) = x(i);
  });
}
