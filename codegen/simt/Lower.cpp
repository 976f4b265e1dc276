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
  const int registers = scores ? target.registers_of_scores : systems && !carries ? 80 : 0;
  const int blocks = registers ? 65536 / (registers * facts.threads) : 0;
  const bool fit = static_cast<std::size_t>(blocks) * (facts.shared_bytes + 1024) <= target.shared_limit + 1024;
  return blocks > 1 && fit ? blocks : 0;
}

namespace {

/// Where the code of a module's kernels goes.
struct Code {
  const Target& target;
  const Instructions& instructions;
  llvm::Module& module;
  llvm::DIBuilder& debug;
  llvm::DICompileUnit* unit;
};

}  // namespace

/// `names`: of the arguments; `chunk`: rows of a chunk of the kernel's workspace, 0 where it has none.
static bool emit_kernel(KernelOp kernel, ArrayRef<std::string> names, std::int64_t chunk, const Code& code, bool arena,
                        KernelFacts& facts, std::string& failure) {
  auto assigned = kernel->getAttrOfType<mlir::IntegerAttr>("threads");
  const int threads = assigned ? static_cast<int>(assigned.getInt()) : threads_for(kernel, code.target);
  // Loads a turn ahead, as many as there is room for two stages of.
  std::size_t room = code.target.has_async_copy ? code.target.shared_limit : 0;
  std::vector<bool> in_arena;
  while (true) {
    KernelEmitter emitter(kernel, code.module, code.debug, code.unit, code.target, code.instructions, threads, room,
                          in_arena);
    emitter.emit(names);
    if (!emitter.failure().empty()) {
      failure = emitter.failure();
      return false;
    }
    facts = emitter.facts();
    if (int blocks = blocks_side_by_side(kernel, facts, code.target))
      code.instructions.share_registers(*emitter.function(), blocks);
    if (facts.shared_bytes <= code.target.shared_limit || !in_arena.empty()) break;
    if (const std::size_t used = emitter.bytes_of_stages()) {
      // What comes without a second stage still needs the first.
      const std::size_t excess = 2 * (facts.shared_bytes - code.target.shared_limit);
      room = used > excess ? used - excess : 0;
    } else {
      // Copies in global memory where nothing else helps.
      auto fitting = arena ? emitter.scratch().fit(static_cast<std::int64_t>(code.target.shared_limit)) : std::nullopt;
      if (!fitting) break;
      in_arena = *fitting;
    }
    emitter.function()->eraseFromParent();
  }
  // A kernel over chunks that reads no rows still has a grid that the run must count.
  if (facts.grid.front() == "chunks" && facts.chunk == 0) facts.chunk = chunk;
  if (facts.shared_bytes <= code.target.shared_limit) return true;
  failure = facts.symbol + " needs " + std::to_string(facts.shared_bytes) + " bytes of shared memory, " +
            code.target.name + " has " + std::to_string(code.target.shared_limit) +
            ": choose a smaller chunk or smaller inner dimensions";
  return false;
}

bool emit_kernels(mlir::ModuleOp lowered, const Target& target, const Instructions& instructions, llvm::Module& module,
                  Artifact& artifact, std::string& failure, bool arena) {
  llvm::DIBuilder debug(module);
  module.addModuleFlag(llvm::Module::Warning, "Debug Info Version", llvm::DEBUG_METADATA_VERSION);
  llvm::DICompileUnit* unit = debug.createCompileUnit(llvm::DISourceLanguageName(llvm::dwarf::DW_LANG_C_plus_plus),
                                                      debug.createFile("latile", "."), "latile", true, "", 0, "",
                                                      llvm::DICompileUnit::DebugEmissionKind::LineTablesOnly);
  const Code code{target, instructions, module, debug, unit};
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
    if (!emit_kernel(kernel, names, chunk, code, arena, artifact.kernels.emplace_back(), failure)) return false;
    auto other = kernel->getAttrOfType<mlir::FlatSymbolRefAttr>("narrow");
    // What lies in arenas is slow however many blocks there are.
    if (!other || artifact.kernels.back().arena_bytes != 0) continue;
    KernelFacts& narrow = artifact.kernels.emplace_back();
    if (!emit_kernel(lowered.lookupSymbol<KernelOp>(other.getValue()), names, chunk, code, false, narrow, failure))
      return false;
    narrow.narrow = true;
  }
  debug.finalize();
  std::string invalid;
  llvm::raw_string_ostream report(invalid);
  if (!llvm::verifyModule(module, &report)) return true;
  failure = "the emitted LLVM IR is invalid: " + invalid;
  return false;
}

}  // namespace latile::simt
