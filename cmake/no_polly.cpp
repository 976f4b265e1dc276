// LLVM's link-time optimiser names Polly, which no code of ours is given to: links of latile have objects, not bitcode.
#include "llvm/Plugins/PassPlugin.h"

llvm::PassPluginLibraryInfo getPollyPluginInfo();
llvm::PassPluginLibraryInfo getPollyPluginInfo() {
  return {LLVM_PLUGIN_API_VERSION, "no Polly", "0", [](llvm::PassBuilder&) {}};
}
