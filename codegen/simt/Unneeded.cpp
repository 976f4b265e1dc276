#include "codegen/simt/Unneeded.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;

namespace latile::simt {

using namespace tile;

namespace {

/// What the stores of a kernel need, through the carries of its loops.
class Needed {
public:
  explicit Needed(KernelOp kernel) {
    kernel.walk([&](Operation* op) {
      if (isa<StoreOp, StoreRowsOp>(op)) need(op);
    });
  }
  bool contains(Operation* op) const { return ops_.contains(op); }
  bool contains(scf::ForOp loop, unsigned carry) const { return carries_.contains({loop, carry}); }

private:
  void need(Operation* op) {
    if (!ops_.insert(op).second) return;
    for (Value v : op->getOperands())
      if (!isa<scf::ForOp>(op) || isa<IndexType>(v.getType())) need(v);
    if (Operation* parent = op->getParentOp(); !isa<KernelOp>(parent)) need(parent);
    for (Region& region : op->getRegions()) {
      if (isa<scf::IfOp>(op) && !region.empty()) need(region.front().getTerminator());
      if (!isa<scf::ForOp, scf::IfOp>(op)) region.walk([&](Operation* inner) { need(inner); });
    }
  }
  void need(Value v) {
    if (auto argument = dyn_cast<BlockArgument>(v)) {
      auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
      if (loop && argument != loop.getInductionVar()) need(loop, argument.getArgNumber() - 1);
      return;
    }
    if (auto loop = dyn_cast<scf::ForOp>(v.getDefiningOp()))
      need(loop, cast<OpResult>(v).getResultNumber());
    else
      need(v.getDefiningOp());
  }
  void need(scf::ForOp loop, unsigned carry) {
    if (!carries_.insert({loop, carry}).second) return;
    need(loop.getOperation());
    need(loop.getInitArgs()[carry]);
    need(loop.getBody()->getTerminator()->getOperand(carry));
  }

  llvm::DenseSet<Operation*> ops_;
  llvm::DenseSet<std::pair<Operation*, unsigned>> carries_;
};

}  // namespace

void erase_unneeded(KernelOp kernel) {
  const Needed needed(kernel);
  SmallVector<scf::ForOp> loops;
  kernel.walk([&](scf::ForOp loop) { loops.push_back(loop); });
  SmallVector<Operation*> unneeded;
  kernel.walk([&](Operation* op) {  // those inside of others first
    if (op != kernel && !op->hasTrait<OpTrait::IsTerminator>() && !needed.contains(op)) unneeded.push_back(op);
  });
  for (scf::ForOp loop : loops) {
    if (!needed.contains(loop)) continue;
    SmallVector<unsigned> kept;
    SmallVector<Value> inits, yields;
    for (unsigned k = 0; k < loop.getNumRegionIterArgs(); ++k) {
      if (!needed.contains(loop, k)) continue;
      kept.push_back(k);
      inits.push_back(loop.getInitArgs()[k]);
      yields.push_back(loop.getBody()->getTerminator()->getOperand(k));
    }
    if (kept.size() == loop.getNumRegionIterArgs()) continue;
    OpBuilder builder(loop);
    auto smaller =
        scf::ForOp::create(builder, loop.getLoc(), loop.getLowerBound(), loop.getUpperBound(), loop.getStep(), inits);
    smaller->setDiscardableAttrs(loop->getDiscardableAttrDictionary());
    smaller.getBody()->clear();
    loop.getInductionVar().replaceAllUsesWith(smaller.getInductionVar());
    for (auto [to, from] : llvm::enumerate(kept)) {
      loop.getRegionIterArgs()[from].replaceAllUsesWith(smaller.getRegionIterArgs()[to]);
      loop.getResult(from).replaceAllUsesWith(smaller.getResult(static_cast<unsigned>(to)));
    }
    loop.getBody()->getTerminator()->erase();
    smaller.getBody()->getOperations().splice(smaller.getBody()->end(), loop.getBody()->getOperations());
    builder.setInsertionPointToEnd(smaller.getBody());
    scf::YieldOp::create(builder, loop.getLoc(), yields);
    // What is left of the old loop is carries that only ops read that go too.
    for (Value v : loop->getResults()) v.dropAllUses();
    for (Value v : loop.getRegionIterArgs()) v.dropAllUses();
    loop->erase();
  }
  for (Operation* op : unneeded) {
    op->dropAllUses();
    op->erase();
  }
}

}  // namespace latile::simt
