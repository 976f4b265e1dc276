// Unit lower triangular systems, by substitution in float32: a thread owns a column of the right-hand side.
#include "codegen/simt/KernelEmitter.h"

namespace latile::simt {

using namespace tile;

// Blocks of 16 rows: what lies above is subtracted with 16 sums in registers, then the block's own rows one by one.
// Columns past `columns` are padding and stay as they are.
void KernelEmitter::substitute(const Copy& factor, const Copy& x, std::int64_t rows, std::int64_t columns) {
  accesses({factor}, {x});
  t_.spread(columns, [&](Ir column) {
    for (std::int64_t from = 0; from < rows; from += 16) {
      std::int64_t size = std::min<std::int64_t>(16, rows - from);
      SmallVector<Ir> sums;
      for (std::int64_t i = 0; i < size; ++i) sums.push_back(element(x, t_.i32(from + i), column));
      if (from)
        sums = t_.loop(t_.i32(0), t_.i32(from), 1, sums, [&](Ir j, ArrayRef<Ir> so_far) {
          Ir minus = b_.CreateFNeg(element(x, j, column));
          SmallVector<Ir> next;
          for (std::int64_t i = 0; i < size; ++i)
            next.push_back(t_.fma(element(factor, t_.i32(from + i), j), minus, so_far[static_cast<std::size_t>(i)]));
          return next;
        });
      for (std::int64_t i = 0; i < size; ++i) {
        Ir& sum = sums[static_cast<std::size_t>(i)];
        for (std::int64_t j = 0; j < i; ++j)
          sum = t_.fma(element(factor, t_.i32(from + i), t_.i32(from + j)),
                       b_.CreateFNeg(sums[static_cast<std::size_t>(j)]), sum);
        set_element(x, t_.i32(from + i), column, sum);
      }
    }
  });
}

void KernelEmitter::emit_triangular(mlir::Operation* op) {
  mlir::Value v = op->getResult(0);
  std::int64_t rows = extents(v)[0], columns = extents(v)[1];
  Copy factor = copy(op->getOperand(0));
  if (!failure_.empty()) return;
  if (auto solve = mlir::dyn_cast<SolveUnitLowerOp>(op)) {
    Copy x = fresh_copy(solve.getB());
    if (!failure_.empty()) return;
    substitute(factor, x, rows, columns);
    return define(v, x);
  }
  // The identity is the right-hand side of an inverse.
  Copy x = reserve(rows, columns, b_.getFloatTy());
  writes(x);
  t_.spread(x.rows * x.columns, [&](Ir e) {
    Ir row = t_.div(e, x.columns), column = t_.rem(e, x.columns);
    Ir one = b_.CreateAnd(b_.CreateICmpEQ(row, column), b_.CreateICmpSLT(row, t_.i32(rows)));
    set_element(x, row, column, b_.CreateSelect(one, t_.f32(1), t_.f32(0)));
  });
  substitute(factor, x, rows, columns);
  define(v, x);
}

}  // namespace latile::simt
