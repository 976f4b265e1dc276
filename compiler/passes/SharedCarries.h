// Carries that several heads share leave the scan that reads them.
#pragma once
#include "mlir/IR/BuiltinOps.h"

namespace latile {

/// In a scan over groups of several heads, carries on the coarser head axis beside ones on the scan's axis are the same
/// for all heads of a group. A second scan behind the first runs over the coarser axis, computes these carries and
/// nothing else, and writes their final and history tensors; the first only reads them. So every state has one writer,
/// which may write where the state was read. What the carries need is computed in both scans. The passes that make
/// kernels begin with this.
void separate_shared_carries(mlir::ModuleOp);

}  // namespace latile
