// What every kernel made from a scan has in common: its frame, heads, carries, loads of inputs.
#pragma once
#include "dialect/Tile.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/IRMapping.h"

namespace latile {

/// Keeps how many heads of the finest axis belong to one of each coarser axis, where that is more than one, as the
/// program's attribute `coarse_heads`: kernels over a coarser axis alone do not tell.
void note_coarse_heads(mlir::ModuleOp);

/// Builds the body of one kernel from a scan. Values of the enclosing program are mapped to kernel arguments.
class KernelBuilder {
public:
  /// Makes an empty kernel `<program><suffix>` before `program`. Its arguments are one index for each grid axis, then
  /// `operands` (values of the program), which `names` names.
  KernelBuilder(tile::ProgramOp program, tile::ScanOp scan, llvm::StringRef suffix,
                llvm::ArrayRef<llvm::StringRef> grid, llvm::ArrayRef<mlir::Value> operands,
                llvm::ArrayRef<llvm::StringRef> names);

  tile::KernelOp kernel() { return kernel_; }
  mlir::OpBuilder& builder() { return builder_; }
  mlir::Location loc() const { return loc_; }

  /// The index of a grid axis.
  mlir::Value axis(unsigned i) { return kernel_.getArgument(i); }
  /// The kernel's value for a value of the program.
  mlir::Value operand(mlir::Value value) { return values_.lookup(value); }
  /// The index on head axis `name`, null for "". The scan's axis has one where the grid runs over it or in `members`.
  mlir::Value head(llvm::StringRef name);
  /// Runs `body` at the builder's place for each head of the scan's axis that belongs to the program's head.
  void members(llvm::function_ref<void()> body);

  mlir::Value index(std::int64_t value);
  /// A tile of zeros.
  mlir::Value zeros(mlir::RankedTensorType);
  mlir::Value cast(mlir::Value tile, mlir::Type element);

  /// Input i where it does not depend on rows: a parameter or scalar. Null for a sequence, and for what has a value
  /// for each member.
  mlir::Value load_constant_input(unsigned i);
  /// Input i, a sequence, at these rows.
  mlir::Value load_rows_input(unsigned i, mlir::Value batch, mlir::Value rows);
  /// Input i of either kind.
  mlir::Value load_input(unsigned i, mlir::Value batch, mlir::Value rows);
  /// Output i.
  void store_output(unsigned i, mlir::Value tile, mlir::Value batch, mlir::Value rows);
  /// The start of carry i for sequence n.
  mlir::Value load_carry(unsigned i, mlir::Value n);
  /// The end of carry i; nothing where it has no final tensor.
  void store_carry(unsigned i, mlir::Value tile, mlir::Value n);
  /// History state number `(position - begin) / every - 1` of carry i, where `position` is a multiple of `every` above
  /// `begin`; nothing elsewhere, or where it keeps no history.
  void store_history(unsigned i, mlir::Value tile, mlir::Value n, mlir::Value begin, mlir::Value position);
  /// The rows of the scan's chunk at `position`, in the scan's direction.
  mlir::Value rows(mlir::Value begin, mlir::Value position, mlir::Value end);
  /// The slot that carry i of sequence n starts from or ends in, as an index value.
  mlir::Value initial_slot(unsigned i, mlir::Value n);
  mlir::Value final_slot(unsigned i, mlir::Value n);

  /// Clones `op` of the scan's region at the builder's place; ops that speak about rows get them as an operand.
  void clone(mlir::Operation* op, mlir::IRMapping&, mlir::Value rows);

  /// Removes arguments that nothing uses. `operands` are those of the constructor; the ones that are left come back.
  llvm::SmallVector<mlir::Value> drop_unused_arguments(llvm::ArrayRef<mlir::Value> operands);

private:
  mlir::Value load_parameter(unsigned i);
  mlir::Value slot(mlir::Value index, mlir::Value n, mlir::Value column = {});
  void store_state(unsigned i, mlir::Value tile, mlir::Value view, mlir::Value slot);

  tile::ScanOp scan_;
  tile::KernelOp kernel_;
  mlir::OpBuilder builder_;
  mlir::Location loc_;
  mlir::IRMapping values_;
  unsigned head_axis_ = ~0u;
  mlir::Value member_;  ///< the head of the scan's axis in `members`
  llvm::StringMap<mlir::Value> heads_;
  llvm::DenseMap<mlir::Value, mlir::Value> slots_;
  mlir::Value last_accepted_;
};

}  // namespace latile
