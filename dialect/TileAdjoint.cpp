// Reverse mode of each op of the dialect.
#include "dialect/Adjoint.h"
#include "dialect/AdjointBuilder.h"
#include "mlir/IR/IRMapping.h"
#include <numbers>

#include "dialect/TileInterfaces.cpp.inc"

using namespace mlir;
using namespace latile::tile;

namespace {

using Operands = SmallVector<Value>;
constexpr double ln2 = std::numbers::ln2, log2e = std::numbers::log2e;

}  // namespace

// Sources: their operands are no tiles.
Operands ConstantOp::buildAdjoint(OpBuilder&, Value) { return {}; }
Operands SplatOp::buildAdjoint(OpBuilder&, Value) { return {Value()}; }
Operands ValidOp::buildAdjoint(OpBuilder&, Value) { return Operands((*this)->getNumOperands()); }
Operands CountOp::buildAdjoint(OpBuilder&, Value) { return Operands((*this)->getNumOperands()); }
Operands IndexOp::buildAdjoint(OpBuilder&, Value) { return Operands((*this)->getNumOperands()); }
Operands NeutralOp::buildAdjoint(OpBuilder& builder, Value upstream) {
  Operands gradients((*this)->getNumOperands());
  gradients[0] = NeutralOp::create(builder, getLoc(), upstream.getType(), upstream, getRows(),
                                   builder.getF64FloatAttr(0), getRateAttr());
  return gradients;
}

// Shape.
Operands CastOp::buildAdjoint(OpBuilder&, Value upstream) { return {upstream}; }
Operands BroadcastOp::buildAdjoint(OpBuilder& builder, Value upstream) {
  AdjointBuilder b(builder, getLoc());
  for (int axis : {0, 1})
    if (getX().getType().getDimSize(axis) == 1) upstream = b.sum(upstream, axis);
  return {upstream};
}
Operands TransposeOp::buildAdjoint(OpBuilder& builder, Value upstream) {
  return {AdjointBuilder(builder, getLoc()).transpose(upstream)};
}
Operands RowOp::buildAdjoint(OpBuilder& builder, Value upstream) {
  AdjointBuilder b(builder, getLoc());
  Operands gradients((*this)->getNumOperands());
  gradients[0] = PlaceRowOp::create(builder, getLoc(), b.f32_like(getX()), getPick(), upstream, getRows(), getAt());
  return gradients;
}
Operands PlaceRowOp::buildAdjoint(OpBuilder& builder, Value upstream) {
  Operands gradients((*this)->getNumOperands());
  gradients[0] = RowOp::create(builder, getLoc(), getX().getType(), getPick(), upstream, getRows(), getAt());
  return gradients;
}
Operands PrevOp::buildAdjoint(OpBuilder& builder, Value upstream) {
  AdjointBuilder b(builder, getLoc());
  Value moved = PrevOp::create(builder, getLoc(), upstream.getType(), upstream, b.constant(0, getFrom().getType()),
                               !getReverse());
  return {moved, b.row(upstream, getReverse() ? b.type(upstream).getDimSize(0) - 1 : 0)};
}
Operands RepeatRowsOp::buildAdjoint(OpBuilder& builder, Value upstream) {
  AdjointBuilder b(builder, getLoc());
  return {SumRowsOp::create(builder, getLoc(), b.f32_like(getX()), upstream, getN())};
}
Operands SumRowsOp::buildAdjoint(OpBuilder& builder, Value upstream) {
  return {RepeatRowsOp::create(builder, getLoc(), getX().getType(), upstream, getN())};
}
Operands MaskOp::buildAdjoint(OpBuilder& builder, Value upstream) {
  return {MaskOp::create(builder, getLoc(), upstream.getType(), getKind(), upstream, getStair())};
}
Operands DiagonalOp::buildAdjoint(OpBuilder& builder, Value upstream) {
  AdjointBuilder b(builder, getLoc());
  Value ones = b.constant(1, getX().getType());
  Value diagonal = DiagonalOp::create(builder, getLoc(), upstream.getType(), ones);
  return {b.sum(b.mul(upstream, diagonal), 1)};
}
Operands LookupOp::buildAdjoint(OpBuilder& builder, Value upstream) {
  Operands gradients{
      LookupOp::create(builder, getLoc(), getX().getType(), getTable(), upstream, getFrom(), !getTransposed())};
  if (getFrom()) gradients.push_back(Value());
  return gradients;
}

// Arithmetic.
Operands SigmoidOp::buildAdjoint(OpBuilder& builder, Value upstream) {
  AdjointBuilder b(builder, getLoc());
  Value y = getTile();
  return {b.mul(upstream, b.mul(y, b.sub(b.constant(1, b.type(y)), y)))};
}
Operands SoftplusOp::buildAdjoint(OpBuilder& builder, Value upstream) {
  AdjointBuilder b(builder, getLoc());
  return {b.mul(upstream, SigmoidOp::create(builder, getLoc(), getX().getType(), getX()))};
}
Operands ReduceOp::buildAdjoint(OpBuilder& builder, Value upstream) {
  AdjointBuilder b(builder, getLoc());
  auto type = getX().getType();
  int axis = static_cast<int>(getAxis());
  switch (getKind()) {
  case ReduceKind::Sum: return {b.spread(upstream, type)};
  case ReduceKind::Mean: return {b.spread(b.scale(upstream, 1.0 / type.getDimSize(axis)), type)};
  case ReduceKind::Max: break;
  }
  Value attains = b.equal(getX(), b.spread(getTile(), type));
  Value share = b.div(upstream, b.sum(attains, axis));
  return {b.mul(attains, b.spread(share, type))};
}
Operands DotOp::buildAdjoint(OpBuilder& builder, Value upstream) {
  AdjointBuilder b(builder, getLoc());
  Value narrow = b.cast(upstream, getA().getType().getElementType());
  return {b.dot(narrow, b.transpose(getB()), getPrecise()), b.dot(b.transpose(getA()), narrow, getPrecise())};
}
Operands KronRowsOp::buildAdjoint(OpBuilder& builder, Value upstream) {
  if (Value y = getY()) {
    // Sums over one factor's entries as products with 0 and 1: what repeats the other factor, transposed.
    AdjointBuilder b(builder, getLoc());
    auto type = b.type(upstream);
    int64_t rows = type.getDimSize(0), K = getX().getType().getDimSize(1), L = getY().getType().getDimSize(1);
    auto tile = [&](int64_t r, int64_t c) { return RankedTensorType::get({r, c}, type.getElementType()); };
    auto ones = [&](int64_t r, int64_t c) { return b.constant(1, tile(r, c)); };
    auto unit = [&](int64_t n) { return DiagonalOp::create(builder, getLoc(), tile(n, n), ones(n, 1)); };
    auto kron = [&](Value x, Value with, int64_t r) {
      return KronRowsOp::create(builder, getLoc(), tile(r, K * L), x, with);
    };
    auto sums = [&](Value x, Value repeat, int64_t n) {
      Value flipped = TransposeOp::create(builder, getLoc(), tile(K * L, n), repeat);
      return Value(DotOp::create(builder, getLoc(), tile(rows, n), x, flipped, /*precise=*/true));
    };
    return {sums(b.mul(upstream, kron(ones(rows, K), y, rows)), kron(unit(K), ones(K, L), K), K),
            sums(b.mul(upstream, kron(getX(), ones(rows, L), rows)), kron(ones(L, K), unit(L), L), L)};
  }
  return {ContractKronOp::create(builder, getLoc(), getX().getType(), upstream, getX())};
}
Operands ContractKronOp::buildAdjoint(OpBuilder& builder, Value upstream) {
  // out = (M + Mᵀ) x for each row: dM is g ⊗ x + x ⊗ g, which kron_rows gives as (g + x)⊗² − g⊗² − x⊗².
  AdjointBuilder b(builder, getLoc());
  auto type = getM().getType();
  auto square = [&](Value v) -> Value { return KronRowsOp::create(builder, getLoc(), type, v, Value()); };
  Value dm = b.sub(b.sub(square(b.add(upstream, getX())), square(upstream)), square(getX()));
  return {dm, ContractKronOp::create(builder, getLoc(), upstream.getType(), getM(), upstream)};
}

// Recurrences over rows.
Operands CumsumOp::buildAdjoint(OpBuilder& builder, Value upstream) {
  return {CumsumOp::create(builder, getLoc(), upstream.getType(), upstream, getExclusive(), !getReverse())};
}
Operands CummaxOp::buildAdjoint(OpBuilder&, Value) { return {Value(), Value()}; }
Operands LogcumsumexpOp::buildAdjoint(OpBuilder& builder, Value upstream) {
  AdjointBuilder b(builder, getLoc());
  auto type = b.type(upstream);
  // Where nothing has been summed yet Z is −∞ and so are s and z: the clamp makes their weights 0 and not NaN.
  Value least = b.constant(-3e38, type);
  Value Z = arith::MaximumFOp::create(builder, getLoc(), getTile(), least);
  Value next = PrevOp::create(builder, getLoc(), type, Z, b.row(Z, type.getDimSize(0) - 1), /*reverse=*/true);
  Value gates = b.scale(b.sub(Z, next), log2e);
  Value y = AffineScanOp::create(builder, getLoc(), type, gates, upstream, b.constant(0, getZ().getType()),
                                 /*reverse=*/true);
  Value ds = b.mul(b.exp(b.sub(getS(), Z)), y);
  Value dz = b.mul(b.exp(b.sub(getZ(), b.row(Z, 0))), b.row(y, 0));
  return {ds, dz};
}
Operands AffineScanOp::buildAdjoint(OpBuilder& builder, Value upstream) {
  AdjointBuilder b(builder, getLoc());
  auto type = b.type(upstream);
  bool reverse = getReverse();
  int64_t last = type.getDimSize(0) - 1;
  Value zero = b.constant(0, getH().getType());
  // dx runs against y with the gate of the row it comes from.
  Value gates = PrevOp::create(builder, getLoc(), type, getG(), zero, !reverse);
  Value dx = AffineScanOp::create(builder, getLoc(), type, gates, upstream, zero, !reverse);
  Value before = PrevOp::create(builder, getLoc(), type, getTile(), getH(), reverse);
  Value through = b.mul(dx, b.exp2(getG()));
  Value dg = b.scale(b.mul(through, before), ln2);
  return {dg, dx, b.row(through, reverse ? last : 0)};
}
Operands DecayOp::buildAdjoint(OpBuilder& builder, Value upstream) {
  AdjointBuilder b(builder, getLoc());
  Value x = b.scale(b.mul(upstream, getTile()), ln2);
  return {b.sum(x, 1), b.neg(b.transpose(b.sum(x, 0)))};
}

// The three decayed products are the partial derivatives of one trilinear form.
namespace {

struct Decayed {
  AdjointBuilder& b;
  Value gr, gc;
  MaskKind kind;
  uint64_t stair;
  TypeAttr operand;
  FloatAttr bound;

  Value scores(Value q, Value k) {
    auto type = b.f32(b.type(q).getDimSize(0), b.type(k).getDimSize(0));
    return DecayedScoresOp::create(b.builder(), b.loc(), type, q, k, gr, gc, kind, stair, operand, bound);
  }
  Value apply(Value a, Value x, bool transposed) {
    auto type = b.f32(b.type(a).getDimSize(transposed ? 1 : 0), b.type(x).getDimSize(1));
    return DecayedApplyOp::create(b.builder(), b.loc(), type, a, x, gr, gc, kind, stair, transposed, operand, bound);
  }
};

}  // namespace

Operands DecayedScoresOp::buildAdjoint(OpBuilder& builder, Value upstream) {
  AdjointBuilder b(builder, getLoc());
  Decayed form{b, getGr(), getGc(), getKind(), getStair(), getOperandAttr(), getBoundAttr()};
  Value dq = form.apply(upstream, getK(), false), dk = form.apply(upstream, getQ(), true);
  return {dq, dk, b.scale(b.mul(getQ(), dq), ln2), b.scale(b.mul(getK(), dk), -ln2)};
}
Operands DecayedApplyOp::buildAdjoint(OpBuilder& builder, Value upstream) {
  AdjointBuilder b(builder, getLoc());
  Decayed form{b, getGr(), getGc(), getKind(), getStair(), getOperandAttr(), getBoundAttr()};
  Value dx = form.apply(getA(), upstream, !getTransposed());
  if (getTransposed()) {
    Value da = form.scores(getX(), upstream);
    return {da, dx, b.scale(b.mul(getX(), dx), ln2), b.scale(b.mul(upstream, getTile()), -ln2)};
  }
  Value da = form.scores(upstream, getX());
  return {da, dx, b.scale(b.mul(upstream, getTile()), ln2), b.scale(b.mul(getX(), dx), -ln2)};
}

// Triangular and iterative solves.
Operands InverseUnitLowerOp::buildAdjoint(OpBuilder& builder, Value upstream) {
  AdjointBuilder b(builder, getLoc());
  Value transposed = b.transpose(getTile());
  return {b.neg(b.strict(b.dot(b.dot(transposed, upstream), transposed)))};
}
Operands SolveUnitLowerOp::buildAdjoint(OpBuilder& builder, Value upstream) {
  AdjointBuilder b(builder, getLoc());
  Value inverse = InverseUnitLowerOp::create(builder, getLoc(), getA().getType(), getA());
  Value db = b.dot(b.transpose(inverse), upstream);
  return {b.neg(b.strict(b.dot(db, b.transpose(getTile())))), db};
}
Operands SolveOp::buildAdjoint(OpBuilder& builder, Value upstream) {
  // The map is symmetric, so the gradient solves the same system.
  auto adjoint = SolveOp::create(builder, getLoc(), upstream.getType(), upstream, getStepsAttr());
  IRMapping mapping;
  getMap().cloneInto(&adjoint.getMap(), mapping);
  return {adjoint.getTile()};
}
LogicalResult SolveOp::buildCapturedAdjoints(OpBuilder& builder, ArrayRef<Value> operands, Gradients& gradients) {
  AdjointBuilder b(builder, getLoc());
  Block& map = getMap().front();
  IRMapping mapping;
  mapping.map(map.getArgument(0), getTile());
  SmallVector<Operation*> ops;
  Gradients inside;
  for (Operation& op : map.without_terminator()) ops.push_back(builder.clone(op, mapping));
  Value image = mapping.lookupOrDefault(cast<YieldOp>(map.getTerminator()).getValues()[0]);
  inside[image] = b.neg(operands[0]);
  if (failed(build_reverse(builder, ops, inside))) return failure();
  llvm::DenseSet<Value> own;
  for (Operation* op : ops) own.insert(op->result_begin(), op->result_end());
  own.insert(getTile());
  // In the order in which the ops read them, so that the same IR always comes out.
  llvm::SetVector<Value> captured;
  for (Operation* op : ops)
    for (Value operand : op->getOperands())
      if (!own.contains(operand)) captured.insert(operand);
  for (Value value : captured) accumulate(builder, getLoc(), gradients, value, inside.lookup(value));
  return success();
}
Operands CustomOp::buildAdjoint(OpBuilder& builder, Value upstream) {
  Block& adjoint = getAdjoint().front();
  IRMapping mapping;
  mapping.map(adjoint.getArgument(0), getX());
  mapping.map(adjoint.getArgument(1), getTile());
  mapping.map(adjoint.getArgument(2), upstream);
  for (Operation& op : adjoint.without_terminator()) builder.clone(op, mapping);
  return {mapping.lookupOrDefault(cast<YieldOp>(adjoint.getTerminator()).getValues()[0])};
}
