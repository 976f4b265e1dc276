// What every backend does with LLVM: runs a list of passes, writes what a target makes of a module.
#pragma once
#include "llvm/Support/CodeGen.h"
#include <string>

namespace llvm {
class Module;
class StringRef;
class TargetMachine;
}  // namespace llvm

namespace latile {

/// Runs the passes of `list`, in the notation of LLVM's opt.
void run_passes(llvm::Module&, llvm::TargetMachine&, llvm::StringRef list);

/// The module as assembly or as an object file; false with a reason if the target has no such file.
bool write_file(llvm::Module&, llvm::TargetMachine&, llvm::CodeGenFileType, std::string& bytes, std::string& failure);

}  // namespace latile
