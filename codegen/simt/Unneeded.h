// What a kernel computes for nobody.
#pragma once
#include "dialect/Tile.h"

namespace latile::simt {

/// Erases what no store of a kernel needs, carries of loops included.
void erase_unneeded(tile::KernelOp);

}  // namespace latile::simt
