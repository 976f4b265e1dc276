// Layouts on the types of a kernel's tiles.
#pragma once
#include "codegen/simt/Target.h"
#include "dialect/Tile.h"
#include "mlir/IR/BuiltinOps.h"

namespace latile::simt {

/// The layout of a type's encoding, or nothing where it has none.
std::optional<Layout> layout_of(mlir::Type);
/// The same tile type with a layout.
mlir::RankedTensorType with_layout(mlir::RankedTensorType, const Layout&);

/// The layouts of one kernel by the shape of a tile: accumulators of the target's matrix instructions, so that
/// products, element-wise work and states need no conversion among each other.
class Choice {
public:
  Choice(const Target& target, int threads) : target_(target), warps_(threads / target.lanes) {}

  /// [R,C]: accumulators. Columns [R,1] are slices of those beside tiles of 16 columns for each warp along columns,
  /// rows [1,C] are spread over lanes, [1,1] is everywhere.
  Layout of(std::int64_t rows, std::int64_t columns) const;
  /// Fragments, up to four warps along the axis that the next product does not sum over (rows where an accumulator is
  /// operand A, columns where it is operand B), so that columns [R,1] lie alike beside tiles of any width; more along
  /// the other one; what is left over as replicas.
  Layout accumulators(std::int64_t rows, std::int64_t columns) const;
  /// A tile that goes to shared memory as it comes: each lane loads as many neighbouring columns (`by_rows`: rows) as
  /// fit its widest access.
  Layout staged(std::int64_t rows, std::int64_t columns, int element_bytes, bool by_rows) const;

  /// Whether each warp has all terms of what it adds to a result of that size, where an accumulator is the free
  /// operand: not where warps share the rows (or columns) that they have of it.
  bool accumulator_is_operand(std::int64_t rows, std::int64_t columns) const;

private:
  static constexpr int most_warps_ = 4;
  const Target& target_;
  int warps_;
};

/// Threads of a block: enough that the widest tile takes at most 64 registers of each, 32 where no loop carries a
/// state; at least four warps.
int threads_for(tile::KernelOp, const Target&);

/// Gives every tile of every kernel a layout, with `tile.convert_layout` where an op needs its operand in another one,
/// and each kernel the attribute `threads`. Products and ops that work through shared memory (systems, decayed scores,
/// scans) take operands in any layout; element-wise ops take the result's, broadcasts a slice of it; loops keep one.
/// Tiles that are only operands of products come staged.
mlir::LogicalResult assign_layouts(mlir::ModuleOp);

/// Reports the first value of a kernel that breaks a rule: a tile without layout; lanes or warps that are not the
/// block's; a layout smaller than its tile, or twice as large and more; a bit that moves along both axes; a
/// transposition, broadcast or reduction whose layouts do not follow from each other; a product whose result is not
/// made of the target's fragments. That element-wise operands have one layout is a matter of their types.
mlir::LogicalResult verify_layouts(mlir::ModuleOp);

}  // namespace latile::simt
