// Which axes of the values of a region are the same axis, and what happens along each.
#pragma once
#include "dialect/Tile.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/EquivalenceClasses.h"

namespace latile::host {

/// Classes of (value, axis) pairs that elementwise work and products tie together. A class is `column_only` when
/// every value that has it has it as its columns and nothing contracts, reduces, orders or masks along it: then a
/// slice of it can be computed on its own (the columns of V in a left-acting operator).
class Axes {
public:
  explicit Axes(mlir::Block& block);
  int class_of(mlir::Value, int axis) const;
  bool column_only(int class_id) const;

private:
  int id(mlir::Value, int axis);
  int find(int) const;
  void unite(int, int);
  void mark(int);
  llvm::DenseMap<mlir::Value, int> first_;  ///< id of axis 0; axis 1 is the next
  mutable std::vector<int> parent_;
  std::vector<bool> used_;
};

/// True when entries above the diagonal are known to be zero.
bool is_lower_triangular(mlir::Value);

inline llvm::ArrayRef<std::int64_t> extents(mlir::Value v) {
  return mlir::cast<mlir::RankedTensorType>(v.getType()).getShape();
}
inline bool is_tile(mlir::Value v) { return mlir::isa<mlir::RankedTensorType>(v.getType()); }

}  // namespace latile::host
