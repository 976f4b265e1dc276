// Runs single passes on tile IR in text form: the driver of the lit tests.
#include "compiler/Pipeline.h"
#include "dialect/Tile.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"

namespace {

/// A pass of the list as MLIR knows passes.
class ListedPass : public mlir::PassWrapper<ListedPass, mlir::OperationPass<mlir::ModuleOp>> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ListedPass)
  explicit ListedPass(const latile::PassEntry& entry) : entry_(entry) {}
  llvm::StringRef getArgument() const override { return entry_.name; }
  llvm::StringRef getDescription() const override { return entry_.summary; }
  void runOnOperation() override {
    if (failed(entry_.run(getOperation()))) signalPassFailure();
  }

private:
  latile::PassEntry entry_;
};

}  // namespace

int main(int argc, char** argv) {
  mlir::DialectRegistry registry;
  latile::tile::register_dialects(registry);
  mlir::registerCanonicalizerPass();
  mlir::registerCSEPass();
  for (const latile::PassEntry& entry : latile::passes())
    mlir::registerPass([&entry]() -> std::unique_ptr<mlir::Pass> { return std::make_unique<ListedPass>(entry); });
  return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, "latile-opt: passes on tile IR\n", registry));
}
