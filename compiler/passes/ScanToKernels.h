// From a scan to kernels that load, loop and store.
#pragma once
#include "mlir/IR/BuiltinOps.h"

namespace latile {

/// Replaces each tile.scan by one kernel and its launch: `<program>_fused`, or `<program>_carries` of a scan without
/// outputs.
///
/// Grid: sequences, then heads of the scan's axis (a scan without head axis: sequences only). A program of the grid
/// finds its row range, loads parameters and scalars, loads its carries (through their index where they have one;
/// a negative slot starts from zero), loops over chunks, and stores the carries. Rows of a partial chunk, ragged
/// batches and empty sequences live in tile.rows and the loop's bounds only. Carries that all live on a coarser head
/// axis than the scan's make that one the grid's axis, and the heads of a group a loop (Members.h); beside carries of
/// the scan's axis they get a scan of their own first (SharedCarries.h).
///
/// A program marked `step` has one row a sequence and no loop. There, a sequence all of whose carries have a negative
/// initial and a negative final slot is absent: its outputs are zero and nothing else is touched.
mlir::LogicalResult scan_to_kernels(mlir::ModuleOp);

}  // namespace latile
