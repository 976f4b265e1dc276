#include "codegen/simt/WalkStates.h"
#include "codegen/simt/Ties.h"
#include "codegen/simt/Unneeded.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace latile::simt {

using namespace tile;

namespace {

/// The extents that are walked, and how.
struct Rows {
  llvm::DenseMap<Value, int> axis;  ///< of each tile that has one
  std::int64_t all = 0;             ///< rows
  std::int64_t group = 0;           ///< rows that one column of kron_rows' first operand stands for
  std::int64_t block = 0;           ///< rows of a turn, some groups

  bool contains(Value v) const { return axis.contains(v); }
};

std::int64_t group_of(KronRowsOp k) { return tile_type(k.getTile()).getDimSize(1) / tile_type(k.getX()).getDimSize(1); }

/// The rows of the first kron_rows that make a tile too large; nothing: there are none, or they cannot be walked.
std::optional<Rows> rows_to_walk(KernelOp kernel, std::int64_t most_elements, std::int64_t most_rows) {
  std::optional<Rows> found;
  const Ties ties(kernel, Ties::Parts::rows);
  kernel.walk([&](KronRowsOp k) {
    if (found) return;
    Rows rows;
    std::int64_t largest = 0;
    bool alike = true;
    for (Extent e : ties.of({k.getTile(), 1})) {
      largest = std::max(largest, tile_type(e.first).getNumElements());
      alike = alike && rows.axis.try_emplace(e.first, e.second).second;
      if (auto other = e.first.getDefiningOp<KronRowsOp>()) alike = alike && group_of(other) == group_of(k);
      // A value that a branch leaves has no one place where it is made.
      alike = alike && !e.first.getDefiningOp<scf::IfOp>();
    }
    rows.all = tile_type(k.getTile()).getDimSize(1);
    if (!alike || largest <= most_elements || rows.all <= most_rows) return;
    rows.group = group_of(k);
    const std::int64_t groups = rows.all / rows.group;
    std::int64_t together = 1;
    for (std::int64_t n = 2; n * rows.group <= most_rows && n < groups; ++n)
      if (groups % n == 0) together = n;
    rows.block = together * rows.group;
    if (rows.block < rows.all) found = std::move(rows);
  });
  return found;
}

class Walker {
public:
  Walker(KernelOp kernel, Rows rows) : kernel_(kernel), rows_(std::move(rows)) {}

  void run() {
    kernel_.walk([&](scf::ForOp loop) {
      for (auto [argument, result] : llvm::zip(loop.getRegionIterArgs(), loop.getResults())) {
        if (!rows_.contains(argument)) continue;
        Value home = scratch(tile_type(argument));
        homes_[argument] = homes_[result] = home;
      }
    });
    block(kernel_.getBody().front());
    for (Operation* store : stores_) store->erase();
    erase_unneeded(kernel_);
  }

private:
  bool carries(scf::ForOp loop) const {
    return llvm::any_of(loop.getRegionIterArgs(), [&](Value v) { return rows_.contains(v); });
  }
  /// Whether an op sums over the rows.
  bool is_sum(Operation* op) const {
    if (auto dot = dyn_cast<DotOp>(op)) return rows_.contains(dot.getA()) && rows_.axis.lookup(dot.getA()) == 1;
    auto reduce = dyn_cast<ReduceOp>(op);
    return reduce && rows_.contains(reduce.getX()) &&
           rows_.axis.lookup(reduce.getX()) == static_cast<int>(reduce.getAxis());
  }
  bool is_walked_store(Operation* op) const { return isa<StoreOp>(op) && rows_.contains(op->getOperand(0)); }

  Value scratch(RankedTensorType type) {
    OpBuilder builder = OpBuilder::atBlockBegin(&kernel_.getBody().front());
    SmallVector<std::int64_t> shape(type.getShape());
    if (shape[0] == 1) shape.erase(shape.begin());
    auto view =
        ViewType::get(builder.getContext(), shape, type.getElementType(), static_cast<std::int64_t>(shape.size()) - 1);
    return ScratchOp::create(builder, kernel_.getLoc(), view);
  }

  /// What a loop over the rows leaves behind.
  struct Work {
    SmallVector<Operation*> sums, stores;
    SmallVector<std::pair<Value, Value>> updates;  ///< a value, and the scratch that gets it
    bool empty() const { return sums.empty() && stores.empty() && updates.empty(); }
  };

  // A block falls in stretches, each up to a loop that carries such states or to the block's end.
  void block(Block& b) {
    auto ops = llvm::map_to_vector(b, [](Operation& op) { return &op; });
    SmallVector<Operation*> stretch;
    for (Operation* op : ops) {
      auto loop = dyn_cast<scf::ForOp>(op);
      const bool ends = (loop && carries(loop)) || op->hasTrait<OpTrait::IsTerminator>();
      if (!ends) {
        stretch.push_back(op);
        continue;
      }
      this->stretch(stretch, b, op);
      stretch.clear();
      if (loop) block(*loop.getBody());
    }
    this->stretch(stretch, b, nullptr);
  }

  /// The values of `end` that go to a scratch: what a loop starts from, or what its turn leaves.
  void updates_of(Operation* end, Work& work) const {
    auto loop = dyn_cast_or_null<scf::ForOp>(end);
    SmallVector<Value> values;
    if (loop)
      values.assign(loop.getInitArgs().begin(), loop.getInitArgs().end());
    else if (auto yield = dyn_cast_or_null<scf::YieldOp>(end);
             yield && (loop = dyn_cast<scf::ForOp>(end->getParentOp())))
      values.assign(yield->operand_begin(), yield->operand_end());
    else
      return;
    for (auto [argument, value] : llvm::zip(loop.getRegionIterArgs(), values))
      if (rows_.contains(argument) && value != argument) work.updates.push_back({value, homes_.lookup(argument)});
  }

  void stretch(ArrayRef<Operation*> ops, Block& b, Operation* end) {
    Work late;
    updates_of(end, late);
    llvm::SetVector<Operation*> before;  // what must come before the last loop
    for (Operation* op : ops) {
      if (is_walked_store(op)) late.stores.push_back(op);
      if (isa<ScratchOp>(op)) before.insert(op);
      if (op->getNumRegions() == 0) continue;
      for (Region& region : op->getRegions())
        for (Block& inner : region) block(inner);
      before.insert(op);
      need(op, b, before);
    }
    for (auto [value, home] : late.updates) need_outer(value, b, before);
    for (Operation* store : late.stores) {
      need_outer(store->getOperand(0), b, before);
      for (Value v : store->getOperands().drop_front()) need(v, b, before);
    }
    for (Operation* op : llvm::reverse(ops)) {
      if (!is_sum(op)) continue;
      for (Value v : op->getOperands()) need_outer(v, b, before);
      if (!before.contains(op)) late.sums.insert(late.sums.begin(), op);
    }
    for (Operation* op : ops)
      if (is_sum(op) && before.contains(op)) {
        OpBuilder builder(op);
        Work early;
        early.sums.push_back(op);
        walk(builder, early);
      }
    if (late.empty()) return;
    OpBuilder builder = end ? OpBuilder(end) : OpBuilder::atBlockEnd(&b);
    walk(builder, late);
    // What it does not need follows it: what needs its sums, and what would take registers while it works.
    for (Operation* op : ops) {
      if (before.contains(op) || is_sum(op)) continue;
      if (end)
        op->moveBefore(end);
      else
        op->moveBefore(&b, b.end());
    }
    llvm::append_range(stores_, late.stores);
  }

  /// Adds the ops of a block that a value needs.
  void need(Value v, Block& b, llvm::SetVector<Operation*>& out) const {
    Operation* op = v.getDefiningOp();
    op = op ? b.findAncestorOpInBlock(*op) : nullptr;
    if (op && out.insert(op)) need(op, b, out);
  }
  void need(Operation* op, Block& b, llvm::SetVector<Operation*>& out) const {
    op->walk([&](Operation* inner) {
      for (Value v : inner->getOperands()) need(v, b, out);
    });
  }
  /// Adds those that what is walked of a value needs, through what is walked itself.
  void need_outer(Value v, Block& b, llvm::SetVector<Operation*>& out) const {
    if (!rows_.contains(v)) return need(v, b, out);
    if (homes_.contains(v)) return;
    for (Value operand : v.getDefiningOp()->getOperands()) need_outer(operand, b, out);
  }

  /// A loop over blocks of rows. The uses of its sums read its results.
  void walk(OpBuilder& builder, const Work& work) {
    const Location loc = kernel_.getLoc();
    auto index = [&](std::int64_t i) { return arith::ConstantIndexOp::create(builder, loc, i).getResult(); };
    SmallVector<Value> zeros;
    for (Operation* sum : work.sums) {
      auto type = tile_type(sum->getResult(0));
      Value zero = ConstantOp::create(builder, loc, RankedTensorType::get({1, 1}, type.getElementType()),
                                      builder.getF64FloatAttr(0));
      zeros.push_back(type.getNumElements() == 1 ? zero : BroadcastOp::create(builder, loc, type, zero).getResult());
    }
    auto loop = scf::ForOp::create(builder, loc, index(0), index(rows_.all), index(rows_.block), zeros);
    Block* body = loop.getBody();
    if (!body->empty()) body->back().erase();
    OpBuilder inside = OpBuilder::atBlockEnd(body);
    Turn turn{inside, loop.getInductionVar(), llvm::DenseMap<Value, Value>()};
    SmallVector<Value> sums, values;
    for (auto [sum, before] : llvm::zip(work.sums, loop.getRegionIterArgs())) {
      IRMapping mapping;
      for (Value v : sum->getOperands()) mapping.map(v, part(v, turn));
      Value own = inside.clone(*sum, mapping)->getResult(0);
      sums.push_back(arith::AddFOp::create(inside, loc, before, own));
    }
    // All of a turn reads the state as it was.
    for (auto [value, home] : work.updates) values.push_back(part(value, turn));
    for (Operation* store : work.stores) values.push_back(part(store->getOperand(0), turn));
    for (auto [update, value] : llvm::zip(work.updates, values))
      StoreOp::create(inside, loc, value, view_part(update.second, turn), ValueRange());
    for (auto [op, value] : llvm::zip(work.stores, ArrayRef(values).drop_front(work.updates.size()))) {
      auto store = cast<StoreOp>(op);
      StoreOp::create(inside, loc, value, view_part(store.getView(), turn), store.getIndices());
    }
    scf::YieldOp::create(inside, loc, sums);
    for (auto [sum, result] : llvm::zip(work.sums, loop.getResults())) sum->getResult(0).replaceAllUsesWith(result);
  }

  /// One turn of a loop over blocks: its first row, and what it has made.
  struct Turn {
    OpBuilder& builder;
    Value row;
    llvm::DenseMap<Value, Value> parts;
  };

  Value view_part(Value view, Turn& turn) const {
    auto type = cast<ViewType>(view.getType());
    SmallVector<std::int64_t> shape(type.getShape());
    const bool is_row = type.getInner().size() == 1;
    shape[shape.size() - (is_row ? 1 : 2)] = rows_.block;
    auto part = ViewType::get(turn.builder.getContext(), shape, type.getElementType(), type.getUnit());
    if (is_row) return ColumnsOp::create(turn.builder, view.getLoc(), part, view, turn.row);
    return RowBlockOp::create(turn.builder, view.getLoc(), part, view, turn.row);
  }

  /// The part of a value that a turn works on; what has none of the rows is the same for all.
  Value part(Value v, Turn& turn) const {
    if (!rows_.contains(v)) return v;
    if (Value known = turn.parts.lookup(v)) return known;
    auto type = tile_type(v);
    SmallVector<std::int64_t> shape(type.getShape());
    shape[static_cast<std::size_t>(rows_.axis.lookup(v))] = rows_.block;
    auto part_type = RankedTensorType::get(shape, type.getElementType());
    Value made;
    if (Value home = homes_.lookup(v)) {
      made = LoadOp::create(turn.builder, v.getLoc(), part_type, view_part(home, turn), ValueRange());
    } else if (auto load = v.getDefiningOp<LoadOp>()) {
      made = LoadOp::create(turn.builder, v.getLoc(), part_type, view_part(load.getView(), turn), load.getIndices());
    } else if (auto kron = v.getDefiningOp<KronRowsOp>()) {
      made = products(kron, part_type, turn);
    } else if (auto constant = v.getDefiningOp<arith::ConstantOp>()) {
      auto splat = cast<SplatElementsAttr>(constant.getValue());
      made = arith::ConstantOp::create(turn.builder, v.getLoc(), splat.resizeSplat(part_type));
    } else {
      IRMapping mapping;
      for (Value operand : v.getDefiningOp()->getOperands()) mapping.map(operand, part(operand, turn));
      made = turn.builder.clone(*v.getDefiningOp(), mapping)->getResult(0);
      made.setType(part_type);
    }
    turn.parts[v] = made;
    return made;
  }

  /// Rows times rows, for some columns of the first operand. One column is a factor of each row.
  Value products(KronRowsOp kron, RankedTensorType type, Turn& turn) const {
    OpBuilder& builder = turn.builder;
    const Location loc = kron.getLoc();
    const std::int64_t columns = rows_.block / rows_.group;
    Value group = arith::ConstantIndexOp::create(builder, loc, rows_.group);
    Value first = arith::DivSIOp::create(builder, loc, turn.row, group);
    Value right = kron.getY() ? kron.getY() : kron.getX();
    Value left = PickColumnsOp::create(
        builder, loc, RankedTensorType::get({type.getDimSize(0), columns}, type.getElementType()), kron.getX(), first);
    if (columns > 1) return KronRowsOp::create(builder, loc, type, left, right);
    if (rows_.group > 1) left = BroadcastOp::create(builder, loc, type, left);
    return arith::MulFOp::create(builder, loc, left, right);
  }

  KernelOp kernel_;
  Rows rows_;
  llvm::DenseMap<Value, Value> homes_;  ///< of what a loop carries: where it lies
  SmallVector<Operation*> stores_;
};

}  // namespace

bool walk_states(KernelOp kernel, std::int64_t most_elements, std::int64_t most_rows) {
  auto rows = rows_to_walk(kernel, most_elements, most_rows);
  if (!rows) return false;
  Walker(kernel, std::move(*rows)).run();
  walk_states(kernel, most_elements, most_rows);  // other rows
  return true;
}

LogicalResult walk_states(ModuleOp module) {
  auto given = module->getAttrOfType<IntegerAttr>("tile.walk_elements");
  const std::int64_t most_elements = given ? given.getInt() : 32768, most_rows = 128;
  module.walk([&](KernelOp kernel) { walk_states(kernel, most_elements, most_rows); });
  return success();
}

}  // namespace latile::simt
