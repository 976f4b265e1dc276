// Runs tile IR: the meaning of every program, and the judge of every pass and target.
#pragma once
#include "dsl/OperatorInfo.h"
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace mlir {
class ModuleOp;
}

namespace latile {

/// A strided tensor in the caller's memory. Its type need not be the program's: float64 memory may stand for a
/// bfloat16 tensor. Strides are in elements and may be negative or zero (inputs).
struct InterpreterTensor {
  void* data = nullptr;
  ElementType type = ElementType::f64;
  std::vector<std::int64_t> shape, strides;
};

struct InterpreterInputs {
  /// By argument name. Axes: sequences and outputs [B, T * rate, (heads), inner…], carries [N or slots, (heads),
  /// inner…], parameters [(heads), inner…], "X.initial_index" and "X.final_index" [N], "X.history_index" and with
  /// "accepted" [N] also "X.initial_index" [N, states], "cu_seqlens" [N + 1] when ragged (i32 or i64).
  std::map<std::string, InterpreterTensor> tensors;
  std::map<std::string, double> scalars;
  std::int64_t sequences = 1;  ///< N: batch entries when dense, row ranges when ragged
  std::int64_t rows = 0;       ///< T of a dense batch
  std::int64_t heads = 1;      ///< on the finest head axis
};

struct InterpreterOptions {
  /// true: every float is a double and casts are the identity; a store converts to the type of the memory.
  /// false: each result is rounded (to nearest even) to its element type, products accumulate in float64 and round
  /// once; what is read or written takes the type of its view first.
  bool float64 = true;
  /// Tracks every element of memory; runs on one thread. Indices out of bounds are reported without it as well.
  bool sanitize = false;
  /// Every value in memory of its own, for checking how the interpreter shares memory between values.
  bool separate = false;
  /// Threads over the grid; 0: as many as the machine has.
  int threads = 0;
};

/// Sentences that begin with the source location and name of the op; empty when the run was sound. At most 100.
/// Mistakes of binding (a tensor that is missing or has another extent) and ops without a meaning here are found
/// before anything runs. With `sanitize`: reads of elements that nothing wrote (outputs, workspace), elements that
/// two programs of one launch write, elements that one program reads and another writes; of each op and tensor the
/// first.
struct InterpreterReport {
  std::vector<std::string> problems;
  bool ok() const { return problems.empty(); }
};

/// Runs the module's one tile.program: its tile.scan, or its tile.workspace and tile.launch in order.
InterpreterReport interpret(mlir::ModuleOp module, const InterpreterInputs& inputs,
                            const InterpreterOptions& options = {});

}  // namespace latile
