// NVIDIA GPUs: from lowered kernels to optimised LLVM IR and PTX text.
#pragma once
#include "codegen/simt/Target.h"
#include "mlir/IR/BuiltinOps.h"
#include "runtime/Artifact.h"
#include <string>

namespace llvm {
class Module;
}

namespace latile::nvptx {

/// Lowers the kernels of a module (one tile.program of launches, its tile.kernel ops) into `module`, with the data
/// layout of the target, and optimises. The artifact gets kernels and workspace. `arena`: see simt::emit_kernels.
/// False: described in `failure`.
bool lower(mlir::ModuleOp, const simt::Target&, llvm::Module& module, Artifact&, std::string& failure,
           bool arena = false);

/// PTX text of a lowered module. The module is used up.
bool write_ptx(llvm::Module& module, const simt::Target&, std::string& ptx, std::string& failure);

}  // namespace latile::nvptx
