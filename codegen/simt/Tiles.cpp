// What stands for a tile: registers in one or more layouts, copies in shared memory; how one becomes another.
#include "codegen/simt/AssignLayouts.h"
#include "codegen/simt/Conversion.h"
#include "codegen/simt/KernelEmitter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

namespace latile::simt {

using namespace tile;

static std::int64_t round_up(std::int64_t x, std::int64_t m) { return (x + m - 1) / m * m; }

llvm::Type* KernelEmitter::element_type(mlir::Value v) const {
  mlir::Type e = mlir::cast<mlir::RankedTensorType>(v.getType()).getElementType();
  llvm::LLVMContext& context = module_.getContext();
  if (e.isF16()) return llvm::Type::getHalfTy(context);
  if (e.isBF16()) return llvm::Type::getBFloatTy(context);
  if (e.isInteger(1)) return llvm::Type::getInt1Ty(context);
  return llvm::Type::getFloatTy(context);
}

Layout KernelEmitter::accumulators(std::int64_t rows, std::int64_t columns) const {
  return choice_.accumulators(rows, columns);
}

Layout KernelEmitter::layout_of(mlir::Value v) const {
  if (auto assigned = simt::layout_of(v.getType())) return *assigned;
  return choice_.of(extents(v)[0], extents(v)[1]);
}

void KernelEmitter::barrier() {
  t_.barrier();
  scratch_.cleared();
}
void KernelEmitter::accesses(ArrayRef<Copy> read, ArrayRef<Copy> written) {
  if (llvm::any_of(read, [&](const Copy& c) { return scratch_.conflicts(c.region, false); }) ||
      llvm::any_of(written, [&](const Copy& c) { return scratch_.conflicts(c.region, true); }))
    barrier();
  for (const Copy& c : read) scratch_.note(c.region, false);
  for (const Copy& c : written) scratch_.note(c.region, true);
}

PlaceIr KernelEmitter::place(const Layout& layout, int reg) {
  PlaceIr at = t_.place(layout);
  Place own = layout.at(reg, 0, 0);
  return {t_.add(at.row, own.row), t_.add(at.column, own.column)};
}
SmallVector<Ir> KernelEmitter::each(const Layout& layout, llvm::function_ref<Ir(const PlaceIr&)> f) {
  SmallVector<Ir> out;
  for (int r = 0; r < layout.registers(); ++r) out.push_back(f(place(layout, r)));
  return out;
}
/// Whether a place lies in a tile; null: every place of the layout does.
Ir KernelEmitter::inside(const PlaceIr& at, const Layout& layout, std::int64_t rows, std::int64_t columns) {
  Ir in = nullptr;
  if (layout.shape().row > rows) in = b_.CreateICmpSLT(at.row, t_.i32(rows));
  if (layout.shape().column > columns) {
    Ir column = b_.CreateICmpSLT(at.column, t_.i32(columns));
    in = in ? b_.CreateAnd(in, column) : column;
  }
  return in;
}

void KernelEmitter::define(mlir::Value v, Layout layout, SmallVector<Ir> values) {
  held_[v].forms.push_back({std::move(layout), std::move(values)});
  added_.push_back({v, false});
}
void KernelEmitter::define(mlir::Value v, Copy c) {
  held_[v].copies.push_back(c);
  added_.push_back({v, true});
}

/// A value that is the same everywhere and needs no thread's help: constants and run-time scalars.
static mlir::Operation* uniform_source(mlir::Value v) {
  mlir::Operation* op = v.getDefiningOp();
  while (auto broadcast = mlir::dyn_cast_or_null<BroadcastOp>(op)) {
    if (extents(broadcast.getX())[0] != 1 || extents(broadcast.getX())[1] != 1) return nullptr;
    op = broadcast.getX().getDefiningOp();
  }
  return op && mlir::isa<ConstantOp, SplatOp, CountOp, IndexOp, mlir::arith::ConstantOp>(op) ? op : nullptr;
}

const Registers& KernelEmitter::any(mlir::Value v) {
  Held& held = held_[v];
  if (held.forms.empty()) (void)get(v, layout_of(v));
  return held_[v].forms.front();
}

SmallVector<Ir> KernelEmitter::get(mlir::Value v, const Layout& layout) {
  auto count = static_cast<std::size_t>(layout.registers());
  if (!failure_.empty()) return SmallVector<Ir>(count, llvm::Constant::getNullValue(element_type(v)));
  for (const Registers& r : held_[v].forms)
    if (r.layout == layout) return r.values;
  auto keep = [&](SmallVector<Ir> values) {
    define(v, layout, values);
    return values;
  };
  if (mlir::Operation* op = uniform_source(v)) {
    Ir x = nullptr;
    if (auto c = mlir::dyn_cast<ConstantOp>(op))
      x = t_.f32(c.getValue().convertToDouble());
    else if (auto s = mlir::dyn_cast<SplatOp>(op))
      x = b_.CreateFPTrunc(scalars_[s.getScalar()], b_.getFloatTy());
    else if (auto n = mlir::dyn_cast<CountOp>(op))
      x = b_.CreateSIToFP(rows_[n.getRows()].count, b_.getFloatTy());
    else if (auto i = mlir::dyn_cast<IndexOp>(op))
      x = b_.CreateSIToFP(rows_[i.getRows()].number, b_.getFloatTy());
    else if (auto dense = mlir::dyn_cast<mlir::SplatElementsAttr>(mlir::cast<mlir::arith::ConstantOp>(op).getValue()))
      x = llvm::ConstantFP::get(element_type(v), dense.getSplatValue<llvm::APFloat>().convertToDouble());
    if (x) return keep(SmallVector<Ir>(count, x));
    fail(op, "only splat constants");
    return SmallVector<Ir>(count, llvm::Constant::getNullValue(element_type(v)));
  }
  mlir::Operation* op = v.getDefiningOp();
  bool own = !held_[v].forms.empty() || !held_[v].copies.empty();
  if (auto broadcast = mlir::dyn_cast_or_null<BroadcastOp>(op); broadcast && !own) {
    mlir::Value x = broadcast.getX();
    SmallVector<Ir> out(count);
    bool along_rows = extents(x)[0] == 1, along_columns = extents(x)[1] == 1;
    // A tile [1,1] or one that repeats nothing has no slice of its own.
    Layout slice = layout;
    if (along_rows) slice = slice.slice(Axis::rows);
    Layout whole = slice;
    if (along_columns) slice = slice.slice(Axis::columns);
    SmallVector<Ir> values = get(x, slice);
    for (int r = 0; r < layout.registers(); ++r) {
      int at = r;
      if (along_rows) at = layout.slice_register(Axis::rows, at);
      if (along_columns) at = whole.slice_register(Axis::columns, at);
      out[static_cast<std::size_t>(r)] = values[static_cast<std::size_t>(at)];
    }
    return keep(out);
  }
  if (auto transpose = mlir::dyn_cast_or_null<TransposeOp>(op); transpose && !own) {
    mlir::Value x = transpose.getX();
    if (held_[x].copies.empty()) {
      Registers source = any(x);
      define(v, source.layout.transposed(), source.values);
    } else {
      Layout flipped = layout.transposed();
      return keep(get(x, flipped));
    }
    for (const Registers& r : held_[v].forms)
      if (r.layout == layout) return r.values;
  }
  if (op && !own && is_row_above(op)) {
    emit_gather(op);
    return get(v, layout);
  }
  // A conversion inside the thread is free; anything else goes through shared memory.
  for (std::size_t k = 0; k < held_[v].forms.size(); ++k) {
    const Registers& source = held_[v].forms[k];
    Conversion way =
        convert(source.layout, layout, static_cast<int>(extents(v)[0]), static_cast<int>(extents(v)[1]), 0);
    if (way.move != Move::registers) continue;
    SmallVector<Ir> out;
    for (int from : way.from) out.push_back(source.values[static_cast<std::size_t>(from)]);
    return keep(out);
  }
  if (const std::optional<Copy> narrow = held_[v].narrow; narrow && held_[v].copies.empty()) {
    SmallVector<Ir> values = load(*narrow, layout);
    for (Ir& x : values) x = t_.convert(x, element_type(v));
    return keep(values);
  }
  return keep(load(copy(v), layout));
}

Copy KernelEmitter::reserve(std::int64_t rows, std::int64_t columns, llvm::Type* element, bool transposed) {
  // A vector lies along its own direction.
  if (columns == 1 && rows > 1) transposed = true;
  if (rows == 1 && columns > 1) transposed = false;
  if (transposed) std::swap(rows, columns);
  Copy c;
  c.element = element;
  c.transposed = transposed;
  c.rows = rows == 1 ? 1 : round_up(rows, 16);
  c.columns = round_up(columns, 16);
  // Rows start in different banks: an odd number of 16-byte pieces apart.
  std::int64_t bytes = round_up(c.columns * bytes_of(element), 16);
  c.pitch = bytes / 16 % 2 == 0 ? bytes + 16 : bytes;
  // A bit takes a byte there, and neighbours are written by other threads: less than global memory tells apart.
  c.region = scratch_.allocate(c.rows * c.pitch, /*movable=*/!element->isIntegerTy(1));
  return c;
}

Copy KernelEmitter::copy(mlir::Value v, std::optional<bool> transposed) {
  if (!held_[v].copies.empty()) return held_[v].copies.front();
  if (auto t = v.getDefiningOp<TransposeOp>(); t && held_[v].forms.empty()) return copy(t.getX()).flipped();
  Registers source = any(v);
  if (!failure_.empty()) return {};
  // Neighbouring registers become one wide store where they are neighbours in memory too.
  Copy c =
      reserve(extents(v)[0], extents(v)[1], element_type(v), transposed.value_or(pack_of(source.layout) == Pack::rows));
  writes(c);
  store(source, c, extents(v)[0], extents(v)[1]);
  define(v, c);
  return c;
}

Copy KernelEmitter::copy_by_rows(mlir::Value v) {
  if (const std::optional<Copy>& narrow = held_[v].narrow; narrow && !narrow->transposed) return *narrow;
  bool turned = false;
  mlir::Value from = narrow_source(v, &turned);
  if (!from || (held_[from].copies.empty() && held_[from].forms.empty())) from = v, turned = false;
  for (const Copy& c : held_[from].copies)
    if (c.transposed == turned) return turned ? c.flipped() : c;
  Registers source = any(from);
  if (!failure_.empty()) return {};
  if (turned) source.layout = source.layout.transposed();
  Copy c = reserve(extents(v)[0], extents(v)[1], element_type(from));
  writes(c);
  store(source, c, extents(v)[0], extents(v)[1]);
  define(from, turned ? c.flipped() : c);
  return c;
}

Copy KernelEmitter::fresh_copy(mlir::Value v) {
  Registers source{layout_of(v), {}};
  if (auto& forms = held_[v].forms; !forms.empty())
    source = forms.front();
  else
    source.values = get(v, source.layout);
  if (!failure_.empty()) return {};
  for (Ir& x : source.values) x = t_.convert(x, b_.getFloatTy());
  Copy c = reserve(extents(v)[0], extents(v)[1], b_.getFloatTy());
  writes(c);
  store(source, c, extents(v)[0], extents(v)[1]);
  return c;
}

Ir KernelEmitter::pointer(const Copy& c, Ir row, Ir column, Place more) {
  if (c.transposed) {
    std::swap(row, column);
    std::swap(more.row, more.column);
  }
  Ir offset = t_.add(t_.mul(row, c.pitch), t_.mul(column, bytes_of(c.element)));
  if (c.stage) offset = t_.add(offset, c.stage);
  return t_.at(t_.at(memory(c.region.in_arena()), offset),
               t_.i32(c.region.offset() + more.row * c.pitch + more.column * bytes_of(c.element)));
}
Ir KernelEmitter::element(const Copy& c, Ir row, Ir column, Place more) {
  Ir at = pointer(c, row, column, more);
  if (c.element->isIntegerTy(1)) return b_.CreateTrunc(b_.CreateLoad(b_.getInt8Ty(), at), c.element);
  return b_.CreateAlignedLoad(c.element, at, llvm::Align(static_cast<std::uint64_t>(bytes_of(c.element))));
}
void KernelEmitter::set_element(const Copy& c, Ir row, Ir column, Ir value, Place more) {
  if (c.element->isIntegerTy(1)) value = b_.CreateZExt(value, b_.getInt8Ty());
  b_.CreateAlignedStore(value, pointer(c, row, column, more),
                        llvm::Align(static_cast<std::uint64_t>(bytes_of(c.element))));
}

/// How many registers in a row lie side by side along an axis, all of them inside one aligned group of 16 bytes.
static int neighbours(const Layout& layout, bool rows, int bytes) {
  int count = 1;
  for (const Place& base : layout.bases(Carrier::registers)) {
    Place next = rows ? Place{count, 0} : Place{0, count};
    if (!(base == next) || 2 * count * bytes > 16) break;
    count *= 2;
  }
  return count;
}

void KernelEmitter::store(const Registers& from, const Copy& to, std::int64_t rows, std::int64_t columns) {
  const Layout& layout = from.layout;
  int bytes = bytes_of(to.element), group = to.element->isIntegerTy(1) ? 1 : neighbours(layout, to.transposed, bytes);
  std::int64_t stored_rows = to.transposed ? to.columns : to.rows,
               stored_columns = to.transposed ? to.rows : to.columns;
  auto emit = [&] {
    for (int r = 0; r < layout.registers(); r += group) {
      SmallVector<Ir> values;
      for (int k = 0; k < group; ++k) {
        Ir x = from.values[static_cast<std::size_t>(r + k)];
        if (Ir in = inside(place(layout, r + k), layout, rows, columns))
          x = b_.CreateSelect(in, x, llvm::Constant::getNullValue(x->getType()));
        values.push_back(x);
      }
      const PlaceIr at = t_.place(layout);
      const Place own = layout.at(r, 0, 0);
      auto put = [&] {
        if (group == 1) return set_element(to, at.row, at.column, values[0], own);
        auto* type = llvm::FixedVectorType::get(to.element, static_cast<unsigned>(group));
        Ir vector = llvm::PoisonValue::get(type);
        for (int k = 0; k < group; ++k) vector = b_.CreateInsertElement(vector, values[static_cast<std::size_t>(k)], k);
        b_.CreateAlignedStore(vector, pointer(to, at.row, at.column, own),
                              llvm::Align(static_cast<std::uint64_t>(group * bytes)));
      };
      // A layout may be larger than what is stored.
      if (Ir fits = inside(place(layout, r), layout, stored_rows, stored_columns))
        t_.when(fits, put);
      else
        put();
    }
  };
  if (Ir first = t_.is_first_replica(layout))
    t_.when(first, emit);
  else
    emit();
  // What the layout does not reach is padding.
  std::int64_t reached_rows = std::min<std::int64_t>(layout.shape().row, stored_rows),
               reached_columns = std::min<std::int64_t>(layout.shape().column, stored_columns);
  auto fill = [&](std::int64_t from_row, std::int64_t from_column, std::int64_t to_row, std::int64_t to_column) {
    std::int64_t width = to_column - from_column, count = (to_row - from_row) * width;
    if (count <= 0) return;
    t_.spread(count, [&](Ir e) {
      set_element(to, t_.add(t_.div(e, width), from_row), t_.add(t_.rem(e, width), from_column),
                  llvm::Constant::getNullValue(to.element));
    });
  };
  fill(reached_rows, 0, stored_rows, stored_columns);
  fill(0, reached_columns, reached_rows, stored_columns);
}

SmallVector<Ir> KernelEmitter::load(const Copy& from, const Layout& layout) {
  SmallVector<Ir> out(static_cast<std::size_t>(layout.registers()),
                      llvm::Constant::getNullValue(from.element ? from.element : b_.getFloatTy()));
  if (!failure_.empty()) return out;
  reads(from);
  std::int64_t rows = from.transposed ? from.columns : from.rows, columns = from.transposed ? from.rows : from.columns;
  if (layout.shape().row <= rows && layout.shape().column <= columns)
    return load_at(from, layout, t_.place(layout), {});
  for (int r = 0; r < layout.registers(); ++r) {  // what lies outside may hold anything that exists
    PlaceIr at = place(layout, r);
    at.row = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, at.row, t_.i32(rows - 1));
    at.column = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, at.column, t_.i32(columns - 1));
    out[static_cast<std::size_t>(r)] = element(from, at.row, at.column);
  }
  return out;
}

SmallVector<Ir> KernelEmitter::load_at(const Copy& from, const Layout& layout, PlaceIr at, Place more) {
  const int bytes = bytes_of(from.element);
  const int group = from.element->isIntegerTy(1) ? 1 : neighbours(layout, from.transposed, bytes);
  SmallVector<Ir> out(static_cast<std::size_t>(layout.registers()));
  for (int r = 0; r < layout.registers(); r += group) {
    const Place own = layout.at(r, 0, 0), where{more.row + own.row, more.column + own.column};
    if (group == 1) {
      out[static_cast<std::size_t>(r)] = element(from, at.row, at.column, where);
      continue;
    }
    auto* type = llvm::FixedVectorType::get(from.element, static_cast<unsigned>(group));
    Ir vector = b_.CreateAlignedLoad(type, pointer(from, at.row, at.column, where),
                                     llvm::Align(static_cast<std::uint64_t>(group * bytes)));
    for (int k = 0; k < group; ++k)
      out[static_cast<std::size_t>(r + k)] = b_.CreateExtractElement(vector, static_cast<std::uint64_t>(k));
  }
  return out;
}

}  // namespace latile::simt
