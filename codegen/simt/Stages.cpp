// Loads a turn ahead: tiles that a loop reads are copied into one of two stages of shared memory while the turn before
// works on the other; vectors wait in registers.
#include "codegen/simt/Instructions.h"
#include "codegen/simt/KernelEmitter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

namespace latile::simt {

using namespace tile;

/// The integer ops of the body that a value needs, operands first; false: it needs something that only the turn itself
/// knows.
static bool positions_of(mlir::Value v, mlir::scf::ForOp loop, llvm::SetVector<mlir::Operation*>& out) {
  if (v == loop.getInductionVar()) return true;
  if (auto argument = mlir::dyn_cast<mlir::BlockArgument>(v)) return argument.getOwner() != loop.getBody();
  mlir::Operation* op = v.getDefiningOp();
  if (op->getBlock() != loop.getBody()) return true;
  bool simple = mlir::isa<RowsOp, HeadOp, MemberOp, RowBlockOp, mlir::arith::ConstantOp, mlir::arith::AddIOp,
                          mlir::arith::SubIOp, mlir::arith::MulIOp, mlir::arith::DivSIOp, mlir::arith::RemSIOp,
                          mlir::arith::MinSIOp, mlir::arith::MaxSIOp>(op);
  if (!simple) return false;
  for (mlir::Value operand : op->getOperands())
    if (!positions_of(operand, loop, out)) return false;
  out.insert(op);
  return true;
}

static mlir::Value whole_view(mlir::Value view) {
  while (mlir::Operation* op = view.getDefiningOp()) {
    if (!mlir::isa<ColumnsOp, RowBlockOp>(op)) break;
    view = op->getOperand(0);
  }
  return view;
}

/// Whether a loop walks the rows that a load reads, block by block: each turn reads and writes those of its own.
static bool is_walked(mlir::Operation* load, mlir::scf::ForOp loop) {
  auto own_rows = [&](mlir::Value view) {
    auto block = view.getDefiningOp<RowBlockOp>();
    return block && block.getAt() == loop.getInductionVar() && loop.getConstantStep() &&
           block.getBlock().getType().getInner()[0] <= loop.getConstantStep()->getSExtValue();
  };
  const mlir::Value view = load->getOperand(0);
  if (!own_rows(view)) return false;
  bool others = false;
  loop.walk([&](mlir::Operation* op) {
    if (!mlir::isa<StoreOp, StoreRowsOp>(op) || whole_view(op->getOperand(1)) != whole_view(view)) return;
    others |= !own_rows(op->getOperand(1)) ||
              op->getOperand(1).getDefiningOp()->getOperand(0) != view.getDefiningOp()->getOperand(0);
  });
  return !others;
}

static bool is_of_pieces(mlir::Operation* load) {
  mlir::Value v = load->getResult(0);
  auto view = mlir::cast<ViewType>(load->getOperand(0).getType());
  return extents(v)[0] % 16 == 0 && extents(v)[1] % 16 == 0 && view.getUnit() == view.getRank() - 1;
}

/// Whether a load to shared memory is of whole pieces of 16 bytes, with nothing to pad.
bool KernelEmitter::comes_in_pieces(mlir::Operation* load) { return is_staged(load) && is_of_pieces(load); }

/// Fills `stages_` and reserves their memory.
void KernelEmitter::find_stages(mlir::scf::ForOp loop) {
  stages_ = {};
  // The rows of a state that a loop walks are a stream from memory, and come ahead in an inner loop too.
  llvm::DenseSet<mlir::Operation*> walked;
  for (mlir::Operation& op : *loop.getBody())
    if (mlir::isa<LoadOp>(op) && is_walked(&op, loop) && is_of_pieces(&op)) walked.insert(&op);
  if (!ahead_.empty() && walked.empty()) return;
  // Registers of a vector that waits a turn are not there for anything else.
  constexpr int most_waiting = 4;
  llvm::SetVector<mlir::Operation*> positions;
  llvm::DenseSet<mlir::Value> written;  // what a turn writes the next one may read
  loop.walk([&](mlir::Operation* op) {
    if (mlir::isa<StoreOp, StoreRowsOp>(op)) written.insert(whole_view(op->getOperand(1)));
  });
  for (mlir::Operation& op : *loop.getBody()) {
    if (!mlir::isa<LoadOp, LoadRowsOp>(op) || op.getResult(0).use_empty()) continue;
    const bool walks = walked.contains(&op);
    if (!walks && written.contains(whole_view(op.getOperand(0)))) continue;
    mlir::Value v = op.getResult(0);
    const bool tile = walks || comes_in_pieces(&op),
               vector = !is_staged(&op) && layout_of(v).registers() <= most_waiting;
    llvm::SetVector<mlir::Operation*> own;
    if (!(tile || vector) || !llvm::all_of(op.getOperands(), [&](mlir::Value x) { return positions_of(x, loop, own); }))
      continue;
    if (vector) {
      positions.insert(own.begin(), own.end());
      stages_.vectors.push_back(&op);
      continue;
    }
    Copy c = reserve(extents(v)[0], extents(v)[1], element_type(v));
    scratch_.release(c.region);
    const auto bytes = static_cast<std::size_t>(2 * stage_bytes(c));
    if (staged_ + bytes > room_) continue;
    staged_ += bytes;
    positions.insert(own.begin(), own.end());
    stages_.loads.push_back(&op);
    c.region = scratch_.allocate(2 * stage_bytes(c));
    c.borrowed = true;
    ahead_[&op] = c;
  }
  for (mlir::Operation& op : *loop.getBody())
    if (positions.contains(&op)) stages_.positions.push_back(&op);
}

/// Starts the loads of the turn that begins at `turn`; the registers of its vectors.
SmallVector<Ir> KernelEmitter::start_stages(mlir::scf::ForOp loop, Ir turn, Ir stage) {
  indices_[loop.getInductionVar()] = turn;
  for (mlir::Operation* op : stages_.positions) (void)emit_index(op);
  // Vectors first: a load that waits behind the copies holds its warp.
  SmallVector<Ir> waiting;
  for (mlir::Operation* op : stages_.vectors) waiting.append(load_registers(op, memory_of(op)).values);
  for (mlir::Operation* op : stages_.loads) {
    Copy to = ahead_[op];
    to.stage = t_.mul(stage, stage_bytes(to));
    mlir::Value v = op->getResult(0);
    start_copy(memory_of(op), to, extents(v)[0], extents(v)[1]);
  }
  return waiting;
}

// Rows that do not exist are filled with zeros by copies of no bytes.
void KernelEmitter::start_copy(const Memory& m, const Copy& to, std::int64_t rows, std::int64_t columns) {
  std::int64_t bytes = bytes_of(m.element), pieces = columns * bytes / 16;
  auto exists = [&](Ir row) -> Ir {
    Ir valid = m.exists;
    if (Ir there = row_exists(m, row)) valid = valid ? b_.CreateAnd(valid, there) : there;
    return valid;
  };
  auto asynchronous = [&] {
    std::int64_t total = rows * pieces;
    for (std::int64_t from = 0; from < total; from += t_.threads) {
      Ir e = t_.add(t_.tid, from);
      auto piece = [&] {
        Ir row = t_.div(e, pieces), column = t_.mul(t_.rem(e, pieces), 16 / bytes), valid = exists(row);
        Ir source = valid ? b_.CreateSelect(valid, row, m.safe_row ? m.safe_row : t_.i32(0)) : row;
        Ir size = valid ? b_.CreateSelect(valid, t_.i32(16), t_.i32(0)) : t_.i32(16);
        Ir address = valid && m.exists ? b_.CreateSelect(m.exists, this->address(m, {source, column}), m.base)
                                       : this->address(m, {source, column});
        t_.isa.start_copy(t_, pointer(to, row, column), address, size);
      };
      if (from + t_.threads > total)
        t_.when(b_.CreateICmpSLT(e, t_.i32(total)), piece);
      else
        piece();
    }
  };
  // Rows that all exist, a fixed distance apart for one thread.
  const std::int64_t apart = t_.threads / pieces;
  const bool evenly = t_.threads % pieces == 0 && rows % apart == 0 && m.rate == 1;
  auto whole = [&] {
    Ir row = t_.div(t_.tid, pieces), column = t_.mul(t_.rem(t_.tid, pieces), 16 / bytes);
    Ir source = address(m, {row, column});
    Ir step = t_.mul(m.row_stride ? m.row_stride : t_.i64(1), (m.reversed ? -apart : apart) * bytes);
    for (std::int64_t at = 0; at < rows; at += apart) {
      t_.isa.start_copy(t_, pointer(to, row, column, {static_cast<int>(at), 0}), source, t_.i32(16));
      source = t_.at(source, step);
    }
  };
  auto plain = [&] {
    t_.spread(rows * columns, [&](Ir e) {
      Ir row = t_.div(e, columns), column = t_.rem(e, columns), valid = exists(row);
      auto read = [&]() -> SmallVector<Ir> {
        return {
            b_.CreateAlignedLoad(m.element, address(m, {row, column}), llvm::Align(static_cast<std::uint64_t>(bytes)))};
      };
      Ir x = valid ? t_.choose(valid, read, [&] { return SmallVector<Ir>{llvm::Constant::getNullValue(m.element)}; })[0]
                   : read()[0];
      set_element(to, row, column, x);
    });
  };
  auto masked = [&] { t_.either(m.aligned, asynchronous, plain); };
  if (!evenly) return masked();
  Ir easy = m.aligned;
  if (m.exists) easy = b_.CreateAnd(easy, m.exists);
  if (Ir full = all_rows_exist(m, rows)) easy = b_.CreateAnd(easy, full);
  t_.either(easy, whole, masked);
}

}  // namespace latile::simt
