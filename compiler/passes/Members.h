// Scans whose carries live on a coarser head axis than their outputs.
//
// A program of the grid keeps the carries of one head of the coarser axis, and everything that depends on none of the
// finer heads is computed once. What does is computed in a loop over the members: the heads of the finer axis that
// belong to the program's head.
#pragma once
#include "dialect/Tile.h"
#include "llvm/ADT/DenseSet.h"
#include <functional>

namespace latile {

/// Whether an operand of the scan with this head axis is one for each member.
bool has_members(tile::ScanOp, mlir::Attribute head);

/// Values of a scan's region that differ between members.
class Members {
public:
  explicit Members(tile::ScanOp);

  bool none() const { return values_.empty() && !stores_; }
  bool contains(mlir::Value value) const { return values_.contains(value); }
  bool contains(mlir::Operation* op) const;

  /// Parts of ops, each in the order given: what the members read, the members' own, and the rest, which waits for them
  /// so that what replaces a carry is not kept beside it. `stored`: values that are stored for each member.
  struct Parts {
    llvm::SmallVector<mlir::Operation*> before, each, after;
  };
  Parts split(llvm::ArrayRef<mlir::Operation*> ops, llvm::ArrayRef<mlir::Value> stored) const;

private:
  llvm::DenseSet<mlir::Value> values_;
  bool stores_ = false;  ///< whether an output has members
};

}  // namespace latile
