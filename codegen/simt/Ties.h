// Which extents of a kernel's tiles are one and the same.
#pragma once
#include "dialect/Tile.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include <optional>
#include <vector>

namespace latile::simt {

/// Axis 0 or 1 of a tile.
using Extent = std::pair<mlir::Value, int>;

/// The type of a tile, null of anything else.
mlir::RankedTensorType tile_type(mlir::Value);
std::int64_t size_of(Extent);
/// The same tile with another extent, splat constants included.
void resize(mlir::Value, int axis, std::int64_t extent);

/// The tile that a load or a store moves, and the view.
struct Access {
  mlir::Value tile, view;
};
std::optional<Access> access_of(mlir::Operation*);
bool is_store(mlir::Operation*);

/// Extents that loops, products, element-wise ops, transposes and so on tie together, in sets: an op that is done for a
/// part of one is done for that part of all. A set is free where no op looks at one of its extents as a whole.
class Ties {
public:
  /// What may be done for a part of an extent.
  enum class Parts {
    /// Columns: accesses of memory along the last axis, and everything whose elements along the extent never meet.
    columns,
    /// Rows of a state: accesses of its rows, the columns of kron_rows, and sums, which are made of the parts' sums.
    rows,
  };

  Ties(tile::KernelOp, Parts);

  /// The free set with the most elements; nothing: there is none.
  std::vector<Extent> widest() const;
  /// The set that an extent is in; nothing: it is not free.
  std::vector<Extent> of(Extent) const;

private:
  int number(Extent);
  void stop(mlir::Value, int axis);
  void stop(mlir::Value);
  void stop_all(mlir::Operation*);
  void tie(mlir::Value a, int i, mlir::Value b, int j);
  void tie(mlir::Value a, mlir::Value b);
  void by_columns(mlir::Operation*);
  void access(const Access&, mlir::Operation*);
  void product(tile::DotOp);
  void visit(mlir::Operation*);
  int leader(int i) const { return *ties_.findLeader(i); }

  Parts parts_;
  llvm::DenseMap<Extent, int> numbers_;
  std::vector<Extent> extents_;
  llvm::EquivalenceClasses<int> ties_;
  llvm::DenseSet<int> stopped_;
};

}  // namespace latile::simt
