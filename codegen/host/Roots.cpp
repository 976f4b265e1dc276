// Loops over whole values: stores into buffers and tensors, running sums, reductions, carries.
#include "codegen/host/KernelEmitter.h"

namespace latile::host {

using namespace tile;

// Register blocks over a value. With a product, rows × vectors accumulators fill the registers that the operands
// leave (16 of 32 for AVX-512, 8 of 16 for AVX2), and the rows of one block of columns follow one another, so that
// the right operand stays near. Without one, whole rows in the order of memory, from the last one up if `upwards`.
void KernelEmitter::over_blocks(std::int64_t rows, mlir::Value shape, llvm::function_ref<void(const Block&)> body,
                                bool has_product, bool upwards) {
  bool wide = l_.isa.vector_floats() == 16;
  std::int64_t vectors = columns(shape) / l_.width;
  int most = wide ? 4 : 2, budget = wide ? 16 : 8;
  int across = static_cast<int>(std::min<std::int64_t>(vectors, most));
  if (vectors % across != 0 && vectors % (across - 1) == 0 && across > 2) across -= 1;
  std::int64_t whole = vectors / across * across * l_.width;
  int rest = static_cast<int>(vectors % across);
  if (!has_product) {
    l_.loop(l_.index(0), l_.index(rows), 1, [&](Ir turn) {
      Ir i = upwards ? builder_.CreateSub(l_.index(rows - 1), turn) : turn;
      pace(8 * vectors);
      l_.loop(l_.index(0), l_.index(whole), across * l_.width, [&](Ir j) { body({i, 1, j, across}); });
      if (rest) body({i, 1, l_.index(whole), rest});
    });
    return;
  }
  int down = 1;
  while (down * 2 * across <= budget && down * 2 <= rows) down *= 2;
  auto band = [&](Ir j, int count) {
    l_.loop(l_.index(0), l_.index(rows), down, [&](Ir i) { body({i, down, j, count}); });
  };
  l_.loop(l_.index(0), l_.index(whole), across * l_.width, [&](Ir j) { band(j, across); });
  if (rest) band(l_.index(whole), rest);
}

static bool holds_product(mlir::Value v, const Storage& storage, bool root = true) {
  mlir::Operation* op = v.getDefiningOp();
  if (!op || !is_tile(v) || extents(v)[1] == 1 || (!root && storage.forms(v))) return false;
  if (auto d = mlir::dyn_cast<DotOp>(op)) return !is_outer(d);
  return llvm::any_of(op->getOperands(), [&](mlir::Value x) { return holds_product(x, storage, false); });
}

void KernelEmitter::store_value(mlir::Value v, const Buffer& to) {
  over_blocks(
      extents(v)[0], v,
      [&](const Block& block) {
        // The value's own buffer is the target: what it is made of is evaluated, not the buffer read.
        Grid grid = plain_.contains(v) ? evaluate(v, block) : evaluate_op(v.getDefiningOp(), v, block);
        for (int r = 0; r < block.rows; ++r)
          for (int c = 0; c < block.vectors; ++c)
            l_.store(grid[static_cast<std::size_t>(r * block.vectors + c)],
                     address(to, l_.add(block.i, r), l_.add(block.j, c * l_.width), in_panel(v)), ElementType::f32,
                     nullptr);
      },
      holds_product(v, storage_));
}

// The value with rows and columns exchanged, by gathers down its columns: no shuffle network to compile, and no
// slower than one.
void KernelEmitter::store_flipped(mlir::Value v) {
  std::int64_t rows = extents(v)[0], cols = extents(v)[1];
  std::int64_t padded = (rows + 15) / 16 * 16;
  auto it = flipped_.find(v);
  if (it == flipped_.end())
    it = flipped_.try_emplace(v, Buffer{allocate(cols * padded * 4), l_.index(padded * 4), 0}).first;
  const Buffer& to = it->second;
  const Buffer from = stored(plain_, v);
  l_.loop(l_.index(0), l_.index(rows), l_.width, [&](Ir r) {
    l_.loop(l_.index(0), l_.index(cols), 1, [&](Ir c) {
      Ir x = l_.load_strided(address(from, r, c, in_panel(v)), ElementType::f32, from.row_bytes, nullptr);
      l_.store(x, address(to, c, r, false), ElementType::f32, nullptr);
    });
  });
}

void KernelEmitter::emit_root(mlir::Value v) {
  mlir::Operation* op = v.getDefiningOp();
  if (auto s = mlir::dyn_cast<SolveUnitLowerOp>(op))
    emit_solve(s);
  else if (auto i = mlir::dyn_cast<InverseUnitLowerOp>(op))
    emit_inverse(i);
  else if (auto c = mlir::dyn_cast<CumsumOp>(op))
    emit_cumsum(c);
  else if (auto r = mlir::dyn_cast<ReduceOp>(op))
    emit_reduce(r);
  else if (running_decay(v).gates)
    emit_running_decay(v);
  else if (auto d = mlir::dyn_cast<DecayedScoresOp>(op))
    emit_decayed_scores(d);
  else if (auto d = mlir::dyn_cast<DecayedApplyOp>(op))
    emit_decayed_apply(d);
  else if (auto k = mlir::dyn_cast<KronRowsOp>(op))
    emit_kron_rows(k);
  else if (auto lookup = mlir::dyn_cast<LookupOp>(op))
    emit_lookup(lookup);
  else if (auto s = mlir::dyn_cast<SumRowsOp>(op))
    emit_sum_rows(s);
  else if (auto s = mlir::dyn_cast<SolveOp>(op))
    emit_solve_system(s);
  else if (mlir::isa<CummaxOp, LogcumsumexpOp, AffineScanOp>(op))
    emit_running(op);
  else if (auto d = mlir::dyn_cast<DotOp>(op); d && engine_ == Bfloat16::tiles && is_bfloat16_product(d))
    emit_tile_product(d);
  else if (storage_.forms(v) & (plain | flipped)) {
    Buffer to = new_buffer(v, false);
    store_value(v, to);
    plain_[v] = to;
  }
  store_forms(v);
}

void KernelEmitter::store_forms(mlir::Value v) {
  unsigned forms = storage_.forms(v);
  if (forms & flipped) store_flipped(v);
  if (forms & halves) store_halves(v);
  if (forms & pairs) store_pairs(v);
  if (forms & pairs_flipped) flip_words(v, halves, pairs_flipped);
  if (forms & halves_flipped) flip_words(v, pairs, halves_flipped);
}

void KernelEmitter::emit_cumsum(CumsumOp op) {
  mlir::Value v = op.getTile();
  Buffer to = new_buffer(v, false);
  std::int64_t rows = extents(v)[0];
  l_.loop(l_.index(0), l_.index(columns(v)), l_.width, [&](Ir j) {
    l_.loop(l_.index(0), l_.index(rows), 1, {l_.splat(0.0)}, [&](Ir k, ArrayRef<Ir> sum) -> SmallVector<Ir> {
      Ir row = op.getReverse() ? builder_.CreateSub(l_.index(rows - 1), k) : k;
      Ir total = builder_.CreateFAdd(sum[0], evaluate(op.getX(), {row, 1, j, 1})[0]);
      l_.store(op.getExclusive() ? sum[0] : total, address(to, row, j, in_panel(v)), ElementType::f32, nullptr);
      return {total};
    });
  });
  plain_[v] = to;
}

void KernelEmitter::emit_reduce(ReduceOp op) {
  mlir::Value x = op.getX(), v = op.getTile();
  std::int64_t rows = extents(x)[0], cols = extents(x)[1];
  bool largest = op.getKind() == ReduceKind::Max;
  double start = largest ? -std::numeric_limits<double>::infinity() : 0.0;
  auto join = [&](Ir a, Ir y) { return largest ? l_.maximum(a, y) : builder_.CreateFAdd(a, y); };
  std::int64_t terms = op.getAxis() == 1 ? cols : rows;
  auto scaled = [&](Ir y) {
    if (op.getKind() != ReduceKind::Mean) return y;
    Ir factor = y->getType()->isVectorTy() ? l_.splat(1.0 / static_cast<double>(terms))
                                           : l_.scalar(1.0 / static_cast<double>(terms));
    return builder_.CreateFMul(y, factor);
  };
  if (op.getAxis() == 1) {
    auto row_sum = [&](Ir row) {
      if (cols == 1) return extents(x)[0] == 1 ? scalar(x) : read_column_scalar(x, row);
      Ir total = l_.loop(l_.index(0), l_.index(columns(x)), l_.width, {l_.splat(start)},
                         [&](Ir j, ArrayRef<Ir> sum) -> SmallVector<Ir> {
                           Ir y = evaluate(x, {row, 1, j, 1})[0];
                           if (Ir mask = column_mask(x, j)) y = builder_.CreateSelect(mask, y, l_.splat(start));
                           return {join(sum[0], y)};
                         })[0];
      return scaled(largest ? l_.largest(total) : l_.sum(total));
    };
    if (rows == 1) {
      scalars_[v] = row_sum(l_.index(0));
      return;
    }
    if (!plain_.contains(v)) plain_[v] = new_buffer(v, true);
    Buffer to = stored(plain_, v);
    l_.loop(l_.index(0), l_.index(rows), 1,
            [&](Ir r) { builder_.CreateStore(row_sum(r), l_.at(to.base, l_.mul(r, 4))); });
    return;
  }
  if (cols == 1) {
    Ir total =
        l_.loop(l_.index(0), l_.index(rows), 1, {l_.scalar(start)}, [&](Ir r, ArrayRef<Ir> sum) -> SmallVector<Ir> {
          Ir y = rows == 1 ? scalar(x) : read_column_scalar(x, r);
          if (!largest) return {builder_.CreateFAdd(sum[0], y)};
          return {builder_.CreateSelect(builder_.CreateFCmpUGE(sum[0], y), sum[0], y)};
        })[0];
    scalars_[v] = scaled(total);
    return;
  }
  Buffer to = new_buffer(v, false);
  l_.loop(l_.index(0), l_.index(columns(x)), l_.width, [&](Ir j) {
    Ir total =
        l_.loop(l_.index(0), l_.index(rows), 1, {l_.splat(start)}, [&](Ir r, ArrayRef<Ir> sum) -> SmallVector<Ir> {
          return {join(sum[0], evaluate(x, {r, 1, j, 1})[0])};
        })[0];
    l_.store(scaled(total), address(to, l_.index(0), j, in_panel(v)), ElementType::f32, nullptr);
  });
  plain_[v] = to;
}

void KernelEmitter::emit_store(mlir::Operation* op) {
  mlir::Value v = op->getOperand(0);
  std::int64_t rows = extents(v)[0];
  auto store = mlir::dyn_cast<StoreOp>(op);
  if (store && rows > 1 && extents(v)[1] > 1 && store.getView().getType().getInner().size() == 2 &&
      store.getView().getType().getUnit() == store.getView().getType().getRank() - 2 && reads_by_columns(v))
    return emit_column_store(store);
  if (extents(v)[1] > 1) {
    // A state that was just read from its first row to its last is still near at its last rows.
    over_blocks(
        rows, v,
        [&](const Block& block) {
          if (store)
            fetch_next_state(v, builder_.CreateSub(l_.index(rows - 1), block.i), block.j, block.vectors * l_.width);
          write_memory(op, block, evaluate(v, block));
        },
        holds_product(v, storage_), mlir::isa<StoreOp>(op));
    return;
  }
  const View& view = views_[op->getOperand(1)];
  l_.loop(l_.index(0), l_.index(rows), 1, [&](Ir r) {
    auto of_rows = mlir::dyn_cast<StoreRowsOp>(op);
    MemoryRow m = of_rows ? row_of_sequence(view, of_rows.getBatch(), of_rows.getRows(), of_rows.getHead(), r, 1)
                          : row_of(view, mlir::cast<StoreOp>(op).getIndices(), r);
    Ir address = m.address, valid = m.valid;
    Ir x = rows == 1 ? scalar(v) : read_column_scalar(v, r);
    if (valid) address = builder_.CreateSelect(valid, address, trash_);
    l_.store_scalar(x, address, view.type);
  });
}

// New values of the carries, written where the old ones are if nothing that is still to come reads those elsewhere.
void KernelEmitter::emit_carries(mlir::Operation* yield, llvm::ArrayRef<mlir::Value> carries, bool panelled) {
  std::vector<std::function<void()>> writes, copies;
  for (std::size_t k = 0; k < carries.size(); ++k) {
    mlir::Value carry = carries[k], next = yield->getOperand(static_cast<unsigned>(k));
    if (next == carry || in_panel(carry) != panelled) continue;
    if (extents(carry)[1] == 1) {
      Ir to = stored(plain_, carry).base;
      std::int64_t rows = extents(carry)[0];
      if (rows == 1) {
        Ir x = scalar(next);
        copies.push_back([this, x, to] { builder_.CreateStore(x, to); });
      } else {
        Buffer temporary = new_buffer(carry, true);
        l_.loop(l_.index(0), l_.index(rows), 1,
                [&](Ir r) { builder_.CreateStore(read_column_scalar(next, r), l_.at(temporary.base, l_.mul(r, 4))); });
        copies.push_back([this, temporary, to, rows] {
          l_.loop(l_.index(0), l_.index(rows), 1, [&](Ir r) {
            builder_.CreateStore(l_.load_scalar(l_.at(temporary.base, l_.mul(r, 4)), ElementType::f32),
                                 l_.at(to, l_.mul(r, 4)));
          });
        });
      }
      continue;
    }
    Buffer to = stored(plain_, carry);
    bool stored = plain_.contains(next), in_place = stored || !reads_elsewhere(next, carry, storage_);
    for (std::size_t m = k + 1; m < carries.size() && in_place; ++m)
      in_place = !reads(yield->getOperand(static_cast<unsigned>(m)), carry, storage_);
    if (in_place) {
      writes.push_back([this, next, to] { store_value(next, to); });
    } else {
      Buffer temporary = new_buffer(carry, true);
      writes.push_back([this, next, temporary] { store_value(next, temporary); });
      copies.push_back([this, carry, temporary, to] {
        over_blocks(
            extents(carry)[0], carry,
            [&](const Block& block) {
              for (int c = 0; c < block.vectors; ++c) {
                Ir j = l_.add(block.j, c * l_.width);
                l_.store(l_.load(address(temporary, block.i, j, in_panel(carry)), ElementType::f32, nullptr),
                         address(to, block.i, j, in_panel(carry)), ElementType::f32, nullptr);
              }
            },
            false);
      });
    }
  }
  if (panelled) {
    panel_work_.insert(panel_work_.end(), writes.begin(), writes.end());
    panel_work_.insert(panel_work_.end(), copies.begin(), copies.end());
    run_panels();
  } else {
    for (auto& w : writes) w();
    for (auto& c : copies) c();
  }
}

}  // namespace latile::host
