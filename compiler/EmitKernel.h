// From kernels of the language's lower layer to tile.kernel. Private to Emit.
#pragma once
#include "compiler/EmitBody.h"

namespace latile {

/// What the kernels of one program have in common.
struct KernelFrame {
  Recorder& recorder;
  const Specialisation& specialisation;
  std::int64_t chunk;       ///< rows of a block
  int axis;                 ///< finest head axis; -1: none
  tile::ProgramOp program;  ///< its names are those of the kernels' arguments
  llvm::function_ref<mlir::Value(int declaration, llvm::StringRef)>
      bound;  ///< the program's argument of a tensor's part
};

/// Adds the operator's kernels before the program, and their launches to it, in the order of their definition. A
/// kernel that would write nothing which is bound is left out.
void emit_kernels(const KernelFrame&, mlir::OpBuilder& launches);

/// Reports windows that reach further back than the state which holds those rows.
void check_windows(Recorder&, const Specialisation&);

}  // namespace latile
