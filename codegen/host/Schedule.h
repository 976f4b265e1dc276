// Decides, for the values of a kernel, which live in memory and in which form; everything else is evaluated where used.
#pragma once
#include "codegen/host/Axes.h"
#include "compiler/Specialisation.h"
#include "llvm/ADT/MapVector.h"

namespace latile::host {

/// A dot operand seen through casts and transposes: the value that is stored, and whether it is read transposed.
struct OperandForm {
  mlir::Value value;
  bool transposed = false;
};
OperandForm operand_form(mlir::Value);

/// The value under casts: rounding is the business of what reads it.
mlir::Value uncast(mlir::Value);

/// Decayed products with one row (a step) or one column have no vectors to walk; they become elementwise work.
void rewrite_narrow(tile::KernelOp);

/// True for a product that is a sum over one term: evaluated as elementwise work.
bool is_outer(tile::DotOp);

/// Forms in which a value [R,N] can be stored. The bfloat16 ones feed products of pairs along the contraction:
/// `halves` are rows of bfloat16, `pairs` hold rows 2r and 2r+1 interleaved; the flipped ones are those of the
/// transpose. Flipped halves are made from pairs and flipped pairs from halves, by 32-bit moves.
///
/// `copied` says that the plain form must be in a buffer: only products of several rows
/// can read a tile where it is in memory.
enum Form : unsigned {
  plain = 1,
  flipped = 2,
  halves = 4,
  halves_flipped = 8,
  pairs = 16,
  pairs_flipped = 32,
  copied = 64
};

/// How products of bfloat16 are made: operands widened to float32, dots of pairs in vectors, or in tile registers.
enum class Bfloat16 { widen, dot, tiles };
inline Bfloat16 bfloat16_engine(const HostIsa& isa) {
  return isa.level == "amx" ? Bfloat16::tiles : isa.level == "avx512bf16" ? Bfloat16::dot : Bfloat16::widen;
}
/// True for scores whose blocks below the diagonal are products of tiles.
bool splits_into_blocks(tile::DecayedScoresOp, Bfloat16);
/// Rows of a diagonal block of scores that is walked exactly, with float32 operands.
inline constexpr std::int64_t exact_rows = 8;

/// exp2 of the sums of a gate up to each row, or of what is left of them after it (`rest`): products of the decays from
/// row to row, which decayed products need as well. Null gates: not of this form.
struct RunningDecay {
  mlir::Value gates;
  bool rest = false;
};
RunningDecay running_decay(mlir::Value);
/// The inclusive sum of what an exclusive one sums up, null if there is none.
mlir::Value inclusive_of(mlir::Value exclusive);

/// A product of bfloat16 operands with more than one row, column and term.
bool is_bfloat16_product(tile::DotOp);

/// What memory the values of a kernel need. A wide value (both extents above 1, or a row) is stored when it is an
/// operand of a product, the result of an op that is not elementwise, or costly and used more than once; a column
/// [R,1] always, since its elements are read as scalars; a [1,1] value is a register.
class Storage {
public:
  Storage(tile::KernelOp kernel, Bfloat16 engine);
  unsigned forms(mlir::Value v) const { return needs_.lookup(v); }

private:
  void visit(mlir::Operation* op);
  void settle(mlir::Operation* op);
  void keep_moved(mlir::Operation* store);
  bool fuses(mlir::Value dot) const;
  Bfloat16 engine_;
  llvm::DenseMap<mlir::Value, unsigned> needs_;
  llvm::DenseMap<mlir::Value, bool> costly_;
};

/// True for an op that computes each element of its result from the elements at the same place of its operands.
bool is_elementwise(mlir::Operation*);

/// True for a load whose memory can serve as it is: float32 with its last axis contiguous.
bool reads_in_place(mlir::Value);

/// How a load of a tile with two extents can be read in the order of memory: row by row, column by column, or not.
enum class Streaming { none, rows, columns };
Streaming streaming(mlir::Value);

/// Orders a straight-line block so that one-row products with the same right operand stand next to one another: each
/// pass over a state then feeds all of them.
void gather_row_products(mlir::Block&);

/// True when evaluating `v` reads `leaf` at other places than its own, or is `leaf` read by a product.
bool reads_elsewhere(mlir::Value v, mlir::Value leaf, const Storage&);
/// True when evaluating `v` reads `leaf` at all.
bool reads(mlir::Value v, mlir::Value leaf, const Storage&);

}  // namespace latile::host
