// States stored with their rows contiguous ([V, K], as most engines keep them): products and updates that walk them
// column by column, in the order of memory.
#include "codegen/host/KernelEmitter.h"

namespace latile::host {

using namespace tile;

bool KernelEmitter::reads_row_element(mlir::Value row) const {
  mlir::Operation* op = row.getDefiningOp();
  return plain_.contains(row) || (op && mlir::isa<LoadRowsOp>(op));
}

Ir KernelEmitter::read_row_scalar(mlir::Value row, Ir column) {
  if (auto it = plain_.find(row); it != plain_.end())
    return l_.load_scalar(address(it->second, l_.index(0), column, false), ElementType::f32);
  const View& view = views_[row.getDefiningOp()->getOperand(0)];
  MemoryRow m = row_of(row, l_.index(0));
  Ir at = l_.at(m.address, l_.mul(l_.mul(column, view.strides.back()), static_cast<std::int64_t>(size(view.type))));
  return l_.load_scalar(m.valid ? builder_.CreateSelect(m.valid, at, zeros_) : at, view.type);
}

/// True when a column of the value can be evaluated from contiguous memory.
bool KernelEmitter::reads_by_columns(mlir::Value v) {
  if (extents(v)[0] == 1 && extents(v)[1] == 1) return true;
  mlir::Operation* op = v.getDefiningOp();
  if (!op || plain_.contains(v) || in_panel(v)) return false;
  if (auto x = mlir::dyn_cast<BroadcastOp>(op))
    return extents(x.getX())[1] == 1 || (extents(x.getX())[0] == 1 && reads_row_element(x.getX()));
  if (mlir::isa<LoadOp>(op)) return streaming(v) == Streaming::columns;
  if (auto d = mlir::dyn_cast<DotOp>(op)) return is_outer(d) && reads_row_element(d.getB());
  if (!is_elementwise(op) || mlir::isa<NeutralOp, MaskOp>(op)) return false;
  return llvm::all_of(op->getOperands(), [&](mlir::Value x) { return reads_by_columns(x); });
}

/// Rows j … of column i, as vectors.
KernelEmitter::Grid KernelEmitter::evaluate_flipped(mlir::Value v, Ir i, Ir j, int vectors) {
  auto count = static_cast<std::size_t>(vectors);
  if (extents(v)[0] == 1 && extents(v)[1] == 1) return Grid(count, l_.splat(scalar(v)));
  mlir::Operation* op = v.getDefiningOp();
  Block rows{j, 1, l_.index(0), vectors, true};
  if (auto x = mlir::dyn_cast<BroadcastOp>(op)) {
    if (extents(x.getX())[1] == 1) return evaluate_column(x.getX(), rows);
    return Grid(count, l_.splat(read_row_scalar(x.getX(), i)));
  }
  if (auto d = mlir::dyn_cast<DotOp>(op)) {
    Grid out = evaluate_column(d.getA(), rows);
    Ir factor = l_.splat(read_row_scalar(d.getB(), i));
    for (Ir& x : out) x = builder_.CreateFMul(x, factor);
    return out;
  }
  if (mlir::isa<LoadOp>(op)) {
    Grid out;
    for (int n = 0; n < vectors; ++n) out.push_back(read_column_memory(v, i, l_.add(j, n * l_.width)));
    return out;
  }
  SmallVector<Grid> operands;
  for (mlir::Value x : op->getOperands())
    if (is_tile(x)) operands.push_back(evaluate_flipped(x, i, j, vectors));
  return elementwise(op, operands);
}

static Ir row_mask(const Lanes& l, std::int64_t rows, Ir j) {
  return rows % l.width == 0 ? nullptr : l.mask(l.b.CreateSub(l.index(rows), j));
}

/// Rows j … of column i of a tile in memory.
Ir KernelEmitter::read_column_memory(mlir::Value loaded, Ir i, Ir j) {
  auto load = loaded.getDefiningOp<LoadOp>();
  const View& view = views_[load.getView()];
  auto bytes = static_cast<std::int64_t>(size(view.type));
  MemoryRow m = row_of(view, load.getIndices(), l_.index(0));
  Ir column = l_.at(m.address, l_.mul(l_.mul(i, view.strides.back()), bytes));
  if (m.valid) column = builder_.CreateSelect(m.valid, column, zeros_);
  return l_.load(l_.at(column, l_.mul(j, bytes)), view.type, row_mask(l_, extents(loaded)[0], j));
}

// Products of single rows with one state: each column is read once and feeds all of them.
void KernelEmitter::emit_column_products(llvm::MutableArrayRef<DotOp> group) {
  mlir::Value state = group[0].getB();
  std::int64_t terms = extents(state)[0], vectors = (terms + l_.width - 1) / l_.width;
  SmallVector<Buffer> results, lefts;
  for (DotOp d : group) {
    results.push_back(new_buffer(d.getTile(), false));
    // The left row with zeros behind its last element, so that whole vectors can be read.
    Buffer left{allocate(vectors * l_.width * 4), l_.index(vectors * l_.width * 4), 0};
    l_.loop(l_.index(0), l_.index(vectors * l_.width), l_.width, [&](Ir k) {
      Ir x = evaluate(d.getA(), {l_.index(0), 1, k, 1})[0];
      if (Ir mask = row_mask(l_, terms, k)) x = builder_.CreateSelect(mask, x, l_.splat(0.0));
      l_.store(x, address(left, l_.index(0), k, false), ElementType::f32, nullptr);
    });
    lefts.push_back(left);
  }
  l_.loop(l_.index(0), l_.index(extents(state)[1]), 1, [&](Ir i) {
    SmallVector<Ir> sums = l_.loop(l_.index(0), l_.index(vectors * l_.width), l_.width,
                                   SmallVector<Ir>(group.size(), l_.splat(0.0)), [&](Ir k, ArrayRef<Ir> acc) {
                                     Ir column = read_column_memory(state, i, k);
                                     SmallVector<Ir> next;
                                     for (std::size_t n = 0; n < group.size(); ++n) {
                                       Ir x =
                                           l_.load(address(lefts[n], l_.index(0), k, false), ElementType::f32, nullptr);
                                       next.push_back(l_.fma(x, column, acc[n]));
                                     }
                                     return next;
                                   });
    for (std::size_t n = 0; n < group.size(); ++n)
      builder_.CreateStore(l_.sum(sums[n]), address(results[n], l_.index(0), i, false));
  });
  for (std::size_t n = 0; n < group.size(); ++n) plain_[group[n].getTile()] = results[n];
}

// From the last column up, for the reason of emit_store.
void KernelEmitter::emit_column_store(StoreOp store) {
  mlir::Value v = store.getTile();
  std::int64_t rows = extents(v)[0], cols = extents(v)[1], vectors = (rows + l_.width - 1) / l_.width;
  const View& view = views_[store.getView()];
  auto bytes = static_cast<std::int64_t>(size(view.type));
  int across = static_cast<int>(std::min<std::int64_t>(vectors, 4));
  auto put = [&](Ir i, Ir j, int count) {
    Grid grid = evaluate_flipped(v, i, j, count);
    MemoryRow m = row_of(view, store.getIndices(), l_.index(0));
    Ir column = l_.at(m.address, l_.mul(l_.mul(i, view.strides.back()), bytes));
    if (m.valid) column = builder_.CreateSelect(m.valid, column, trash_);
    for (int n = 0; n < count; ++n) {
      Ir at = l_.add(j, n * l_.width);
      l_.store(grid[static_cast<std::size_t>(n)], l_.at(column, l_.mul(at, bytes)), view.type, row_mask(l_, rows, at));
    }
  };
  l_.loop(l_.index(0), l_.index(cols), 1, [&](Ir turn) {
    Ir i = builder_.CreateSub(l_.index(cols - 1), turn);
    fetch_next_state(v, turn, l_.index(0), rows);
    std::int64_t whole = vectors / across * across * l_.width;
    l_.loop(l_.index(0), l_.index(whole), across * l_.width, [&](Ir j) { put(i, j, across); });
    if (vectors % across) put(i, l_.index(whole), static_cast<int>(vectors % across));
  });
}

}  // namespace latile::host
