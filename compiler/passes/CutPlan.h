// Which values of a scan's region cross between its parts.
#pragma once
#include "compiler/passes/Cut.h"
#include "dialect/Tile.h"
#include "llvm/ADT/SetVector.h"

namespace latile {

struct CutPlan {
  llvm::SetVector<mlir::Value> from_prepare;  ///< free of carries; stored by prepare, read by serial and finish
  llvm::SetVector<mlir::Value> from_serial;   ///< depend on a carry; stored by serial, read by finish
};

CutPlan plan_cut(tile::ScanOp, const CutOptions&);

/// Values that `op` reads, those that its regions capture included.
llvm::SmallVector<mlir::Value> values_read(mlir::Operation* op);

/// Ops of `block`, in its order, that compute `roots` from block arguments and `known` values.
llvm::SmallVector<mlir::Operation*> ops_for(mlir::Block& block, llvm::ArrayRef<mlir::Value> roots,
                                            llvm::function_ref<bool(mlir::Value)> known);

}  // namespace latile
