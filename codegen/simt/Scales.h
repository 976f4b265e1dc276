// Factors of the operands of a product, on the side where they cost nothing.
#pragma once
#include "mlir/IR/BuiltinOps.h"

namespace latile::simt {

/// Where an operand of a product is a tile from memory times factors of its rows or columns, the factors leave it: the
/// tile is then an operand as it lies in shared memory, and is not rounded a second time.
///
///   - A factor for each term goes to the other operand, Σ_t a_it (w_t b_tj) = Σ_t (a_it w_t) b_tj, if that was
///   computed
///     (it is multiplied in registers, before it is rounded) or is the smaller tile.
///   - A factor for each row or column of the result is multiplied there, Σ_t (r_i a_it) b_tj = r_i Σ_t a_it b_tj.
///
/// So a delta rule reads its keys once, whether or not they are normalised.
mlir::LogicalResult move_scales(mlir::ModuleOp);

}  // namespace latile::simt
