#include "latile/dsl.h"
using namespace latile;

/// h = e^g h + x, o = h, element by element.
void hgrn(Operator& op) {
  auto [D] = op.dims("D");
  auto x = op.sequence("x", {D});
  auto g = op.gate("g", {D});
  auto o = op.output("o", {D});
  auto h = op.carry("h", {D});

  op.reference([&](Token) {
    h = exp2(g) * h + x;
    o = h;
  });

  op.chunk([&](Chunk) {
    Tile y = affine_scan(g, x, h);
    o = y;
    h = last(y);
  });
}
