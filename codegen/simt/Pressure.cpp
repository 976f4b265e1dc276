#include "codegen/simt/Pressure.h"
#include "codegen/simt/Instructions.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/IR/Instructions.h"

namespace latile::simt {

/// Predicates have registers of their own.
static double registers_of(const llvm::Type* type) {
  if (auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type))
    return vector->getNumElements() * registers_of(vector->getElementType());
  if (auto* record = llvm::dyn_cast<llvm::StructType>(type)) {
    double sum = 0;
    for (const llvm::Type* e : record->elements()) sum += registers_of(e);
    return sum;
  }
  if (type->isVoidTy() || type->isIntegerTy(1)) return 0;
  if (type->isPointerTy()) return type->getPointerAddressSpace() == shared_space ? 1 : 2;
  return static_cast<double>(type->getPrimitiveSizeInBits().getFixedValue()) / 32;
}

/// By the line of the instructions, the most registers that are live at one of them.
static std::map<unsigned, double> live_registers(const llvm::Function& f) {
  llvm::DenseMap<const llvm::Value*, unsigned> numbers;
  std::vector<double> sizes;
  auto number = [&](const llvm::Value& v) {
    numbers[&v] = static_cast<unsigned>(sizes.size());
    // Two of 16 bits share a register only where they came or will go together.
    sizes.push_back(llvm::isa<llvm::LoadInst>(v) ? std::max(1.0, registers_of(v.getType()))
                                                 : registers_of(v.getType()));
  };
  for (const llvm::BasicBlock& block : f)
    for (const llvm::Instruction& i : block)
      if (!i.getType()->isVoidTy()) number(i);
  llvm::DenseMap<const llvm::BasicBlock*, llvm::BitVector> live_in;
  for (const llvm::BasicBlock& block : f) live_in[&block].resize(static_cast<unsigned>(sizes.size()));
  auto live_out = [&](const llvm::BasicBlock& block) {
    llvm::BitVector live(static_cast<unsigned>(sizes.size()));
    for (const llvm::BasicBlock* next : llvm::successors(&block)) {
      live |= live_in[next];
      for (const llvm::PHINode& phi : next->phis()) {
        auto at = numbers.find(phi.getIncomingValueForBlock(&block));
        if (at != numbers.end()) live.set(at->second);
      }
    }
    return live;
  };
  /// From behind an instruction to before it.
  auto step = [&](const llvm::Instruction& i, auto&& begins, auto&& is_used) {
    if (auto own = numbers.find(&i); own != numbers.end()) begins(own->second);
    if (llvm::isa<llvm::PHINode>(i)) return;
    for (const llvm::Value* operand : i.operand_values())
      if (auto used = numbers.find(operand); used != numbers.end()) is_used(used->second);
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (const llvm::BasicBlock* block : llvm::post_order(&f)) {
      llvm::BitVector live = live_out(*block);
      for (const llvm::Instruction& i : llvm::reverse(*block))
        step(i, [&](unsigned k) { live.reset(k); }, [&](unsigned k) { live.set(k); });
      if (live == live_in[block]) continue;
      live_in[block] = live;
      changed = true;
    }
  }
  std::map<unsigned, double> most;
  for (const llvm::BasicBlock& block : f) {
    llvm::BitVector live = live_out(block);
    double sum = 0;
    for (unsigned k : live.set_bits()) sum += sizes[k];
    auto change = [&](unsigned k, bool to) {
      if (live.test(k) == to) return;
      live[k] = to;
      sum += to ? sizes[k] : -sizes[k];
    };
    for (const llvm::Instruction& i : llvm::reverse(block)) {
      if (const llvm::DebugLoc& where = i.getDebugLoc()) {
        double& here = most[where.getLine()];
        here = std::max(here, sum);
      }
      step(i, [&](unsigned k) { change(k, false); }, [&](unsigned k) { change(k, true); });
    }
  }
  return most;
}

Pressure::Pressure(const llvm::Function& f, const std::map<unsigned, unsigned>& inner,
                   const std::map<unsigned, double>& spare)
    : live_(live_registers(f)) {
  for (auto [number, registers] : spare)
    if (auto at = live_.find(number); at != live_.end()) at->second -= registers;
  for (auto [number, last] : inner)
    for (auto at = live_.upper_bound(number); at != live_.end() && at->first <= last; ++at)
      live_[number] = std::max(live_[number], at->second);
  for (auto [number, live] : live_) most_ = std::max(most_, live);
}

std::map<unsigned, double> Pressure::above(double limit) const {
  std::map<unsigned, double> excess;
  for (auto [number, live] : live_)
    if (live > limit) excess[number] = live - limit;
  return excess;
}

RegisterBudget register_budget(tile::KernelOp kernel, int threads, int blocks, const Target& target) {
  int given = target.most_registers;
  if (target.registers != 0) given = std::min(given, target.registers / (threads * std::max(blocks, 1)) / 8 * 8);
  // An assembler moves what the turns of an inner loop share in front of it, where it is live throughout.
  bool solves = false;
  kernel.walk([&](tile::SolveOp) { solves = true; });
  if (solves) given -= 48;
  // As ptxas 13.0 spills or does not for the kernels of all operators at sizes of 128.
  if (given < target.most_registers && blocks > 1) return {0.8 * given, 0.78 * given, 0.895 * given};
  return {0.8 * given, 0.97 * given, 0.9 * given};
}

bool fit_together(int blocks, std::size_t shared_bytes, const Target& target) {
  return static_cast<std::size_t>(blocks) * (shared_bytes + 1024) <= target.shared_limit + 1024;
}

int blocks_wanted(tile::KernelOp kernel, int threads, std::size_t shared_bytes, double live, const Target& target) {
  if (target.registers == 0) return 0;
  bool scores = false, systems = false, carries = false;
  kernel.walk([&](mlir::Operation* op) {
    auto loop = mlir::dyn_cast<mlir::scf::ForOp>(op);
    carries |= loop && loop.getNumRegionIterArgs();
    scores |= mlir::isa<tile::DecayedScoresOp, tile::DecayedApplyOp>(op);
    systems |= mlir::isa<tile::InverseUnitLowerOp, tile::SolveUnitLowerOp>(op);
  });
  // A triangular system is a long chain with few threads at work: others hide it, as many as 80 registers a thread
  // allow. Scores need more registers than that. A chain of chunks waits for its own products: registers to have the
  // next ones' operands in serve it better than a third block.
  int registers = 0;
  if (carries)
    registers = target.most_registers;
  else if (scores && target.registers_of_scores)
    registers = target.registers_of_scores;
  else if (systems && !scores)
    registers = 80;
  else if (scores || live > 60)
    registers = std::min(static_cast<int>(live) + 32, target.most_registers);
  else
    return 0;
  int blocks = std::max(1, target.registers / (registers * threads));
  while (blocks > 1 && !fit_together(blocks, shared_bytes, target)) --blocks;
  return blocks;
}

}  // namespace latile::simt
