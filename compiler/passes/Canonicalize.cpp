#include "compiler/passes/Canonicalize.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

namespace latile {

mlir::LogicalResult canonicalize(mlir::ModuleOp module) {
  mlir::PassManager manager(module.getContext());
  manager.enableVerifier(false);
  manager.addPass(mlir::createCanonicalizerPass());
  manager.addPass(mlir::createCSEPass());
  return manager.run(module);
}

}  // namespace latile
