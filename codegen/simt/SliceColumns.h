// Columns that a kernel treats alike are shared out among blocks.
#pragma once
#include "dialect/Tile.h"
#include "mlir/IR/BuiltinOps.h"

namespace latile::simt {

/// The extent of the widest set of columns whose elements never meet, as the value columns of a state do: nothing sums,
/// scans or compares over them, and every tensor that has them is read and written by them alone. 0: there is none.
///
/// Columns of one set are those of values that element-wise ops, products, transposes, loops and so on tie together;
/// as rows they count too (a transposed state), but memory is only sliced along its last axis.
std::int64_t sliceable_columns(tile::KernelOp);

/// Makes each block work on `1 / slices` of those columns: the kernel gets a last grid axis "slice" and the attribute
/// `slices`, loads and stores go through `tile.columns`, types shrink. What has no such columns is computed by every
/// slice and stored by the first. Does nothing and returns false where the kernel has no such set, or its extent is no
/// multiple of granule · slices.
bool slice_columns(tile::KernelOp, std::int64_t slices, std::int64_t granule = 16);

/// The pass: kernels that carry a state through a loop get slices of at most as many columns as the module's attribute
/// `tile.slice_columns` says (default 64; fewer where shared memory demands it), and of a multiple of
/// `tile.slice_granule` (default 16; below, the rest of 16 is padding), at least 8. States outside of the slices are
/// stored by a kernel of their own (store_shared_states).
mlir::LogicalResult slice_columns(mlir::ModuleOp);

}  // namespace latile::simt
