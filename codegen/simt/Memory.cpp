// Tiles in global memory. A full chunk of aligned tensors is moved in wide pieces without masks; everything else
// element by element, with addresses of rows that do not exist replaced by those of one that does.
#include "codegen/simt/Instructions.h"
#include "codegen/simt/KernelEmitter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

namespace latile::simt {

using namespace tile;

KernelEmitter::Memory KernelEmitter::memory_of(const View& view, mlir::ValueRange leading) {
  Memory m;
  m.element = view.element;
  m.aligned = view.aligned;
  m.base = view.pointer;
  Ir offset = t_.i64(0);
  std::size_t axis = 0;
  for (mlir::Value index : leading) {
    Ir at = indices_.lookup(index);
    // A slot may be none, and so may what is chosen between a slot and none: a head that leaves a store to another.
    if (mlir::Operation* op = index.getDefiningOp(); axis == 0 && op && mlir::isa<SlotOp, mlir::arith::SelectOp>(op))
      m.exists = b_.CreateICmpSGE(at, t_.i64(0));
    offset = t_.add(offset, t_.mul(at, view.strides[axis++]));
  }
  m.pointer = t_.at(view.pointer, t_.mul(offset, bytes_of(view.element)));
  auto stride = [&](std::size_t a) -> Ir {
    return static_cast<std::int64_t>(a) == view.shape.getUnit() ? nullptr : view.strides[a];
  };
  std::size_t inner = view.shape.getInner().size();
  m.row_stride = inner == 2 ? stride(axis) : t_.i64(0);
  m.column_stride = inner ? stride(view.strides.size() - 1) : t_.i64(0);
  return m;
}

llvm::Type* KernelEmitter::element_type(ViewType view) {
  mlir::Type e = view.getElementType();
  if (e.isF16()) return b_.getHalfTy();
  if (e.isBF16()) return b_.getBFloatTy();
  if (e.isF32()) return b_.getFloatTy();
  return e.isInteger(64) ? b_.getInt64Ty() : b_.getInt32Ty();
}

/// A view of its own that starts at a column, or at a row of the inner tile.
void KernelEmitter::emit_part(mlir::Operation* op) {
  View view = views_[op->getOperand(0)];
  const std::size_t axis = view.strides.size() - (mlir::isa<ColumnsOp>(op) ? 1 : 2);
  Ir offset = t_.mul(t_.mul(indices_.lookup(op->getOperand(1)), view.strides[axis]), bytes_of(view.element));
  view.pointer = t_.at(view.pointer, offset);
  // Along the other axes steps are a multiple of 16 bytes where the view is aligned.
  if (view.shape.getUnit() == static_cast<std::int64_t>(axis))
    view.aligned = b_.CreateAnd(view.aligned, b_.CreateICmpEQ(b_.CreateAnd(offset, t_.i64(15)), t_.i64(0)));
  view.shape = mlir::cast<ViewType>(op->getResult(0).getType());
  views_[op->getResult(0)] = view;
}

/// A part of the block's arena.
void KernelEmitter::emit_scratch(ScratchOp op) {
  View view;
  view.shape = op.getView().getType();
  view.element = element_type(view.shape);
  std::int64_t elements = 1;
  for (std::int64_t extent : llvm::reverse(view.shape.getShape())) {
    view.strides.insert(view.strides.begin(), t_.i64(elements));
    elements *= extent;
  }
  const Region region = scratch_.allocate_in_arena(elements * bytes_of(view.element));
  view.pointer = t_.at(arena_, t_.i64(region.offset()));
  view.aligned = b_.getInt1(view.shape.getShape().back() * bytes_of(view.element) % 16 == 0);
  views_[op.getView()] = view;
}

KernelEmitter::Memory KernelEmitter::memory_of_rows(const View& view, Ir batch, const Rows& rows, Ir head,
                                                    std::int64_t rate) {
  Memory m;
  m.element = view.element;
  m.aligned = view.aligned;
  m.base = view.pointer;
  m.rate = rate;
  m.reversed = rows.reversed;
  Ir offset = t_.add(t_.mul(batch, view.strides[0]), t_.mul(t_.mul(rows.first, rate), view.strides[1]));
  if (head) offset = t_.add(offset, t_.mul(head, view.strides[2]));
  m.pointer = t_.at(view.pointer, t_.mul(offset, bytes_of(view.element)));
  bool contiguous = view.shape.getUnit() == view.shape.getRank() - 1;
  m.row_stride = view.shape.getUnit() == 1 ? nullptr : view.strides[1];
  m.column_stride = view.shape.getInner().empty() ? t_.i64(0) : contiguous ? nullptr : view.strides.back();
  m.row_limit = b_.CreateTrunc(t_.mul(rows.here, rate), b_.getInt32Ty());
  if (!rows.never_empty) m.exists = b_.CreateICmpSGT(rows.here, rows.missing ? rows.missing : t_.i64(0));
  if (rows.missing) m.row_start = m.safe_row = b_.CreateTrunc(t_.mul(rows.missing, rate), b_.getInt32Ty());
  return m;
}

KernelEmitter::Memory KernelEmitter::memory_of(mlir::Operation* op) {
  auto rows = [&](auto access, std::int64_t rate) {
    Ir head = access.getHead() ? indices_.lookup(access.getHead()) : nullptr;
    Ir batch = indices_.lookup(access.getBatch());
    Memory m = memory_of_rows(views_[access.getView()], batch, rows_[access.getRows()], head, rate);
    // Rows of a state lie at a slot, which may be none.
    if (!mlir::isa_and_present<SlotOp>(access.getBatch().getDefiningOp())) return m;
    Ir some = b_.CreateICmpSGE(batch, t_.i64(0));
    m.exists = m.exists ? b_.CreateAnd(m.exists, some) : some;
    return m;
  };
  if (auto l = mlir::dyn_cast<LoadRowsOp>(op)) return rows(l, static_cast<std::int64_t>(l.getRate()));
  if (auto s = mlir::dyn_cast<StoreRowsOp>(op)) return rows(s, 1);
  if (auto l = mlir::dyn_cast<LoadOp>(op)) return memory_of(views_[l.getView()], l.getIndices());
  auto s = mlir::cast<StoreOp>(op);
  return memory_of(views_[s.getView()], s.getIndices());
}

/// Whether a row of a tile is there; null: every row of the tile is.
Ir KernelEmitter::row_exists(const Memory& m, Ir row) {
  Ir valid = m.row_limit ? b_.CreateICmpSLT(row, m.row_limit) : nullptr;
  return m.row_start ? b_.CreateAnd(valid, b_.CreateICmpSGE(row, m.row_start)) : valid;
}
/// Whether all rows are; null: they are, or there is no telling.
Ir KernelEmitter::all_rows_exist(const Memory& m, std::int64_t rows) {
  if (!m.row_limit) return nullptr;
  Ir full = b_.CreateICmpSGE(m.row_limit, t_.i32(rows));
  return m.row_start ? b_.CreateAnd(full, b_.CreateICmpEQ(m.row_start, t_.i32(0))) : full;
}

/// Of reversed rows the tokens descend, and the `rate` rows of one token ascend.
Ir KernelEmitter::address(const Memory& m, PlaceIr at, Place more) {
  if (m.reversed) {
    Ir row = t_.add(at.row, more.row), within = m.rate == 1 ? t_.i32(0) : b_.CreateSRem(row, t_.i32(m.rate));
    at.row = b_.CreateNSWSub(t_.mul(within, 2), row);
    more.row = 0;
  }
  const std::int64_t bytes = bytes_of(m.element);
  auto scaled = [&](Ir x, Ir stride) { return stride ? t_.mul(x, stride) : x; };
  Ir own = t_.add(scaled(t_.wide(at.row), m.row_stride), scaled(t_.wide(at.column), m.column_stride));
  Ir rest = t_.add(scaled(t_.i64(more.row), m.row_stride), scaled(t_.i64(more.column), m.column_stride));
  return t_.at(t_.at(m.pointer, t_.mul(own, bytes)), t_.mul(rest, bytes));
}

SmallVector<Ir> KernelEmitter::load(const Memory& m, const Layout& layout, std::int64_t rows, std::int64_t columns,
                                    int vector) {
  auto count = static_cast<std::size_t>(layout.registers());
  auto bytes = static_cast<std::uint64_t>(bytes_of(m.element));
  Ir zero = llvm::Constant::getNullValue(m.element);
  // What lies past the extents is read from a place inside, at the start of a group of `size` neighbours along an axis.
  bool by_rows = !m.row_stride;
  auto clamped = [&](PlaceIr at, int size) {
    auto most = [&](Ir x, std::int64_t last) {
      return b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, x, t_.i32(last));
    };
    if (layout.shape().row > rows) at.row = most(at.row, rows - (by_rows ? size : 1));
    if (layout.shape().column > columns) at.column = most(at.column, columns - (by_rows ? 1 : size));
    return at;
  };
  auto slow = [&] {
    SmallVector<Ir> out;
    for (int r = 0; r < layout.registers(); ++r) {
      PlaceIr at = clamped(place(layout, r), 1);
      Ir valid = row_exists(m, at.row);
      if (valid) at.row = b_.CreateSelect(valid, at.row, m.safe_row ? m.safe_row : t_.i32(0));
      Ir x = b_.CreateAlignedLoad(m.element, address(m, at), llvm::Align(bytes));
      out.push_back(valid ? b_.CreateSelect(valid, x, zero) : x);
    }
    return out;
  };
  auto fast = [&] {
    SmallVector<Ir> out(count);
    for (int r = 0; r < layout.registers(); r += vector) {
      bool clamps = layout.shape().row > rows || layout.shape().column > columns;
      PlaceIr at = clamps ? clamped(place(layout, r), vector) : t_.place(layout);
      Ir where = address(m, at, clamps ? Place{} : layout.at(r, 0, 0));
      if (vector == 1) {
        out[static_cast<std::size_t>(r)] = b_.CreateAlignedLoad(m.element, where, llvm::Align(bytes));
        continue;
      }
      auto* type = llvm::FixedVectorType::get(m.element, static_cast<unsigned>(vector));
      Ir x = b_.CreateAlignedLoad(type, where, llvm::Align(bytes * static_cast<std::uint64_t>(vector)));
      for (int k = 0; k < vector; ++k)
        out[static_cast<std::size_t>(r + k)] = b_.CreateExtractElement(x, static_cast<std::uint64_t>(k));
    }
    return out;
  };
  auto existing = [&] {
    Ir easy = vector > 1 ? m.aligned : nullptr;
    if (Ir full = all_rows_exist(m, rows)) easy = easy ? b_.CreateAnd(easy, full) : full;
    if (!easy || count == 1) return slow();
    return t_.choose(easy, fast, slow);
  };
  if (!m.exists) return existing();
  return t_.choose(m.exists, existing, [&] { return SmallVector<Ir>(count, zero); });
}

void KernelEmitter::store(const Memory& m, const Registers& from, std::int64_t rows, std::int64_t columns, int vector) {
  const Layout& layout = from.layout;
  auto bytes = static_cast<std::uint64_t>(bytes_of(m.element));
  auto value = [&](int r) { return t_.convert(from.values[static_cast<std::size_t>(r)], m.element); };
  auto slow = [&] {
    for (int r = 0; r < layout.registers(); ++r) {
      PlaceIr at = place(layout, r);
      Ir valid = inside(at, layout, rows, columns);
      if (Ir row = row_exists(m, at.row)) valid = valid ? b_.CreateAnd(valid, row) : row;
      auto put = [&] { b_.CreateAlignedStore(value(r), address(m, at), llvm::Align(bytes)); };
      if (valid)
        t_.when(valid, put);
      else
        put();
    }
  };
  auto fast = [&] {
    for (int r = 0; r < layout.registers(); r += vector) {
      PlaceIr at = place(layout, r);
      auto put = [&] {
        Ir x = value(r);
        if (vector > 1) {
          x = llvm::PoisonValue::get(llvm::FixedVectorType::get(m.element, static_cast<unsigned>(vector)));
          for (int k = 0; k < vector; ++k) x = b_.CreateInsertElement(x, value(r + k), static_cast<std::uint64_t>(k));
        }
        b_.CreateAlignedStore(x, address(m, t_.place(layout), layout.at(r, 0, 0)),
                              llvm::Align(bytes * static_cast<std::uint64_t>(vector)));
      };
      if (Ir valid = inside(at, layout, rows, columns))
        t_.when(valid, put);
      else
        put();
    }
  };
  auto existing = [&] {
    Ir easy = vector > 1 ? m.aligned : nullptr;
    if (Ir full = all_rows_exist(m, rows)) easy = easy ? b_.CreateAnd(easy, full) : full;
    if (!easy || layout.registers() == 1) return slow();
    t_.either(easy, fast, slow);
  };
  Ir writes = m.exists;
  if (Ir first = t_.is_first_replica(layout)) writes = writes ? b_.CreateAnd(writes, first) : first;
  if (writes)
    t_.when(writes, existing);
  else
    existing();
}

/// How many neighbouring registers one access of at most 16 bytes covers: those along the axis of stride 1.
static int wide_access(const Layout& layout, bool rows, int bytes, std::int64_t extent) {
  int count = 1;
  for (const Place& base : layout.bases(Carrier::registers)) {
    Place next = rows ? Place{count, 0} : Place{0, count};
    if (!(base == next) || 2 * count * bytes > 16 || extent % (2 * count) != 0) break;
    count *= 2;
  }
  return count;
}

/// Whether a product reads the value where it lies, transposed or not.
static bool feeds_product(mlir::Value v) {
  return llvm::any_of(v.getUsers(), [](mlir::Operation* user) {
    if (auto t = mlir::dyn_cast<TransposeOp>(user)) return feeds_product(t.getTile());
    auto d = mlir::dyn_cast<DotOp>(user);
    return d && extents(d.getTile())[0] > 1 && extents(d.getTile())[1] > 1 && extents(d.getA())[1] > 1;
  });
}

/// Whether a load goes to shared memory as it comes, in rows of 16 bytes a lane: what products read, and what registers
/// would take in pieces of less than 8 bytes.
bool KernelEmitter::is_staged(mlir::Operation* load) {
  mlir::Value v = load->getResult(0);
  std::int64_t rows = extents(v)[0], columns = extents(v)[1];
  if (rows == 1 || columns == 1) return false;
  const int bytes = bytes_of(element_type(v));
  return feeds_product(v) || (bytes == 2 && wide_access(layout_of(v), false, bytes, columns) * bytes < 8);
}

/// Whether the rows of a tile stand side by side in memory, and not the columns.
bool KernelEmitter::is_by_rows(const Memory& m) { return m.column_stride && !m.row_stride && !m.row_limit; }

Registers KernelEmitter::load_registers(mlir::Operation* op, const Memory& m) {
  mlir::Value v = op->getResult(0);
  std::int64_t rows = extents(v)[0], columns = extents(v)[1];
  int bytes = bytes_of(m.element);
  bool by_rows = is_by_rows(m);
  Layout layout = layout_of(v);
  bool staged = is_staged(op);
  bool wide = !m.column_stride || by_rows;
  // Pieces of a row go to shared memory as they are; what is held otherwise is not loaded that way.
  if (staged && wide_access(layout, by_rows, bytes, by_rows ? rows : columns) * bytes < 8)
    layout = choice_.staged(rows, columns, bytes, by_rows);
  int vector = wide ? wide_access(layout, by_rows, bytes, by_rows ? rows : columns) : 1;
  return {layout, load(m, layout, rows, columns, vector)};
}

// What is not staged goes straight into the registers that the rest of the kernel wants it in.
void KernelEmitter::emit_load(mlir::Operation* op) {
  mlir::Value v = op->getResult(0);
  if (v.use_empty()) return;
  if (auto it = ahead_.find(op); it != ahead_.end()) return define(v, it->second);
  if (auto it = waiting_.find(op); it != waiting_.end()) return define(v, layout_of(v), it->second);
  Memory m = memory_of(op);
  // Where a loop is short of registers, a copy passes none; its addresses took more of them elsewhere.
  if (!excess_.empty() && target_.has_async_copy && mlir::isa<mlir::scf::ForOp>(op->getParentOp()) &&
      comes_in_pieces(op)) {
    Copy c = reserve(extents(v)[0], extents(v)[1], element_type(v));
    writes(c);
    start_copy(m, c, extents(v)[0], extents(v)[1]);
    t_.isa.wait_copies(t_);
    return define(v, c);
  }
  Registers loaded = load_registers(op, m);
  if (!is_staged(op)) return define(v, loaded.layout, loaded.values);
  Copy c = reserve(extents(v)[0], extents(v)[1], element_type(v), is_by_rows(m));
  writes(c);
  store(loaded, c, extents(v)[0], extents(v)[1]);
  define(v, c);
  if (loaded.layout == layout_of(v)) define(v, loaded.layout, loaded.values);
}

void KernelEmitter::emit_store(mlir::Operation* op) {
  mlir::Value v = op->getOperand(0);
  Memory m = memory_of(op);
  std::int64_t rows = extents(v)[0], columns = extents(v)[1];
  bool by_rows = is_by_rows(m);
  bool wide = !m.column_stride || by_rows, matrix = rows > 1 && columns > 1;
  int bytes = bytes_of(m.element);
  auto access = [&](const Layout& layout) {
    return wide ? wide_access(layout, by_rows, bytes, by_rows ? rows : columns) : 1;
  };
  // What lies in shared memory as it shall lie in global memory is read so that each lane writes 16 bytes of a row.
  const Held& held = held_[v];
  const bool lies = wide && matrix && held.forms.empty() && !held.copies.empty() &&
                    held.copies.front().transposed == by_rows && held.copies.front().element == m.element;
  Registers from;
  if (lies)
    from = {choice_.staged(rows, columns, bytes, by_rows), {}}, from.values = load(held.copies.front(), from.layout);
  else
    from = any(v);
  if (!failure_.empty()) return;
  // A state may end where it started: what other threads still read of it must have been read. Stores side by side need
  // one barrier.
  if (mlir::isa<StoreOp>(op) && !mlir::isa_and_nonnull<StoreOp>(op->getPrevNode())) barrier();
  // Pieces of less than 8 bytes are gathered there first.
  if (wide && matrix && access(from.layout) * bytes < 8 && from.values.front()->getType() == m.element) {
    Layout pieces = choice_.staged(rows, columns, bytes, by_rows);
    Copy c = reserve(rows, columns, m.element, by_rows);
    writes(c);
    store(from, c, rows, columns);
    from = {pieces, load(c, pieces)};
    scratch_.release(c.region);
  }
  store(m, from, rows, columns, access(from.layout));
}

}  // namespace latile::simt
