// A triangular inverse that is used once need not exist.
#pragma once
#include "mlir/IR/BuiltinOps.h"

namespace latile {

/// dot(inverse_unit_lower(A), x) becomes solve_unit_lower(A, x) where the inverse has no other use.
///
/// Casts of the inverse and of x that narrow them for the product are dropped: the solve is in float32, which is wider.
mlir::LogicalResult solve_instead_of_inverse(mlir::ModuleOp);

}  // namespace latile
