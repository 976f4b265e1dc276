// What codegen for any GPU does with LLVM: lowered kernels to optimised IR, IR to a file of the target.
#pragma once
#include "codegen/simt/Target.h"
#include "mlir/IR/BuiltinOps.h"
#include "runtime/Artifact.h"
#include "llvm/Support/CodeGen.h"
#include <string>

namespace llvm {
class Module;
class TargetMachine;
}  // namespace llvm

namespace latile::simt {

class Instructions;

/// A machine of LLVM for a triple and CPU, at the highest level, products and sums fused; null: `failure` says why. The
/// backend must have been initialised.
std::unique_ptr<llvm::TargetMachine> target_machine(const std::string& triple, const std::string& cpu,
                                                    const std::string& features, std::string& failure);

/// `emit_kernels` with the machine's triple and data layout, and what little is left to optimise.
bool lower(mlir::ModuleOp, const Target&, const Instructions&, llvm::TargetMachine&, llvm::Module&, Artifact&,
           std::string& failure, bool arena);

/// Assembly or an object file of a lowered module, which is used up.
bool write(llvm::Module&, llvm::TargetMachine&, llvm::CodeGenFileType, std::string& out, std::string& failure);

}  // namespace latile::simt
