// Elementwise work on register blocks: a value is evaluated where it is used, unless it has a buffer.
#include "codegen/host/KernelEmitter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include <cmath>
#include <limits>

namespace latile::host {

using namespace tile;

KernelEmitter::Grid KernelEmitter::evaluate(mlir::Value v, const Block& block) {
  if (block.along_rows) return evaluate_column(v, block);
  auto rows = extents(v)[0], cols = extents(v)[1];
  auto count = static_cast<std::size_t>(block.rows * block.vectors);
  bool truth = mlir::cast<mlir::RankedTensorType>(v.getType()).getElementType().isInteger(1);
  if (cols == 1 && !truth) {
    Grid out;
    for (int r = 0; r < block.rows; ++r) {
      Ir x = l_.splat(rows == 1 ? scalar(v) : read_column_scalar(v, l_.add(block.i, r)));
      out.append(static_cast<std::size_t>(block.vectors), x);
    }
    return out;
  }
  auto* first = llvm::dyn_cast<llvm::ConstantInt>(block.i);
  if (rows == 1 && (block.rows > 1 || !first || !first->isZero())) {  // one row under every row of the block
    Grid one = evaluate(v, {l_.index(0), 1, block.j, block.vectors}), out;
    for (int r = 0; r < block.rows; ++r) out.append(one);
    return out;
  }
  if (auto it = plain_.find(v); it != plain_.end()) {
    Grid out;
    out.reserve(count);
    for (int r = 0; r < block.rows; ++r)
      for (int c = 0; c < block.vectors; ++c) {
        Ir row = rows == 1 ? l_.index(0) : l_.add(block.i, r);
        out.push_back(
            l_.load(address(it->second, row, l_.add(block.j, c * l_.width), in_panel(v)), ElementType::f32, nullptr));
      }
    return out;
  }
  mlir::Operation* op = v.getDefiningOp();
  if (!op) {
    fail(kernel_, "a value of the block has no memory");
    return Grid(count, l_.splat(0.0));
  }
  return evaluate_op(op, v, block);
}

KernelEmitter::Grid KernelEmitter::evaluate_op(mlir::Operation* op, mlir::Value v, const Block& block) {
  auto& b = builder_;
  auto count = static_cast<std::size_t>(block.rows * block.vectors);
  auto each = [&](llvm::function_ref<Ir(Ir row, Ir column)> f) {
    Grid out;
    for (int r = 0; r < block.rows; ++r)
      for (int c = 0; c < block.vectors; ++c) out.push_back(f(l_.add(block.i, r), l_.add(block.j, c * l_.width)));
    return out;
  };
  if (mlir::isa<LoadRowsOp, LoadOp>(op)) return each([&](Ir row, Ir j) { return read_memory(v, row, j); });
  if (auto d = mlir::dyn_cast<DotOp>(op)) return product(d, block, {}, false);
  if (auto c = mlir::dyn_cast<CastOp>(op)) return evaluate(c.getX(), block);
  if (auto x = mlir::dyn_cast<BroadcastOp>(op)) return evaluate(x.getX(), block);
  if (auto t = mlir::dyn_cast<TransposeOp>(op)) {
    mlir::Value x = t.getX();
    if (extents(x)[1] == 1) {  // a column read as a row is contiguous in its buffer
      Grid one = evaluate_column(x, {block.j, 1, l_.index(0), block.vectors, true}), out;
      for (int r = 0; r < block.rows; ++r) out.append(one);
      return out;
    }
    auto it = flipped_.find(x);
    if (it == flipped_.end()) return fail(op, "its operand was not stored transposed"), Grid(count, l_.splat(0.0));
    return each([&](Ir row, Ir j) { return l_.load(address(it->second, row, j, false), ElementType::f32, nullptr); });
  }
  if (auto r = mlir::dyn_cast<RowOp>(op)) {
    Ir at = row_place(r.getPick(), extents(r.getX())[0], r.getAt(), r.getRows());
    return evaluate(r.getX(), {at, 1, block.j, block.vectors});
  }
  if (auto p = mlir::dyn_cast<PrevOp>(op)) {
    std::int64_t last = extents(v)[0] - 1;
    return each([&](Ir row, Ir j) {
      Ir edge = b.CreateICmpEQ(row, l_.index(p.getReverse() ? last : 0));
      Ir from = b.CreateSelect(edge, row, l_.add(row, p.getReverse() ? 1 : -1));
      Ir inside = evaluate(p.getX(), {from, 1, j, 1})[0];
      return b.CreateSelect(edge, evaluate(p.getFrom(), {l_.index(0), 1, j, 1})[0], inside);
    });
  }
  if (auto p = mlir::dyn_cast<PlaceRowOp>(op)) {
    Ir at = row_place(p.getPick(), extents(v)[0], p.getAt(), p.getRows());
    return each([&](Ir row, Ir j) {
      return b.CreateSelect(b.CreateICmpEQ(row, at), evaluate(p.getX(), {l_.index(0), 1, j, 1})[0], l_.splat(0.0));
    });
  }
  if (auto r = mlir::dyn_cast<RepeatRowsOp>(op)) {
    Grid out;
    for (int k = 0; k < block.rows; ++k)
      out.append(evaluate(r.getX(), {b.CreateSDiv(l_.add(block.i, k), l_.index(static_cast<std::int64_t>(r.getN()))), 1,
                                     block.j, block.vectors}));
    return out;
  }
  auto kept = [&](MaskKind kind, std::int64_t stair, Ir row, Ir j) -> Ir {
    if (kind == MaskKind::All) return nullptr;
    // Columns c with c div stair <= i (lower) or < i (strict): the first (i + 1) * stair, or i * stair.
    Ir limit = l_.mul(kind == MaskKind::Lower ? l_.add(row, 1) : row, stair);
    return l_.mask(b.CreateSub(limit, j));
  };
  if (auto d = mlir::dyn_cast<DecayOp>(op)) {
    constexpr double inf = std::numeric_limits<double>::infinity();
    Grid right = evaluate_column(d.getGc(), {block.j, 1, l_.index(0), block.vectors, true});
    Grid out;
    for (int r = 0; r < block.rows; ++r) {
      Ir row = l_.add(block.i, r);
      Ir left = l_.splat(extents(d.getGr())[0] == 1 ? scalar(d.getGr()) : read_column_scalar(d.getGr(), row));
      for (int c = 0; c < block.vectors; ++c) {
        Ir x = b.CreateFSub(left, right[static_cast<std::size_t>(c)]);
        if (Ir m = kept(d.getKind(), static_cast<std::int64_t>(d.getStair()), row, l_.add(block.j, c * l_.width)))
          x = b.CreateSelect(m, x, l_.splat(-inf));
        out.push_back(l_.exp2(x));
      }
    }
    return out;
  }
  if (auto m = mlir::dyn_cast<MaskOp>(op)) {
    Grid out = evaluate(m.getX(), block);
    for (int r = 0; r < block.rows; ++r)
      for (int c = 0; c < block.vectors; ++c) {
        Ir& x = out[static_cast<std::size_t>(r * block.vectors + c)];
        Ir keep = kept(m.getKind(), static_cast<std::int64_t>(m.getStair()), l_.add(block.i, r),
                       l_.add(block.j, c * l_.width));
        if (keep) x = b.CreateSelect(keep, x, l_.splat(0.0));
      }
    return out;
  }
  if (auto d = mlir::dyn_cast<DiagonalOp>(op))
    return each([&](Ir row, Ir j) {
      Ir x = l_.splat(extents(d.getX())[0] == 1 ? scalar(d.getX()) : read_column_scalar(d.getX(), row));
      Ir here = b.CreateXor(l_.mask(b.CreateSub(l_.add(row, 1), j)), l_.mask(b.CreateSub(row, j)));
      return b.CreateSelect(here, x, l_.splat(0.0));
    });
  if (auto n = mlir::dyn_cast<NeutralOp>(op)) {
    Grid out = evaluate(n.getX(), block);
    for (int r = 0; r < block.rows; ++r)
      for (int c = 0; c < block.vectors; ++c) {
        Ir& x = out[static_cast<std::size_t>(r * block.vectors + c)];
        Ir valid = b.CreateICmpSLT(l_.add(block.i, r),
                                   l_.mul(rows_[n.getRows()].count, static_cast<std::int64_t>(n.getRate())));
        x = b.CreateSelect(valid, x, l_.splat(n.getValue().convertToDouble()));
      }
    return out;
  }
  if (auto c = mlir::dyn_cast<mlir::arith::ConstantOp>(op)) {
    auto dense = mlir::dyn_cast<mlir::SplatElementsAttr>(c.getValue());
    if (!dense) return fail(op, "only splat constants"), Grid(count, l_.splat(0.0));
    return Grid(count, l_.splat(dense.getSplatValue<llvm::APFloat>().convertToDouble()));
  }
  // A product that is one term of a sum starts from the other term's value in the accumulators.
  auto fused = [&](mlir::Value x) {
    auto d = x.getDefiningOp<DotOp>();
    return d && !plain_.contains(x) && !is_outer(d) && extents(x)[0] > 1;
  };
  if (mlir::isa<mlir::arith::AddFOp>(op)) {
    mlir::Value x = op->getOperand(0), y = op->getOperand(1);
    if (fused(y)) return product(y.getDefiningOp<DotOp>(), block, evaluate(x, block), false);
    if (fused(x)) return product(x.getDefiningOp<DotOp>(), block, evaluate(y, block), false);
  }
  if (mlir::isa<mlir::arith::SubFOp>(op) && fused(op->getOperand(1)))
    return product(op->getOperand(1).getDefiningOp<DotOp>(), block, evaluate(op->getOperand(0), block), true);

  if (mlir::isa<mlir::arith::AddFOp, mlir::arith::SubFOp>(op)) {
    bool subtract = mlir::isa<mlir::arith::SubFOp>(op);
    for (unsigned side : {1u, 0u}) {
      if (subtract && side == 0) break;
      SmallVector<Grid> f = factors(op->getOperand(side), block);
      if (f.empty()) continue;
      Grid out = evaluate(op->getOperand(1 - side), block);
      for (std::size_t k = 0; k < out.size(); ++k)
        out[k] = l_.fma(subtract ? b.CreateFNeg(f[0][k]) : f[0][k], f[1][k], out[k]);
      return out;
    }
  }

  SmallVector<Grid> operands;
  for (mlir::Value x : op->getOperands())
    if (is_tile(x)) operands.push_back(evaluate(x, block));
  return elementwise(op, operands);
}

SmallVector<KernelEmitter::Grid> KernelEmitter::factors(mlir::Value v, const Block& block) {
  mlir::Operation* op = v.getDefiningOp();
  if (!op || plain_.contains(v) || !v.hasOneUse() || extents(v)[1] == 1) return {};
  if (mlir::isa<mlir::arith::MulFOp>(op))
    return {evaluate(op->getOperand(0), block), evaluate(op->getOperand(1), block)};
  auto d = mlir::dyn_cast<DotOp>(op);
  if (!d || !is_outer(d)) return {};
  Grid left, right = evaluate(d.getB(), {l_.index(0), 1, block.j, block.vectors}), columns;
  for (int r = 0; r < block.rows; ++r) {
    Ir x = extents(d.getA())[0] == 1 ? scalar(d.getA()) : read_column_scalar(d.getA(), l_.add(block.i, r));
    left.append(static_cast<std::size_t>(block.vectors), l_.splat(x));
    columns.append(right);
  }
  return {left, columns};
}

// A column [R,1] as vectors along its rows.
KernelEmitter::Grid KernelEmitter::evaluate_column(mlir::Value v, const Block& block) {
  auto count = static_cast<std::size_t>(block.vectors);
  auto& b = builder_;
  if (extents(v)[0] == 1 && extents(v)[1] == 1) return Grid(count, l_.splat(scalar(v)));
  if (auto it = plain_.find(v); it != plain_.end() && extents(v)[1] == 1) {
    Grid out;
    for (int c = 0; c < block.vectors; ++c)
      out.push_back(
          l_.load(l_.at(it->second.base, l_.mul(l_.add(block.i, c * l_.width), 4)), ElementType::f32, nullptr));
    return out;
  }
  mlir::Operation* op = v.getDefiningOp();
  if (!op || extents(v)[1] != 1)
    return fail(op ? op : kernel_, "is read as a column that it is not"), Grid(count, l_.splat(0.0));
  if (auto x = mlir::dyn_cast<BroadcastOp>(op)) return evaluate_column(x.getX(), block);
  if (auto c = mlir::dyn_cast<CastOp>(op)) return evaluate_column(c.getX(), block);
  if (auto t = mlir::dyn_cast<TransposeOp>(op)) return evaluate(t.getX(), {l_.index(0), 1, block.i, block.vectors});
  auto first_rows = [&](Ir limit, int c) { return l_.mask(b.CreateSub(limit, l_.add(block.i, c * l_.width))); };
  if (auto valid = mlir::dyn_cast<ValidOp>(op)) {
    Grid out;
    for (int c = 0; c < block.vectors; ++c)
      out.push_back(b.CreateSelect(first_rows(rows_[valid.getRows()].count, c), l_.splat(1.0), l_.splat(0.0)));
    return out;
  }
  if (auto n = mlir::dyn_cast<NeutralOp>(op)) {
    Grid out = evaluate_column(n.getX(), block);
    Ir limit = l_.mul(rows_[n.getRows()].count, static_cast<std::int64_t>(n.getRate()));
    for (int c = 0; c < block.vectors; ++c)
      out[static_cast<std::size_t>(c)] = b.CreateSelect(first_rows(limit, c), out[static_cast<std::size_t>(c)],
                                                        l_.splat(n.getValue().convertToDouble()));
    return out;
  }
  if (auto d = mlir::dyn_cast<DotOp>(op); d && is_outer(d)) {
    Grid left = evaluate_column(d.getA(), block);
    Ir right = l_.splat(scalar(d.getB()));
    for (Ir& x : left) x = b.CreateFMul(x, right);
    return left;
  }
  bool own = mlir::isa<SolveUnitLowerOp, LoadRowsOp, LoadOp, CumsumOp, ReduceOp, DotOp, RepeatRowsOp, PrevOp,
                       PlaceRowOp, CummaxOp, LogcumsumexpOp, AffineScanOp, SumRowsOp>(op);
  if (own) {
    make_column(v);
    return evaluate_column(v, block);
  }
  if (auto c = mlir::dyn_cast<mlir::arith::ConstantOp>(op))
    if (auto dense = mlir::dyn_cast<mlir::SplatElementsAttr>(c.getValue()))
      return Grid(count, l_.splat(dense.getSplatValue<llvm::APFloat>().convertToDouble()));
  if (!is_elementwise(op)) return fail(op, "has no lowering as a column"), Grid(count, l_.splat(0.0));
  SmallVector<Grid> operands;
  for (mlir::Value x : op->getOperands())
    if (is_tile(x)) operands.push_back(evaluate_column(x, block));
  return elementwise(op, operands);
}

KernelEmitter::Grid KernelEmitter::elementwise(mlir::Operation* op, llvm::ArrayRef<Grid> operands) {
  Grid out;
  if (operands.empty()) return fail(op, "has no lowering"), out;
  for (std::size_t k = 0; k < operands[0].size(); ++k) {
    SmallVector<Ir> x;
    for (const Grid& g : operands) x.push_back(g[k]);
    // Replicas of one vector are computed once.
    bool same = k > 0;
    for (const Grid& g : operands) same = same && g[k] == g[k - 1];
    out.push_back(same ? out.back() : elementwise_vector(op, x));
  }
  return out;
}

Ir KernelEmitter::elementwise_vector(mlir::Operation* op, llvm::ArrayRef<Ir> x) {
  auto& b = builder_;
  const double ln2 = std::log(2.0);
  return llvm::TypeSwitch<mlir::Operation*, Ir>(op)
      .Case<mlir::arith::AddFOp>([&](auto) { return b.CreateFAdd(x[0], x[1]); })
      .Case<mlir::arith::SubFOp>([&](auto) { return b.CreateFSub(x[0], x[1]); })
      .Case<mlir::arith::MulFOp>([&](auto) { return b.CreateFMul(x[0], x[1]); })
      .Case<mlir::arith::DivFOp>([&](auto) { return b.CreateFDiv(x[0], x[1]); })
      .Case<mlir::arith::NegFOp>([&](auto) { return b.CreateFNeg(x[0]); })
      .Case<mlir::arith::MaximumFOp>([&](auto) { return l_.maximum(x[0], x[1]); })
      .Case<mlir::arith::MinimumFOp>([&](auto) { return l_.minimum(x[0], x[1]); })
      .Case<mlir::math::Exp2Op>([&](auto) { return l_.exp2(x[0]); })
      .Case<mlir::math::ExpOp>([&](auto) { return l_.exp2(b.CreateFMul(x[0], l_.splat(1 / ln2))); })
      .Case<mlir::math::Log2Op>([&](auto) { return l_.log2(x[0]); })
      .Case<mlir::math::LogOp>([&](auto) { return b.CreateFMul(l_.log2(x[0]), l_.splat(ln2)); })
      .Case<mlir::math::SqrtOp>([&](auto) { return l_.call(llvm::Intrinsic::sqrt, {x[0]}); })
      .Case<mlir::math::RsqrtOp>(
          [&](auto) { return b.CreateFDiv(l_.splat(1.0), l_.call(llvm::Intrinsic::sqrt, {x[0]})); })
      .Case<mlir::math::FloorOp>([&](auto) { return l_.call(llvm::Intrinsic::floor, {x[0]}); })
      .Case<mlir::math::AbsFOp>([&](auto) { return l_.call(llvm::Intrinsic::fabs, {x[0]}); })
      .Case<mlir::math::TanhOp>([&](auto) { return l_.tanh(x[0]); })
      .Case<mlir::arith::SelectOp>([&](auto) { return b.CreateSelect(x[0], x[1], x[2]); })
      .Case<mlir::arith::CmpFOp>([&](mlir::arith::CmpFOp compare) {
        // MLIR's ordered and unordered predicates have LLVM's numbers.
        return b.CreateFCmp(static_cast<llvm::CmpInst::Predicate>(compare.getPredicate()), x[0], x[1]);
      })
      .Case<SigmoidOp>([&](auto) { return l_.sigmoid(x[0]); })
      .Case<SoftplusOp>([&](auto) { return l_.softplus(x[0]); })
      .Default([&](mlir::Operation* o) {
        fail(o, "has no lowering");
        return l_.splat(0.0);
      });
}

}  // namespace latile::host
