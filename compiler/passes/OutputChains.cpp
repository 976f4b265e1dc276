#include "compiler/passes/OutputChains.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;

namespace latile {

using namespace tile;

static bool is_chain(Operation* op) { return isa<SolveOp, DecayedScoresOp, InverseUnitLowerOp, SolveUnitLowerOp>(op); }

/// Calls `f` with what an op reads, in its regions too.
static void each_operand(Operation* op, function_ref<void(Value)> f) {
  op->walk([&](Operation* inner) {
    for (Value v : inner->getOperands()) f(v);
  });
}

/// Whether the values wait for one of the chains.
static bool wait_for_any(ValueRange values, Block& body, const llvm::DenseSet<Operation*>& chains) {
  llvm::DenseSet<Operation*> seen;
  SmallVector<Value> open(values);
  while (!open.empty()) {
    Operation* op = open.pop_back_val().getDefiningOp();
    if (!op || op->getBlock() != &body || !seen.insert(op).second) continue;
    if (chains.contains(op)) return true;
    each_operand(op, [&](Value v) { open.push_back(v); });
  }
  return false;
}

bool has_chains_to_outputs(ScanOp scan) {
  Block& body = scan.getBody().front();
  llvm::DenseSet<Operation*> readers, chains;
  for (Operation& op : body.without_terminator()) {
    bool reads = false;
    each_operand(&op, [&](Value v) {
      auto argument = dyn_cast<BlockArgument>(v);
      reads |= argument ? argument.getOwner() == &body && argument.getArgNumber() >= scan.getInputs().size()
                        : readers.contains(v.getDefiningOp());
    });
    if (!reads) continue;
    readers.insert(&op);
    if (is_chain(&op)) chains.insert(&op);
  }
  const ValueRange results = cast<YieldOp>(body.getTerminator()).getValues();
  const size_t outputs = scan.getOutputs().size();
  return wait_for_any(results.take_front(outputs), body, chains) &&
         !wait_for_any(results.drop_front(outputs), body, chains);
}

}  // namespace latile
