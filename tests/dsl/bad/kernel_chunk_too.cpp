#include "latile/dsl.h"
using namespace latile;

void kernel_chunk_too(Operator& op) {
  auto [D, W] = op.dims("D", "W");
  auto x = op.sequence("x", {D});
  auto w = op.param("w", {W, D});
  auto y = op.output("y", {D});
  auto h = op.carry("h", {W, D});
  op.kernel([&](Kernel k) {
    Rows i = k.rows();
    y(i) = x(i);
  });
  op.kernel([&](Kernel k) {
    Rows e = k.last(W);
    h(e) = x(e, h);
  });
  op.chunk([&](Chunk) {  // MISTAKE chunk and kernel are both given
    y = x;
    h = h + 1;
  });
}
