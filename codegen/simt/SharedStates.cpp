#include "codegen/simt/SharedStates.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace latile::simt {

using namespace tile;

/// The name of the tensor that a store writes.
static Attribute tensor_of(KernelOp kernel, StoreOp store) {
  return kernel.getArgNames()[cast<BlockArgument>(store.getView()).getArgNumber() - kernel.getGrid().size()];
}

/// The tensors that only the first slice stores; those stores are erased.
static llvm::DenseSet<Attribute> take_shared_stores(KernelOp kernel) {
  llvm::DenseSet<Attribute> taken;
  SmallVector<StoreOp> gone;
  kernel.walk([&](scf::IfOp branch) { llvm::append_range(gone, branch.thenBlock()->getOps<StoreOp>()); });
  for (StoreOp store : gone) {
    taken.insert(tensor_of(kernel, store));
    auto branch = cast<scf::IfOp>(store->getParentOp());
    store->erase();
    if (branch.thenBlock()->without_terminator().empty()) branch.erase();
  }
  return taken;
}

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
    for (Region& region : op->getRegions())
      if (!isa<scf::ForOp>(op)) region.walk([&](Operation* inner) { need(inner); });
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

/// Erases what no store needs, carries of loops included.
static void erase_unneeded(KernelOp kernel) {
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

void store_shared_states(KernelOp sliced, KernelOp twin, KernelOp whole) {
  const llvm::DenseSet<Attribute> shared = take_shared_stores(sliced);
  if (twin) (void)take_shared_stores(twin);
  if (shared.empty()) return whole.erase();
  SmallVector<Operation*> others;
  whole.walk([&](Operation* op) {
    auto store = dyn_cast<StoreOp>(op);
    if (isa<StoreRowsOp>(op) || (store && !shared.contains(tensor_of(whole, store)))) others.push_back(op);
  });
  for (Operation* op : others) op->erase();
  for (KernelOp kernel : {sliced, twin, whole})
    if (kernel) erase_unneeded(kernel);
  whole.setSymName((sliced.getSymName() + "_states").str());
  sliced->getParentOp()->walk([&](LaunchOp launch) {
    if (launch.getKernel() != sliced.getSymName()) return;
    OpBuilder builder(launch);
    builder.setInsertionPointAfter(launch);
    auto behind = cast<LaunchOp>(builder.clone(*launch));
    behind.setKernelAttr(FlatSymbolRefAttr::get(whole.getSymNameAttr()));
  });
}

}  // namespace latile::simt
