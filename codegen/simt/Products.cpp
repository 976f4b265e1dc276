// Matrix products by mma.sync: operands from shared memory, fragment by fragment, sums in the accumulators' layout.
#include "codegen/simt/Conversion.h"
#include "codegen/simt/KernelEmitter.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

namespace latile::simt {

using namespace tile;

namespace {

/// A float32 value as two of tf32: together 22 bits of it.
struct Split {
  Ir high, low;
};

}  // namespace

/// Products with one row, one column or one term: no matrix instruction pays there.
void KernelEmitter::emit_vector_product(DotOp op) {
  mlir::Value v = op.getTile(), a = op.getA(), c = op.getB();
  std::int64_t rows = extents(a)[0], terms = extents(a)[1], columns = extents(c)[1];
  auto widen = [&](SmallVector<Ir> values) {
    for (Ir& x : values) x = t_.convert(x, b_.getFloatTy());
    return values;
  };
  if (terms == 1) {
    Layout layout = layout_of(v);
    bool one_row = rows == 1, one_column = columns == 1;
    SmallVector<Ir> left = widen(get(a, one_column ? layout : layout.slice(Axis::columns)));
    SmallVector<Ir> right = widen(get(c, one_row ? layout : layout.slice(Axis::rows)));
    SmallVector<Ir> out;
    for (int r = 0; r < layout.registers(); ++r) {
      int i = one_column ? r : layout.slice_register(Axis::columns, r);
      int j = one_row ? r : layout.slice_register(Axis::rows, r);
      out.push_back(b_.CreateFMul(left[static_cast<std::size_t>(i)], right[static_cast<std::size_t>(j)]));
    }
    return define(v, layout, out);
  }
  // One operand is a matrix [terms, columns] or [rows, terms], in its own layout; the other one is spread over it.
  bool down = rows == 1;
  mlir::Value matrix = down ? c : a, vector = down ? a : c;
  Layout layout = extents(matrix)[0] > 1 && extents(matrix)[1] > 1 ? Layout() : layout_of(matrix);
  if (layout == Layout()) layout = held_[matrix].forms.empty() ? layout_of(matrix) : held_[matrix].forms.front().layout;
  Layout slice = layout.slice(down ? Axis::columns : Axis::rows);
  SmallVector<Ir> values = widen(get(matrix, layout));
  SmallVector<Ir> factors = widen(get(vector, slice.transposed()));
  for (int r = 0; r < layout.registers(); ++r) {
    int k = layout.slice_register(down ? Axis::columns : Axis::rows, r);
    Ir& x = values[static_cast<std::size_t>(r)];
    x = b_.CreateFMul(x, factors[static_cast<std::size_t>(k)]);
  }
  Registers out = reduce({layout, values}, down ? Axis::rows : Axis::columns, extents(matrix)[0], extents(matrix)[1],
                         0.0, [&](Ir x, Ir y) { return b_.CreateFAdd(x, y); });
  define(v, out.layout, out.values);
}

void KernelEmitter::emit_dot(DotOp op) {
  mlir::Value v = op.getTile();
  if (extents(v)[0] == 1 || extents(v)[1] == 1 || extents(op.getA())[1] == 1) return emit_vector_product(op);
  Layout layout = accumulators(extents(v)[0], extents(v)[1]);
  SmallVector<Ir> zero(static_cast<std::size_t>(layout.registers()), t_.f32(0));
  SmallVector<Ir> sums = dot(op, layout, zero);
  if (failure_.empty()) define(v, layout, sums);
}

SmallVector<Ir> KernelEmitter::dot(DotOp op, const Layout& layout, ArrayRef<Ir> init) {
  Operand a = left_operand(op.getA(), layout);
  Copy c = copy(op.getB());
  if (!failure_.empty()) return SmallVector<Ir>(init);
  return product(a, c, extents(op.getA())[1], layout, init);
}

// The left operand's fragments are accumulators side by side: a tile whose rows are spread over the warps as those of
// the result, all its columns in one warp, needs no exchange.
KernelEmitter::Operand KernelEmitter::left_operand(mlir::Value v, const Layout& result) {
  std::int64_t rows = extents(v)[0], terms = extents(v)[1];
  Operand out;
  out.element = element_type(v);
  std::vector<Repetition> repetitions{{Axis::columns, static_cast<int>((terms + 15) / 16 * 2), Carrier::registers}};
  const std::int64_t m = (rows + 15) / 16;
  int down = 1;
  for (const Digit& d : result.digits(Carrier::warps))
    if (d.step.row) down *= d.modulus;
  repetitions.push_back({Axis::rows, static_cast<int>(m / down), Carrier::registers});
  repetitions.push_back({Axis::rows, down, Carrier::warps});
  repetitions.push_back({Axis::none, t_.threads / 32 / down, Carrier::warps});
  out.layout = Layout::of({{0, 1}, {8, 0}}, {{0, 2}, {0, 4}, {1, 0}, {2, 0}, {4, 0}}, {}, std::move(repetitions));
  if (auto t = v.getDefiningOp<TransposeOp>(); t && held_[v].forms.empty() && held_[t.getX()].copies.empty())
    (void)any(v);
  for (const Registers& source : held_[v].forms) {
    Conversion way = convert(source.layout, out.layout, static_cast<int>(rows), static_cast<int>(terms), 0);
    if (way.move != Move::none && way.move != Move::registers) continue;
    for (int r = 0; r < out.layout.registers(); ++r) {
      int from = way.move == Move::none ? r : way.from[static_cast<std::size_t>(r)];
      Ir x = source.values[static_cast<std::size_t>(from)];
      // Terms that do not exist are zero: what stands there may be anything.
      if (terms % 16 != 0)
        if (Ir in = inside(place(out.layout, r), out.layout, rows, terms))
          x = b_.CreateSelect(in, x, llvm::Constant::getNullValue(x->getType()));
      out.registers.push_back(x);
    }
    return out;
  }
  out.copy = copy(v);
  return out;
}

// The warp's rows and columns of the result are runs of 16 and 8; register 4 (n + N m) + i is element i of fragment (m,
// n).
SmallVector<Ir> KernelEmitter::product(const Operand& left_side, const Copy& c, std::int64_t terms,
                                       const Layout& layout, ArrayRef<Ir> init) {
  const Copy& a = left_side.copy;
  const bool in_registers = !left_side.registers.empty();
  if (in_registers)
    reads(c);
  else
    accesses({a, c}, {});
  SmallVector<Ir> sums(init);
  // The first element of each fragment, as seen by lane 0: its corner.
  struct Corner {
    int reg;
    Place at;
  };
  std::vector<Corner> corners;
  std::vector<int> rows, columns;  // corners of fragments, in a warp
  auto add = [](std::vector<int>& list, int x) {
    if (std::find(list.begin(), list.end(), x) == list.end()) list.push_back(x);
  };
  for (int r = 0; r < layout.registers(); r += 4) {
    corners.push_back({r, layout.at(r, 0, 0)});
    add(rows, corners.back().at.row);
    add(columns, corners.back().at.column);
  }
  // What the warp adds to the corners: the place of its lane 0, taken from that of the layout of corners.
  PlaceIr warp = t_.place(layout);
  Ir quad = b_.CreateLShr(t_.lane, t_.i32(2)), within = b_.CreateAnd(t_.lane, t_.i32(3));
  warp.row = b_.CreateSub(warp.row, quad);
  warp.column = b_.CreateSub(warp.column, b_.CreateShl(within, t_.i32(1)));
  llvm::Type* type = left_side.element;
  bool half = bytes_of(type) == 2;
  Ir low3 = b_.CreateAnd(t_.lane, t_.i32(7)), bit3 = b_.CreateAnd(b_.CreateLShr(t_.lane, t_.i32(3)), t_.i32(1)),
     high = b_.CreateLShr(t_.lane, t_.i32(4)), low4 = b_.CreateAnd(t_.lane, t_.i32(15)),
     high8 = b_.CreateShl(high, t_.i32(3)), bit8 = b_.CreateShl(bit3, t_.i32(3));
  // Four 8 × 8 matrices: lanes 8i … 8i + 7 give the rows of matrix i as they are stored.
  auto matrices = [&](const Copy& from, Ir stored_row, Ir stored_column, Place more, bool transposed) {
    Copy plain = from;
    plain.transposed = false;
    Ir at = pointer(plain, stored_row, stored_column, more);
    Ir all = t_.call(transposed ? llvm::Intrinsic::nvvm_ldmatrix_sync_aligned_m8n8_x4_trans_b16
                                : llvm::Intrinsic::nvvm_ldmatrix_sync_aligned_m8n8_x4_b16,
                     {b_.getPtrTy(3)}, {at});
    SmallVector<Ir, 4> out;
    for (unsigned k = 0; k < 4; ++k) out.push_back(b_.CreateExtractValue(all, k));
    return out;
  };
  auto split = [&](Ir x) -> Split {
    auto round = [&](Ir y) { return t_.call(llvm::Intrinsic::nvvm_f2tf32_rna, {}, {y}); };
    Ir h = round(x);
    return {h, round(b_.CreateFSub(x, b_.CreateBitCast(h, b_.getFloatTy())))};
  };
  auto multiply = [&](int reg, llvm::Intrinsic::ID id, ArrayRef<Ir> left, ArrayRef<Ir> right) {
    SmallVector<Ir> operands(left);
    operands.append(right.begin(), right.end());
    for (int k = 0; k < 4; ++k) operands.push_back(sums[static_cast<std::size_t>(reg + k)]);
    Ir d = t_.call(id, {}, operands);
    for (unsigned k = 0; k < 4; ++k) sums[static_cast<std::size_t>(reg) + k] = b_.CreateExtractValue(d, k);
  };
  auto corner = [&](int row, int column) {
    for (const Corner& x : corners)
      if (x.at.row == row && x.at.column == column) return x.reg;
    return -1;
  };
  // The register of the left operand that lane 0 of the warp has at a place relative to the warp's.
  auto own = [&](int row, int column) {
    return left_side.registers[static_cast<std::size_t>(left_side.layout.locate({row, column}).reg)];
  };
  if (half) {
    auto id = type->isBFloatTy() ? llvm::Intrinsic::nvvm_mma_m16n8k16_row_col_bf16
                                 : llvm::Intrinsic::nvvm_mma_m16n8k16_row_col_f32_f32;
    // float16 fragments are pairs of halves, bfloat16 ones are words.
    auto word = [&](Ir x) -> Ir {
      return type->isBFloatTy() ? x : b_.CreateBitCast(x, llvm::FixedVectorType::get(b_.getHalfTy(), 2));
    };
    for (std::int64_t k = 0; k < terms; k += 16) {
      std::vector<SmallVector<Ir, 4>> left;
      for (int m : rows) {
        if (in_registers) {
          // Pairs of neighbouring columns of the corner (m, k), of the one 8 rows below, and the same 8 columns on.
          SmallVector<Ir, 4> words;
          for (Place at : {Place{0, 0}, Place{8, 0}, Place{0, 8}, Place{8, 8}}) {
            Ir pair = llvm::PoisonValue::get(llvm::FixedVectorType::get(type, 2));
            for (int i = 0; i < 2; ++i)
              pair = b_.CreateInsertElement(pair, own(m + at.row, static_cast<int>(k) + at.column + i),
                                            static_cast<std::uint64_t>(i));
            words.push_back(b_.CreateBitCast(pair, b_.getInt32Ty()));
          }
          left.push_back(words);
          continue;
        }
        left.push_back(a.transposed
                           ? matrices(a, t_.add(low3, high8), t_.add(warp.row, bit8), {static_cast<int>(k), m}, true)
                           : matrices(a, t_.add(warp.row, low4), high8, {m, static_cast<int>(k)}, false));
      }
      for (std::size_t n = 0; n < columns.size(); n += 2) {
        int column = columns[n];
        SmallVector<Ir, 4> right =
            c.transposed
                ? matrices(c, t_.add(t_.add(warp.column, low3), high8), bit8, {column, static_cast<int>(k)}, false)
                : matrices(c, low4, t_.add(warp.column, high8), {static_cast<int>(k), column}, true);
        for (std::size_t m = 0; m < rows.size(); ++m)
          for (std::size_t side = 0; side < 2; ++side) {
            SmallVector<Ir> l, r;
            for (Ir x : left[m]) l.push_back(word(x));
            r = {word(right[2 * side]), word(right[2 * side + 1])};
            multiply(corner(rows[m], columns[n + side]), id, l, r);
          }
      }
    }
    return sums;
  }
  // float32 in three products of tf32: what is lost is below 2^-21 of each term.
  auto id = llvm::Intrinsic::nvvm_mma_m16n8k8_row_col_tf32;
  // A lane's terms are k + lane mod 4 and four on; an accumulator has two neighbours there, and the order of the terms
  // is that of its columns on both sides.
  Ir first_term = in_registers ? b_.CreateShl(within, t_.i32(1)) : within;
  auto term = [&](std::int64_t k, int r) { return static_cast<int>(k) + (in_registers ? r : 4 * r); };
  for (std::int64_t k = 0; k < terms; k += 8) {
    std::vector<SmallVector<Split, 4>> left;
    for (int m : rows) {
      SmallVector<Split, 4> parts;
      for (int r = 0; r < 4; ++r)
        parts.push_back(
            split(in_registers ? own(m + 8 * (r & 1), static_cast<int>(k) + (r >> 1))
                               : element(a, t_.add(warp.row, quad), first_term, {m + 8 * (r & 1), term(k, r >> 1)})));
      left.push_back(parts);
    }
    for (int n : columns) {
      SmallVector<Split, 2> right;
      for (int r = 0; r < 2; ++r)
        right.push_back(split(element(c, first_term, t_.add(warp.column, quad), {term(k, r), n})));
      for (std::size_t m = 0; m < rows.size(); ++m) {
        int reg = corner(rows[m], n);
        auto part = [](ArrayRef<Split> all, bool high_part) {
          SmallVector<Ir> out;
          for (const Split& s : all) out.push_back(high_part ? s.high : s.low);
          return out;
        };
        multiply(reg, id, part(left[m], false), part(right, true));
        multiply(reg, id, part(left[m], true), part(right, false));
        multiply(reg, id, part(left[m], true), part(right, true));
      }
    }
  }
  return sums;
}

}  // namespace latile::simt
