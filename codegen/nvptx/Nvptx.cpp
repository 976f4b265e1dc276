#include "codegen/nvptx/Nvptx.h"
#include "codegen/simt/Lower.h"
#include "llvm/IR/DebugInfo.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"

namespace latile::nvptx {
namespace {

std::unique_ptr<llvm::TargetMachine> target_machine(const simt::Target& target, std::string& failure) {
  static bool once = [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
    return true;
  }();
  (void)once;
  llvm::Triple triple("nvptx64-nvidia-cuda");
  const llvm::Target* found = llvm::TargetRegistry::lookupTarget(triple, failure);
  if (!found) return nullptr;
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Fast;
  return std::unique_ptr<llvm::TargetMachine>(found->createTargetMachine(triple, target.name, "+ptx80", options,
                                                                         llvm::Reloc::PIC_, llvm::CodeModel::Small,
                                                                         llvm::CodeGenOptLevel::Aggressive));
}

// The emitter leaves little to do; loops of unknown length stay loops. Nothing is moved out of loops here: an address
// for every register would be, and live through the loop; the assembler weighs that against registers.
void optimise(llvm::Module& module, llvm::TargetMachine& machine) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager graphs;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(graphs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, graphs, modules);
  llvm::ModulePassManager passes;
  llvm::cantFail(
      builder.parsePassPipeline(passes, "function(early-cse,instcombine<no-verify-fixpoint>,simplifycfg,early-cse)"));
  passes.run(module, modules);
}

}  // namespace

bool lower(mlir::ModuleOp lowered, const simt::Target& target, llvm::Module& module, Artifact& artifact,
           std::string& failure) {
  std::unique_ptr<llvm::TargetMachine> machine = target_machine(target, failure);
  if (!machine) return false;
  module.setTargetTriple(machine->getTargetTriple());
  module.setDataLayout(machine->createDataLayout());
  if (!simt::emit_kernels(lowered, target, module, artifact, failure)) return false;
  optimise(module, *machine);
  return true;
}

bool write_ptx(llvm::Module& module, const simt::Target& target, std::string& ptx, std::string& failure) {
  std::unique_ptr<llvm::TargetMachine> machine = target_machine(target, failure);
  if (!machine) return false;
  // Places in the tile program serve the emulator's reports; in PTX they would be a section that nothing reads.
  llvm::StripDebugInfo(module);
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream out(bytes);
  llvm::legacy::PassManager passes;
  if (machine->addPassesToEmitFile(passes, out, nullptr, llvm::CodeGenFileType::AssemblyFile)) {
    failure = "the NVPTX backend writes no assembly";
    return false;
  }
  passes.run(module);
  ptx.assign(bytes.begin(), bytes.end());
  return true;
}

}  // namespace latile::nvptx
