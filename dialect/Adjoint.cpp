#include "dialect/Adjoint.h"
#include "dialect/AdjointBuilder.h"

using namespace mlir;

namespace latile::tile {

void accumulate(OpBuilder& builder, Location loc, Gradients& gradients, Value value, Value gradient) {
  if (!gradient || !isa<RankedTensorType>(value.getType())) return;
  Value& sum = gradients[value];
  sum = sum ? AdjointBuilder(builder, loc).add(sum, gradient) : gradient;
}

LogicalResult build_reverse(OpBuilder& builder, ArrayRef<Operation*> ops, Gradients& gradients) {
  for (Operation* op : llvm::reverse(ops)) {
    if (op->getNumResults() != 1) continue;
    Value upstream = gradients.lookup(op->getResult(0));
    if (!upstream) continue;
    auto adjoint = dyn_cast<AdjointInterface>(op);
    if (!adjoint) return op->emitOpError() << "has no adjoint";
    auto operands = adjoint.buildAdjoint(builder, upstream);
    for (auto [operand, gradient] : llvm::zip(op->getOperands(), operands))
      accumulate(builder, op->getLoc(), gradients, operand, gradient);
    if (failed(adjoint.buildCapturedAdjoints(builder, operands, gradients))) return failure();
  }
  return success();
}

}  // namespace latile::tile
