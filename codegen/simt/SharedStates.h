// States that every slice of a kernel reads and none owns.
#pragma once
#include "dialect/Tile.h"

namespace latile::simt {

/// A state may end where it started, and slices of a kernel run in any order: what all of them read is stored after all
/// of them. Takes the stores that `sliced` makes in its first slice alone out of it and of its twin (null: none), and
/// leaves nothing but them in `whole`, the kernel as it was, which is launched behind it as `<name>_states`. Erases
/// `whole` where there are none.
void store_shared_states(tile::KernelOp sliced, tile::KernelOp twin, tile::KernelOp whole);

}  // namespace latile::simt
