// Decayed products of tiles with one row or one column, as the elementwise work that they are.
#include "codegen/host/Schedule.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

namespace latile::host {

using namespace tile;
using mlir::Value;

namespace {

struct Writer {
  mlir::OpBuilder b;
  mlir::Location loc;
  explicit Writer(mlir::Operation* op) : b(op), loc(op->getLoc()) {}

  mlir::RankedTensorType type(std::int64_t rows, std::int64_t cols) {
    return mlir::RankedTensorType::get({rows, cols}, b.getF32Type());
  }
  Value broadcast(Value x, mlir::RankedTensorType to) {
    return x.getType() == to ? x : BroadcastOp::create(b, loc, to, x).getTile();
  }
  Value transpose(Value x) { return TransposeOp::create(b, loc, type(extents(x)[1], extents(x)[0]), x); }
  Value mul(Value x, Value y) { return mlir::arith::MulFOp::create(b, loc, x, y); }
  Value zeros(mlir::RankedTensorType to) {
    return broadcast(ConstantOp::create(b, loc, type(1, 1), b.getF64FloatAttr(0)), to);
  }
  Value decayed(Value x, Value gr, Value gc) {
    return mul(x, mlir::math::Exp2Op::create(b, loc, mlir::arith::SubFOp::create(b, loc, gr, gc).getResult()));
  }
};

/// What stands for `op`, or null when it has an extent for vectors.
Value replacement(DecayedScoresOp op) {
  Writer w(op);
  auto rows = extents(op.getTile())[0], cols = extents(op.getTile())[1], width = extents(op.getQ())[1];
  auto result = w.type(rows, cols);
  if (width == 1) {
    Value decay = DecayOp::create(w.b, w.loc, result, op.getGr(), op.getGc(), op.getKind(), op.getStair());
    return w.mul(decay, DotOp::create(w.b, w.loc, result, op.getQ(), w.transpose(op.getK()), /*precise=*/false));
  }
  if (rows != 1 || cols != 1) return nullptr;
  if (op.getKind() == MaskKind::Strict) return w.zeros(result);
  return ReduceOp::create(w.b, w.loc, result, ReduceKind::Sum, 1,
                          w.mul(op.getQ(), w.decayed(op.getK(), op.getGr(), op.getGc())));
}

Value replacement(DecayedApplyOp op) {
  Writer w(op);
  auto rows = extents(op.getA())[0], cols = extents(op.getA())[1], width = extents(op.getX())[1];
  auto result = w.type(extents(op.getTile())[0], width);
  if (width == 1) {
    Value decay = DecayOp::create(w.b, w.loc, w.type(rows, cols), op.getGr(), op.getGc(), op.getKind(), op.getStair());
    Value factor = w.mul(op.getA(), decay);
    return DotOp::create(w.b, w.loc, result, op.getTransposed() ? w.transpose(factor) : factor, op.getX(), false);
  }
  if (rows != 1 || cols != 1) return nullptr;
  if (op.getKind() == MaskKind::Strict) return w.zeros(result);
  return w.mul(w.broadcast(op.getA(), result), w.decayed(op.getX(), op.getGr(), op.getGc()));
}

}  // namespace

void rewrite_narrow(KernelOp kernel) {
  // Nothing lies below the diagonal of one element: the solution is the right side.
  kernel.walk([](SolveUnitLowerOp solve) {
    if (extents(solve.getA())[0] == 1) solve.getTile().replaceAllUsesWith(solve.getB());
  });
  llvm::SmallVector<mlir::Operation*> found;
  kernel.walk([&](mlir::Operation* op) {
    if (mlir::isa<DecayedScoresOp, DecayedApplyOp>(op)) found.push_back(op);
  });
  for (mlir::Operation* op : found) {
    auto scores = mlir::dyn_cast<DecayedScoresOp>(op);
    Value made = scores ? replacement(scores) : replacement(mlir::cast<DecayedApplyOp>(op));
    if (!made) continue;
    op->getResult(0).replaceAllUsesWith(made);
    op->erase();
  }
}

}  // namespace latile::host
