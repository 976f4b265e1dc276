#include "compiler/passes/ReassociateDots.h"
#include "dialect/Tile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace latile::tile;

namespace latile {
namespace {

class Distributor {
public:
  Distributor(ScanOp scan, DotOp dot) : builder_(dot), loc_(dot.getLoc()), precise_(dot.getPrecise()) {
    auto arguments = scan.getBody().getArguments().drop_front(scan.getInputs().size());
    carries_.insert(arguments.begin(), arguments.end());
  }

  /// `e` is a sum, scaling or low-rank update of a carry, not the carry itself.
  bool applies(Value e) { return !is_carry(e) && reads_carry(e); }

  Value dot(Value x, Value e) {
    Operation* op = e.getDefiningOp();
    if (op && !is_carry(e)) {
      if (auto product = dyn_cast<DotOp>(op); product && low_rank(product)) return low_rank_dot(x, product);
      if (reads_carry(e)) {
        if (isa<arith::AddFOp, arith::SubFOp>(op)) return sum(x, op);
        if (auto product = dyn_cast<arith::MulFOp>(op))
          if (Value scaled = scaling(x, product)) return scaled;
      } else if (auto row = repeated(e); row && type(row).getDimSize(0) == 1) {
        return times(total(x), row, type(e).getDimSize(1));
      }
    }
    return plain(x, e);
  }

private:
  static RankedTensorType type(Value value) { return cast<RankedTensorType>(value.getType()); }
  RankedTensorType f32(int64_t rows, int64_t columns) {
    return RankedTensorType::get({rows, columns}, builder_.getF32Type());
  }

  bool is_carry(Value e) {
    if (auto transpose = e.getDefiningOp<TransposeOp>()) return carries_.contains(transpose.getX());
    return carries_.contains(e);
  }

  /// A carry is among the terms of `e`.
  bool reads_carry(Value e) {
    if (is_carry(e)) return true;
    Operation* op = e.getDefiningOp();
    if (!op || !isa<arith::AddFOp, arith::SubFOp, arith::MulFOp>(op)) return false;
    return reads_carry(op->getOperand(0)) || reads_carry(op->getOperand(1));
  }

  static Value repeated(Value value) {
    auto broadcast = value.getDefiningOp<BroadcastOp>();
    return broadcast ? Value(broadcast.getX()) : Value();
  }

  static bool low_rank(DotOp product) {
    auto a = product.getA().getType();
    return a.getElementType().isF32() &&
           a.getDimSize(1) < std::min(a.getDimSize(0), product.getB().getType().getDimSize(1));
  }

  Value plain(Value x, Value e) {
    return DotOp::create(builder_, loc_, f32(type(x).getDimSize(0), type(e).getDimSize(1)), x, e, precise_);
  }
  Value spread(Value x, RankedTensorType to) {
    return x.getType() == to ? x : Value(BroadcastOp::create(builder_, loc_, to, x));
  }
  Value multiply(Value a, Value b) { return arith::MulFOp::create(builder_, loc_, a, b); }
  /// Sum of each row of x.
  Value total(Value x) {
    return ReduceOp::create(builder_, loc_, f32(type(x).getDimSize(0), 1), ReduceKind::Sum, 1, x);
  }
  /// column [R, 1] times row [1, N].
  Value times(Value column, Value row, int64_t columns) {
    auto to = f32(type(column).getDimSize(0), columns);
    return multiply(spread(column, to), spread(row, to));
  }

  Value low_rank_dot(Value x, DotOp product) {
    Value weights = plain(x, product.getA());
    Value u = product.getB();
    return type(u).getDimSize(0) == 1 ? times(weights, u, type(u).getDimSize(1)) : plain(weights, u);
  }

  Value sum(Value x, Operation* op) {
    Value a = dot(x, op->getOperand(0)), b = dot(x, op->getOperand(1));
    if (isa<arith::AddFOp>(op)) return arith::AddFOp::create(builder_, loc_, a, b);
    return arith::SubFOp::create(builder_, loc_, a, b);
  }

  Value scaling(Value x, arith::MulFOp product) {
    for (int side : {0, 1}) {
      Value factor = repeated(product->getOperand(side)), rest = product->getOperand(1 - side);
      if (!factor || !reads_carry(rest)) continue;
      auto shape = type(factor).getShape();
      if (shape[0] == 1) {
        Value inner = dot(x, rest);
        return multiply(spread(factor, type(inner)), inner);
      }
      auto turned = f32(1, shape[0]);
      Value row = TransposeOp::create(builder_, loc_, turned, factor);
      return dot(multiply(x, spread(row, type(x))), rest);
    }
    return nullptr;
  }

  OpBuilder builder_;
  Location loc_;
  bool precise_;
  llvm::DenseSet<Value> carries_;
};

}  // namespace

LogicalResult reassociate_dots(ModuleOp module) {
  module.walk([](ScanOp scan) {
    if (scan.getChunk() != 1) return;
    SmallVector<DotOp> dots(scan.getBody().front().getOps<DotOp>());
    for (DotOp dot : dots) {
      Distributor distributor(scan, dot);
      if (!dot.getA().getType().getElementType().isF32() || !distributor.applies(dot.getB())) continue;
      dot.getTile().replaceAllUsesWith(distributor.dot(dot.getA(), dot.getB()));
      dot.erase();
    }
  });
  return success();
}

}  // namespace latile
