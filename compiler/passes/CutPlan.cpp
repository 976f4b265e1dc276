#include "compiler/passes/CutPlan.h"
#include "compiler/passes/Members.h"
#include "compiler/passes/MinCut.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace latile::tile;

namespace latile {

SmallVector<Value> values_read(Operation* op) {
  llvm::SetVector<Value> values(op->operand_begin(), op->operand_end());
  for (Region& region : op->getRegions()) getUsedValuesDefinedAbove(region, values);
  return values.takeVector();
}

SmallVector<Operation*> ops_for(Block& block, ArrayRef<Value> roots, function_ref<bool(Value)> known) {
  llvm::DenseSet<Operation*> needed;
  SmallVector<Value> pending(roots);
  while (!pending.empty()) {
    Value value = pending.pop_back_val();
    Operation* op = value.getDefiningOp();
    if (!op || known(value) || !needed.insert(op).second) continue;
    pending.append(values_read(op));
  }
  SmallVector<Operation*> ordered;
  for (Operation& op : block)
    if (needed.contains(&op)) ordered.push_back(&op);
  return ordered;
}

namespace {

int64_t bytes(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type) return 0;
  return type.getNumElements() * type.getElementTypeBitWidth() / 8;
}

/// Work of computing `op` once more, in bytes whose movement takes as long. Element-wise work runs at about a
/// fourteenth of the rate of products on today's devices, exponentials at half of that again.
int64_t work(Operation* op, double flops_per_byte) {
  if (isa<InverseUnitLowerOp, SolveUnitLowerOp, SolveOp>(op)) return MinCut::unbounded;
  int64_t elements = 0;
  for (Value value : op->getResults())
    if (auto type = dyn_cast<RankedTensorType>(value.getType())) elements += type.getNumElements();
  if (auto dot = dyn_cast<DotOp>(op))
    return static_cast<int64_t>(2.0 * elements * dot.getA().getType().getDimSize(1) / flops_per_byte);
  if (isa<ConstantOp, SplatOp, BroadcastOp, TransposeOp, CastOp, RowOp, MaskOp, NeutralOp>(op)) return 0;
  if (isa<CumsumOp>(op)) return 16 * elements;  // one row after the other
  if (isa<DecayOp, SigmoidOp, SoftplusOp>(op) || op->getDialect()->getNamespace() == "math") return elements;
  return elements / 4;
}

/// Chooses what crosses by one minimum cut. For each value, node `needed`: it must be at hand in a later kernel; for
/// its op, node `again`: it is computed there. A value that is needed and not computed again costs its store and load;
/// one that is computed again costs its work and makes its operands needed.
class Planner {
public:
  Planner(ScanOp scan, const CutOptions& options)
      : scan_(scan), block_(scan.getBody().front()), options_(options), members_(scan),
        results_(llvm::to_vector(cast<YieldOp>(block_.getTerminator()).getValues())) {
    for (BlockArgument carry : block_.getArguments().drop_front(scan.getInputs().size())) on_carry_.insert(carry);
    for (Operation& op : block_.without_terminator())
      if (llvm::any_of(values_read(&op), [&](Value value) { return on_carry_.contains(value); }))
        on_carry_.insert(op.result_begin(), op.result_end());
    auto update = ops_for(block_, ArrayRef(results_).drop_front(scan.getOutputs().size()), [](Value) { return false; });
    updates_.insert(update.begin(), update.end());
  }

  CutPlan plan() {
    add_inputs();
    for (Operation& op : block_.without_terminator()) add_op(&op);
    // The serial kernel needs what its ops read, and the results that depend on no carry.
    for (Operation& op : block_.without_terminator())
      if (on_carry_.contains(op.getResult(0)) && (updates_.contains(&op) || !options_.finish))
        for (Value read : values_read(&op))
          if (!on_carry_.contains(read)) require(read);
    for (auto [i, result] : llvm::enumerate(results_))
      if (!on_carry_.contains(result) || (options_.finish && i < scan_.getOutputs().size())) require(result);

    auto kept = graph_.source_side();
    CutPlan plan;
    for (auto [value, again] : choices_)
      if (kept[needed_[value]] && !kept[again])
        (on_carry_.contains(value) ? plan.from_serial : plan.from_prepare).insert(value);
    return plan;
  }

private:
  /// How many of `value` there are for one of the carries.
  int64_t times(Value value) { return members_.contains(value) ? static_cast<int64_t>(scan_.getHeadRatio()) : 1; }
  int needed(Value value) {
    auto [at, is_new] = needed_.try_emplace(value, 0);
    if (is_new) at->second = graph_.add_node();
    return at->second;
  }
  void require(Value value) { graph_.add_edge(MinCut::source, needed(value), MinCut::unbounded); }

  /// Rows of an input are loaded where they are needed; a carry reaches the third kernel through the workspace only.
  void add_inputs() {
    for (BlockArgument argument : block_.getArguments()) {
      if (on_carry_.contains(argument)) {
        choices_.emplace_back(argument, static_cast<int>(MinCut::sink));
        graph_.add_edge(needed(argument), MinCut::sink, 2 * bytes(argument));
      } else if (scan_.getRates()[argument.getArgNumber()] != 0) {
        graph_.add_edge(needed(argument), MinCut::sink, times(argument) * bytes(argument));
      }
    }
  }

  void add_op(Operation* op) {
    if (op->getNumResults() != 1) return;
    Value result = op->getResult(0);
    bool free = !on_carry_.contains(result);
    if (!free && !options_.finish) return;
    // Memory holds tiles of floats: no bounds of a loop, no outcome of a comparison.
    auto tile = dyn_cast<RankedTensorType>(result.getType());
    bool can_store = tile && isa<FloatType>(tile.getElementType()) && (free || is_in_serial(op));
    int64_t weight = options_.finish ? 1 : options_.serial_weight;
    int again = graph_.add_node();
    if (can_store) choices_.emplace_back(result, again);
    graph_.add_edge(needed(result), again, can_store ? 2 * times(result) * bytes(result) : MinCut::unbounded);
    graph_.add_edge(again, MinCut::sink, can_store ? weight * times(result) * work(op, options_.flops_per_byte) : 0);
    for (Value read : values_read(op)) graph_.add_edge(again, needed(read), MinCut::unbounded);
  }

  /// The serial kernel computes `op` for its carries, or would gladly: a cast that narrows what crosses.
  bool is_in_serial(Operation* op) {
    if (updates_.contains(op)) return true;
    auto cast = dyn_cast<CastOp>(op);
    if (!cast || bytes(cast.getTile()) >= bytes(cast.getX())) return false;
    Operation* source = cast.getX().getDefiningOp();
    return !source || updates_.contains(source);
  }

  ScanOp scan_;
  Block& block_;
  const CutOptions& options_;
  Members members_;
  SmallVector<Value> results_;
  llvm::DenseSet<Value> on_carry_;
  llvm::DenseSet<Operation*> updates_;
  MinCut graph_;
  llvm::DenseMap<Value, int> needed_;
  std::vector<std::pair<Value, int>> choices_;  // values that may be stored, with the node of computing them again
};

}  // namespace

CutPlan plan_cut(ScanOp scan, const CutOptions& options) { return Planner(scan, options).plan(); }

}  // namespace latile
