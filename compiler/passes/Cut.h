// A scan becomes kernels over all chunks at once around a small serial one.
#pragma once
#include "mlir/IR/BuiltinOps.h"

namespace latile {

struct CutOptions {
  /// Whether what only outputs need of the carry leaves the serial kernel as well, for a third kernel.
  bool finish = false;
  /// Products that cost as much time as moving one byte; decides what is stored and what is computed twice.
  double flops_per_byte = 200;
  /// What work in the serial kernel costs against the same work spread over all chunks. On a GPU a serial kernel has
  /// one block for each head and slice of columns: it repeats the work for each slice, and the others wait for it.
  int serial_weight = 1;
};

/// Cuts each scan with chunks of more than one row by what depends on its carries:
///
///   `<program>_prepare`, grid (chunks, heads): what depends on no carry, stored in the workspace
///   `<program>_serial`, grid (sequences, heads): the loop that updates the carries
///   `<program>_finish`, grid (chunks, heads), on request: what depends on the carry but does not update it
///
/// A value that crosses is stored by its producer or computed again by each consumer, whichever moves fewer bytes or
/// the equivalent work (a minimum cut); inverses and solves are never computed twice. Without anything worth storing
/// there is no prepare kernel. Scans over single rows, and scans without
/// outputs, are left alone.
///
/// Heads are those of the scan's axis, or of the coarser axis that all its carries live on; what differs between the
/// heads of a group is then computed in a loop over them (Members.h), in each of the kernels.
mlir::LogicalResult cut(mlir::ModuleOp, const CutOptions& = {});

}  // namespace latile
