#include "compiler/passes/SolveInsteadOfInverse.h"
#include "dialect/Tile.h"

using namespace mlir;
using namespace latile::tile;

namespace latile {

// The float32 tile that a narrowing cast took its values from; `tile` itself where there is none.
static Value before_narrowing(Value tile) {
  auto cast = tile.getDefiningOp<CastOp>();
  return cast && cast.getX().getType().getElementType().isF32() ? Value(cast.getX()) : tile;
}

LogicalResult solve_instead_of_inverse(ModuleOp module) {
  SmallVector<DotOp> dots;
  module.walk([&](DotOp dot) { dots.push_back(dot); });
  for (DotOp dot : dots) {
    Value narrowed = dot.getA();
    auto inverse = before_narrowing(narrowed).getDefiningOp<InverseUnitLowerOp>();
    if (!inverse || !narrowed.hasOneUse() || !inverse->hasOneUse()) continue;
    OpBuilder builder(dot);
    Value b = before_narrowing(dot.getB());
    Type type = dot.getTile().getType();
    if (b.getType() != type) b = CastOp::create(builder, dot.getLoc(), type, b);
    Value solved = SolveUnitLowerOp::create(builder, dot.getLoc(), type, inverse.getX(), b);
    dot.getTile().replaceAllUsesWith(solved);
    Operation* cast = narrowed.getDefiningOp();
    dot.erase();
    if (cast != inverse) cast->erase();
    inverse.erase();
  }
  return success();
}

}  // namespace latile
