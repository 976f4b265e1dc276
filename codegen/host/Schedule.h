// Decides, for the values of a kernel, which live in memory and in which form; everything else is evaluated where used.
#pragma once
#include "codegen/host/Axes.h"
#include "llvm/ADT/MapVector.h"

namespace latile::host {

/// A dot operand seen through casts and transposes: the value that is stored, and whether it is read transposed.
struct OperandForm {
  mlir::Value value;
  bool transposed = false;
};
OperandForm operand_form(mlir::Value);

/// True for a product that is a sum over one term: evaluated as elementwise work.
bool is_outer(tile::DotOp);

enum Form : unsigned { plain = 1, flipped = 2 };

/// What memory the values of a kernel need. A wide value (both extents above 1, or a row) is stored when it is an
/// operand of a product, the result of an op that is not elementwise, or costly and used more than once; a column
/// [R,1] always, since its elements are read as scalars; a [1,1] value is a register.
class Storage {
public:
  explicit Storage(tile::KernelOp kernel);
  unsigned forms(mlir::Value v) const { return needs_.lookup(v); }

private:
  void visit(mlir::Operation* op);
  void settle(mlir::Operation* op);
  bool fuses(mlir::Value dot) const;
  llvm::DenseMap<mlir::Value, unsigned> needs_;
  llvm::DenseMap<mlir::Value, bool> costly_;
};

/// True for a load whose memory can serve as it is: float32 with its last axis contiguous.
bool reads_in_place(mlir::Value);

/// Orders a straight-line block so that one-row products with the same right operand stand next to one another: each
/// pass over a state then feeds all of them.
void gather_row_products(mlir::Block&);

/// True when evaluating `v` reads `leaf` at other places than its own, or is `leaf` read by a product.
bool reads_elsewhere(mlir::Value v, mlir::Value leaf, const Storage&);
/// True when evaluating `v` reads `leaf` at all.
bool reads(mlir::Value v, mlir::Value leaf, const Storage&);

}  // namespace latile::host
