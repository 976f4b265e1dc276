// Lowers a module of tile kernels for a GPU and writes LLVM IR or assembly: the driver of the lit tests and of
// tests/simt/ptxas.cmake. lower_kernels FILE TARGET llvm|asm|facts|emulated
#include "codegen/emulator/Emulate.h"
#include "codegen/Gpu.h"
#include "codegen/Targets.h"
#include "dialect/Tile.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/raw_ostream.h"

int main(int argc, char** argv) {
  if (argc != 4) {
    llvm::errs() << "lower_kernels FILE TARGET llvm|asm|facts|emulated\n";
    return 2;
  }
  mlir::DialectRegistry registry;
  latile::tile::register_dialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  auto lowered = mlir::parseSourceFile<mlir::ModuleOp>(argv[1], &context);
  const latile::simt::Target* target = latile::find_target(argv[2]);
  if (!lowered || !target) return 2;
  llvm::LLVMContext llvm_context;
  llvm::Module module("latile", llvm_context);
  latile::Artifact artifact;
  std::string failure, text, stage = argv[3];
  bool ok = latile::lower_for_gpu(*lowered, *target, module, artifact, failure);
  if (ok && stage == "llvm") llvm::raw_string_ostream(text) << module;
  if (ok && stage == "asm") ok = latile::write_gpu_assembly(module, *target, text, failure);
  if (ok && stage == "emulated") ok = latile::emulator::compile_emulated(module, text, failure);
  if (ok && stage == "facts") text = artifact.facts_json();
  if (!ok) {
    llvm::errs() << failure << "\n";
    return 1;
  }
  llvm::outs() << text;
  return 0;
}
