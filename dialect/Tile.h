// The tile dialect's C++ classes.
#pragma once
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialect/TileDialect.h.inc"
#include "dialect/TileEnums.h.inc"
#define GET_TYPEDEF_CLASSES
#include "dialect/TileTypes.h.inc"
#include "dialect/TileInterfaces.h.inc"
#define GET_OP_CLASSES
#include "dialect/TileOps.h.inc"
