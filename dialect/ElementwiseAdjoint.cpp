// Reverse mode of the arith and math ops that bodies use.
#include "dialect/AdjointBuilder.h"
#include <numbers>

using namespace mlir;

namespace latile::tile {
namespace {

/// The interface of one op, from a function of (builder, op, upstream).
template <typename Op, auto build> struct Model : AdjointInterface::ExternalModel<Model<Op, build>, Op> {
  SmallVector<Value> buildAdjoint(Operation* op, OpBuilder& builder, Value upstream) const {
    AdjointBuilder b(builder, op->getLoc());
    return build(b, cast<Op>(op), upstream);
  }
};

using Operands = SmallVector<Value>;
using B = AdjointBuilder&;

Operands add(B, arith::AddFOp, Value g) { return {g, g}; }
Operands sub(B b, arith::SubFOp, Value g) { return {g, b.neg(g)}; }
Operands mul(B b, arith::MulFOp op, Value g) { return {b.mul(g, op.getRhs()), b.mul(g, op.getLhs())}; }
Operands div(B b, arith::DivFOp op, Value g) {
  Value da = b.div(g, op.getRhs());
  return {da, b.neg(b.mul(da, op.getResult()))};
}
Operands neg(B b, arith::NegFOp, Value g) { return {b.neg(g)}; }
/// The gradient goes to the operand that is the result; to the first one of two equal ones.
Operands max(B b, arith::MaximumFOp op, Value g) {
  Value second = b.mul(g, b.greater(op.getRhs(), op.getLhs()));
  return {b.sub(g, second), second};
}
Operands min(B b, arith::MinimumFOp op, Value g) {
  Value second = b.mul(g, b.greater(op.getLhs(), op.getRhs()));
  return {b.sub(g, second), second};
}
Operands select(B b, arith::SelectOp op, Value g) {
  auto zero = b.constant(0, b.type(g));
  auto where = [&](Value yes, Value no) -> Value {
    return arith::SelectOp::create(b.builder(), b.loc(), op.getCondition(), yes, no);
  };
  return {Value(), where(g, zero), where(zero, g)};
}
Operands exp(B b, math::ExpOp op, Value g) { return {b.mul(g, op.getResult())}; }
Operands exp2(B b, math::Exp2Op op, Value g) { return {b.scale(b.mul(g, op.getResult()), std::numbers::ln2)}; }
Operands log(B b, math::LogOp op, Value g) { return {b.div(g, op.getOperand())}; }
Operands log2(B b, math::Log2Op op, Value g) { return {b.scale(b.div(g, op.getOperand()), std::numbers::log2e)}; }
Operands sqrt(B b, math::SqrtOp op, Value g) { return {b.scale(b.div(g, op.getResult()), 0.5)}; }
Operands rsqrt(B b, math::RsqrtOp op, Value g) {
  Value y = op.getResult();
  return {b.scale(b.mul(g, b.mul(y, b.mul(y, y))), -0.5)};
}
Operands tanh(B b, math::TanhOp op, Value g) {
  Value y = op.getResult();
  return {b.mul(g, b.sub(b.constant(1, b.type(y)), b.mul(y, y)))};
}
Operands floor(B, math::FloorOp, Value) { return {Value()}; }

template <typename Op, auto build> void attach(MLIRContext* context) {
  Op::template attachInterface<Model<Op, build>>(*context);
}

}  // namespace

void attach_elementwise_adjoints(MLIRContext* context) {
  attach<arith::AddFOp, add>(context), attach<arith::SubFOp, sub>(context), attach<arith::MulFOp, mul>(context);
  attach<arith::DivFOp, div>(context), attach<arith::NegFOp, neg>(context), attach<arith::MaximumFOp, max>(context);
  attach<arith::MinimumFOp, min>(context), attach<arith::SelectOp, select>(context);
  attach<math::ExpOp, exp>(context), attach<math::Exp2Op, exp2>(context), attach<math::LogOp, log>(context);
  attach<math::Log2Op, log2>(context), attach<math::SqrtOp, sqrt>(context), attach<math::RsqrtOp, rsqrt>(context);
  attach<math::TanhOp, tanh>(context), attach<math::FloorOp, floor>(context);
}

}  // namespace latile::tile
