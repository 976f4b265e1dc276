// Folds and common subexpressions.
#pragma once
#include "mlir/IR/BuiltinOps.h"

namespace latile {

/// MLIR's canonicalisation and common-subexpression elimination. The tile dialect folds casts that undo a widening,
/// broadcasts of broadcasts and transposes of transposes. All folds are exact: no value changes in any bit.
mlir::LogicalResult canonicalize(mlir::ModuleOp);

}  // namespace latile
