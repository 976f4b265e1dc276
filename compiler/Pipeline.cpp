#include "compiler/Pipeline.h"
#include "compiler/passes/Canonicalize.h"
#include "compiler/passes/ScanToKernels.h"

namespace latile {

const std::vector<PassEntry>& passes() {
  static const std::vector<PassEntry> list{
      {"tile-canonicalize", "folds, and one copy of equal values", canonicalize},
      {"scan-to-kernels", "each scan becomes one fused kernel", scan_to_kernels},
  };
  return list;
}

mlir::LogicalResult lower_to_kernels(mlir::ModuleOp module, const PipelineOptions& options) {
  for (std::string_view name : {"tile-canonicalize", "scan-to-kernels"}) {
    for (const PassEntry& pass : passes()) {
      if (pass.name != name) continue;
      if (failed(pass.run(module))) return mlir::failure();
      if (options.after && failed(options.after(name, module))) return mlir::failure();
    }
  }
  return mlir::success();
}

}  // namespace latile
