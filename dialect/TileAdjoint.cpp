// Reverse mode of each op.
#include "dialect/Tile.h"

#include "dialect/TileInterfaces.cpp.inc"
