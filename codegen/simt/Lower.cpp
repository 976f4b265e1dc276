#include "codegen/simt/Lower.h"
#include "codegen/simt/AssignLayouts.h"
#include "codegen/simt/Instructions.h"
#include "codegen/simt/KernelEmitter.h"
#include "codegen/simt/Pressure.h"
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

namespace {

/// Where the code of a module's kernels goes.
struct Code {
  const Target& target;
  const Instructions& instructions;
  llvm::Module& module;
  llvm::DIBuilder& debug;
  llvm::DICompileUnit* unit;
};

/// A kernel as it came out, with what its emitter says of it.
struct Emitted {
  llvm::Function* function = nullptr;
  KernelFacts facts;
  std::map<unsigned, unsigned> inner;
  std::map<unsigned, double> spare;
};

}  // namespace

/// The kernel with as many loads a turn ahead as there is shared memory for two stages of. False: described in
/// `failure`.
static bool emit_fitting(KernelOp kernel, ArrayRef<std::string> names, const Code& code, bool arena,
                         const std::map<unsigned, double>& excess, Emitted& emitted, std::string& failure) {
  auto assigned = kernel->getAttrOfType<mlir::IntegerAttr>("threads");
  const int threads = assigned ? static_cast<int>(assigned.getInt()) : threads_for(kernel, code.target);
  std::size_t room = code.target.has_async_copy ? code.target.shared_limit : 0;
  std::vector<bool> in_arena;
  while (true) {
    KernelEmitter emitter(kernel, code.module, code.debug, code.unit, code.target, code.instructions, threads, room,
                          in_arena, excess);
    emitter.emit(names);
    if (!emitter.failure().empty()) {
      failure = emitter.failure();
      return false;
    }
    emitted = {emitter.function(), emitter.facts(), emitter.inner(), emitter.spare()};
    if (emitted.facts.shared_bytes <= code.target.shared_limit || !in_arena.empty()) return true;
    if (const std::size_t used = emitter.bytes_of_stages()) {
      // What comes without a second stage still needs the first.
      const std::size_t excess_bytes = 2 * (emitted.facts.shared_bytes - code.target.shared_limit);
      room = used > excess_bytes ? used - excess_bytes : 0;
    } else {
      // Copies in global memory where nothing else helps.
      auto fitting = arena ? emitter.scratch().fit(static_cast<std::int64_t>(code.target.shared_limit)) : std::nullopt;
      if (!fitting) return true;
      in_arena = *fitting;
    }
    emitter.function()->eraseFromParent();
  }
}

/// The kernel with as many tiles aside as its registers demand where `blocks` share a multiprocessor, or one less if
/// that is not to be had, and so on. `over`: the registers that it holds beyond those.
static bool emit_in_registers(KernelOp kernel, ArrayRef<std::string> names, const Code& code, bool arena,
                              Emitted& emitted, int& blocks, double& over, std::string& failure) {
  if (!emit_fitting(kernel, names, code, arena, {}, emitted, failure)) return false;
  const int threads = emitted.facts.threads;
  const Pressure pressure(*emitted.function, emitted.inner, emitted.spare);
  for (blocks = blocks_wanted(kernel, threads, emitted.facts.shared_bytes, pressure.most(), code.target);; --blocks) {
    const RegisterBudget budget = register_budget(kernel, threads, blocks, code.target);
    over = pressure.most() - budget.most;
    if (pressure.most() <= budget.enough) {
      over = 0;
      return true;
    }
    Emitted other;
    if (!emit_fitting(kernel, names, code, false, pressure.above(budget.aim), other, failure)) return false;
    const double lower = Pressure(*other.function, other.inner, other.spare).most();
    const bool better = lower < pressure.most() && fit_together(blocks, other.facts.shared_bytes, code.target);
    if (better && (blocks <= 1 || lower <= budget.most)) {
      emitted.function->eraseFromParent();
      emitted = std::move(other);
      emitted.function->setName(emitted.facts.symbol);
      over = lower - budget.most;
      return true;
    }
    other.function->eraseFromParent();
    if (blocks <= 1) return true;
  }
}

/// `names`: of the arguments; `chunk`: rows of a chunk of the kernel's workspace, 0 where it has none.
static bool emit_kernel(KernelOp kernel, ArrayRef<std::string> names, std::int64_t chunk, const Code& code, bool arena,
                        KernelFacts& facts, double& short_of_registers, std::string& failure) {
  Emitted emitted;
  int blocks = 0;
  double over = 0;
  if (!emit_in_registers(kernel, names, code, arena, emitted, blocks, over, failure)) return false;
  short_of_registers = std::max(short_of_registers, over);
  if (blocks != 0) code.instructions.share_registers(*emitted.function, blocks);
  facts = emitted.facts;
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
    if (!emit_kernel(kernel, names, chunk, code, arena, artifact.kernels.emplace_back(), artifact.short_of_registers,
                     failure))
      return false;
    auto other = kernel->getAttrOfType<mlir::FlatSymbolRefAttr>("narrow");
    // What lies in arenas is slow however many blocks there are.
    if (!other || artifact.kernels.back().arena_bytes != 0) continue;
    KernelFacts& narrow = artifact.kernels.emplace_back();
    if (!emit_kernel(lowered.lookupSymbol<KernelOp>(other.getValue()), names, chunk, code, false, narrow,
                     artifact.short_of_registers, failure))
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
