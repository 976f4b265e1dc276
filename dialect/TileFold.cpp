// Folds and canonical forms. All are exact: no value changes in any bit.
#include "dialect/Tile.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace latile::tile;

namespace {

/// A cast from `from` to `to` loses nothing.
bool widens(Type from, Type to) { return to.isF32() && (from.isBF16() || from.isF16()); }

/// Inside a scan over chunks of one row every row is valid.
bool single_row_scan(Operation* op) {
  auto scan = op->getParentOfType<ScanOp>();
  return scan && scan.getChunk() == 1;
}

}  // namespace

OpFoldResult CastOp::fold(FoldAdaptor) {
  if (getX().getType() == getTile().getType()) return getX();
  if (auto inner = getX().getDefiningOp<CastOp>()) {
    Type from = inner.getX().getType().getElementType(), via = getX().getType().getElementType();
    if (widens(from, via)) {
      if (inner.getX().getType() == getTile().getType()) return inner.getX();
      getXMutable().assign(inner.getX());
      return getTile();
    }
  }
  return {};
}

OpFoldResult BroadcastOp::fold(FoldAdaptor) {
  if (getX().getType() == getTile().getType()) return getX();
  if (auto inner = getX().getDefiningOp<BroadcastOp>()) {
    getXMutable().assign(inner.getX());
    return getTile();
  }
  return {};
}

OpFoldResult TransposeOp::fold(FoldAdaptor) {
  if (auto inner = getX().getDefiningOp<TransposeOp>()) return inner.getX();
  if (getX().getType().getNumElements() == 1) return getX();
  return {};
}

OpFoldResult RowOp::fold(FoldAdaptor) {
  if (getX().getType().getDimSize(0) == 1 && getPick() != PickKind::LastValid) return getX();
  if (getX().getType().getDimSize(0) == 1 && single_row_scan(*this)) return getX();
  return {};
}

OpFoldResult RepeatRowsOp::fold(FoldAdaptor) { return getN() == 1 ? OpFoldResult(getX()) : OpFoldResult(); }

OpFoldResult CumsumOp::fold(FoldAdaptor) {
  return getX().getType().getDimSize(0) == 1 && !getExclusive() ? OpFoldResult(getX()) : OpFoldResult();
}

OpFoldResult MaskOp::fold(FoldAdaptor) {
  // One row is at or below the diagonal as a whole.
  bool keeps_all = getKind() == MaskKind::All || (getKind() == MaskKind::Lower && getX().getType().getDimSize(0) == 1);
  return keeps_all ? OpFoldResult(getX()) : OpFoldResult();
}

OpFoldResult ReduceOp::fold(FoldAdaptor) {
  return getX().getType().getDimSize(getAxis()) == 1 ? OpFoldResult(getX()) : OpFoldResult();
}

OpFoldResult NeutralOp::fold(FoldAdaptor) { return single_row_scan(*this) ? OpFoldResult(getX()) : OpFoldResult(); }

namespace {

/// An element-wise op whose operands all repeat smaller tiles is done on the smaller tiles.
struct ElementwiseOfBroadcasts : RewritePattern {
  explicit ElementwiseOfBroadcasts(MLIRContext* context) : RewritePattern(MatchAnyOpTypeTag(), 1, context) {}

  LogicalResult matchAndRewrite(Operation* op, PatternRewriter& rewriter) const override {
    if (!op->hasTrait<OpTrait::Elementwise>() || op->getNumResults() != 1 || op->getNumOperands() == 0)
      return failure();
    auto result = dyn_cast<RankedTensorType>(op->getResult(0).getType());
    if (!result || result.getRank() != 2) return failure();
    int64_t shape[2] = {1, 1};
    SmallVector<Value> sources;
    for (Value operand : op->getOperands()) {
      auto type = dyn_cast<RankedTensorType>(operand.getType());
      if (!type || type.getShape() != result.getShape()) return failure();
      auto broadcast = operand.getDefiningOp<BroadcastOp>();
      sources.push_back(broadcast ? Value(broadcast.getX()) : operand);
      auto source = cast<RankedTensorType>(sources.back().getType());
      for (int axis : {0, 1}) shape[axis] = std::max(shape[axis], source.getDimSize(axis));
    }
    if (result.getShape() == ArrayRef<int64_t>(shape)) return failure();
    IRMapping mapping;
    for (auto [operand, source] : llvm::zip(op->getOperands(), sources)) {
      auto type = cast<RankedTensorType>(source.getType());
      Value small = source;
      if (type.getShape() != ArrayRef<int64_t>(shape))
        small =
            BroadcastOp::create(rewriter, op->getLoc(), RankedTensorType::get(shape, type.getElementType()), source);
      mapping.map(operand, small);
    }
    Operation* small = rewriter.clone(*op, mapping);
    small->getResult(0).setType(RankedTensorType::get(shape, result.getElementType()));
    rewriter.replaceOpWithNewOp<BroadcastOp>(op, result, small->getResult(0));
    return success();
  }
};

/// transpose(broadcast(x)) = broadcast(transpose(x)).
struct TransposeOfBroadcast : OpRewritePattern<TransposeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(TransposeOp op, PatternRewriter& rewriter) const override {
    auto inner = op.getX().getDefiningOp<BroadcastOp>();
    if (!inner) return failure();
    auto type = inner.getX().getType();
    auto turned = RankedTensorType::get({type.getDimSize(1), type.getDimSize(0)}, type.getElementType());
    Value small = TransposeOp::create(rewriter, op.getLoc(), turned, inner.getX());
    rewriter.replaceOpWithNewOp<BroadcastOp>(op, op.getTile().getType(), small);
    return success();
  }
};

/// valid and count are 1 where a chunk is one row.
template <typename Op> struct OneRow : OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;
  LogicalResult matchAndRewrite(Op op, PatternRewriter& rewriter) const override {
    if (!single_row_scan(op)) return failure();
    rewriter.replaceOpWithNewOp<ConstantOp>(op, op.getTile().getType(), rewriter.getF64FloatAttr(1));
    return success();
  }
};

}  // namespace

void TileDialect::getCanonicalizationPatterns(RewritePatternSet& patterns) const {
  patterns.add<ElementwiseOfBroadcasts, TransposeOfBroadcast, OneRow<ValidOp>, OneRow<CountOp>>(getContext());
}
