#include "codegen/simt/Sink.h"
#include "dialect/Tile.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace latile::simt {

using namespace tile;

namespace {

/// What a value takes of the registers: nothing where it lies in shared memory, or is made where it is used.
std::int64_t bytes_of(Value v) {
  auto type = dyn_cast<RankedTensorType>(v.getType());
  if (!type || !v.getDefiningOp()) return type ? type.getNumElements() * 4 : 0;
  if (isa<LoadOp, LoadRowsOp, BroadcastOp>(v.getDefiningOp())) return 0;
  if (auto transpose = v.getDefiningOp<TransposeOp>()) return bytes_of(transpose.getX());
  return type.getNumElements() * ((type.getElementTypeBitWidth() + 7) / 8);
}

bool moves(Operation* op) {
  return op->getNumResults() == 1 && isa<RankedTensorType>(op->getResult(0).getType()) && op->getNumRegions() == 0 &&
         isMemoryEffectFree(op) && !op->use_empty();
}

Operation* first_user(Operation* op) {
  Block* block = op->getBlock();
  Operation* first = nullptr;
  for (Operation* user : op->getUsers()) {
    Operation* at = block->findAncestorOpInBlock(*user);
    if (!first || at->isBeforeInBlock(first)) first = at;
  }
  return first;
}

/// Whether some other use keeps a value alive up to `place`.
bool lives_until(Value v, Operation* place, Operation* except) {
  Block* block = place->getBlock();
  if (v.getParentBlock() != block) return true;
  return llvm::any_of(v.getUsers(), [&](Operation* user) {
    Operation* at = block->findAncestorOpInBlock(*user);
    return at != except && !at->isBeforeInBlock(place);
  });
}

void sink(Block& block) {
  // Users first, so that whole chains move.
  for (Operation* op = block.empty() ? nullptr : &block.back(); op;) {
    Operation* before = op->getPrevNode();
    for (Region& region : op->getRegions())
      for (Block& inner : region) sink(inner);
    if (moves(op)) {
      Operation* place = first_user(op);
      std::int64_t kept = 0;
      llvm::SmallDenseSet<Value> seen;
      for (Value v : op->getOperands())
        if (seen.insert(v).second && !lives_until(v, place, op)) kept += bytes_of(v);
      if (kept <= bytes_of(op->getResult(0)) && op->getNextNode() != place) op->moveBefore(place);
    }
    op = before;
  }
}

}  // namespace

LogicalResult sink(ModuleOp module) {
  module.walk([](KernelOp kernel) { sink(kernel.getBody().front()); });
  return success();
}

}  // namespace latile::simt
