#include "codegen/simt/Orient.h"
#include "codegen/simt/AssignLayouts.h"
#include "codegen/Targets.h"
#include "dialect/Tile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace latile::simt {

using namespace tile;

const Target* target_of(ModuleOp module) {
  auto name = module->getAttrOfType<StringAttr>("tile.target");
  const Target* target = find_target(name ? name.getValue() : StringRef("sm_80"));
  if (target) return target;
  std::string known;
  for (std::string_view n : target_names()) known += (known.empty() ? "" : ", ") + std::string(n);
  module.emitError() << "no target is named " << name << "; there are " << known;
  return nullptr;
}

namespace {

RankedTensorType matrix_type(Value v) {
  auto type = dyn_cast<RankedTensorType>(v.getType());
  return type && type.getDimSize(0) > 1 && type.getDimSize(1) > 1 ? type : RankedTensorType();
}
bool is_matrix(Value v) { return matrix_type(v) != nullptr; }

std::int64_t bytes_of(Value v) {
  auto type = matrix_type(v);
  return type ? type.getNumElements() * ((type.getElementTypeBitWidth() + 7) / 8) : 0;
}

bool is_element_wise(Operation* op) {
  return op->hasTrait<OpTrait::Elementwise>() && op->getNumResults() == 1 && op->getNumRegions() == 0;
}

bool is_access(Operation* op) { return isa<LoadOp, LoadRowsOp, StoreOp, StoreRowsOp>(op); }

/// A tile that comes from memory and is only an operand of products lies in shared memory, either way round.
bool is_staged(Value v) {
  while (auto transpose = v.getDefiningOp<TransposeOp>()) v = transpose.getX();
  return v.getDefiningOp<LoadOp>() || v.getDefiningOp<LoadRowsOp>();
}

std::int64_t weight_of(Operation* op) {
  std::int64_t weight = 1;
  for (auto loop = op->getParentOfType<scf::ForOp>(); loop; loop = loop->getParentOfType<scf::ForOp>()) weight *= 16;
  return weight;
}

/// Values held the same way round, or one transposed where the other is not (`odd`).
class Groups {
public:
  struct Member {
    int group;
    bool odd;
  };

  explicit Groups(KernelOp kernel) {
    kernel.walk([&](Operation* op) {
      for (Value v : op->getResults())
        if (is_matrix(v)) (void)node(v);
      for (Region& region : op->getRegions())
        for (Block& block : region)
          for (Value v : block.getArguments())
            if (is_matrix(v)) (void)node(v);
      if (auto loop = dyn_cast<scf::ForOp>(op)) {
        for (auto [init, argument, yielded, result] :
             llvm::zip(loop.getInitArgs(), loop.getRegionIterArgs(), loop.getYieldedValues(), loop.getResults())) {
          tie(argument, init, false);
          tie(argument, yielded, false);
          tie(argument, result, false);
        }
      } else if (auto branch = dyn_cast<scf::IfOp>(op)) {
        for (auto [i, result] : llvm::enumerate(branch.getResults())) {
          tie(result, branch.thenYield().getOperand(static_cast<unsigned>(i)), false);
          tie(result, branch.elseYield().getOperand(static_cast<unsigned>(i)), false);
        }
      } else if (auto transpose = dyn_cast<TransposeOp>(op)) {
        tie(transpose.getX(), transpose.getTile(), true);
      } else if (is_element_wise(op)) {
        for (Value v : op->getOperands()) tie(op->getResult(0), v, false);
      }
    });
    for (std::size_t i = 0; i < parents_.size(); ++i) {
      auto [root, odd] = find(static_cast<int>(i));
      auto [at, added] = numbers_.try_emplace(root, count_);
      count_ += added;
      members_.push_back({at->second, odd});
    }
  }

  int count() const { return count_; }
  Member of(Value v) const { return members_[static_cast<std::size_t>(nodes_.lookup(v))]; }

private:
  int node(Value v) {
    auto [at, added] = nodes_.try_emplace(v, static_cast<int>(parents_.size()));
    if (added) parents_.push_back({at->second, false});
    return at->second;
  }
  Member find(int i) const {
    bool odd = false;
    while (parents_[static_cast<std::size_t>(i)].group != i) {
      odd ^= parents_[static_cast<std::size_t>(i)].odd;
      i = parents_[static_cast<std::size_t>(i)].group;
    }
    return {i, odd};
  }
  /// Values that would be tied to themselves the other way round stay apart: a transposition between them is real.
  void tie(Value a, Value b, bool odd) {
    if (!is_matrix(a) || !is_matrix(b) || is_staged(a) || is_staged(b)) return;
    Member x = find(node(a)), y = find(node(b));
    if (x.group != y.group)
      parents_[static_cast<std::size_t>(y.group)] = {x.group, static_cast<bool>(x.odd ^ y.odd ^ odd)};
  }

  llvm::DenseMap<Value, int> nodes_;
  std::vector<Member> parents_, members_;
  llvm::DenseMap<int, int> numbers_;
  int count_ = 0;
};

/// What a choice costs in bytes through shared memory.
class Costs {
public:
  Costs(KernelOp kernel, const Groups& groups, const Target& target)
      : groups_(groups), free_(target.free_operand), layouts_(target, threads_for(kernel, target)) {
    kernel.walk([&](Operation* op) { terms_.push_back({op, weight_of(op)}); });
  }

  std::int64_t of(const std::vector<bool>& turned) const {
    std::int64_t sum = 0;
    for (const auto& [op, weight] : terms_) sum += weight * of(op, turned);
    return sum;
  }
  bool is_turned(Value v, const std::vector<bool>& turned) const {
    if (!is_matrix(v) || is_staged(v)) return false;
    auto member = groups_.of(v);
    return turned[static_cast<std::size_t>(member.group)] ^ member.odd;
  }

private:
  std::int64_t of(Operation* op, const std::vector<bool>& turned) const {
    if (auto dot = dyn_cast<DotOp>(op)) {
      bool turn = is_turned(dot.getTile(), turned);
      // The operand that may be an accumulator, and the way round it must be held for that.
      Value candidate = (free_ == FreeOperand::a) != turn ? dot.getA() : dot.getB();
      if (auto result = matrix_type(dot.getTile());
          result && !layouts_.accumulator_is_operand(result.getDimSize(turn), result.getDimSize(!turn)))
        candidate = {};
      std::int64_t sum = 0;
      for (Value v : {dot.getA(), dot.getB()}) {
        if (is_staged(v) || (v == candidate && is_turned(v, turned) == turn)) continue;
        sum += bytes_of(v);
      }
      return sum;
    }
    if (is_element_wise(op) || isa<scf::ForOp, scf::IfOp, scf::YieldOp, TransposeOp>(op)) {
      // A staged operand is read as it is; where an element-wise op reads it, the result's way decides.
      std::int64_t sum = 0;
      if (is_element_wise(op) && is_turned(op->getResult(0), turned))
        for (Value v : op->getOperands())
          if (is_matrix(v) && is_staged(v)) sum += bytes_of(v);
      return sum;
    }
    if (isa<BroadcastOp>(op)) {
      // A column becomes a row: an exchange of the vector.
      Value v = op->getResult(0);
      return is_matrix(v) && is_turned(v, turned) ? 1 : 0;
    }
    // Loads, stores and all that knows rows from columns.
    std::int64_t sum = 0;
    for (Value v : op->getOperands())
      if (is_turned(v, turned)) sum += bytes_of(v);
    if (!is_access(op))
      for (Value v : op->getResults())
        if (is_turned(v, turned)) sum += bytes_of(v);
    return sum;
  }

  const Groups& groups_;
  FreeOperand free_;
  Choice layouts_;
  std::vector<std::pair<Operation*, std::int64_t>> terms_;
};

/// Groups of products' results and operands: no other is worth turning.
std::vector<std::size_t> of_products(KernelOp kernel, const Groups& groups) {
  std::vector<bool> in(static_cast<std::size_t>(groups.count()));
  kernel.walk([&](DotOp dot) {
    for (Value v : {Value(dot.getA()), Value(dot.getB()), Value(dot.getTile())})
      if (is_matrix(v) && !is_staged(v)) in[static_cast<std::size_t>(groups.of(v).group)] = true;
  });
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < in.size(); ++i)
    if (in[i]) out.push_back(i);
  return out;
}

/// The cheapest choice that single and double changes reach, from nothing turned or from all products turned (a chain
/// of three or more pays only as a whole).
std::vector<bool> cheapest(const Costs& costs, int count, const std::vector<std::size_t>& candidates) {
  auto improved = [&](std::vector<bool> turned) {
    std::int64_t best = costs.of(turned);
    auto attempt = [&](std::initializer_list<std::size_t> flips) {
      for (std::size_t i : flips) turned[i] = !turned[i];
      std::int64_t cost = costs.of(turned);
      if (cost < best) {
        best = cost;
        return true;
      }
      for (std::size_t i : flips) turned[i] = !turned[i];
      return false;
    };
    auto improve = [&] {
      bool any = false;
      for (std::size_t i : candidates) any = attempt({i}) || any;
      if (any) return true;
      for (std::size_t i : candidates)
        for (std::size_t j : candidates)
          if (j < i && attempt({i, j})) return true;
      return false;
    };
    while (improve()) {}
    return std::pair(best, turned);
  };
  std::vector<bool> none(static_cast<std::size_t>(count)), all = none;
  for (std::size_t i : candidates) all[i] = true;
  auto a = improved(none), b = improved(all);
  return b.first < a.first ? b.second : a.second;
}

/// Rewrites a kernel for a choice.
class Turner {
public:
  Turner(const Costs& costs, const std::vector<bool>& turned) : costs_(costs), turned_(turned) {}

  void run(KernelOp kernel) {
    // Before anything changes: which values are to be turned.
    kernel.walk([&](Operation* op) {
      for (Value v : op->getResults()) note(v);
      for (Region& region : op->getRegions())
        for (Block& block : region)
          for (Value v : block.getArguments()) note(v);
    });
    if (chosen_.empty()) return;
    block(kernel.getBody().front());
    for (Operation* transpose : llvm::reverse(made_))
      if (transpose->use_empty()) transpose->erase();
  }

private:
  void note(Value v) {
    if (costs_.is_turned(v, turned_)) chosen_.insert(v);
  }
  static RankedTensorType turned_type(Type t) {
    auto type = cast<RankedTensorType>(t);
    return RankedTensorType::get({type.getDimSize(1), type.getDimSize(0)}, type.getElementType());
  }
  /// The transpose of a value, made right after it.
  Value turn(Value v) {
    if (Value known = turns_.lookup(v)) return known;
    OpBuilder builder(v.getContext());
    builder.setInsertionPointAfterValue(v);
    auto made = TransposeOp::create(builder, v.getLoc(), turned_type(v.getType()), v);
    made_.push_back(made);
    turns_[v] = made;
    turns_[made] = v;
    return made;
  }
  /// `made` is what `old` was, transposed; users of `old` get its transpose.
  void replace(Value old, Value made) {
    OpBuilder builder(made.getContext());
    builder.setInsertionPointAfterValue(made);
    auto plain = TransposeOp::create(builder, made.getLoc(), turned_type(made.getType()), made);
    made_.push_back(plain);
    old.replaceAllUsesExcept(plain, plain);
    turns_[plain] = made;
    turns_[made] = plain;
  }
  /// Changes the type of a value that others already use.
  void retype(Value v) {
    v.setType(turned_type(v.getType()));
    replace(v, v);
  }

  void block(Block& b) {
    for (Operation& op : llvm::make_early_inc_range(b)) operation(&op);
  }

  void operation(Operation* op) {
    if (auto loop = dyn_cast<scf::ForOp>(op)) return this->loop(loop);
    if (auto branch = dyn_cast<scf::IfOp>(op)) return this->branch(branch);
    if (op->getNumResults() != 1 || !chosen_.contains(op->getResult(0))) return;
    OpBuilder builder(op);
    Value old = op->getResult(0);
    Type type = turned_type(old.getType());
    if (auto dot = dyn_cast<DotOp>(op)) {
      replace(old, DotOp::create(builder, op->getLoc(), type, turn(dot.getB()), turn(dot.getA()), dot.getPrecise()));
    } else if (auto broadcast = dyn_cast<BroadcastOp>(op)) {
      Value x = broadcast.getX();
      bool scalar = cast<RankedTensorType>(x.getType()).getNumElements() == 1;
      replace(old, BroadcastOp::create(builder, op->getLoc(), type, scalar ? x : turn(x)));
    } else if (is_element_wise(op)) {
      Operation* clone = builder.clone(*op);
      for (OpOperand& operand : clone->getOpOperands())
        if (isa<RankedTensorType>(operand.get().getType())) operand.set(turn(operand.get()));
      clone->getResult(0).setType(type);
      replace(old, clone->getResult(0));
    } else {
      return;  // made as it is; users that want it turned transpose it
    }
    op->erase();
  }

  void loop(scf::ForOp loop) {
    llvm::SmallVector<unsigned> which;
    for (auto [i, argument] : llvm::enumerate(loop.getRegionIterArgs()))
      if (chosen_.contains(argument)) which.push_back(static_cast<unsigned>(i));
    for (unsigned i : which) {
      loop.getInitArgsMutable()[i].set(turn(loop.getInitArgs()[i]));
      retype(loop.getRegionIterArg(i));
      retype(loop.getResult(i));
    }
    block(*loop.getBody());
    auto yield = cast<scf::YieldOp>(loop.getBody()->getTerminator());
    for (unsigned i : which) yield->setOperand(i, turn(yield.getOperand(i)));
  }

  void branch(scf::IfOp branch) {
    for (Region& region : branch->getRegions())
      if (!region.empty()) block(region.front());
    for (auto [i, result] : llvm::enumerate(branch.getResults())) {
      if (!chosen_.contains(result)) continue;
      for (scf::YieldOp yield : {branch.thenYield(), branch.elseYield()})
        yield->setOperand(static_cast<unsigned>(i), turn(yield.getOperand(static_cast<unsigned>(i))));
      retype(result);
    }
  }

  const Costs& costs_;
  const std::vector<bool>& turned_;
  llvm::DenseSet<Value> chosen_;
  llvm::DenseMap<Value, Value> turns_;
  std::vector<Operation*> made_;
};

}  // namespace

LogicalResult orient(ModuleOp module) {
  const Target* target = target_of(module);
  if (!target) return failure();
  if (target->free_operand == FreeOperand::none) return success();
  module.walk([&](KernelOp kernel) {
    Groups groups(kernel);
    Costs costs(kernel, groups, *target);
    Turner(costs, cheapest(costs, groups.count(), of_products(kernel, groups))).run(kernel);
  });
  return success();
}

}  // namespace latile::simt
