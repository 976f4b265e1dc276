// Products with an updated state become products with the state as it was read.
#pragma once
#include "mlir/IR/BuiltinOps.h"

namespace latile {

/// In scans over single tokens, distributes dot(x, E) over E until every dot with a state reads the carry itself:
///
///   dot(x, s * S)        = s * dot(x, S)             s a [1, 1] scale
///   dot(x, r * S)        = dot(x * rᵀ, S)            r a column [K, 1], one factor a row
///   dot(x, c * S)        = c * dot(x, S)             c a row [1, V], one factor a column
///   dot(x, A ± B)        = dot(x, A) ± dot(x, B)
///   dot(x, dot(a, u))    = dot(dot(x, a), u)         an outer product, or one of low rank
///
/// A token of the gated delta rule then reads its state once for all dots and once for its update, not three times.
/// Products in float32 only: a body that rounds its state keeps its order.
mlir::LogicalResult reassociate_dots(mlir::ModuleOp);

}  // namespace latile
