#include "codegen/host/Host.h"
#include "codegen/host/KernelEmitter.h"
#include "codegen/Llvm.h"
#include "llvm/IR/Verifier.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include <chrono>

namespace latile::host {
namespace {

struct Clock {
  std::vector<StageTime>& stages;
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
  void mark(const char* stage) {
    auto now = std::chrono::steady_clock::now();
    stages.push_back({stage, std::chrono::duration<double, std::milli>(now - start).count()});
    start = now;
  }
};

const char* processor(const HostIsa& isa) {
  if (isa.level == "amx") return "sapphirerapids";
  // AVX512-BF16 without what only one maker has; scheduled for the other (tuning below).
  if (isa.level == "avx512bf16") return "cooperlake";
  return isa.level == "avx512" ? "skylake-avx512" : "x86-64-v3";
}

std::unique_ptr<llvm::TargetMachine> target_machine(const HostIsa& isa, std::string& failure,
                                                    llvm::CodeGenOptLevel level = llvm::CodeGenOptLevel::Default) {
  static bool once = [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    return true;
  }();
  (void)once;
  llvm::Triple triple("x86_64-unknown-linux-gnu");
  const llvm::Target* target = llvm::TargetRegistry::lookupTarget(triple, failure);
  if (!target) return nullptr;
  llvm::TargetOptions options;
  return std::unique_ptr<llvm::TargetMachine>(target->createTargetMachine(
      triple, processor(isa), "", options, llvm::Reloc::PIC_, llvm::CodeModel::Small, level));
}

void set_attributes(llvm::Module& module, const llvm::TargetMachine& machine, const HostIsa& isa) {
  for (llvm::Function& f : module) {
    if (f.isDeclaration()) continue;
    f.addFnAttr("target-cpu", machine.getTargetCPU());
    if (isa.level == "avx512bf16") f.addFnAttr("tune-cpu", "znver4");
    f.addFnAttr("prefer-vector-width", isa.vector_floats() == 16 ? "512" : "256");
    f.addFnAttr("no-trapping-math", "true");
    f.addFnAttr("frame-pointer", "none");
    f.addFnAttr(llvm::Attribute::NoUnwind);
  }
}

// A short list instead of O2: the emitter leaves little to do, and each of these earns its time.
constexpr const char* short_list =
    "function(early-cse,instcombine<no-verify-fixpoint>,simplifycfg,loop-mssa(licm),early-cse)";

// Quick instruction selection hands what it does not know, and all of the block before it, to the thorough one, whose
// scheduler takes quadratic time: a kernel of 90,000 instructions 26 s instead of 1.5 s.
void shorten_blocks(llvm::Module& module) {
  constexpr std::size_t most = 64;
  for (llvm::Function& f : module)
    for (llvm::BasicBlock& block : llvm::make_early_inc_range(f)) {
      std::vector<llvm::Instruction*> starts;
      std::size_t n = 0;
      for (llvm::Instruction& i : block)
        if (!llvm::isa<llvm::PHINode>(i) && !i.isTerminator() && ++n % most == 0) starts.push_back(&i);
      for (llvm::Instruction* i : llvm::reverse(starts)) block.splitBasicBlock(i->getIterator());
    }
}

}  // namespace

bool compile_host(mlir::ModuleOp lowered, const HostIsa& isa, Artifact& artifact, std::string& failure, Texts* texts) {
  Clock clock{artifact.stages};
  std::unique_ptr<llvm::TargetMachine> machine = target_machine(isa, failure);
  if (!machine) return false;
  llvm::LLVMContext context;
  llvm::Module module("latile", context);
  module.setTargetTriple(machine->getTargetTriple());
  module.setDataLayout(machine->createDataLayout());

  artifact.target = "host:" + isa.level;
  tile::ProgramOp program = *lowered.getOps<tile::ProgramOp>().begin();
  for (auto workspace : program.getBody().front().getOps<tile::WorkspaceOp>()) {
    auto inner = workspace.getView().getType().getInner();
    WorkspaceTensor w;
    w.name = workspace.getName().str();
    w.axis = workspace.getAxis().str();
    w.rows = inner.size() > 1 ? inner[0] : 1;
    w.cols = inner.back();
    w.element_bytes = workspace.getView().getType().getElementType().getIntOrFloatBitWidth() / 8;
    w.chunk = static_cast<std::int64_t>(workspace.getChunk());
    artifact.workspace.push_back(w);
  }
  for (auto launch : program.getBody().front().getOps<tile::LaunchOp>()) {
    auto kernel = lowered.lookupSymbol<tile::KernelOp>(launch.getKernel());
    std::vector<std::string> names;
    // Arguments go by the kernel's names, those in the workspace by the workspace's.
    for (auto [a, operand] : llvm::zip(kernel.getArgNames(), launch.getOperands())) {
      auto workspace = operand.getDefiningOp<tile::WorkspaceOp>();
      names.push_back(workspace ? "workspace." + workspace.getName().str() : mlir::cast<mlir::StringAttr>(a).str());
    }
    rewrite_narrow(kernel);
    KernelEmitter emitter(kernel, module, isa);
    emitter.emit(names);
    if (!emitter.failure().empty()) {
      failure = emitter.failure();
      return false;
    }
    artifact.kernels.push_back(emitter.facts());
    KernelFacts& facts = artifact.kernels.back();
    // A kernel over chunks that reads no rows still has a grid that the run must count.
    for (mlir::Value operand : launch.getOperands())
      if (auto workspace = operand.getDefiningOp<tile::WorkspaceOp>(); workspace && facts.grid.front() == "chunks")
        facts.chunk = static_cast<std::int64_t>(workspace.getChunk());
  }
  set_attributes(module, *machine, isa);
  std::string invalid;
  llvm::raw_string_ostream report(invalid);
  if (llvm::verifyModule(module, &report)) {
    failure = "the emitted LLVM IR is invalid: " + invalid;
    return false;
  }
  clock.mark("emit");
  run_passes(module, *machine, short_list);
  clock.mark("optimise");
  if (texts) {
    llvm::raw_string_ostream out(texts->llvm);
    module.print(out, nullptr);
    std::unique_ptr<llvm::Module> copy = llvm::CloneModule(module);
    if (!write_file(*copy, *machine, llvm::CodeGenFileType::AssemblyFile, texts->assembly, failure)) return false;
  }
  std::string object;
  if (!write_file(module, *machine, llvm::CodeGenFileType::ObjectFile, object, failure)) return false;
  clock.mark("codegen");
  if (texts) texts->object = object;
  if (!link_shared(object, artifact.binary, failure)) return false;
  clock.mark("link");
  return true;
}

bool compile_module(llvm::Module& module, const HostIsa& isa, std::string& shared, std::string& failure, bool quick) {
  std::unique_ptr<llvm::TargetMachine> machine =
      target_machine(isa, failure, quick ? llvm::CodeGenOptLevel::None : llvm::CodeGenOptLevel::Default);
  if (!machine) return false;
  module.setTargetTriple(machine->getTargetTriple());
  module.setDataLayout(machine->createDataLayout());
  set_attributes(module, *machine, isa);
  run_passes(module, *machine, quick ? "function(early-cse)" : short_list);
  if (quick) shorten_blocks(module);
  std::string object;
  return write_file(module, *machine, llvm::CodeGenFileType::ObjectFile, object, failure) &&
         link_shared(object, shared, failure);
}

}  // namespace latile::host
