// Matrix products in register blocks, the triangular solve and inverse.
#include "codegen/host/KernelEmitter.h"

namespace latile::host {

using namespace tile;

KernelEmitter::Grid KernelEmitter::product(DotOp d, const Block& block, Grid init, bool negate) {
  auto& b = builder_;
  if (is_outer(d)) {
    Grid right = evaluate(d.getB(), {l_.index(0), 1, block.j, block.vectors}), out;
    for (int r = 0; r < block.rows; ++r) {
      Ir left =
          l_.splat(extents(d.getA())[0] == 1 ? scalar(d.getA()) : read_column_scalar(d.getA(), l_.add(block.i, r)));
      for (int c = 0; c < block.vectors; ++c) out.push_back(b.CreateFMul(left, right[static_cast<std::size_t>(c)]));
    }
    return out;
  }
  OperandForm a = operand_form(d.getA()), c = operand_form(d.getB());
  Ir terms = l_.index(extents(d.getA())[1]);
  if (!a.transposed && extents(d.getA())[0] == extents(d.getA())[1] && is_lower_triangular(d.getA()))
    terms = b.CreateBinaryIntrinsic(llvm::Intrinsic::smin, l_.add(block.i, block.rows), terms);
  if (engine_ == Bfloat16::dot && is_bfloat16_product(d))
    return multiply_pairs(a, c, block, std::move(init), negate, terms);
  return multiply(a, c, block, std::move(init), negate, terms);
}

// acc[r][c] += a[i + r][k] * b[k][j + c] over k: `rows` broadcasts and `vectors` loads feed rows × vectors FMAs.
KernelEmitter::Grid KernelEmitter::multiply(OperandForm a, OperandForm c, const Block& block, Grid init, bool negate,
                                            Ir terms) {
  auto left = [&](Ir row, Ir k) -> Ir {
    if (extents(a.value)[1] == 1)
      return a.transposed ? read_column_scalar(a.value, k) : read_column_scalar(a.value, row);
    if (a.transposed) std::swap(row, k);
    if (auto it = plain_.find(a.value); it != plain_.end())
      return l_.load_scalar(address(it->second, row, k, in_panel(a.value)), ElementType::f32);
    if (auto it = flipped_.find(a.value); it != flipped_.end())
      return l_.load_scalar(address(it->second, k, row, false), ElementType::f32);
    MemoryRow m = row_of(a.value, row);
    Ir base = m.valid ? builder_.CreateSelect(m.valid, m.address, zeros_) : m.address;
    return l_.load_scalar(l_.at(base, l_.mul(k, 4)), ElementType::f32);
  };
  auto right = [&](Ir k, Ir j) -> Ir {
    if (c.transposed) {
      auto it = flipped_.find(c.value);
      if (it == flipped_.end()) return fail(kernel_, "a right operand was not stored transposed"), l_.splat(0.0);
      return l_.load(address(it->second, k, j, false), ElementType::f32, nullptr);
    }
    if (auto it = plain_.find(c.value); it != plain_.end())
      return l_.load(address(it->second, k, j, in_panel(c.value)), ElementType::f32, nullptr);
    return read_memory(c.value, k, j);
  };
  auto count = static_cast<std::size_t>(block.rows * block.vectors);
  if (init.empty()) init.assign(count, l_.splat(0.0));
  auto over = [&](Ir from, Ir to, ArrayRef<Ir> start) {
    return l_.loop(from, to, 1, start, [&](Ir k, ArrayRef<Ir> acc) {
      SmallVector<Ir> columns, next;
      for (int v = 0; v < block.vectors; ++v) columns.push_back(right(k, l_.add(block.j, v * l_.width)));
      for (int r = 0; r < block.rows; ++r) {
        Ir x = l_.splat(left(l_.add(block.i, r), k));
        if (negate) x = builder_.CreateFNeg(x);
        for (int v = 0; v < block.vectors; ++v)
          next.push_back(
              l_.fma(x, columns[static_cast<std::size_t>(v)], acc[static_cast<std::size_t>(r * block.vectors + v)]));
      }
      return next;
    });
  };
  // Two multiply-adds a cycle. Long sums are made in parts, so that fetching goes on between them.
  constexpr std::int64_t part = 32;
  auto* known = llvm::dyn_cast<llvm::ConstantInt>(terms);
  std::int64_t most = known ? known->getSExtValue() : 16, cycles = static_cast<std::int64_t>(count) / 2;
  if (!prefetch_end_ || most < 2 * part || most % part) {
    pace(most * cycles);
    return over(l_.index(0), terms, init);
  }
  return l_.loop(l_.index(0), terms, part, init, [&](Ir k, ArrayRef<Ir> acc) {
    pace(part * cycles);
    return over(k, l_.add(k, part), acc);
  });
}

// Forward substitution in blocks of rows: what lies left of the diagonal block is a product, the block itself is
// unrolled in registers. What lies on or above the diagonal of the factor is not read.
void KernelEmitter::substitute(mlir::Value a, mlir::Value x, llvm::function_ref<Grid(const Block&)> right_side) {
  Buffer buffer = new_buffer(x, false);
  plain_[x] = buffer;
  const Buffer factor = stored(plain_, a);
  over_blocks(
      extents(x)[0], x,
      [&](const Block& block) {
        Grid acc = multiply({a, false}, {x, false}, block, right_side(block), true, block.i);
        for (int r = 0; r < block.rows; ++r)
          for (int c = 0; c < block.vectors; ++c) {
            Ir& value = acc[static_cast<std::size_t>(r * block.vectors + c)];
            for (int q = 0; q < r; ++q) {
              Ir f = l_.load_scalar(address(factor, l_.add(block.i, r), l_.add(block.i, q), false), ElementType::f32);
              value =
                  l_.fma(builder_.CreateFNeg(l_.splat(f)), acc[static_cast<std::size_t>(q * block.vectors + c)], value);
            }
            l_.store(value, address(buffer, l_.add(block.i, r), l_.add(block.j, c * l_.width), in_panel(x)),
                     ElementType::f32, nullptr);
          }
      },
      true);
}

void KernelEmitter::emit_solve(SolveUnitLowerOp solve) {
  substitute(uncast(solve.getA()), solve.getTile(), [&](const Block& block) { return evaluate(solve.getB(), block); });
}

// The solve with the identity on the right.
void KernelEmitter::emit_inverse(InverseUnitLowerOp inverse) {
  substitute(inverse.getX(), inverse.getTile(), [&](const Block& block) {
    Grid identity;
    for (int r = 0; r < block.rows; ++r)
      for (int c = 0; c < block.vectors; ++c) {
        Ir row = l_.add(block.i, r), j = l_.add(block.j, c * l_.width);
        Ir here =
            builder_.CreateXor(l_.mask(builder_.CreateSub(l_.add(row, 1), j)), l_.mask(builder_.CreateSub(row, j)));
        identity.push_back(builder_.CreateSelect(here, l_.splat(1.0), l_.splat(0.0)));
      }
    return identity;
  });
}

// Products of one row with one right operand: a single pass over it, row by row in the order of memory, feeds all.
void KernelEmitter::emit_row_products(llvm::MutableArrayRef<DotOp> group) {
  if (streaming(group[0].getB()) == Streaming::columns && !plain_.contains(group[0].getB()))
    return emit_column_products(group);
  std::int64_t vectors = columns(group[0].getTile()) / l_.width;
  int budget = l_.isa.vector_floats() == 16 ? 16 : 8;
  int width = static_cast<int>(
      std::min<std::int64_t>(vectors, std::max<std::int64_t>(1, budget / static_cast<int>(group.size()))));
  SmallVector<Buffer> buffers;
  for (DotOp d : group) {
    buffers.push_back(new_buffer(d.getTile(), false));
    plain_[d.getTile()] = buffers.back();
  }
  OperandForm c = operand_form(group[0].getB());
  auto columns_from = [&](Ir j, int count) {
    Grid acc(group.size() * static_cast<std::size_t>(count), l_.splat(0.0));
    acc = l_.loop(l_.index(0), l_.index(extents(group[0].getA())[1]), 1, acc, [&](Ir k, ArrayRef<Ir> sums) {
      SmallVector<Ir> row, next;
      for (int v = 0; v < count; ++v) {
        Ir at = l_.add(j, v * l_.width);
        if (c.transposed)
          row.push_back(l_.load(address(stored(flipped_, c.value), k, at, false), ElementType::f32, nullptr));
        else
          row.push_back(evaluate(c.value, {k, 1, at, 1})[0]);
      }
      for (auto [n, d] : llvm::enumerate(group)) {
        OperandForm a = operand_form(d.getA());
        Ir left = a.transposed
                      ? read_column_scalar(a.value, k)
                      : l_.load_scalar(address(stored(plain_, a.value), l_.index(0), k, false), ElementType::f32);
        for (int v = 0; v < count; ++v)
          next.push_back(l_.fma(l_.splat(left), row[static_cast<std::size_t>(v)],
                                sums[n * static_cast<std::size_t>(count) + static_cast<std::size_t>(v)]));
      }
      return next;
    });
    for (std::size_t n = 0; n < group.size(); ++n)
      for (int v = 0; v < count; ++v)
        l_.store(acc[n * static_cast<std::size_t>(count) + static_cast<std::size_t>(v)],
                 address(buffers[n], l_.index(0), l_.add(j, v * l_.width), in_panel(group[0].getTile())),
                 ElementType::f32, nullptr);
  };
  std::int64_t whole = vectors / width;
  l_.loop(l_.index(0), l_.index(whole * width * l_.width), width * l_.width, [&](Ir j) { columns_from(j, width); });
  if (vectors % width) columns_from(l_.index(whole * width * l_.width), static_cast<int>(vectors % width));
}

}  // namespace latile::host
