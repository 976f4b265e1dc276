#include "codegen/emulator/Emulate.h"
#include "codegen/emulator/Instrument.h"
#include "codegen/host/Host.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Support/raw_ostream.h"

namespace latile::emulator {

bool compile_emulated(llvm::Module& module, std::string& shared, std::string& failure) {
  Instrumenter instrumenter(module);
  instrumenter.run();
  failure = instrumenter.failure();
  if (!failure.empty()) return false;
  llvm::raw_string_ostream report(failure);
  if (llvm::verifyModule(module, &report)) {
    failure = "emulator: the instrumented code is invalid: " + failure;
    return false;
  }
  // The least level that has fused multiply-add and float16, so that results are the same on every CPU.
  HostIsa isa;
  if (!HostIsa::named("x86-64-v3", isa)) {
    failure = "emulator: no code for x86-64-v3";
    return false;
  }
  // A kernel is run on a few small tensors, so that compiling it takes longer than running it.
  return host::compile_module(module, isa, shared, failure, true);
}

}  // namespace latile::emulator
