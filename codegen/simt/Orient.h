// Which way round products are computed, so that one's accumulator is an operand of the next where it is.
#pragma once
#include "codegen/simt/Target.h"
#include "mlir/IR/BuiltinOps.h"

namespace latile::simt {

/// The target that the module's attribute `tile.target` names; sm_80 where there is none. Null: the name is unknown
/// (reported).
const Target* target_of(mlir::ModuleOp);

/// transpose(dot(a, b)) = dot(bᵀ, aᵀ). On NVIDIA an accumulator is operand A of the next product, on AMD operand B.
/// Values that element-wise ops and loops tie together are held one way round; the ways are chosen by the bytes that
/// must pass through shared memory otherwise: operands that are not free, tiles stored or loaded the other way round,
/// ops that look at rows and columns differently. Loops count 16 times. So a delta rule's state is held transposed on
/// NVIDIA and as it is on AMD.
///
/// Leaves `tile.transpose` where the ways differ; those that meet cancel in tile-canonicalize.
mlir::LogicalResult orient(mlir::ModuleOp);

}  // namespace latile::simt
