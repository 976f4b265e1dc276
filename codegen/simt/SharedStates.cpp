#include "codegen/simt/SharedStates.h"
#include "codegen/simt/Unneeded.h"
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
