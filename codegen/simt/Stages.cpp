// Loads a turn ahead: tiles that a loop reads are copied into one of two stages of shared memory while the turn before
// works on the other.
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
  bool simple =
      mlir::isa<RowsOp, HeadOp, mlir::arith::ConstantOp, mlir::arith::AddIOp, mlir::arith::SubIOp, mlir::arith::MulIOp,
                mlir::arith::DivSIOp, mlir::arith::RemSIOp, mlir::arith::MinSIOp, mlir::arith::MaxSIOp>(op);
  if (!simple) return false;
  for (mlir::Value operand : op->getOperands())
    if (!positions_of(operand, loop, out)) return false;
  out.insert(op);
  return true;
}

/// Fills `stages_` and reserves their memory.
void KernelEmitter::find_stages(mlir::scf::ForOp loop) {
  stages_ = {};
  if (!staged_ || !ahead_.empty()) return;
  llvm::SetVector<mlir::Operation*> positions;
  for (mlir::Operation& op : *loop.getBody()) {
    if (!mlir::isa<LoadOp, LoadRowsOp>(op) || op.getResult(0).use_empty() || !is_staged(&op)) continue;
    mlir::Value v = op.getResult(0);
    auto view = mlir::cast<ViewType>(op.getOperand(0).getType());
    // Whole pieces of 16 bytes, and nothing to pad.
    bool whole = extents(v)[0] % 16 == 0 && extents(v)[1] % 16 == 0 && view.getUnit() == view.getRank() - 1;
    llvm::SetVector<mlir::Operation*> own;
    if (!whole || !llvm::all_of(op.getOperands(), [&](mlir::Value x) { return positions_of(x, loop, own); })) continue;
    positions.insert(own.begin(), own.end());
    stages_.loads.push_back(&op);
    Copy c = reserve(extents(v)[0], extents(v)[1], element_type(v));
    scratch_.release(c.region);
    c.region = scratch_.allocate(2 * stage_bytes(c));
    c.borrowed = true;
    ahead_[&op] = c;
  }
  for (mlir::Operation& op : *loop.getBody())
    if (positions.contains(&op)) stages_.positions.push_back(&op);
}

/// Starts the loads of the turn that begins at `turn`.
void KernelEmitter::start_stages(mlir::scf::ForOp loop, Ir turn, Ir stage) {
  indices_[loop.getInductionVar()] = turn;
  for (mlir::Operation* op : stages_.positions) (void)emit_index(op);
  for (mlir::Operation* op : stages_.loads) {
    Copy to = ahead_[op];
    to.stage = t_.mul(stage, stage_bytes(to));
    mlir::Value v = op->getResult(0);
    start_copy(memory_of(op), to, extents(v)[0], extents(v)[1]);
  }
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
  t_.choose(
      m.aligned,
      [&] {
        asynchronous();
        return SmallVector<Ir>();
      },
      [&] {
        plain();
        return SmallVector<Ir>();
      });
}

}  // namespace latile::simt
