#include "codegen/simt/Backend.h"
#include "codegen/Llvm.h"
#include "codegen/simt/Lower.h"
#include "llvm/IR/DebugInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Target/TargetMachine.h"

namespace latile::simt {

std::unique_ptr<llvm::TargetMachine> target_machine(const std::string& name, const std::string& cpu,
                                                    const std::string& features, std::string& failure) {
  llvm::Triple triple(name);
  const llvm::Target* found = llvm::TargetRegistry::lookupTarget(triple, failure);
  if (!found) return nullptr;
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Fast;
  return std::unique_ptr<llvm::TargetMachine>(found->createTargetMachine(
      triple, cpu, features, options, llvm::Reloc::PIC_, llvm::CodeModel::Small, llvm::CodeGenOptLevel::Aggressive));
}

// The emitter leaves little to do; loops of unknown length stay loops. Nothing is moved out of loops here: an address
// for every register would be, and live through the loop; the assembler weighs that against registers.
static constexpr const char* short_list = "function(early-cse,instcombine<no-verify-fixpoint>,simplifycfg,early-cse)";

bool lower(mlir::ModuleOp lowered, const Target& target, const Instructions& instructions, llvm::TargetMachine& machine,
           llvm::Module& module, Artifact& artifact, std::string& failure, bool arena) {
  module.setTargetTriple(machine.getTargetTriple());
  module.setDataLayout(machine.createDataLayout());
  if (!emit_kernels(lowered, target, instructions, module, artifact, failure, arena)) return false;
  run_passes(module, machine, short_list);
  return true;
}

bool write(llvm::Module& module, llvm::TargetMachine& machine, llvm::CodeGenFileType type, std::string& text,
           std::string& failure) {
  // Places in the tile program serve the emulator's reports; in the target's code they would be a section that nothing
  // reads.
  llvm::StripDebugInfo(module);
  return write_file(module, machine, type, text, failure);
}

}  // namespace latile::simt
