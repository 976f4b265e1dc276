#include "codegen/amdgcn/Amdgcn.h"
#include "codegen/amdgcn/AmdgcnInstructions.h"
#include "codegen/host/Host.h"
#include "codegen/simt/Backend.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"

namespace latile::amdgcn {

static std::unique_ptr<llvm::TargetMachine> target_machine(const simt::Target& target, std::string& failure) {
  static bool once = [] {
    LLVMInitializeAMDGPUTargetInfo();
    LLVMInitializeAMDGPUTarget();
    LLVMInitializeAMDGPUTargetMC();
    LLVMInitializeAMDGPUAsmPrinter();
    return true;
  }();
  (void)once;
  return simt::target_machine("amdgcn-amd-amdhsa", target.name, "", failure);
}

bool lower(mlir::ModuleOp lowered, const simt::Target& target, llvm::Module& module, Artifact& artifact,
           std::string& failure, bool arena) {
  std::unique_ptr<llvm::TargetMachine> machine = target_machine(target, failure);
  return machine &&
         simt::lower(lowered, target, AmdgcnInstructions(target), *machine, module, artifact, failure, arena);
}

bool write_assembly(llvm::Module& module, const simt::Target& target, std::string& text, std::string& failure) {
  std::unique_ptr<llvm::TargetMachine> machine = target_machine(target, failure);
  return machine && simt::write(module, *machine, llvm::CodeGenFileType::AssemblyFile, text, failure);
}

bool write_code_object(llvm::Module& module, const simt::Target& target, std::string& object, std::string& failure) {
  std::unique_ptr<llvm::TargetMachine> machine = target_machine(target, failure);
  std::string relocatable;
  // A function that no instruction stands for would be an undefined symbol, which the linker refuses.
  return machine && simt::write(module, *machine, llvm::CodeGenFileType::ObjectFile, relocatable, failure) &&
         host::link_shared(relocatable, object, failure);
}

}  // namespace latile::amdgcn
