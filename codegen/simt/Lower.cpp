#include "codegen/simt/Lower.h"
#include "codegen/simt/AssignLayouts.h"
#include "codegen/simt/Instructions.h"
#include "codegen/simt/KernelEmitter.h"
#include "llvm/BinaryFormat/Dwarf.h"
#include "llvm/IR/Verifier.h"

namespace latile::simt {

using namespace tile;

static WorkspaceTensor workspace_tensor(WorkspaceOp op) {
  auto inner = op.getView().getType().getInner();
  WorkspaceTensor w;
  w.name = op.getName().str();
  w.axis = op.getAxis().str();
  w.rows = inner.size() > 1 ? inner[0] : 1;
  w.cols = inner.back();
  w.element_bytes = op.getView().getType().getElementType().getIntOrFloatBitWidth() / 8;
  w.chunk = static_cast<std::int64_t>(op.getChunk());
  return w;
}

/// Blocks that shall fit on a multiprocessor by their registers, where they do by their shared memory (each takes a
/// kilobyte more than it asks for); 0: the assembler weighs registers best, and may take fewer than it would be given.
static int blocks_side_by_side(KernelOp kernel, const KernelFacts& facts, const Target& target) {
  bool scores = false, systems = false, carries = false;
  kernel.walk([&](mlir::Operation* op) {
    auto loop = mlir::dyn_cast<mlir::scf::ForOp>(op);
    carries |= loop && loop.getNumRegionIterArgs();
    scores |= mlir::isa<DecayedScoresOp, DecayedApplyOp>(op);
    systems |= mlir::isa<InverseUnitLowerOp, SolveUnitLowerOp>(op);
  });
  // A triangular system is a long chain with few threads at work: others hide it, as many as 80 registers a thread
  // allow. Scores need more registers than that.
  const int blocks = scores ? 2 : systems && !carries ? 65536 / (80 * facts.threads) : 0;
  const bool fit = static_cast<std::size_t>(blocks) * (facts.shared_bytes + 1024) <= target.shared_limit + 1024;
  return blocks > 1 && fit ? blocks : 0;
}

bool emit_kernels(mlir::ModuleOp lowered, const Target& target, const Instructions& instructions, llvm::Module& module,
                  Artifact& artifact, std::string& failure) {
  llvm::DIBuilder debug(module);
  module.addModuleFlag(llvm::Module::Warning, "Debug Info Version", llvm::DEBUG_METADATA_VERSION);
  llvm::DICompileUnit* unit = debug.createCompileUnit(llvm::DISourceLanguageName(llvm::dwarf::DW_LANG_C_plus_plus),
                                                      debug.createFile("latile", "."), "latile", true, "", 0, "",
                                                      llvm::DICompileUnit::DebugEmissionKind::LineTablesOnly);
  ProgramOp program = *lowered.getOps<ProgramOp>().begin();
  for (auto workspace : program.getBody().front().getOps<WorkspaceOp>())
    artifact.workspace.push_back(workspace_tensor(workspace));
  for (auto launch : program.getBody().front().getOps<LaunchOp>()) {
    auto kernel = lowered.lookupSymbol<KernelOp>(launch.getKernel());
    std::vector<std::string> names;
    std::int64_t chunk = 0;
    // Arguments go by the kernel's names, those in the workspace by the workspace's.
    for (auto [a, operand] : llvm::zip(kernel.getArgNames(), launch.getOperands())) {
      auto workspace = operand.getDefiningOp<WorkspaceOp>();
      names.push_back(workspace ? "workspace." + workspace.getName().str() : mlir::cast<mlir::StringAttr>(a).str());
      if (workspace) chunk = static_cast<std::int64_t>(workspace.getChunk());
    }
    KernelFacts facts;
    auto assigned = kernel->getAttrOfType<mlir::IntegerAttr>("threads");
    const int threads = assigned ? static_cast<int>(assigned.getInt()) : threads_for(kernel, target);
    // Loads a turn ahead where two stages of them fit.
    for (bool staged : {true, false}) {
      KernelEmitter emitter(kernel, module, debug, unit, target, instructions, threads, staged);
      emitter.emit(names);
      if (!emitter.failure().empty()) {
        failure = emitter.failure();
        return false;
      }
      facts = emitter.facts();
      if (int blocks = blocks_side_by_side(kernel, facts, target))
        instructions.share_registers(*emitter.function(), blocks);
      if (facts.shared_bytes <= target.shared_limit || !staged) break;
      emitter.function()->eraseFromParent();
    }
    // A kernel over chunks that reads no rows still has a grid that the run must count.
    if (facts.grid.front() == "chunks" && facts.chunk == 0) facts.chunk = chunk;
    if (facts.shared_bytes > target.shared_limit) {
      failure = facts.symbol + " needs " + std::to_string(facts.shared_bytes) + " bytes of shared memory, " +
                target.name + " has " + std::to_string(target.shared_limit) +
                ": choose a smaller chunk or smaller inner dimensions";
      return false;
    }
    artifact.kernels.push_back(std::move(facts));
  }
  debug.finalize();
  std::string invalid;
  llvm::raw_string_ostream report(invalid);
  if (!llvm::verifyModule(module, &report)) return true;
  failure = "the emitted LLVM IR is invalid: " + invalid;
  return false;
}

}  // namespace latile::simt
