// States larger than the registers stay in memory; their rows are walked in blocks.
#pragma once
#include "dialect/Tile.h"
#include "mlir/IR/BuiltinOps.h"

namespace latile::simt {

/// Walks the rows of states that are tied to the columns of a `tile.kron_rows` (Ties::Parts::rows), where a tile with
/// such an extent has more than `most_elements`: a state that a loop carries lies in a `tile.scratch` instead, and what
/// is done with it, tile by tile, is done in a loop over blocks of its rows. Sums over the rows (products that read the
/// state) are carried through that loop; all that one chunk does with the state is one loop, before what it does not
/// need, save for sums that its update depends on. A block is a few of the groups of rows that one column of kron_rows'
/// first operand stands for, as many as make `most_rows`; so no product of rows is ever held for more than a block.
///
/// Returns whether it changed the kernel; it does not where an op looks at those rows as a whole.
bool walk_states(tile::KernelOp, std::int64_t most_elements, std::int64_t most_rows);

/// The pass. What is too large follows from the module's attribute `tile.walk_elements`; default 32,768: half of the
/// registers of an NVIDIA block of 256 threads. Blocks have at most 128 rows.
mlir::LogicalResult walk_states(mlir::ModuleOp);

}  // namespace latile::simt
