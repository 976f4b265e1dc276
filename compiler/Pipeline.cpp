#include "compiler/Pipeline.h"
#include "codegen/simt/AssignLayouts.h"
#include "codegen/simt/Orient.h"
#include "codegen/simt/Scales.h"
#include "codegen/simt/ScoresFirst.h"
#include "codegen/simt/SinkTransposes.h"
#include "codegen/simt/SliceColumns.h"
#include "codegen/simt/WalkStates.h"
#include "compiler/passes/Canonicalize.h"
#include "compiler/passes/Cut.h"
#include "compiler/passes/ReassociateDots.h"
#include "compiler/passes/ScanToKernels.h"
#include "compiler/passes/SolveInsteadOfInverse.h"

namespace latile {

const std::vector<PassEntry>& passes() {
  static const std::vector<PassEntry> list{
      {"tile-canonicalize", "folds, and one copy of equal values", canonicalize},
      {"reassociate-dots", "dots with an updated state read the state as it was", reassociate_dots},
      {"solve-instead-of-inverse", "an inverse used once becomes a triangular solve", solve_instead_of_inverse},
      {"cut-prepare", "what depends on no carry leaves the serial kernel",
       [](mlir::ModuleOp module) { return cut(module, {.finish = false, .serial_weight = 4}); }},
      {"cut", "what only outputs need leaves the serial kernel as well",
       [](mlir::ModuleOp module) { return cut(module, {.finish = true}); }},
      {"scan-to-kernels", "each scan becomes one fused kernel", scan_to_kernels},
      {"slice-columns", "columns of a state are shared out among blocks of a GPU", simt::slice_columns},
      {"walk-states", "states larger than the registers stay in memory, walked in blocks of rows", simt::walk_states},
      {"orient", "products one way round or the other, so that accumulators are operands where they are", simt::orient},
      {"sink-transposes", "casts before transposes, so that one tile in shared memory serves both",
       simt::sink_transposes},
      {"move-scales", "factors of a product's operands where they cost nothing", simt::move_scales},
      {"scores-first", "decayed scores side by side, before what they do not need", simt::scores_first},
      {"assign-layouts", "which register, lane and warp holds which element of a tile", simt::assign_layouts},
      {"verify-layouts", "the rules that layouts keep", simt::verify_layouts},
  };
  return list;
}

static std::vector<std::string_view> list(Schedule schedule) {
  switch (schedule) {
  case Schedule::prepare:
    return {"tile-canonicalize", "reassociate-dots", "tile-canonicalize", "cut-prepare", "scan-to-kernels"};
  case Schedule::cut: return {"tile-canonicalize", "reassociate-dots", "tile-canonicalize", "cut", "scan-to-kernels"};
  case Schedule::fused: break;
  }
  return {"tile-canonicalize", "reassociate-dots", "solve-instead-of-inverse", "tile-canonicalize", "scan-to-kernels"};
}

static mlir::LogicalResult run(mlir::ModuleOp module, const std::vector<std::string_view>& names,
                               const PipelineOptions& options) {
  for (std::string_view name : names) {
    for (const PassEntry& pass : passes()) {
      if (pass.name != name) continue;
      if (failed(pass.run(module))) return mlir::failure();
      if (options.after && failed(options.after(name, module))) return mlir::failure();
    }
  }
  return mlir::success();
}

mlir::LogicalResult lower_to_kernels(mlir::ModuleOp module, const PipelineOptions& options) {
  return run(module, list(options.schedule), options);
}

mlir::LogicalResult prepare_for_gpu(mlir::ModuleOp module, std::string_view target, BlockSizes sizes,
                                    const PipelineOptions& options) {
  mlir::Builder builder(module.getContext());
  module->setAttr("tile.target", builder.getStringAttr(target));
  module->setAttr("tile.slice_columns", builder.getI64IntegerAttr(sizes.columns));
  module->setAttr("tile.slice_granule", builder.getI64IntegerAttr(sizes.granule));
  module->setAttr("tile.walk_elements", builder.getI64IntegerAttr(sizes.most_elements));
  module->setAttr("tile.least_threads", builder.getI64IntegerAttr(sizes.threads));
  return run(module,
             {"slice-columns", "walk-states", "sink-transposes", "tile-canonicalize", "orient", "sink-transposes",
              "tile-canonicalize", "move-scales", "scores-first", "tile-canonicalize", "assign-layouts",
              "verify-layouts"},
             options);
}

}  // namespace latile
