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

/// A square of a copy: rows and columns from `row` and `column` on.
static Copy block_of(const Copy& c, std::int64_t row, std::int64_t column) {
  Copy out = c;
  if (c.transposed) std::swap(row, column);
  out.region.begin += row * c.pitch + column * bytes_of(c.element);
  return out;
}

// Diagonal blocks of 16 first, all at once: a thread owns a column of one. Two inverses side by side are then merged by
// products: the block below them is -T22 A21 T11. `x` is zero above the diagonal blocks.
void KernelEmitter::invert(const Copy& factor, const Copy& x, std::int64_t rows) {
  accesses({factor}, {x});
  t_.spread(rows, [&](Ir column) {
    Ir local = t_.rem(column, 16), first = b_.CreateSub(column, local);
    SmallVector<Ir> sums;
    for (int i = 0; i < 16; ++i) {
      Ir sum = b_.CreateSelect(b_.CreateICmpEQ(local, t_.i32(i)), t_.f32(1), t_.f32(0));
      for (int j = 0; j < i; ++j)
        sum = t_.fma(element(factor, first, first, {i, j}), b_.CreateFNeg(sums[static_cast<std::size_t>(j)]), sum);
      sums.push_back(sum);
      set_element(x, first, column, sum, {i, 0});
    }
  });
  auto operand = [](const Copy& c) {
    Operand o;
    o.copy = c;
    o.element = c.element;
    return o;
  };
  for (std::int64_t size = 16; size < rows; size *= 2) {
    struct Pair {
      std::int64_t at, height;
      Copy between;
    };
    std::vector<Pair> pairs;
    for (std::int64_t at = 0; at + size < rows; at += 2 * size) {
      const std::int64_t height = std::min(size, rows - at - size);
      pairs.push_back({at, height, reserve(height, size, b_.getFloatTy())});
    }
    for (const Pair& p : pairs) {
      Layout layout = accumulators(p.height, size);
      SmallVector<Ir> zero(static_cast<std::size_t>(layout.registers()), t_.f32(0));
      Registers sums{
          layout, product(operand(block_of(factor, p.at + size, p.at)), block_of(x, p.at, p.at), size, layout, zero)};
      writes(p.between);
      store(sums, p.between, p.height, size);
    }
    for (const Pair& p : pairs) {
      Layout layout = accumulators(p.height, size);
      SmallVector<Ir> zero(static_cast<std::size_t>(layout.registers()), t_.f32(0));
      const Copy corner = block_of(x, p.at + size, p.at + size), below = block_of(x, p.at + size, p.at);
      SmallVector<Ir> sums = product(operand(corner), p.between, p.height, layout, zero);
      writes(below);
      auto put = [&] {
        for (int r = 0; r < layout.registers(); ++r) {
          const PlaceIr at = t_.place(layout);
          set_element(below, at.row, at.column, b_.CreateFNeg(sums[static_cast<std::size_t>(r)]), layout.at(r, 0, 0));
        }
      };
      if (Ir first = t_.is_first_replica(layout))
        t_.when(first, put);
      else
        put();
    }
    for (const Pair& p : pairs) scratch_.release(p.between.region);
  }
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
  const bool blocks = rows % 16 == 0;
  // The identity is the right-hand side of an inverse; merged blocks start from zero.
  Copy x = reserve(rows, columns, b_.getFloatTy());
  writes(x);
  t_.spread(x.rows * x.columns, [&](Ir e) {
    Ir row = t_.div(e, x.columns), column = t_.rem(e, x.columns);
    Ir one = blocks ? static_cast<Ir>(b_.getFalse())
                    : b_.CreateAnd(b_.CreateICmpEQ(row, column), b_.CreateICmpSLT(row, t_.i32(rows)));
    set_element(x, row, column, b_.CreateSelect(one, t_.f32(1), t_.f32(0)));
  });
  if (blocks)
    invert(factor, x, rows);
  else
    substitute(factor, x, rows, columns);
  define(v, x);
}

}  // namespace latile::simt
