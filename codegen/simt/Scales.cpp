#include "codegen/simt/Scales.h"
#include "dialect/Tile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace latile::simt {

using namespace tile;

namespace {

bool from_memory(Value v) { return v.getDefiningOp<LoadOp>() || v.getDefiningOp<LoadRowsOp>(); }

/// An operand as (factor for each term) × (tile from memory).
struct Scaled {
  Value factor;         ///< [T,1] or [1,T]
  Value tile;           ///< as loaded
  bool turned = false;  ///< the operand is the tile transposed
};

/// `axis`: the operand's axis of terms, 0 or 1. All that leads to the product must have no other use.
std::optional<Scaled> scaled(Value operand, int axis) {
  Type element = cast<RankedTensorType>(operand.getType()).getElementType();
  Scaled out;
  Value v = operand;
  auto strip = [&] {
    while (true) {
      Value x;
      if (auto c = v.getDefiningOp<CastOp>()) x = c.getX();
      if (auto t = v.getDefiningOp<TransposeOp>()) {
        x = t.getX();
        axis = 1 - axis;
        out.turned = !out.turned;
      }
      if (!x) return;
      if (!v.hasOneUse() && !from_memory(x)) return;
      v = x;
    }
  };
  strip();
  auto product = v.getDefiningOp<arith::MulFOp>();
  if (!product || !v.hasOneUse()) return std::nullopt;
  for (bool swap : {false, true}) {
    auto broadcast = product->getOperand(swap).getDefiningOp<BroadcastOp>();
    if (!broadcast) continue;
    auto from = broadcast.getX().getType(), to = broadcast.getTile().getType();
    if (from.getDimSize(axis) != to.getDimSize(axis) || from.getDimSize(axis) == 1 || from.getDimSize(1 - axis) != 1)
      continue;
    out.factor = broadcast.getX();
    v = product->getOperand(!swap);
    strip();
    if (!from_memory(v) || cast<RankedTensorType>(v.getType()).getElementType() != element) return std::nullopt;
    out.tile = v;
    return out;
  }
  return std::nullopt;
}

Value transposed(OpBuilder& builder, Value v) {
  auto type = cast<RankedTensorType>(v.getType());
  return TransposeOp::create(builder, v.getLoc(),
                             RankedTensorType::get({type.getDimSize(1), type.getDimSize(0)}, type.getElementType()), v);
}

void move(DotOp dot) {
  for (bool right : {true, false}) {
    Value operand = right ? dot.getB() : dot.getA(), other = right ? dot.getA() : dot.getB();
    auto found = scaled(operand, right ? 0 : 1);
    if (!found) continue;
    // What was computed is float32 before it is rounded for the product.
    Value computed = other;
    if (auto c = other.getDefiningOp<CastOp>()) computed = c.getX();
    auto type = cast<RankedTensorType>(computed.getType());
    if (!type.getElementType().isF32() || from_memory(computed) || computed.getDefiningOp<TransposeOp>()) continue;
    OpBuilder builder(dot);
    Value factor = found->factor;
    bool column = cast<RankedTensorType>(factor.getType()).getDimSize(1) == 1;
    if (column == right) factor = transposed(builder, factor);  // [1,T] beside A, [T,1] beside B
    Value wide = BroadcastOp::create(builder, dot.getLoc(), type, factor);
    Value product = arith::MulFOp::create(builder, dot.getLoc(), wide, computed);
    if (product.getType() != other.getType()) product = CastOp::create(builder, dot.getLoc(), other.getType(), product);
    Value tile = found->turned ? transposed(builder, found->tile) : found->tile;
    dot->setOperand(right ? 1 : 0, tile);
    dot->setOperand(right ? 0 : 1, product);
    return;
  }
}

}  // namespace

LogicalResult move_scales(ModuleOp module) {
  module.walk([](KernelOp kernel) { kernel.walk([](DotOp dot) { move(dot); }); });
  return success();
}

}  // namespace latile::simt
