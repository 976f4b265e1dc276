#include "latile/dsl.h"
using namespace latile;

void window_of_prologue(Operator& op) {
  auto [D] = op.dims("D");
  auto x = op.sequence("x", {D});
  x.through([](Tile t) { return sigmoid(t); });
  auto y = op.output("y", {D});
  op.kernel([&](Kernel k) {
    Rows i = k.rows();
    y(i) = x(i) * 2;  // MISTAKE window of 'x': through(), neutral values, gates and rates are for chunk bodies
  });
}
