// The tile dialect's C++ classes.
#pragma once
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"

// Generated code leaves parameters unused.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#include "dialect/TileDialect.h.inc"
#include "dialect/TileEnums.h.inc"
#define GET_ATTRDEF_CLASSES
#include "dialect/TileAttributes.h.inc"
#define GET_TYPEDEF_CLASSES
#include "dialect/TileInterfaces.h.inc"
#include "dialect/TileTypes.h.inc"
#define GET_OP_CLASSES
#include "dialect/TileOps.h.inc"
#pragma GCC diagnostic pop

namespace latile::tile {

/// Registers the tile dialect and those it works with: arith, math, scf.
void register_dialects(mlir::DialectRegistry&);

}  // namespace latile::tile
