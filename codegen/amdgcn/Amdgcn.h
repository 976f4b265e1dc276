// AMD GPUs: from lowered kernels to optimised LLVM IR, assembly and code objects. What comes out has been assembled and
// emulated, and has run on no GPU.
#pragma once
#include "codegen/simt/Target.h"
#include "mlir/IR/BuiltinOps.h"
#include "runtime/Artifact.h"
#include <string>

namespace llvm {
class Module;
}

namespace latile::amdgcn {

/// Lowers the kernels of a module (one tile.program of launches, its tile.kernel ops) into `module`, with the data
/// layout of the target, and optimises. The artifact gets kernels and workspace. `arena`: see simt::emit_kernels.
/// False: described in `failure`.
bool lower(mlir::ModuleOp, const simt::Target&, llvm::Module& module, Artifact&, std::string& failure,
           bool arena = false);

/// Assembly text of a lowered module. The module is used up.
bool write_assembly(llvm::Module& module, const simt::Target&, std::string& text, std::string& failure);

/// A code object (a shared ELF object, as AMD's runtimes load it) of a lowered module. The module is used up.
bool write_code_object(llvm::Module& module, const simt::Target&, std::string& object, std::string& failure);

}  // namespace latile::amdgcn
