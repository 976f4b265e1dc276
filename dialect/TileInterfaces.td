// How an op is differentiated.
#ifndef LATILE_TILE_INTERFACES
#define LATILE_TILE_INTERFACES
include "mlir/IR/OpBase.td"

def Tile_AdjointInterface : OpInterface<"AdjointInterface"> {
  let cppNamespace = "::latile::tile";
  let description = [{
    Reverse mode of one op with one result. Gradients are float32 tiles of the shape of the value they belong to,
    whatever its type: nothing is rounded on the way back but operands of products.
  }];
  let methods = [
    InterfaceMethod<[{
      Builds the gradients of the operands, in order, from that of the result. Null: the operand has none, because
      it is no tile (rows, a scalar) or passes none on (a running maximum).
    }], "::llvm::SmallVector<::mlir::Value>", "buildAdjoint",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::Value":$upstream)>,
    InterfaceMethod<[{
      Builds the gradients of values that the op's regions capture, added to those in `gradients`. `operands` are what
      buildAdjoint gave. Ops without regions have nothing to do. Fails where an op inside has no adjoint (reported).
    }], "::llvm::LogicalResult", "buildCapturedAdjoints",
      (ins "::mlir::OpBuilder &":$builder, "::llvm::ArrayRef<::mlir::Value>":$operands,
           "::llvm::DenseMap<::mlir::Value, ::mlir::Value> &":$gradients),
      /*methodBody=*/"", /*defaultImplementation=*/"(void)builder, (void)operands, (void)gradients; return ::mlir::success();">
  ];
}
#endif
