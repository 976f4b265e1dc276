#include "codegen/nvptx/Nvptx.h"
#include "codegen/nvptx/NvptxInstructions.h"
#include "codegen/simt/Backend.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"

namespace latile::nvptx {

static std::unique_ptr<llvm::TargetMachine> target_machine(const simt::Target& target, std::string& failure) {
  static bool once = [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
    return true;
  }();
  (void)once;
  return simt::target_machine("nvptx64-nvidia-cuda", target.name, "+ptx80", failure);
}

bool lower(mlir::ModuleOp lowered, const simt::Target& target, llvm::Module& module, Artifact& artifact,
           std::string& failure, bool arena) {
  std::unique_ptr<llvm::TargetMachine> machine = target_machine(target, failure);
  return machine && simt::lower(lowered, target, NvptxInstructions(), *machine, module, artifact, failure, arena);
}

bool write_ptx(llvm::Module& module, const simt::Target& target, std::string& ptx, std::string& failure) {
  std::unique_ptr<llvm::TargetMachine> machine = target_machine(target, failure);
  return machine && simt::write(module, *machine, llvm::CodeGenFileType::AssemblyFile, ptx, failure);
}

}  // namespace latile::nvptx
