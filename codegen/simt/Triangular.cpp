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

// A thread owns a column of a diagonal block: row by row, what is known of the column is taken from the rows below.
void KernelEmitter::invert_diagonal(const Copy& factor, const Copy& x, std::int64_t rows) {
  t_.spread(rows, [&](Ir column) {
    Ir local = t_.rem(column, 16), first = b_.CreateSub(column, local);
    SmallVector<Ir, 16> sums;
    for (int i = 0; i < 16; ++i)
      sums.push_back(b_.CreateSelect(b_.CreateICmpEQ(local, t_.i32(i)), t_.f32(1), t_.f32(0)));
    for (int j = 0; j < 15; ++j) {
      SmallVector<Ir, 16> below;
      for (int i = j + 1; i < 16; ++i) below.push_back(element(factor, first, first, {i, j}));
      Ir minus = b_.CreateFNeg(sums[static_cast<std::size_t>(j)]);
      for (auto [k, a] : llvm::enumerate(below)) {
        Ir& sum = sums[static_cast<std::size_t>(j) + 1 + k];
        sum = t_.fma(a, minus, sum);
      }
    }
    for (int i = 0; i < 16; ++i) set_element(x, first, column, sums[static_cast<std::size_t>(i)], {i, 0});
  });
}

// Two inverses of `size` rows side by side: the square below them is -T22 A21 T11. A warp has a block of 16 × 16 of it;
// what it has of the first product is an operand of the second one in the registers where it is. Blocks of zeros in T22
// and T11 are left out.
void KernelEmitter::merge_inverses(const Copy& factor, const Copy& x, std::int64_t rows, std::int64_t size) {
  const std::int64_t blocks = size / 16, warps = t_.threads / t_.lanes;
  std::int64_t units = 0;
  for (std::int64_t at = 0; at + size < rows; at += 2 * size) units += std::min(size, rows - at - size) / 16 * blocks;
  accesses({factor, x}, {x});
  const Layout& fragment = target_.products.front().instruction.c;
  const Layout block = fragment.repeated({{Axis::columns, 16 / fragment.shape().column, Carrier::registers},
                                          {Axis::rows, 16 / fragment.shape().row, Carrier::registers}});
  const SmallVector<Ir> zero(static_cast<std::size_t>(block.registers()), t_.f32(0));
  auto stored = [](const Copy& c) { return Operand{c, {}, {}, c.element}; };
  auto made = [&](ArrayRef<Ir> sums) { return Operand{{}, SmallVector<Ir>(sums), block, b_.getFloatTy()}; };
  const PlaceIr origin{t_.i32(0), t_.i32(0)};
  using Body = llvm::function_ref<SmallVector<Ir>(Ir, ArrayRef<Ir>)>;
  auto each_block = [&](Ir low, Ir high, Body add) {
    return blocks == 1 ? add(t_.i32(0), zero) : t_.loop(low, high, 1, zero, add);
  };
  auto unit = [&](Ir number) {
    Ir in_pair = t_.rem(number, blocks * blocks), top = t_.mul(t_.div(number, blocks * blocks), 2 * size),
       below = t_.add(top, size), i = t_.div(in_pair, blocks), j = t_.rem(in_pair, blocks),
       row = t_.add(below, t_.mul(i, 16)), column = t_.add(top, t_.mul(j, 16));
    auto multiply = [&](const Operand& a, PlaceIr a_at, const Operand& b, PlaceIr b_at, ArrayRef<Ir> sums) {
      return product_of_warp(a, a_at, b, b_at, 16, block, sums);
    };
    // Block k of T22's columns and A21's rows is 0 ... i, of A21's columns and T11's rows j ... blocks - 1.
    auto upper = [&](Ir k) { return t_.add(top, t_.mul(k, 16)); };
    auto lower = [&](Ir k) { return t_.add(below, t_.mul(k, 16)); };
    auto over_t22 = [&](Body add) { return each_block(t_.i32(0), t_.add(i, 1), add); };
    auto over_t11 = [&](Body add) { return each_block(j, t_.i32(blocks), add); };
    SmallVector<Ir> sums;
    if (target_.free_operand == FreeOperand::a)
      sums = over_t11([&](Ir middle, ArrayRef<Ir> out) {
        SmallVector<Ir> first = over_t22([&](Ir k, ArrayRef<Ir> inner) {
          return multiply(stored(x), {row, lower(k)}, stored(factor), {lower(k), upper(middle)}, inner);
        });
        return multiply(made(first), origin, stored(x), {upper(middle), column}, out);
      });
    else
      sums = over_t22([&](Ir middle, ArrayRef<Ir> out) {
        SmallVector<Ir> first = over_t11([&](Ir k, ArrayRef<Ir> inner) {
          return multiply(stored(factor), {lower(middle), upper(k)}, stored(x), {upper(k), column}, inner);
        });
        return multiply(stored(x), {row, lower(middle)}, made(first), origin, out);
      });
    const PlaceIr lane{t_.add(row, t_.place_of_lane(fragment, Axis::rows)),
                       t_.add(column, t_.place_of_lane(fragment, Axis::columns))};
    for (int r = 0; r < block.registers(); ++r)
      set_element(x, lane.row, lane.column, b_.CreateFNeg(sums[static_cast<std::size_t>(r)]), block.at(r, 0, 0));
  };
  if (units <= warps)
    t_.when(b_.CreateICmpSLT(t_.warp, t_.i32(units)), [&] { unit(t_.warp); });
  else
    t_.loop(t_.warp, t_.i32(units), warps, unit);
}

// Diagonal blocks of 16 first, all at once, and zeros above them; then two neighbours at a time become one.
void KernelEmitter::invert(const Copy& factor, const Copy& x, std::int64_t rows) {
  accesses({factor}, {x});
  invert_diagonal(factor, x, rows);
  const std::int64_t pieces = rows / 4;
  t_.spread(rows * pieces, [&](Ir e) {
    Ir row = t_.div(e, pieces), column = t_.mul(t_.rem(e, pieces), 4);
    t_.when(b_.CreateICmpSLT(t_.div(row, 16), t_.div(column, 16)), [&] {
      auto* four = llvm::FixedVectorType::get(b_.getFloatTy(), 4);
      b_.CreateAlignedStore(llvm::Constant::getNullValue(four), pointer(x, row, column), llvm::Align(16));
    });
  });
  for (std::int64_t size = 16; size < rows; size *= 2) merge_inverses(factor, x, rows, size);
}

void KernelEmitter::emit_triangular(mlir::Operation* op) {
  mlir::Value v = op->getResult(0), a = op->getOperand(0);
  std::int64_t rows = extents(v)[0], columns = extents(v)[1];
  if (auto solve = mlir::dyn_cast<SolveUnitLowerOp>(op)) {
    Copy factor = copy(a), x = fresh_copy(solve.getB());
    if (!failure_.empty()) return;
    substitute(factor, x, rows, columns);
    return define(v, x);
  }
  if (rows % 16 == 0) {
    // Columns of the factor are read four rows at a time, and it is a right operand.
    Copy factor = copy(a, true);
    if (!failure_.empty()) return;
    Copy x = reserve(rows, columns, b_.getFloatTy());
    invert(factor, x, rows);
    return define(v, x);
  }
  Copy factor = copy(a);
  if (!failure_.empty()) return;
  // The identity is the right-hand side.
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
