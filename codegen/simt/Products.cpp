// Matrix products by the target's instructions: operands from shared memory, fragment by fragment, or accumulators as
// they are; sums in the accumulators' layout.
#include "codegen/simt/Conversion.h"
#include "codegen/simt/Instructions.h"
#include "codegen/simt/KernelEmitter.h"

namespace latile::simt {

using namespace tile;

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
  Operand a = operand(op.getA(), FreeOperand::a, layout), c = operand(op.getB(), FreeOperand::b, layout);
  if (!failure_.empty()) return SmallVector<Ir>(init);
  return product(a, c, extents(op.getA())[1], layout, init);
}

// Fragments of the target's free operand are accumulators side by side: a tile whose rows (of operand A; columns of B)
// are spread over the warps as those of the result, with all terms in one warp, needs no exchange.
KernelEmitter::Operand KernelEmitter::operand(mlir::Value v, FreeOperand side, const Layout& result) {
  std::int64_t rows = extents(v)[0], columns = extents(v)[1];
  Operand out;
  out.element = element_type(v);
  if (side != target_.free_operand) {
    out.copy = copy(v);
    return out;
  }
  const bool left = side == FreeOperand::a;
  const Layout& fragment = target_.products.front().instruction.c;
  const Place size = fragment.shape();
  const Axis shared = left ? Axis::rows : Axis::columns, summed = left ? Axis::columns : Axis::rows;
  const std::int64_t terms = left ? columns : rows, pieces = ((left ? rows : columns) + 15) / 16;
  // Terms are padded to 16, as in shared memory.
  auto per16 = [&](Axis axis) { return 16 / (axis == Axis::rows ? size.row : size.column); };
  int among = 1;
  std::vector<Repetition> warps;
  for (const Digit& d : result.digits(Carrier::warps)) {
    const bool along = left ? d.step.row : d.step.column;
    if (along) among *= d.modulus;
    warps.push_back({along ? shared : Axis::none, d.modulus, Carrier::warps});
  }
  std::vector<Repetition> repetitions{{summed, static_cast<int>((terms + 15) / 16) * per16(summed), Carrier::registers},
                                      {shared, static_cast<int>(pieces / among) * per16(shared), Carrier::registers}};
  if (!left) std::swap(repetitions[0], repetitions[1]);
  repetitions.insert(repetitions.end(), warps.begin(), warps.end());
  out.layout = fragment.repeated(std::move(repetitions));
  if (auto t = v.getDefiningOp<TransposeOp>(); t && held_[v].forms.empty() && held_[t.getX()].copies.empty())
    (void)any(v);
  for (const Registers& source : held_[v].forms) {
    Conversion way = convert(source.layout, out.layout, static_cast<int>(rows), static_cast<int>(columns), 0);
    if (way.move != Move::none && way.move != Move::registers) continue;
    for (int r = 0; r < out.layout.registers(); ++r) {
      int from = way.move == Move::none ? r : way.from[static_cast<std::size_t>(r)];
      Ir x = source.values[static_cast<std::size_t>(from)];
      // Terms that do not exist are zero: what stands there may be anything.
      if (terms % 16 != 0)
        if (Ir in = inside(place(out.layout, r), out.layout, rows, columns))
          x = b_.CreateSelect(in, x, llvm::Constant::getNullValue(x->getType()));
      out.registers.push_back(x);
    }
    return out;
  }
  out.copy = copy(v);
  return out;
}

SmallVector<Ir> KernelEmitter::product(const Operand& a, const Operand& b, std::int64_t terms, const Layout& layout,
                                       ArrayRef<Ir> init) {
  SmallVector<Copy, 2> read;
  for (const Operand* o : {&a, &b})
    if (o->registers.empty()) read.push_back(o->copy);
  accesses(read, {});
  const Layout& fragment = target_.products.front().instruction.c;
  PlaceIr warp = t_.place(layout);
  warp.row = b_.CreateSub(warp.row, t_.place_of_lane(fragment, Axis::rows));
  warp.column = b_.CreateSub(warp.column, t_.place_of_lane(fragment, Axis::columns));
  return product_of_warp(a, {warp.row, t_.i32(0)}, b, {t_.i32(0), warp.column}, terms, layout, init);
}

SmallVector<Ir> KernelEmitter::product_of_warp(const Operand& a, PlaceIr a_at, const Operand& b, PlaceIr b_at,
                                               std::int64_t terms, const Layout& layout, ArrayRef<Ir> init) {
  const simt::Operand type = a.element->isFloatTy()    ? simt::Operand::f32
                             : a.element->isBFloatTy() ? simt::Operand::bf16
                                                       : simt::Operand::f16;
  const MatrixProduct& way = target_.product(type);
  const bool in_registers = !a.registers.empty() || !b.registers.empty();
  const MatrixInstruction& mi = in_registers && way.chained ? *way.chained : way.instruction;
  SmallVector<Ir> sums(init);
  // Fragments of the result in a warp, by the place of their first element as seen by lane 0.
  std::vector<int> rows, columns;
  auto add = [](std::vector<int>& list, int x) {
    if (std::find(list.begin(), list.end(), x) == list.end()) list.push_back(x);
  };
  for (int r = 0; r < layout.registers(); r += mi.c.registers()) {
    Place at = layout.at(r, 0, 0);
    add(rows, at.row);
    add(columns, at.column);
  }
  // The parts of fragments of one operand, the first at `corner`; `count`: side by side.
  using Parts = SmallVector<Fragment, 3>;
  // Matrices are loaded from shared memory only; from registers and arenas they are put together.
  auto per_load = [&](const Operand& o, FreeOperand side) {
    const bool near = o.registers.empty() && !o.copy.region.in_arena();
    return near ? t_.isa.fragments_per_load(mi, side, o.copy.transposed) : 0;
  };
  auto fragments = [&](const Operand& o, FreeOperand side, Place corner, int count) {
    const Layout& fragment = side == FreeOperand::a ? mi.a : mi.b;
    const PlaceIr first = side == FreeOperand::a ? a_at : b_at;
    SmallVector<Parts, 2> out;
    auto split = [&](ArrayRef<Ir> elements) {
      SmallVector<Fragment, 3> all(static_cast<std::size_t>(way.parts));
      for (Ir x : elements) {
        SmallVector<Ir> parts{x};
        if (way.parts > 1) parts = t_.isa.split(t_, mi, x, way.parts);
        for (std::size_t k = 0; k < all.size(); ++k) all[k].push_back(parts[k]);
      }
      Parts packed;
      for (const Fragment& part : all) packed.push_back(t_.isa.pack(t_, mi, part));
      out.push_back(std::move(packed));
    };
    if (count == per_load(o, side)) {
      Copy plain = o.copy;
      plain.transposed = false;
      auto address = [&](PlaceIr at, Place more) { return pointer(plain, at.row, at.column, more); };
      for (Fragment& f : t_.isa.load_fragments(t_, mi, side, {address, o.copy.transposed}, first, corner)) {
        if (way.parts > 1)
          split(f);
        else
          out.push_back({std::move(f)});
      }
      return out;
    }
    SmallVector<Ir> elements;
    if (!o.registers.empty()) {
      for (int r = 0; r < fragment.registers(); ++r) {
        const Place at = fragment.at(r, 0, 0);
        const Holder from = o.layout.locate({corner.row + at.row, corner.column + at.column});
        elements.push_back(o.registers[static_cast<std::size_t>(from.reg)]);
      }
    } else {
      PlaceIr at{t_.add(first.row, t_.place_of_lane(fragment, Axis::rows)),
                 t_.add(first.column, t_.place_of_lane(fragment, Axis::columns))};
      elements = load_at(o.copy, fragment, at, corner);
    }
    split(elements);
    return out;
  };
  auto multiply = [&](int row, int column, const Parts& left, const Parts& right) {
    SmallVector<int> registers;
    SmallVector<Ir> c;
    for (int r = 0; r < mi.c.registers(); ++r) {
      const Place at = mi.c.at(r, 0, 0);
      registers.push_back(layout.locate({row + at.row, column + at.column}).reg);
      c.push_back(sums[static_cast<std::size_t>(registers.back())]);
    }
    for (std::size_t both = left.size(); both-- > 0;)
      for (std::size_t j = 0; j <= both; ++j) t_.isa.multiply(t_, mi, left[both - j], right[j], c);
    for (auto [reg, x] : llvm::zip(registers, c)) sums[static_cast<std::size_t>(reg)] = x;
  };
  const int at_once = std::max(1, per_load(b, FreeOperand::b));
  struct Terms {
    std::vector<Parts> left, right;  ///< of each of `rows`, each of `columns`
  };
  auto fetch = [&](std::int64_t k) {
    const int term = static_cast<int>(k);
    Terms out;
    for (int m : rows) out.left.push_back(fragments(a, FreeOperand::a, {m, term}, 1).front());
    for (std::size_t n = 0; n < columns.size(); n += static_cast<std::size_t>(at_once))
      for (Parts& parts : fragments(b, FreeOperand::b, {term, columns[n]}, at_once))
        out.right.push_back(std::move(parts));
    return out;
  };
  // The next terms come from shared memory while these are multiplied, where there are registers for both.
  const bool early = way.parts == 1 && rows.size() * 4 + columns.size() * 2 <= 32;
  // Where registers are short, an assembler loads the right operand's fragments one by one, and none early.
  const double right = 2.0 * static_cast<double>(columns.size() * static_cast<std::size_t>(way.parts));
  double& spare = spare_[op_number_];
  spare = std::max(spare, std::max(right - 4, 0.0) + (early ? 4.0 * static_cast<double>(rows.size()) + right : 0));
  Terms now = fetch(0);
  for (std::int64_t k = 0; k < terms; k += mi.k) {
    const bool more = k + mi.k < terms;
    Terms next;
    if (more && early) next = fetch(k + mi.k);
    for (std::size_t n = 0; n < columns.size(); ++n)
      for (std::size_t m = 0; m < rows.size(); ++m) multiply(rows[m], columns[n], now.left[m], now.right[n]);
    if (more) now = early ? std::move(next) : fetch(k + mi.k);
  }
  return sums;
}

}  // namespace latile::simt
