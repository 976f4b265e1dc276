// Ops with regions: conjugate gradients for the rows of a tile, and an author's own function.
#include "codegen/simt/KernelEmitter.h"

namespace latile::simt {

using namespace tile;

void KernelEmitter::emit_custom(CustomOp op) {
  mlir::Block& block = op.getForward().front();
  Layout layout = layout_of(op.getX());
  SmallVector<Ir> x = get(op.getX(), layout), y;
  Layout out = layout_of(op.getTile());
  in_scope([&] {
    define(block.getArgument(0), layout, x);
    emit_block(block);
    if (failure_.empty()) y = get(block.getTerminator()->getOperand(0), out);
    release_after(block.getTerminator());
  });
  if (failure_.empty()) define(op.getTile(), out, y);
}

// Each row is a system of its own: x += a p, r -= a map(p), p = r + b p. A row whose residual is exactly 0 stops.
void KernelEmitter::emit_solve(SolveOp op) {
  mlir::Value v = op.getTile();
  mlir::Block& map = op.getMap().front();
  std::int64_t rows = extents(v)[0], columns = extents(v)[1];
  bool vector = rows == 1 || columns == 1;
  Layout layout = layout_of(v), slice = vector && columns == 1 ? layout : layout.slice(Axis::columns);
  auto count = static_cast<std::size_t>(layout.registers());
  auto row_of = [&](std::size_t r) {
    return columns == 1 ? r : static_cast<std::size_t>(layout.slice_register(Axis::columns, static_cast<int>(r)));
  };
  auto dot = [&](ArrayRef<Ir> a, ArrayRef<Ir> c) {
    SmallVector<Ir> products;
    for (std::size_t k = 0; k < count; ++k) products.push_back(b_.CreateFMul(a[k], c[k]));
    if (columns == 1) return products;
    return reduce({layout, products}, Axis::columns, rows, columns, 0.0,
                  [&](Ir x, Ir y) { return b_.CreateFAdd(x, y); })
        .values;
  };
  auto ratio = [&](Ir a, Ir c) {
    Ir usable = b_.CreateFCmpUNE(c, t_.f32(0));
    return b_.CreateSelect(usable, b_.CreateFDiv(a, b_.CreateSelect(usable, c, t_.f32(1))), t_.f32(0));
  };
  SmallVector<Ir> rhs = get(op.getRhs(), layout);
  if (!failure_.empty()) return;
  SmallVector<Ir> state(count, t_.f32(0));  // x, then residual, direction, squares
  state.append(rhs);
  state.append(rhs);
  state.append(dot(rhs, rhs));
  SmallVector<Ir> last =
      t_.loop(t_.i32(0), t_.i32(static_cast<std::int64_t>(op.getSteps())), 1, state, [&](Ir, ArrayRef<Ir> now) {
        SmallVector<Ir> x(now.slice(0, count)), residual(now.slice(count, count)), p(now.slice(2 * count, count)),
            squares(now.slice(3 * count)), image;
        barrier();
        in_scope([&] {
          define(map.getArgument(0), layout, p);
          emit_block(map);
          if (failure_.empty()) image = get(map.getTerminator()->getOperand(0), layout);
          release_after(map.getTerminator());
        });
        if (!failure_.empty()) return SmallVector<Ir>(now);
        SmallVector<Ir> curvature = dot(p, image);
        for (std::size_t k = 0; k < count; ++k) {
          Ir step = ratio(squares[row_of(k)], curvature[row_of(k)]);
          x[k] = t_.fma(step, p[k], x[k]);
          residual[k] = t_.fma(b_.CreateFNeg(step), image[k], residual[k]);
        }
        SmallVector<Ir> next = dot(residual, residual);
        for (std::size_t k = 0; k < count; ++k) {
          Ir turn = ratio(next[row_of(k)], squares[row_of(k)]);
          p[k] = t_.fma(turn, p[k], residual[k]);
        }
        SmallVector<Ir> out(x);
        out.append(residual);
        out.append(p);
        out.append(next);
        return out;
      });
  barrier();
  define(v, layout, SmallVector<Ir>(ArrayRef<Ir>(last).slice(0, count)));
}

}  // namespace latile::simt
