// Registers: how many a thread of an emitted kernel holds, and how many it may have.
#pragma once
#include "codegen/simt/Target.h"
#include "dialect/Tile.h"
#include "llvm/IR/Function.h"
#include <map>

namespace latile::simt {

/// What a function holds in registers, in the order in which its instructions stand: values that are live, in units of
/// 32 bits. An assembler that orders them anew gets along with a few less or more.
class Pressure {
public:
  /// `inner`: of each op with ops inside, the number of the last of them; an op's number is its instructions' line.
  /// `spare`: by the number of an op, registers that it can do without.
  Pressure(const llvm::Function&, const std::map<unsigned, unsigned>& inner, const std::map<unsigned, double>& spare);
  double most() const { return most_; }
  /// By the number of an op: the registers above `limit` that are live within it.
  std::map<unsigned, double> above(double limit) const;

private:
  std::map<unsigned, double> live_;
  double most_ = 0;
};

/// Bounds for live registers of a thread.
struct RegisterBudget {
  double aim = 0;     ///< what tiles are put aside for
  double enough = 0;  ///< none are up to here
  double most = 0;    ///< with tiles aside; an assembler may spill beyond
};

/// `blocks`: that share a multiprocessor; 0: as many as the assembler finds best.
RegisterBudget register_budget(tile::KernelOp, int threads, int blocks, const Target&);

/// Whether blocks fit on a multiprocessor by their shared memory; each takes a kilobyte more than it asks for.
bool fit_together(int blocks, std::size_t shared_bytes, const Target&);

/// Blocks that shall fit on a multiprocessor by their registers: as many as let a kernel have those that it holds
/// (`live`), and more for one whose threads mostly wait. 0: the assembler weighs registers best.
int blocks_wanted(tile::KernelOp, int threads, std::size_t shared_bytes, double live, const Target&);

}  // namespace latile::simt
