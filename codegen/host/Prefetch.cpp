// The rows of the next chunk, brought near a few lines at a time between the register blocks of this one.
//
// A chunk's rows lie a whole token apart, so that no hardware prefetcher follows them, and each row of each tensor is a
// page of its own: left alone, a kernel waits for memory as long as it computes. The addresses of all lines that the
// next chunk reads are written into a table, and `pace` fetches the next few wherever work of some length begins.
#include "codegen/host/KernelEmitter.h"

namespace latile::host {

using namespace tile;

// One line an interval keeps the 16 misses that a core tracks busy and not full.
static constexpr std::int64_t line_bytes = 64, addresses_at_once = 8, cycles_for_a_line = 24;

void KernelEmitter::begin_prefetch(mlir::Block& body) {
  unfetched_ = nullptr;
  auto& b = builder_;
  struct Source {
    mlir::Operation* op;  ///< load_rows or store_rows
    mlir::Value rows;
    std::int64_t count, rate, lines;
  };
  SmallVector<Source> sources;
  std::int64_t lines = 0;
  auto add = [&](auto op, mlir::Value tile, std::int64_t rate) {
    // What a nested loop or branch stands before may not have been computed yet.
    mlir::Value rows = op.getRows(), head = op.getHead();
    if (!rows_.contains(rows) || !indices_.contains(op.getBatch()) || (head && !indices_.contains(head))) return;
    const View& view = views_[op.getView()];
    bool contiguous = extents(tile)[1] == 1 || view.shape.getUnit() == view.shape.getRank() - 1;
    if (!contiguous || extents(tile)[0] == 1) return;
    std::int64_t bytes = extents(tile)[1] * static_cast<std::int64_t>(size(view.type));
    sources.push_back({op, rows, extents(tile)[0], rate, (bytes + line_bytes - 1) / line_bytes});
    lines += sources.back().count * sources.back().lines;
  };
  for (mlir::Operation& op : body)
    if (auto load = mlir::dyn_cast<LoadRowsOp>(op))
      add(load, load.getTile(), static_cast<std::int64_t>(load.getRate()));
    else if (auto store = mlir::dyn_cast<StoreRowsOp>(op))
      add(store, store.getTile(), 1);
  if (!lines) return;
  Ir table = allocate((lines + 2 * addresses_at_once) * 8);
  if (!prefetch_at_) {
    llvm::IRBuilder<>::InsertPointGuard guard(b);
    b.SetInsertPoint(entry_);
    prefetch_at_ = b.CreateAlloca(b.getPtrTy());
  }
  SmallVector<llvm::Constant*> steps;
  for (std::int64_t k = 0; k < addresses_at_once; ++k)
    steps.push_back(l_.b.getInt64(static_cast<std::uint64_t>(k * line_bytes)));
  Ir each = llvm::ConstantVector::get(steps);
  auto put = [&](Ir line, Ir address) {
    Ir first = b.CreateVectorSplat(addresses_at_once, b.CreatePtrToInt(address, b.getInt64Ty()));
    b.CreateAlignedStore(b.CreateAdd(first, each), l_.at(table, l_.mul(line, 8)), llvm::Align(8));
  };
  // The last chunk of a sequence fetches its own rows again. What a store writes past a row's own lines, the next
  // row's store replaces.
  std::int64_t start = 0;
  for (const Source& s : sources) {
    Ir full = b.CreateICmpEQ(rows_[s.rows].count, l_.index(s.count / s.rate));
    Ir ahead = b.CreateSelect(full, l_.index(s.count), l_.index(0));
    auto store = mlir::dyn_cast<StoreRowsOp>(s.op);
    l_.loop(l_.index(0), l_.index(s.count), 1, [&](Ir r) {
      Ir at = l_.add(ahead, r), row = nullptr;
      if (store)
        row =
            row_of_sequence(views_[store.getView()], store.getBatch(), store.getRows(), store.getHead(), at, 1).address;
      else
        row = row_of(s.op->getResult(0), at).address;
      for (std::int64_t n = 0; n < s.lines; n += addresses_at_once)
        put(l_.add(l_.mul(r, s.lines), start + n), l_.at(row, l_.index(n * line_bytes)));
    });
    start += s.count * s.lines;
  }
  put(l_.index(lines), arena_);
  put(l_.index(lines + addresses_at_once), arena_);
  b.CreateStore(table, prefetch_at_);
  prefetch_end_ = l_.at(table, l_.index(lines * 8));
}

/// Into the second level, which holds a state and a chunk's rows; the first is full of what is being worked on.
void KernelEmitter::fetch(Ir address) {
  auto& b = builder_;
  b.CreateIntrinsic(llvm::Intrinsic::prefetch, {b.getPtrTy()}, {address, b.getInt32(0), b.getInt32(2), b.getInt32(1)});
}

void KernelEmitter::pace(std::int64_t cycles) {
  if (!prefetch_end_) return;
  auto& b = builder_;
  int lines = static_cast<int>(std::clamp<std::int64_t>(cycles / cycles_for_a_line, 1, addresses_at_once));
  Ir at = b.CreateLoad(b.getPtrTy(), prefetch_at_);
  for (int n = 0; n < lines; ++n) {
    Ir line = b.CreateAlignedLoad(b.getPtrTy(), l_.at(at, l_.index(8 * n)), llvm::Align(8));
    fetch(line);
  }
  Ir next = l_.at(at, l_.index(8 * lines));
  b.CreateStore(b.CreateSelect(b.CreateICmpULT(next, prefetch_end_), next, prefetch_end_), prefetch_at_);
}

// A step reads a state once and writes it once: while it writes, nothing is read. So the state of the next item is
// fetched then, a row of it for each row (or column) that is written. Items are taken in runs, so the next one mostly
// is the next head of the same sequence; after the last head the fetch falls on what is near already.
void KernelEmitter::fetch_next_state(mlir::Value stored, Ir turn, Ir from, std::int64_t elements) {
  if (depth_ || facts_.grid.size() < 2) return;
  auto& b = builder_;
  mlir::Value head = kernel_.getBody().front().getArgument(static_cast<unsigned>(facts_.grid.size()) - 1);
  for (LoadOp load : kernel_.getBody().front().getOps<LoadOp>()) {
    ViewType type = load.getView().getType();
    if (extents(load.getTile()) != extents(stored) || !llvm::is_contained(load.getIndices(), head) ||
        streaming(load.getTile()) == Streaming::none)
      continue;
    bool by_columns = type.getUnit() != type.getRank() - 1;
    const View& view = views_[load.getView()];
    Ir here = indices_[head], next = l_.add(here, 1);
    indices_[head] = b.CreateSelect(b.CreateICmpSLT(next, dim(facts_.grid.back())), next, here);
    Ir start = row_of(view, load.getIndices(), l_.index(0)).address;
    indices_[head] = here;
    auto bytes = static_cast<std::int64_t>(size(view.type));
    Ir stride = by_columns ? view.strides.back() : view.strides[view.strides.size() - 2];
    Ir row = l_.at(start, l_.mul(l_.add(l_.mul(turn, stride), from), bytes));
    std::int64_t lines = (elements * bytes + line_bytes - 1) / line_bytes;
    // The other line of each pair of lines comes along.
    for (std::int64_t n = 0; n < lines; n += 2) fetch(l_.at(row, l_.index(n * line_bytes)));
    return;
  }
}

}  // namespace latile::host
