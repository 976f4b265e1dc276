#include "latile/dsl.h"
using namespace latile;

/// y_t = x_(t − 1) − x_t. `state` is the last row of a sequence, and the row before its first.
void token_shift(Operator& op) {
  auto [D] = op.dims("D");
  auto x = op.sequence("x", {D});
  auto y = op.output("y", {D});
  auto state = op.carry("state", {D});

  op.reference([&](Token) {
    y = state - x;
    state = x;
  });

  op.kernel([&](Kernel k) {
    Rows i = k.rows();
    k.columns(D, [&](Columns j) { y(i, j) = x(i - 1, j, state) - x(i, j); });
  });
  op.kernel([&](Kernel k) {
    Rows e = k.last();
    k.columns(D, [&](Columns j) { state(e, j) = x(e, j, state); });
  });
}
