// The passes between a recorded operator and its kernels, as one list.
#pragma once
#include "mlir/IR/BuiltinOps.h"
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

namespace latile {

/// One pass: a function on a module, known by name to the command, to tests and to `latile-opt`.
struct PassEntry {
  std::string_view name;     ///< "scan-to-kernels"
  std::string_view summary;  ///< one line
  mlir::LogicalResult (*run)(mlir::ModuleOp);
};

/// All passes, by name.
const std::vector<PassEntry>& passes();

/// How the work of a scan is spread over kernels.
enum class Schedule : std::uint8_t {
  fused,    ///< one kernel
  prepare,  ///< what depends on no carry in a kernel over all chunks, the rest in a serial one
  cut,      ///< prepare, serial and finish
};

struct PipelineOptions {
  Schedule schedule = Schedule::fused;
  /// Called after each pass with its name; failure stops the pipeline.
  std::function<mlir::LogicalResult(std::string_view pass, mlir::ModuleOp)> after = nullptr;
};

/// Recorded module to kernels. Failure has been reported as a diagnostic.
mlir::LogicalResult lower_to_kernels(mlir::ModuleOp, const PipelineOptions& = {});

/// The columns of a state that one block works on, its threads, and what it holds at most.
struct BlockSizes {
  std::int64_t columns = 64;           ///< a multiple of 16
  std::int64_t granule = 16;           ///< what their number is a multiple of
  int threads = 0;                     ///< at least so many
  std::int64_t most_elements = 32768;  ///< of a tile that is tied to the rows of a state; larger states are walked
};

/// Kernels for a GPU of `find_target`: states in slices, products the way round the target likes.
mlir::LogicalResult prepare_for_gpu(mlir::ModuleOp, std::string_view target, BlockSizes = {},
                                    const PipelineOptions& = {});

}  // namespace latile
