#include "codegen/simt/ScoresFirst.h"
#include "dialect/Tile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace latile::simt {

using namespace tile;

Value narrow_source(Value v, bool* turned) {
  auto narrow = [](Value x) {
    Type e = cast<RankedTensorType>(x.getType()).getElementType();
    return e.isF16() || e.isBF16();
  };
  bool odd = false;
  bool found = false;
  // Past the cast, as far as it is the same elements.
  while (Operation* op = v.getDefiningOp()) {
    found = narrow(v);
    if (!isa<TransposeOp, ConvertLayoutOp>(op) && (found || !isa<CastOp>(op))) break;
    odd ^= isa<TransposeOp>(op);
    v = op->getOperand(0);
  }
  if (!narrow(v)) return {};
  if (turned) *turned = odd;
  return v;
}

bool reads_row_above(Operation* user) {
  auto op = dyn_cast<DecayedScoresOp>(user);
  auto prev = op ? op.getGr().getDefiningOp<PrevOp>() : PrevOp();
  return prev && op.getKind() == MaskKind::Strict && prev.getX() == op.getGc() && !prev.getReverse();
}

namespace {

bool is_element_wise(Operation* op) {
  return op->hasTrait<OpTrait::Elementwise>() && op->getNumResults() == 1 && op->getNumRegions() == 0;
}

bool is_load(Value v) { return v.getDefiningOp<LoadOp>() || v.getDefiningOp<LoadRowsOp>(); }

RankedTensorType turned_type(Value v) {
  auto type = cast<RankedTensorType>(v.getType());
  return RankedTensorType::get({type.getDimSize(1), type.getDimSize(0)}, type.getElementType());
}

/// The transposed of a value, from loaded tiles and without transposing them; `budget`: ops that may be made. Null: it
/// is no such value.
Value turned(OpBuilder& b, Value v, int& budget) {
  Operation* op = v.getDefiningOp();
  if (!op) return {};
  if (auto t = dyn_cast<TransposeOp>(op)) return is_load(t.getX()) ? t.getX() : Value();
  if (--budget < 0) return {};
  if (auto broadcast = dyn_cast<BroadcastOp>(op)) {
    auto from = broadcast.getX().getType();
    if (from.getDimSize(0) != 1 || from.getDimSize(1) != 1) return {};
    return BroadcastOp::create(b, op->getLoc(), turned_type(v), broadcast.getX());
  }
  if (!is_element_wise(op)) return {};
  IRMapping map;
  for (Value x : op->getOperands()) {
    if (map.contains(x)) continue;
    Value y = turned(b, x, budget);
    if (!y) return {};
    map.map(x, y);
  }
  Operation* copy = b.clone(*op, map);
  copy->getResult(0).setType(turned_type(v));
  return copy->getResult(0);
}

void simplify_operands(DecayedScoresOp op) {
  bool negative = false;
  for (unsigned k : {0U, 1U}) {
    OpBuilder b(op);
    if (auto t = op->getOperand(k).getDefiningOp<TransposeOp>()) {
      int budget = 8;
      if (Value v = turned(b, t.getX(), budget)) op->setOperand(k, v);
    }
    while (auto minus = op->getOperand(k).getDefiningOp<arith::NegFOp>()) {
      op->setOperand(k, minus.getOperand());
      negative = !negative;
    }
  }
  if (!negative) return;
  // Behind a cast, so that the scores are rounded where they are made.
  Value scores = op.getTile();
  if (auto cast = scores.hasOneUse() ? dyn_cast<CastOp>(*scores.getUsers().begin()) : CastOp()) scores = cast.getTile();
  OpBuilder b(scores.getDefiningOp());
  b.setInsertionPointAfter(scores.getDefiningOp());
  auto minus = arith::NegFOp::create(b, op.getLoc(), scores);
  scores.replaceAllUsesExcept(minus.getResult(), minus);
}

void sum_once(DecayedScoresOp op) {
  auto rows = op.getGr().getDefiningOp<CumsumOp>(), columns = op.getGc().getDefiningOp<CumsumOp>();
  if (!rows || !columns || rows.getX() != columns.getX() || !rows.getExclusive() || columns.getExclusive() ||
      rows.getReverse() || columns.getReverse() || !columns->isBeforeInBlock(op))
    return;
  if (rows->isBeforeInBlock(columns)) columns->moveBefore(rows);
  OpBuilder b(rows);
  auto type = RankedTensorType::get({1, rows.getTile().getType().getDimSize(1)}, b.getF32Type());
  Value zero =
      ConstantOp::create(b, rows.getLoc(), RankedTensorType::get({1, 1}, b.getF32Type()), b.getF64FloatAttr(0));
  zero = BroadcastOp::create(b, rows.getLoc(), type, zero);
  Value prev = PrevOp::create(b, rows.getLoc(), rows.getTile().getType(), columns.getTile(), zero, false);
  rows.getTile().replaceAllUsesWith(prev);
  rows.erase();
}

/// The ops of the block that a value needs, itself included.
void needed(Value v, Block& block, llvm::SetVector<Operation*>& all) {
  Operation* op = v.getDefiningOp();
  if (!op || op->getBlock() != &block || !all.insert(op)) return;
  for (Value x : op->getOperands()) needed(x, block, all);
}

void gather_scores(Block& block) {
  SmallVector<DecayedScoresOp> scores(block.getOps<DecayedScoresOp>());
  if (scores.empty()) return;
  // What reads may pass each other; stores come at the end.
  auto moves = [](Operation& op) {
    auto effects = dyn_cast<MemoryEffectOpInterface>(op);
    return isMemoryEffectFree(&op) || (effects && effects.onlyHasEffect<MemoryEffects::Read>());
  };
  bool stores = false;
  for (Operation& op : block) {
    stores |= !moves(op) && !op.hasTrait<OpTrait::IsTerminator>();
    if (stores && moves(op) && !op.hasTrait<OpTrait::IsTerminator>()) return;
  }
  llvm::SetVector<Operation*> first;
  auto add = [&](const llvm::SetVector<Operation*>& ops) {
    SmallVector<Operation*> order;
    for (Operation& op : block)
      if (ops.contains(&op)) order.push_back(&op);
    first.insert(order.begin(), order.end());
  };
  while (!scores.empty()) {
    // Those of one gate that do not wait for one another.
    SmallVector<DecayedScoresOp> group, later;
    llvm::SetVector<Operation*> slice;
    for (DecayedScoresOp op : scores) {
      llvm::SetVector<Operation*> own;
      for (Value x : op->getOperands()) needed(x, block, own);
      const bool waits = llvm::any_of(scores, [&](DecayedScoresOp other) { return own.contains(other); });
      if (waits || (!group.empty() && group.front().getGc() != op.getGc())) {
        later.push_back(op);
        continue;
      }
      group.push_back(op);
      slice.insert(own.begin(), own.end());
    }
    add(slice);
    first.insert(group.begin(), group.end());
    scores = std::move(later);
  }
  // Inverses work in many registers too, and leave few.
  for (auto inverse : block.getOps<InverseUnitLowerOp>()) {
    llvm::SetVector<Operation*> slice;
    needed(inverse.getTile(), block, slice);
    if (llvm::any_of(slice, [&](Operation* op) { return !first.contains(op) && isa<DotOp>(op); })) continue;
    for (Operation* user : inverse->getUsers())
      if (isa<CastOp>(user)) slice.insert(user);
    add(slice);
  }
  Operation* last = nullptr;
  for (Operation* op : first) {
    if (last)
      op->moveAfter(last);
    else
      op->moveBefore(&block, block.begin());
    last = op;
  }
}

}  // namespace

LogicalResult scores_first(ModuleOp module) {
  module.walk([](KernelOp kernel) {
    Block& block = kernel.getBody().front();
    if (llvm::any_of(block, [](Operation& op) { return op.getNumRegions() > 0; })) return;
    for (DecayedScoresOp op : llvm::make_early_inc_range(block.getOps<DecayedScoresOp>())) {
      simplify_operands(op);
      sum_once(op);
    }
    gather_scores(block);
  });
  return success();
}

}  // namespace latile::simt
