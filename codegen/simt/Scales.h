// Factors of the terms of a product, on the side where they cost nothing.
#pragma once
#include "mlir/IR/BuiltinOps.h"

namespace latile::simt {

/// Where one operand of a product is a tile from memory times a factor for each term, and the other one was computed,
/// the factor goes to the other one: Σ_t a_it (w_t b_tj) = Σ_t (a_it w_t) b_tj. The tile from memory is then an operand
/// as it lies in shared memory, and is not rounded a second time; the computed one is multiplied in registers, before
/// it is rounded. So a delta rule's update reads its keys once.
mlir::LogicalResult move_scales(mlir::ModuleOp);

}  // namespace latile::simt
