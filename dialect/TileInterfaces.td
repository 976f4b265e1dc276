// How an op is differentiated and how a carry depends on it.
#ifndef LATILE_TILE_INTERFACES
#define LATILE_TILE_INTERFACES
include "mlir/IR/OpBase.td"

def Tile_AdjointInterface : OpInterface<"AdjointInterface"> {
  let cppNamespace = "::latile::tile";
  let description = [{
    Reverse mode of one op: given the gradient of its result, builds the gradient of each of its operands. An
    operand that has no gradient (a mask's rows, a constant) gets a null value.
  }];
  let methods = [
    InterfaceMethod<"Gradients of the operands, in order; null where there is none.",
      "::llvm::SmallVector<::mlir::Value>", "buildAdjoint",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::Value":$upstream)>
  ];
}
#endif
