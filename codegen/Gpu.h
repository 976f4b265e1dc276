// GPUs of every family: which backend makes the code of a target.
#pragma once
#include "codegen/simt/Target.h"
#include "mlir/IR/BuiltinOps.h"
#include "runtime/Artifact.h"
#include <string>

namespace llvm {
class Module;
}

namespace latile {

/// Lowers the kernels of a module (one tile.program of launches, its tile.kernel ops) into `module`, with the data
/// layout of the target, and optimises. The artifact gets kernels and workspace. `arena`: what does not fit in shared
/// memory may lie in global memory (simt::emit_kernels). False: described in `failure`.
bool lower_for_gpu(mlir::ModuleOp, const simt::Target&, llvm::Module& module, Artifact&, std::string& failure,
                   bool arena = false);

/// Assembly of a lowered module: PTX, or AMDGCN's. The module is used up.
bool write_gpu_assembly(llvm::Module& module, const simt::Target&, std::string& text, std::string& failure);

/// What a device loads: PTX, or a code object. The module is used up.
bool write_gpu_code(llvm::Module& module, const simt::Target&, std::string& code, std::string& failure);

}  // namespace latile
