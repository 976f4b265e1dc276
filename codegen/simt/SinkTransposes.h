// Casts come before transposes.
#pragma once
#include "mlir/IR/BuiltinOps.h"

namespace latile::simt {

/// cast(transpose(x)) becomes transpose(cast(x)), and transposes of transposes vanish: an operand of a product that is
/// used both ways round is then one tile in shared memory, since a transpose is another way of reading it and a cast is
/// not.
mlir::LogicalResult sink_transposes(mlir::ModuleOp);

}  // namespace latile::simt
