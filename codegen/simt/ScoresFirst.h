// Decayed scores of a kernel side by side and early, so that they share exponentials and little else is alive.
#pragma once
#include "dialect/Tile.h"

namespace latile::simt {

/// Decayed scores read their operands from shared memory, rows as rows, and are the widest part of a kernel over all
/// chunks. In kernels without loops:
/// - an operand that is a transposed product, sum or cast of loaded tiles is computed the other way round, so that a
///   cast of 16 bits is read where it was loaded; a sign goes to the scores;
/// - an exclusive sum of the columns' gates is the row above of the inclusive one;
/// - what scores with the same columns' gate need comes first, then they, side by side; then inverses; the rest
///   follows.
mlir::LogicalResult scores_first(mlir::ModuleOp);

/// The value of 16 bits that a value is a cast of, perhaps `turned` (transposed); null: none.
mlir::Value narrow_source(mlir::Value, bool* turned = nullptr);

/// Whether an op is strict scores whose rows' gate is the row above of the columns' gate (`tile.prev`): they read that,
/// and not the first row's.
bool reads_row_above(mlir::Operation*);

}  // namespace latile::simt
