// Elementwise work in registers, and values that depend on the place alone.
#include "codegen/simt/KernelEmitter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include <cmath>
#include <limits>

namespace latile::simt {

using namespace tile;

/// Whether a mask keeps a place; null: it keeps all.
Ir KernelEmitter::kept(MaskKind kind, std::int64_t stair, const PlaceIr& at) {
  if (kind == MaskKind::All) return nullptr;
  Ir column = t_.div(at.column, stair);
  return kind == MaskKind::Lower ? b_.CreateICmpSLE(column, at.row) : b_.CreateICmpSLT(column, at.row);
}

/// Ops whose result depends on the place as well.
SmallVector<Ir> KernelEmitter::emit_placed(mlir::Operation* op, const Layout& layout) {
  auto row_below = [&](Ir row, mlir::Value rows, std::int64_t rate) {
    return b_.CreateICmpSLT(row, b_.CreateTrunc(t_.mul(rows_[rows].count, rate), b_.getInt32Ty()));
  };
  if (auto v = mlir::dyn_cast<ValidOp>(op))
    return each(layout, [&](const PlaceIr& at) {
      return b_.CreateSelect(row_below(at.row, v.getRows(), 1), t_.f32(1), t_.f32(0));
    });
  std::size_t k = 0;
  if (auto n = mlir::dyn_cast<NeutralOp>(op)) {
    SmallVector<Ir> x = get(n.getX(), layout);
    return each(layout, [&](const PlaceIr& at) {
      return b_.CreateSelect(row_below(at.row, n.getRows(), static_cast<std::int64_t>(n.getRate())), x[k++],
                             t_.f32(n.getValue().convertToDouble()));
    });
  }
  if (auto m = mlir::dyn_cast<MaskOp>(op)) {
    SmallVector<Ir> x = get(m.getX(), layout);
    return each(layout, [&](const PlaceIr& at) -> Ir {
      Ir keep = kept(m.getKind(), static_cast<std::int64_t>(m.getStair()), at);
      Ir value = x[k++];
      return keep ? b_.CreateSelect(keep, value, t_.f32(0)) : value;
    });
  }
  if (auto d = mlir::dyn_cast<DiagonalOp>(op)) {
    Layout slice = layout.slice(Axis::columns);
    SmallVector<Ir> x = get(d.getX(), slice);
    return each(layout, [&](const PlaceIr& at) {
      Ir value = x[static_cast<std::size_t>(layout.slice_register(Axis::columns, static_cast<int>(k++)))];
      return b_.CreateSelect(b_.CreateICmpEQ(at.row, at.column), value, t_.f32(0));
    });
  }
  auto d = mlir::cast<DecayOp>(op);
  // The column gate lies along the columns of the result: it is read as the row that it is the transpose of.
  SmallVector<Ir> rows = get(d.getGr(), layout.slice(Axis::columns));
  SmallVector<Ir> columns = get(d.getGc(), layout.slice(Axis::rows).transposed());
  constexpr double inf = std::numeric_limits<double>::infinity();
  return each(layout, [&](const PlaceIr& at) {
    int reg = static_cast<int>(k++);
    Ir x = b_.CreateFSub(rows[static_cast<std::size_t>(layout.slice_register(Axis::columns, reg))],
                         columns[static_cast<std::size_t>(layout.slice_register(Axis::rows, reg))]);
    // The mask comes before the exponential: nothing above it overflows.
    if (Ir keep = kept(d.getKind(), static_cast<std::int64_t>(d.getStair()), at))
      x = b_.CreateSelect(keep, x, t_.f32(-inf));
    return t_.exp2(x);
  });
}

bool KernelEmitter::emit_elementwise(mlir::Operation* op) {
  if (op->getNumResults() != 1 || !is_tile(op->getResult(0))) return false;
  mlir::Value v = op->getResult(0);
  if (mlir::isa<ConstantOp, SplatOp, CountOp, IndexOp, mlir::arith::ConstantOp>(op)) return true;  // made where used
  Layout layout = layout_of(v);
  if (mlir::isa<ValidOp, NeutralOp, MaskOp, DiagonalOp, DecayOp>(op)) {
    if (mlir::isa<NeutralOp, MaskOp>(op))
      if (const auto& forms = held_[op->getOperand(0)].forms; !forms.empty()) layout = forms.front().layout;
    SmallVector<Ir> values = emit_placed(op, layout);
    define(v, layout, values);
    return true;
  }
  for (mlir::Value x : op->getOperands()) {
    auto product = x.getDefiningOp<DotOp>();
    if (!product || !is_added_to(product)) continue;
    mlir::Value other = x == op->getOperand(0) ? op->getOperand(1) : op->getOperand(0);
    layout = accumulators(extents(v)[0], extents(v)[1]);
    SmallVector<Ir> sums = dot(product, layout, get(other, layout));
    if (failure_.empty()) define(v, layout, sums);
    return true;
  }
  // The layout of an operand that has one and is as large as the result.
  auto size = [](const Layout& l) { return l.shape().row * l.shape().column; };
  bool found = false;
  for (mlir::Value x : op->getOperands()) {
    if (!is_tile(x) || x.getDefiningOp<BroadcastOp>()) continue;
    if (auto t = x.getDefiningOp<TransposeOp>();
        t && held_[x].forms.empty() && held_[t.getX()].copies.empty() && !held_[t.getX()].forms.empty())
      (void)any(x);
    for (const Registers& r : held_[x].forms) {
      if (!found && size(r.layout) >= size(layout)) {
        layout = r.layout;
        found = true;
      }
    }
  }
  SmallVector<SmallVector<Ir>> operands;
  for (mlir::Value x : op->getOperands())
    if (is_tile(x)) operands.push_back(get(x, layout));
  if (!failure_.empty() || operands.empty()) return operands.empty() ? (fail(op, "has no lowering"), true) : true;
  SmallVector<Ir> out;
  for (std::size_t k = 0; k < operands[0].size(); ++k) {
    SmallVector<Ir> x;
    for (const auto& values : operands) x.push_back(values[k]);
    out.push_back(elementwise(op, x));
    if (!out.back()) return fail(op, "has no lowering"), true;
  }
  define(v, layout, out);
  return true;
}

Ir KernelEmitter::elementwise(mlir::Operation* op, ArrayRef<Ir> x) {
  const double ln2 = std::log(2.0);
  llvm::Type* f = b_.getFloatTy();
  return llvm::TypeSwitch<mlir::Operation*, Ir>(op)
      .Case<mlir::arith::AddFOp>([&](auto) { return b_.CreateFAdd(x[0], x[1]); })
      .Case<mlir::arith::SubFOp>([&](auto) { return b_.CreateFSub(x[0], x[1]); })
      .Case<mlir::arith::MulFOp>([&](auto) { return b_.CreateFMul(x[0], x[1]); })
      .Case<mlir::arith::DivFOp>([&](auto) { return b_.CreateFDiv(x[0], x[1]); })
      .Case<mlir::arith::NegFOp>([&](auto) { return b_.CreateFNeg(x[0]); })
      .Case<mlir::arith::MaximumFOp>([&](auto) { return t_.maximum(x[0], x[1]); })
      .Case<mlir::arith::MinimumFOp>([&](auto) { return t_.minimum(x[0], x[1]); })
      .Case<mlir::math::Exp2Op>([&](auto) { return t_.exp2(x[0]); })
      .Case<mlir::math::ExpOp>([&](auto) { return t_.exp2(b_.CreateFMul(x[0], t_.f32(1 / ln2))); })
      .Case<mlir::math::Log2Op>([&](auto) { return t_.log2(x[0]); })
      .Case<mlir::math::LogOp>([&](auto) { return b_.CreateFMul(t_.log2(x[0]), t_.f32(ln2)); })
      .Case<mlir::math::SqrtOp>([&](auto) { return t_.call(llvm::Intrinsic::sqrt, {f}, {x[0]}); })
      .Case<mlir::math::RsqrtOp>(
          [&](auto) { return b_.CreateFDiv(t_.f32(1.0), t_.call(llvm::Intrinsic::sqrt, {f}, {x[0]})); })
      .Case<mlir::math::AbsFOp>([&](auto) { return t_.call(llvm::Intrinsic::fabs, {f}, {x[0]}); })
      .Case<mlir::math::FloorOp>([&](auto) { return t_.call(llvm::Intrinsic::floor, {f}, {x[0]}); })
      .Case<mlir::math::TanhOp>([&](auto) { return t_.tanh(x[0]); })
      .Case<mlir::arith::SelectOp>([&](auto) { return b_.CreateSelect(x[0], x[1], x[2]); })
      .Case<mlir::arith::CmpFOp>([&](mlir::arith::CmpFOp compare) {
        // MLIR's ordered and unordered predicates have LLVM's numbers.
        return b_.CreateFCmp(static_cast<llvm::CmpInst::Predicate>(compare.getPredicate()), x[0], x[1]);
      })
      .Case<CastOp>([&](CastOp cast) { return t_.convert(x[0], element_type(cast.getTile())); })
      .Case<SigmoidOp>([&](auto) { return t_.sigmoid(x[0]); })
      .Case<SoftplusOp>([&](auto) { return t_.softplus(x[0]); })
      .Default([](mlir::Operation*) -> Ir { return nullptr; });
}

}  // namespace latile::simt
