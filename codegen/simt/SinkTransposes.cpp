#include "codegen/simt/SinkTransposes.h"
#include "dialect/Tile.h"

using namespace mlir;

namespace latile::simt {

using namespace tile;

LogicalResult sink_transposes(ModuleOp module) {
  SmallVector<CastOp> casts;
  module.walk([&](CastOp cast) { casts.push_back(cast); });
  for (CastOp cast : casts) {
    auto transpose = cast.getX().getDefiningOp<TransposeOp>();
    if (!transpose) continue;
    OpBuilder builder(cast);
    auto before = transpose.getX().getType(), after = llvm::cast<RankedTensorType>(cast.getTile().getType());
    auto narrow = CastOp::create(builder, cast.getLoc(),
                                 RankedTensorType::get(before.getShape(), after.getElementType()), transpose.getX());
    cast.getTile().replaceAllUsesWith(TransposeOp::create(builder, cast.getLoc(), after, narrow));
    cast.erase();
    if (transpose->use_empty()) transpose.erase();
  }
  return success();
}

}  // namespace latile::simt
