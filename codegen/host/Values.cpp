// What stands for a value: registers, buffers of the arena, rows of tensors in memory.
#include "codegen/host/KernelEmitter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/Support/MathExtras.h"

namespace latile::host {

using namespace tile;

static std::int64_t round_up(std::int64_t x, std::int64_t m) { return (x + m - 1) / m * m; }

bool KernelEmitter::in_panel(mlir::Value v) const { return panel_columns_ && panelled_.contains(v); }

std::int64_t KernelEmitter::columns(mlir::Value v) const {
  return in_panel(v) ? panel_columns_ : round_up(extents(v)[1], l_.width);
}

Ir KernelEmitter::column_mask(mlir::Value v, Ir j) {
  std::int64_t n = extents(v)[1];
  if (n % l_.width == 0 && (!in_panel(v) || n % panel_columns_ == 0)) return nullptr;
  Ir column = in_panel(v) ? l_.add(j, l_.mul(panel_, panel_columns_)) : j;
  return l_.mask(builder_.CreateSub(l_.index(n), column));
}

KernelEmitter::Buffer KernelEmitter::new_buffer(mlir::Value v, bool whole_width) {
  // Rows are padded to the largest register block, so that a last block may write rows that nothing reads.
  std::int64_t rows = round_up(extents(v)[0], extents(v)[0] == 1 ? 1 : 16), row_floats = round_up(columns(v), 16);
  if (extents(v)[1] == 1) return {allocate(round_up(extents(v)[0], 16) * 4), l_.index(4), 0};
  std::int64_t panels = 1;
  if (in_panel(v) && whole_width) panels = (extents(v)[1] + panel_columns_ - 1) / panel_columns_;
  std::int64_t panel_bytes = rows * row_floats * 4;
  return {allocate(panels * panel_bytes), l_.index(row_floats * 4), panels > 1 ? panel_bytes : 0};
}

Ir KernelEmitter::address(const Buffer& buffer, Ir row, Ir column, bool panelled) {
  Ir offset = l_.add(l_.mul(row, buffer.row_bytes), l_.mul(column, 4));
  if (panelled && buffer.panel_bytes) offset = l_.add(offset, l_.mul(panel_, buffer.panel_bytes));
  return l_.at(buffer.base, offset);
}

KernelEmitter::MemoryRow KernelEmitter::row_of(const View& view, mlir::ValueRange leading, Ir row) {
  Ir offset = l_.index(0), valid = nullptr;
  std::size_t axis = 0;
  for (mlir::Value index : leading) {
    Ir at = indices_.lookup(index);
    // A slot may be none, and so may what is chosen between a slot and none: a head that leaves a store to another.
    if (mlir::Operation* op = index.getDefiningOp(); axis == 0 && op && mlir::isa<SlotOp, mlir::arith::SelectOp>(op))
      valid = builder_.CreateICmpSGE(at, l_.index(0));
    offset = l_.add(offset, l_.mul(at, view.strides[axis++]));
  }
  if (view.shape.getInner().size() == 2) offset = l_.add(offset, l_.mul(row, view.strides[axis]));
  return {l_.at(view.pointer, l_.mul(offset, static_cast<std::int64_t>(size(view.type)))), valid};
}

/// Row `row` of a chunk in memory; of reversed rows the tokens descend, and the `rate` rows of one token ascend.
Ir KernelEmitter::row_in_memory(const Rows& rows, Ir row, std::int64_t rate) {
  Ir first = l_.mul(rows.first, rate);
  if (!rows.reversed) return l_.add(first, row);
  if (rate == 1) return builder_.CreateSub(first, row);
  Ir within = builder_.CreateSRem(row, l_.index(rate));
  return l_.add(first, builder_.CreateSub(l_.mul(within, 2), row));
}

KernelEmitter::MemoryRow KernelEmitter::row_of(mlir::Value loaded, Ir row) {
  if (auto load = loaded.getDefiningOp<LoadOp>()) {
    // Rows of a register block that lie past the tile repeat its last row.
    if (extents(loaded)[0] % 16 != 0 && extents(loaded)[0] > 1)
      row = builder_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, row, l_.index(extents(loaded)[0] - 1));
    return row_of(views_[load.getView()], load.getIndices(), row);
  }
  auto load = loaded.getDefiningOp<LoadRowsOp>();
  return row_of_sequence(views_[load.getView()], load.getBatch(), load.getRows(), load.getHead(), row,
                         static_cast<std::int64_t>(load.getRate()));
}

KernelEmitter::MemoryRow KernelEmitter::row_of_sequence(const View& view, mlir::Value batch, mlir::Value of,
                                                        mlir::Value head, Ir row, std::int64_t rate) {
  const Rows& rows = rows_[of];
  Ir entry = indices_.lookup(batch), offset = l_.mul(entry, view.strides[0]);
  offset = l_.add(offset, l_.mul(row_in_memory(rows, row, rate), view.strides[1]));
  if (head) offset = l_.add(offset, l_.mul(indices_.lookup(head), view.strides[2]));
  Ir valid = builder_.CreateICmpSLT(row, l_.mul(rows.count, rate));
  if (rows.before) valid = builder_.CreateAnd(valid, builder_.CreateICmpSGE(row, rows.before));
  if (batch.getDefiningOp<SlotOp>()) valid = builder_.CreateAnd(valid, builder_.CreateICmpSGE(entry, l_.index(0)));
  return {l_.at(view.pointer, l_.mul(offset, static_cast<std::int64_t>(size(view.type)))), valid};
}

Ir KernelEmitter::read_memory(mlir::Value loaded, Ir row, Ir j) {
  mlir::Operation* op = loaded.getDefiningOp();
  const View& view = views_[op->getOperand(0)];
  MemoryRow memory = row_of(loaded, row);
  Ir column = in_panel(loaded) ? l_.add(j, l_.mul(panel_, panel_columns_)) : j;
  Ir mask = column_mask(loaded, j);
  auto bytes = static_cast<std::int64_t>(size(view.type));
  bool contiguous = view.shape.getUnit() == view.shape.getRank() - 1;
  if (contiguous) {
    // A row that does not exist is read from a row of zeros: no second body for partial chunks.
    Ir base = memory.valid ? builder_.CreateSelect(memory.valid, memory.address, zeros_) : memory.address;
    return l_.load(l_.at(base, l_.mul(column, bytes)), view.type, mask);
  }
  if (memory.valid) {
    Ir all = l_.mask(builder_.CreateSelect(memory.valid, l_.index(l_.width), l_.index(0)));
    mask = mask ? builder_.CreateAnd(mask, all) : all;
  }
  Ir stride = l_.mul(view.strides.back(), bytes);
  return l_.load_strided(l_.at(memory.address, l_.mul(column, stride)), view.type, stride, mask);
}

void KernelEmitter::write_memory(mlir::Operation* op, const Block& block, const Grid& grid) {
  mlir::Value value = op->getOperand(0);
  const View& view = views_[op->getOperand(1)];
  auto bytes = static_cast<std::int64_t>(size(view.type));
  bool contiguous = view.shape.getUnit() == view.shape.getRank() - 1;
  for (int r = 0; r < block.rows; ++r) {
    Ir row = l_.add(block.i, r);
    MemoryRow memory{nullptr, nullptr};
    if (auto store = mlir::dyn_cast<StoreRowsOp>(op)) {
      memory = row_of_sequence(view, store.getBatch(), store.getRows(), store.getHead(), row, 1);
    } else {
      memory = row_of(view, mlir::cast<StoreOp>(op).getIndices(), row);
      if (extents(value)[0] % block.rows != 0) {
        Ir exists = builder_.CreateICmpSLT(row, l_.index(extents(value)[0]));
        memory.valid = memory.valid ? builder_.CreateAnd(memory.valid, exists) : exists;
      }
    }
    for (int c = 0; c < block.vectors; ++c) {
      Ir j = l_.add(block.j, c * l_.width);
      Ir column = in_panel(value) ? l_.add(j, l_.mul(panel_, panel_columns_)) : j;
      Ir mask = column_mask(value, j), x = grid[static_cast<std::size_t>(r * block.vectors + c)];
      if (contiguous) {
        Ir base = memory.valid ? builder_.CreateSelect(memory.valid, memory.address, trash_) : memory.address;
        l_.store(x, l_.at(base, l_.mul(column, bytes)), view.type, mask);
        continue;
      }
      if (memory.valid) {
        Ir all = l_.mask(builder_.CreateSelect(memory.valid, l_.index(l_.width), l_.index(0)));
        mask = mask ? builder_.CreateAnd(mask, all) : all;
      }
      Ir stride = l_.mul(view.strides.back(), bytes);
      l_.store_strided(x, l_.at(memory.address, l_.mul(column, stride)), view.type, stride, mask);
    }
  }
}

KernelEmitter::Buffer KernelEmitter::stored(const llvm::DenseMap<mlir::Value, Buffer>& form, mlir::Value v) {
  if (auto it = form.find(v); it != form.end()) return it->second;
  mlir::Operation* op = v.getDefiningOp();
  fail(op ? op : kernel_.getOperation(), "its value is read from memory that it was not given");
  return {arena_, l_.index(4), 0};
}

Ir KernelEmitter::scalar(mlir::Value v) {
  if (Ir known = scalars_.lookup(v)) return known;
  make_scalar(v);
  if (Ir known = scalars_.lookup(v)) return known;
  mlir::Operation* op = v.getDefiningOp();
  return fail(op ? op : kernel_.getOperation(), "has no lowering as one element"), l_.scalar(0);
}

Ir KernelEmitter::read_column_scalar(mlir::Value v, Ir row) {
  // A column of one row lives in a register; its buffer, if it has one, is a carry's or filled on the way.
  if (extents(v)[0] == 1 && !plain_.contains(v)) return scalar(v);
  if (auto it = plain_.find(v); it != plain_.end())
    return l_.load_scalar(l_.at(it->second.base, l_.mul(row, 4)), ElementType::f32);
  mlir::Operation* op = v.getDefiningOp();
  if (op && mlir::isa<BroadcastOp>(op) && extents(op->getOperand(0))[0] == 1) return scalar(op->getOperand(0));
  if (op && mlir::isa<CastOp>(op)) return read_column_scalar(op->getOperand(0), row);
  if (!op) return fail(kernel_, "a column has no memory"), l_.scalar(0);
  make_column(v);
  return read_column_scalar(v, row);
}

/// One element of a product with a single column: a row of the left operand times the column, vector by vector.
Ir KernelEmitter::row_times_column(DotOp d, Ir r) {
  mlir::Value a = d.getA(), c = operand_form(d.getB()).value;
  bool row = extents(c)[0] == 1;
  Ir total = l_.loop(l_.index(0), l_.index(round_up(extents(a)[1], l_.width)), l_.width, {l_.splat(0.0)},
                     [&](Ir k, ArrayRef<Ir> sum) -> SmallVector<Ir> {
                       Ir x = evaluate(a, Block{r, 1, k, 1})[0];
                       Ir y = row ? evaluate(c, Block{l_.index(0), 1, k, 1})[0]
                                  : evaluate(c, Block{k, 1, l_.index(0), 1, true})[0];
                       Ir product = builder_.CreateFMul(x, y);
                       if (Ir mask = column_mask(a, k)) product = builder_.CreateSelect(mask, product, l_.splat(0.0));
                       return {builder_.CreateFAdd(sum[0], product)};
                     })[0];
  return l_.sum(total);
}

Ir KernelEmitter::row_place(PickKind pick, std::int64_t extent, std::uint64_t at, mlir::Value rows) {
  if (pick == PickKind::At) return l_.index(static_cast<std::int64_t>(at));
  if (pick == PickKind::Last) return l_.index(extent - 1);
  // A sequence of a rate above 1 has as many rows a token.
  std::int64_t rate = extent / mlir::cast<RowsType>(rows.getType()).getSize();
  Ir last = builder_.CreateSub(l_.mul(rows_[rows].count, rate), l_.index(1));
  return builder_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, last, l_.index(0));
}

void KernelEmitter::make_scalar(mlir::Value v) {
  mlir::Operation* op = v.getDefiningOp();
  if (!op) return fail(kernel_, "a scalar has no definition");
  Ir out = nullptr;
  auto rows_at = [&](mlir::Value rows) -> const Rows& { return rows_[rows]; };
  if (auto c = mlir::dyn_cast<ConstantOp>(op)) {
    out = l_.scalar(c.getValue().convertToDouble());
  } else if (auto s = mlir::dyn_cast<SplatOp>(op)) {
    out = builder_.CreateFPTrunc(scalars_.lookup(s.getScalar()), builder_.getFloatTy());
  } else if (auto c = mlir::dyn_cast<CountOp>(op)) {
    out = builder_.CreateSIToFP(rows_at(c.getRows()).count, builder_.getFloatTy());
  } else if (auto i = mlir::dyn_cast<IndexOp>(op)) {
    out = builder_.CreateSIToFP(rows_at(i.getRows()).number, builder_.getFloatTy());
  } else if (mlir::isa<ValidOp>(op)) {
    out = l_.scalar(1.0);
  } else if (auto r = mlir::dyn_cast<RowOp>(op)) {
    Ir at = row_place(r.getPick(), extents(r.getX())[0], r.getAt(), r.getRows());
    out = extents(r.getX())[0] == 1 ? scalar(r.getX()) : read_column_scalar(r.getX(), at);
  } else if (mlir::isa<LoadRowsOp, LoadOp>(op)) {
    const View& view = views_[op->getOperand(0)];
    MemoryRow m = row_of(v, l_.index(0));
    out = l_.load_scalar(m.valid ? builder_.CreateSelect(m.valid, m.address, zeros_) : m.address, view.type);
  } else if (auto c = mlir::dyn_cast<CumsumOp>(op)) {
    out = c.getExclusive() ? l_.scalar(0.0) : scalar(c.getX());
  } else if (mlir::isa<CastOp, BroadcastOp, TransposeOp>(op)) {
    out = scalar(op->getOperand(0));
  } else if (auto p = mlir::dyn_cast<PrevOp>(op)) {
    out = scalar(p.getFrom());
  } else if (auto p = mlir::dyn_cast<PlaceRowOp>(op)) {
    out = scalar(p.getX());
  } else if (auto r = mlir::dyn_cast<RepeatRowsOp>(op)) {
    out = scalar(r.getX());
  } else if (auto s = mlir::dyn_cast<SumRowsOp>(op)) {
    out = l_.scalar(0.0);
    for (std::int64_t k = 0; k < extents(s.getX())[0]; ++k)
      out = builder_.CreateFAdd(out, extents(s.getX())[0] == 1 ? scalar(s.getX())
                                                               : read_column_scalar(s.getX(), l_.index(k)));
  } else if (mlir::isa<CummaxOp, LogcumsumexpOp, AffineScanOp>(op)) {
    emit_running(op);
    out = l_.load_scalar(plain_[v].base, ElementType::f32);
  } else if (auto d = mlir::dyn_cast<DecayOp>(op)) {
    Ir gap = builder_.CreateFSub(scalar(d.getGr()), scalar(d.getGc()));
    out = d.getKind() == MaskKind::Strict ? l_.scalar(0.0) : l_.first_lane(l_.exp2(l_.splat(gap)));
  } else if (auto m = mlir::dyn_cast<MaskOp>(op)) {
    out = m.getKind() == MaskKind::Strict ? l_.scalar(0.0) : scalar(m.getX());
  } else if (auto d = mlir::dyn_cast<DiagonalOp>(op)) {
    out = scalar(d.getX());
  } else if (mlir::isa<InverseUnitLowerOp>(op)) {
    out = l_.scalar(1.0);
  } else if (auto s = mlir::dyn_cast<SolveUnitLowerOp>(op)) {
    out = scalar(s.getB());
  } else if (auto n = mlir::dyn_cast<NeutralOp>(op)) {
    out = scalar(n.getX());
    if (n.getRows()) {
      Ir valid = builder_.CreateICmpSGT(rows_at(n.getRows()).count, l_.index(0));
      out = builder_.CreateSelect(valid, out, l_.scalar(n.getValue().convertToDouble()));
    }
  } else if (auto reduce = mlir::dyn_cast<ReduceOp>(op)) {
    return emit_reduce(reduce);
  } else if (auto d = mlir::dyn_cast<DotOp>(op); d && is_outer(d)) {
    out = builder_.CreateFMul(scalar(d.getA()), scalar(d.getB()));
  } else if (d) {
    out = row_times_column(d, l_.index(0));
  } else {
    SmallVector<Ir> operands;
    for (mlir::Value x : op->getOperands())
      if (is_tile(x)) operands.push_back(l_.splat(scalar(x)));
    out = l_.first_lane(elementwise_vector(op, operands));
  }
  scalars_[v] = out;
}

void KernelEmitter::make_column(mlir::Value v) {
  if (plain_.contains(v)) return;
  mlir::Operation* op = v.getDefiningOp();
  std::int64_t rows = extents(v)[0];
  if (auto x = mlir::dyn_cast<BroadcastOp>(op); x && extents(x.getX())[0] == 1) return;
  if (mlir::isa<CastOp>(op)) return;
  Buffer buffer = new_buffer(v, true);
  auto put = [&](Ir row, Ir x) { builder_.CreateStore(x, l_.at(buffer.base, l_.mul(row, 4))); };
  if (mlir::isa<LoadRowsOp, LoadOp>(op)) {
    const View& view = views_[op->getOperand(0)];
    l_.loop(l_.index(0), l_.index(rows), 1, [&](Ir r) {
      MemoryRow m = row_of(v, r);
      put(r, l_.load_scalar(m.valid ? builder_.CreateSelect(m.valid, m.address, zeros_) : m.address, view.type));
    });
  } else if (auto c = mlir::dyn_cast<CumsumOp>(op)) {
    l_.loop(l_.index(0), l_.index(rows), 1, {l_.scalar(0)}, [&](Ir k, ArrayRef<Ir> sum) -> SmallVector<Ir> {
      Ir r = c.getReverse() ? builder_.CreateSub(l_.index(rows - 1), k) : k;
      Ir total = builder_.CreateFAdd(sum[0], read_column_scalar(c.getX(), r));
      put(r, c.getExclusive() ? sum[0] : total);
      return {total};
    });
  } else if (mlir::isa<CummaxOp, LogcumsumexpOp, AffineScanOp>(op)) {
    return emit_running(op);
  } else if (auto s = mlir::dyn_cast<SumRowsOp>(op)) {
    return emit_sum_rows(s);
  } else if (auto solve = mlir::dyn_cast<SolveUnitLowerOp>(op)) {
    const Buffer factor = stored(plain_, uncast(solve.getA()));
    l_.loop(l_.index(0), l_.index(rows), 1, [&](Ir r) {
      Ir x = l_.loop(l_.index(0), r, 1, {read_column_scalar(solve.getB(), r)}, [&](Ir k, ArrayRef<Ir> left) {
        Ir a = l_.load_scalar(address(factor, r, k, false), ElementType::f32);
        Ir known = l_.load_scalar(l_.at(buffer.base, l_.mul(k, 4)), ElementType::f32);
        return SmallVector<Ir>{l_.fma(builder_.CreateFNeg(a), known, left[0])};
      })[0];
      put(r, x);
    });
  } else if (auto p = mlir::dyn_cast<PrevOp>(op)) {
    Ir from = scalar(p.getFrom());
    l_.loop(l_.index(0), l_.index(rows), 1, [&](Ir r) {
      Ir edge = builder_.CreateICmpEQ(r, l_.index(p.getReverse() ? rows - 1 : 0));
      Ir inside = builder_.CreateSelect(edge, r, l_.add(r, p.getReverse() ? 1 : -1));
      put(r, builder_.CreateSelect(edge, from, read_column_scalar(p.getX(), inside)));
    });
  } else if (auto p = mlir::dyn_cast<PlaceRowOp>(op)) {
    Ir at = row_place(p.getPick(), rows, p.getAt(), p.getRows()), x = scalar(p.getX());
    l_.loop(l_.index(0), l_.index(rows), 1,
            [&](Ir r) { put(r, builder_.CreateSelect(builder_.CreateICmpEQ(r, at), x, l_.scalar(0.0))); });
  } else if (auto r = mlir::dyn_cast<RepeatRowsOp>(op)) {
    l_.loop(l_.index(0), l_.index(rows), 1, [&](Ir k) {
      put(k, read_column_scalar(r.getX(), builder_.CreateSDiv(k, l_.index(static_cast<std::int64_t>(r.getN())))));
    });
  } else if (auto reduce = mlir::dyn_cast<ReduceOp>(op)) {
    plain_[v] = buffer;
    emit_reduce(reduce);
  } else if (auto d = mlir::dyn_cast<DotOp>(op); d && !is_outer(d)) {
    l_.loop(l_.index(0), l_.index(rows), 1, [&](Ir r) { put(r, row_times_column(d, r)); });
  } else {
    l_.loop(l_.index(0), l_.index(rows), l_.width, [&](Ir r) {
      Ir x = evaluate_column(v, Block{r, 1, l_.index(0), 1, true})[0];
      l_.store(x, l_.at(buffer.base, l_.mul(r, 4)), ElementType::f32, nullptr);
    });
  }
  plain_[v] = buffer;
}

}  // namespace latile::host
