// Arrays, tile programs as text, and runs of them: what the tests of the interpreter and of the passes share.
#pragma once
#include "compiler/Interpreter.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include <map>
#include <random>
#include <string>
#include <vector>

namespace latile::test {

/// A dense float64 array.
struct Array {
  std::vector<std::int64_t> shape;
  std::vector<double> data;

  Array() = default;
  explicit Array(std::vector<std::int64_t> extents, double value = 0);
  static Array random(std::vector<std::int64_t> extents, std::mt19937_64& engine, double low = -1, double high = 1);
  std::int64_t offset(std::initializer_list<std::int64_t> index) const;
  double& operator()(std::initializer_list<std::int64_t> index) {
    return data[static_cast<std::size_t>(offset(index))];
  }
  double operator()(std::initializer_list<std::int64_t> index) const {
    return data[static_cast<std::size_t>(offset(index))];
  }
  InterpreterTensor tensor();
};

double largest_difference(const Array& a, const Array& b);

/// A program with one scan, to be written as text. Types are element types: "f32", "bf16".
struct ScanText {
  struct Tensor {
    std::string name, head;           ///< head axis or ""
    std::vector<std::int64_t> inner;  ///< static extents
    int rate = 1;                     ///< rows a token; 0: a parameter (reads only)
    std::string type = "f32";
    int unit = -1;  ///< the axis with stride 1, counted from the last; -1: none is known
  };
  struct Carry {
    std::string name, head;
    std::vector<std::int64_t> inner;
    bool initial = true, final = true, initial_index = false, final_index = false;
    std::string type = "f32", index_type = "i32";
    int unit = -1;
    std::int64_t every = 0;  ///< tokens between history states, which are kept through an index; 0: none
  };
  std::string sequences = "dense";  ///< or "ragged32", "ragged64"
  std::int64_t chunk = 1, ratio = 1;
  std::string axis = "H", map = "grouped";
  bool step = false, reversed = false;
  bool accepted = false;  ///< then every initial_index is a table
  std::vector<Tensor> reads;
  std::vector<std::string> scalars;
  std::vector<Carry> carries;
  std::vector<Tensor> writes;
  /// Ops of the region. Its arguments are named as the tensors are: %q, %S, and the scalars'.
  std::string body;
  std::vector<std::string> yields;  ///< value names without %, outputs then carries

  std::string text() const;
};

/// A context with every dialect that tile programs use.
mlir::MLIRContext& context();
/// Parses and verifies; fails the test with the diagnostics otherwise.
mlir::OwningOpRef<mlir::ModuleOp> parse(const std::string& text);

/// Memory of one run by argument name.
struct Data {
  std::map<std::string, Array> arrays;
  std::map<std::string, std::vector<std::int32_t>> indices;
  std::map<std::string, std::int64_t> columns;  ///< of the indices that are tables
  std::vector<std::int64_t> index_shape(const std::string& name) const;
  std::map<std::string, double> scalars;
  std::int64_t sequences = 1, rows = 0, heads = 1;
  InterpreterInputs inputs();
};

/// Runs and fails the test on a problem.
void run(mlir::ModuleOp module, Data& data, const InterpreterOptions& options = {});

}  // namespace latile::test
