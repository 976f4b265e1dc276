// Short names for the ops that adjoints are made of.
#pragma once
#include "dialect/Tile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

namespace latile::tile {

class AdjointBuilder {
public:
  AdjointBuilder(mlir::OpBuilder& builder, mlir::Location loc) : b_(builder), loc_(loc) {}

  using Value = mlir::Value;
  static mlir::RankedTensorType type(Value x) { return mlir::cast<mlir::RankedTensorType>(x.getType()); }
  mlir::RankedTensorType f32(int64_t rows, int64_t columns) {
    return mlir::RankedTensorType::get({rows, columns}, b_.getF32Type());
  }
  mlir::RankedTensorType f32_like(Value x) { return f32(type(x).getDimSize(0), type(x).getDimSize(1)); }

  Value add(Value x, Value y) { return mlir::arith::AddFOp::create(b_, loc_, x, y); }
  Value sub(Value x, Value y) { return mlir::arith::SubFOp::create(b_, loc_, x, y); }
  Value mul(Value x, Value y) { return mlir::arith::MulFOp::create(b_, loc_, x, y); }
  Value div(Value x, Value y) { return mlir::arith::DivFOp::create(b_, loc_, x, y); }
  Value neg(Value x) { return mlir::arith::NegFOp::create(b_, loc_, x); }
  Value exp2(Value x) { return mlir::math::Exp2Op::create(b_, loc_, x); }
  Value exp(Value x) { return mlir::math::ExpOp::create(b_, loc_, x); }

  Value cast(Value x, mlir::Type element) {
    if (type(x).getElementType() == element) return x;
    return CastOp::create(b_, loc_, mlir::RankedTensorType::get(type(x).getShape(), element), x);
  }
  Value wide(Value x) { return cast(x, b_.getF32Type()); }
  Value spread(Value x, mlir::RankedTensorType to) {
    return x.getType() == to ? x : Value(BroadcastOp::create(b_, loc_, to, x));
  }
  Value constant(double value, mlir::RankedTensorType to) {
    return spread(ConstantOp::create(b_, loc_, f32(1, 1), b_.getF64FloatAttr(value)), to);
  }
  Value scale(Value x, double factor) { return mul(x, constant(factor, type(x))); }
  Value transpose(Value x) {
    auto from = type(x);
    auto to = mlir::RankedTensorType::get({from.getDimSize(1), from.getDimSize(0)}, from.getElementType());
    return TransposeOp::create(b_, loc_, to, x);
  }
  /// axis 1: sums of rows, a column; axis 0: sums of columns, a row.
  Value sum(Value x, int axis) {
    auto to = axis == 1 ? f32(type(x).getDimSize(0), 1) : f32(1, type(x).getDimSize(1));
    return x.getType() == to ? x : Value(ReduceOp::create(b_, loc_, to, ReduceKind::Sum, axis, x));
  }
  Value dot(Value x, Value y, bool precise = true) {
    return DotOp::create(b_, loc_, f32(type(x).getDimSize(0), type(y).getDimSize(1)), x, y, precise);
  }
  Value strict(Value x) { return MaskOp::create(b_, loc_, x.getType(), MaskKind::Strict, x, 1); }
  Value row(Value x, int64_t at) {
    return RowOp::create(b_, loc_, f32(1, type(x).getDimSize(1)), PickKind::At, x, Value(), at);
  }
  /// 1 where x and y are equal, 0 elsewhere.
  Value equal(Value x, Value y) { return compare(mlir::arith::CmpFPredicate::OEQ, x, y); }
  Value greater(Value x, Value y) { return compare(mlir::arith::CmpFPredicate::OGT, x, y); }

  mlir::OpBuilder& builder() { return b_; }
  mlir::Location loc() const { return loc_; }

private:
  Value compare(mlir::arith::CmpFPredicate predicate, Value x, Value y) {
    Value holds = mlir::arith::CmpFOp::create(b_, loc_, predicate, x, y);
    return mlir::arith::SelectOp::create(b_, loc_, holds, constant(1, type(x)), constant(0, type(x)));
  }

  mlir::OpBuilder& b_;
  mlir::Location loc_;
};

/// Gives ops of arith and math their AdjointInterface; both dialects are loaded.
void attach_elementwise_adjoints(mlir::MLIRContext*);

}  // namespace latile::tile
