// From a definition of the language to the tile dialect.
#pragma once
#include "compiler/Specialisation.h"
#include "latile/table.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace latile {

/// Records the operator for the specialisation and gives a module with one tile.program that holds one tile.scan:
/// the chunk body (prefill) or the reference with chunk 1 (recurrent, step). `chunk` 0 stands for 16.
///
/// Arguments of the program ("arg_names"): "sequences", the specialisation's tensors in their order without
/// "cu_seqlens", then the operator's run-time scalars as f64. A step's program has the unit attribute "step".
///
/// Null when there are mistakes: of the definition (at the user's line) or of the specialisation (line 0). Loads the
/// dialects it needs into the context.
mlir::OwningOpRef<mlir::ModuleOp> emit_program(const OperatorRow&, const Specialisation&, mlir::MLIRContext&,
                                               std::vector<Diagnostic>& mistakes);

}  // namespace latile
