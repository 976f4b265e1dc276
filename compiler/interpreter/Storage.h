// Which values share memory, when each was used last, and the arena that they are placed in.
#pragma once
#include "compiler/interpreter/Instruction.h"
#include "mlir/IR/Block.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include <map>

namespace latile::interpreter {

/// The operand whose memory the op's result views, or null: broadcast, transpose, a fixed row, a cast that changes
/// no value.
mlir::Value viewed(mlir::Operation* op, bool float64);

/// A root is a value with memory of its own; views lead to it. A root dies at the last op, of the block that owns it,
/// that uses it or a view of it (at any depth).
class Lifetimes {
public:
  Lifetimes(mlir::Region& region, bool float64);
  mlir::Value root(mlir::Value value) const;
  bool dies(mlir::Value root, mlir::Operation* at) const { return last_.lookup(root) == at; }
  llvm::ArrayRef<mlir::Value> dying(mlir::Operation* at) const;

private:
  void visit(mlir::Block& block);
  void define(mlir::Value value, mlir::Operation* at);
  void use(mlir::Value value, mlir::Operation* by);

  bool float64_;
  llvm::DenseMap<mlir::Value, mlir::Value> view_of_;
  llvm::DenseMap<mlir::Value, mlir::Operation*> last_;
  llvm::SmallVector<mlir::Value> roots_;
  llvm::DenseMap<mlir::Operation*, llvm::SmallVector<mlir::Value, 4>> dying_;
};

/// Hands out ranges of the arena and takes them back, by exact size.
class Pool {
public:
  /// Without reuse nothing that was handed out is handed out again.
  explicit Pool(bool reuse) : reuse_(reuse) {}
  bool reuses() const { return reuse_; }
  std::int64_t allocate(std::int64_t count);
  /// Memory that nothing else has used, for what is set once before the code runs.
  std::int64_t fresh(std::int64_t count);
  void release(std::int64_t offset);
  /// Numbers in the range at `offset`.
  std::int64_t count(std::int64_t offset) const { return counts_.at(offset); }
  /// Takes back a given range if it is free.
  bool take(std::int64_t offset);
  std::int64_t size() const { return size_; }

private:
  bool reuse_;
  std::int64_t size_ = 0;
  std::multimap<std::int64_t, std::int64_t> free_;
  std::map<std::int64_t, std::int64_t> counts_;
};

}  // namespace latile::interpreter
