// From a scan to kernels that load, loop and store.
#pragma once
#include "mlir/IR/BuiltinOps.h"

namespace latile {

/// Replaces each tile.scan by one kernel, `<program>_fused`, and its launch.
///
/// Grid: sequences, then heads of the scan's axis (a scan without head axis: sequences only). A program of the grid
/// finds its row range, loads parameters and scalars, loads its carries (through their index where they have one;
/// a negative slot starts from zero), loops over chunks, and stores the carries. Rows of a partial chunk, ragged
/// batches and empty sequences live in tile.rows and the loop's bounds only. A carry on a coarser head axis than the
/// scan's is stored by the first head of its group.
///
/// A program marked `step` has one row a sequence and no loop. There, a sequence all of whose carries have a negative
/// initial and a negative final slot is absent: its outputs are zero and nothing else is touched.
mlir::LogicalResult scan_to_kernels(mlir::ModuleOp);

}  // namespace latile
