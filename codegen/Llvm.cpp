#include "codegen/Llvm.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/VirtualFileSystem.h"
#include "llvm/Target/TargetMachine.h"

namespace latile {

void run_passes(llvm::Module& module, llvm::TargetMachine& machine, llvm::StringRef list) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager graphs;
  llvm::ModuleAnalysisManager modules;
  // A file system of its own, which no pass here uses: the default is one that all threads share.
  llvm::PassBuilder builder(&machine, {}, {}, nullptr, llvm::vfs::createPhysicalFileSystem());
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(graphs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, graphs, modules);
  llvm::ModulePassManager passes;
  llvm::cantFail(builder.parsePassPipeline(passes, list));
  passes.run(module, modules);
}

bool write_file(llvm::Module& module, llvm::TargetMachine& machine, llvm::CodeGenFileType type, std::string& bytes,
                std::string& failure) {
  llvm::SmallVector<char, 0> written;
  llvm::raw_svector_ostream out(written);
  llvm::legacy::PassManager passes;
  if (machine.addPassesToEmitFile(passes, out, nullptr, type)) {
    failure = "the backend for " + machine.getTargetTriple().str() + " does not write this kind of file";
    return false;
  }
  passes.run(module);
  bytes.assign(written.begin(), written.end());
  return true;
}

}  // namespace latile
