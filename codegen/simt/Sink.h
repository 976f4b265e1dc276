// The order of work in a kernel, for few live registers.
#pragma once
#include "mlir/IR/BuiltinOps.h"

namespace latile::simt {

/// Moves each pure op on tiles right before its first user, unless that keeps more bytes alive in registers than it
/// saves: an operand that would have died earlier counts against the result. Bodies are recorded in the order in which
/// they are written; a product that is only added at the end need not be in registers from the beginning. Loads stay
/// where they are.
mlir::LogicalResult sink(mlir::ModuleOp);

}  // namespace latile::simt
