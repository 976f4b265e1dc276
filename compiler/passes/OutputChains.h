// Whether a chunk's outputs are worth a kernel of their own.
#pragma once
#include "dialect/Tile.h"

namespace latile {

/// Whether long chains that read a carry, of systems and decayed scores, are there for a scan's outputs alone: no carry
/// waits for one. A kernel that keeps the carries would repeat them chunk by chunk, with few blocks; behind it, all
/// chunks do theirs at once.
bool has_chains_to_outputs(tile::ScanOp);

}  // namespace latile
