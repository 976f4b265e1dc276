// Reverse mode over straight-line tile code.
#pragma once
#include "dialect/Tile.h"

namespace latile::tile {

/// Gradients by value; float32 tiles of the value's shape.
using Gradients = llvm::DenseMap<mlir::Value, mlir::Value>;

/// Adds `gradient` to what `value` has so far; nothing when it is null or `value` is no tile.
void accumulate(mlir::OpBuilder&, mlir::Location, Gradients&, mlir::Value value, mlir::Value gradient);

/// Walks `ops` (in the order of their block) from last to first and adds the gradients of all that they read to
/// `gradients`, which starts with those of their results. Ops whose results have none are passed over. Fails at an op
/// that has no AdjointInterface; the failure is reported there.
mlir::LogicalResult build_reverse(mlir::OpBuilder&, llvm::ArrayRef<mlir::Operation*> ops, Gradients&);

}  // namespace latile::tile
