// Tile IR to code: once for each scan or kernel.
#pragma once
#include "compiler/Interpreter.h"
#include "compiler/interpreter/Instruction.h"
#include "compiler/interpreter/Storage.h"
#include "dialect/Tile.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/StringRef.h"
#include <optional>

namespace latile::interpreter {

/// A scan as code over the grid (N, heads); the code's arguments are the scan's operands. Ops that have no meaning
/// here are named in `problems`.
Code translate(tile::ScanOp scan, const InterpreterOptions& options, std::vector<std::string>& problems);
/// A kernel; the code's arguments are the launch's operands.
Code translate(tile::KernelOp kernel, const InterpreterOptions& options, std::vector<std::string>& problems);

/// "file:line:column: tile.load", of the first file location found.
std::string place_of(mlir::Operation* op);
ElementType element_type(mlir::Type type);

class Translator {
public:
  Translator(mlir::Region& region, const InterpreterOptions& options, std::vector<std::string>& problems)
      : lifetimes_(region, options.float64), float64_(options.float64), problems_(problems), pool_(!options.separate) {}
  Code finish();

  Code code;

  // Scans and kernels, as the free functions above.
  void scan(tile::ScanOp scan);
  void kernel(tile::KernelOp kernel);

private:
  struct Rows {
    int first, count, number;
    std::int64_t size;
    bool reversed = false;
    int before = -1;  ///< register of the rows that lie before the sequence
  };
  struct Copy {
    Tile from;
    std::int64_t to;
    ElementType round;
  };

  // Instructions.
  Instruction& emit(Op op, mlir::Operation* at, std::initializer_list<int> registers = {});
  Instruction& emit_once(Op op, mlir::Operation* at);
  int new_register() { return code.registers++; }
  int integer(std::int64_t value, mlir::Operation* at);
  int integer(Op op, mlir::Operation* at, int a, int b, std::int64_t n = 0);
  std::int64_t here() const { return static_cast<std::int64_t>(code.body.size()); }
  int place(mlir::Operation* at);
  void unsupported(mlir::Operation* op, const std::string& why = "has no meaning in the interpreter");

  // Values.
  ElementType precision(mlir::Type type) const;
  Tile tile(mlir::Value value);
  int reg(mlir::Value value);
  int memory(mlir::Value value);
  /// Names a view of memory in a load or store.
  void address(Instruction& access, mlir::Value view);
  Rows rows(mlir::Operation* op, mlir::Value operand);
  std::int64_t rate(mlir::Operation* op, mlir::Value rows_operand, std::int64_t tile_rows);
  /// Memory for a result: that of an operand in `reuse` that dies here, or fresh.
  Tile result(mlir::Value value, mlir::ValueRange reuse = {});
  Tile place_value(mlir::Value value, bool pinned);
  Tile place_constant(mlir::Value value);
  void release(mlir::Operation* at);
  /// Copies as if all at once.
  void copy_all(std::vector<Copy> copies, mlir::Operation* at);

  // Ops.
  void block(mlir::Block& block);
  void op(mlir::Operation* op);
  bool element_wise(mlir::Operation* op);
  bool integers(mlir::Operation* op);
  bool positions(mlir::Operation* op);
  bool accesses(mlir::Operation* op);
  bool tiles(mlir::Operation* op);
  bool constants(mlir::Operation* op);
  void select(mlir::Operation* op);
  void view(mlir::Operation* op, mlir::Value source);
  void loop(mlir::scf::ForOp loop);
  void branch(mlir::scf::IfOp branch);
  void conjugate_gradients(tile::SolveOp solve);
  void custom(tile::CustomOp custom);
  void yield(mlir::ValueRange values, llvm::ArrayRef<mlir::Value> targets, mlir::Operation* at);
  /// The memory of carried values may serve others in the body; from the yield on it is theirs alone.
  void reserve(llvm::ArrayRef<mlir::Value> carried);
  void bind_argument(mlir::Value argument, int number, mlir::Operation* at);

  Lifetimes lifetimes_;
  bool float64_;
  std::vector<std::string>& problems_;
  Pool pool_;
  llvm::DenseMap<mlir::Value, Tile> tiles_;
  llvm::DenseMap<mlir::Value, int> registers_, memories_, columns_, row_blocks_;
  llvm::DenseMap<mlir::Value, Rows> rows_;
  llvm::DenseMap<mlir::Value, std::int64_t> storage_, preferred_;
  llvm::DenseSet<mlir::Value> pinned_, stolen_;
  llvm::DenseMap<mlir::Operation*, int> places_;
  std::optional<Rows> implicit_rows_;
};

/// Rows and columns of a tile; 1 and 1 for a scalar.
std::pair<std::int64_t, std::int64_t> extents(mlir::Type type);

}  // namespace latile::interpreter
