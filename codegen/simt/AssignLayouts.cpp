#include "codegen/simt/AssignLayouts.h"
#include "codegen/simt/Orient.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace latile::simt {

using namespace tile;

std::optional<Layout> layout_of(Type type) {
  auto tile = dyn_cast<RankedTensorType>(type);
  auto attribute = tile ? dyn_cast_or_null<LayoutAttr>(tile.getEncoding()) : LayoutAttr();
  if (!attribute) return std::nullopt;
  return Layout::parse(attribute.getText());
}

RankedTensorType with_layout(RankedTensorType type, const Layout& layout) {
  return type.cloneWithEncoding(LayoutAttr::get(type.getContext(), layout.text()));
}

/// The largest power of two that divides x, at most `most`.
static int power_in(std::int64_t x, int most) {
  int p = 1;
  while (p < most && x % (2 * p) == 0) p *= 2;
  return p;
}

static int pieces(std::int64_t extent, int piece) { return static_cast<int>((extent + piece - 1) / piece); }

Layout Choice::of(std::int64_t rows, std::int64_t columns) const {
  if (rows == 1 && columns == 1) return replicated(1, 1, target_.lanes, warps_);
  if (rows == 1) return blocked(1, 16 * pieces(columns, 16), 1, target_.lanes, warps_);
  if (columns == 1)
    return accumulators(rows, target_.free_operand == FreeOperand::b ? 16 * most_warps_ : 16).slice(Axis::columns);
  return accumulators(rows, columns);
}

Layout Choice::accumulators(std::int64_t rows, std::int64_t columns) const {
  // Two fragments of 8 columns make the 16 terms of an operand.
  const MatrixInstruction& mi = target_.products.front().instruction;
  int wide = std::max(mi.n, 16), m = pieces(rows, mi.m), n = pieces(columns, wide);
  int down = 1, across = 1;
  if (target_.free_operand == FreeOperand::b) {
    across = power_in(n, std::min(warps_, most_warps_));
    down = power_in(m, warps_ / across);
  } else {
    down = power_in(m, std::min(warps_, most_warps_));
    across = power_in(n, warps_ / down);
    // Replicas cost registers: of a tall state more than what its column vectors cost elsewhere.
    down *= power_in(m / down, warps_ / (down * across));
  }
  return mi.c.repeated({{Axis::columns, n * (wide / mi.n) / across, Carrier::registers},
                        {Axis::rows, m / down, Carrier::registers},
                        {Axis::rows, down, Carrier::warps},
                        {Axis::columns, across, Carrier::warps},
                        {Axis::none, warps_ / (down * across), Carrier::warps}});
}

bool Choice::accumulator_is_operand(std::int64_t rows, std::int64_t columns) const {
  const MatrixInstruction& mi = target_.products.front().instruction;
  const int most = std::min(warps_, most_warps_);
  return target_.free_operand == FreeOperand::b ? power_in(pieces(columns, std::max(mi.n, 16)), most) == warps_
                                                : power_in(pieces(rows, mi.m), most) == warps_;
}

Layout Choice::staged(std::int64_t rows, std::int64_t columns, int element_bytes, bool by_rows) const {
  if (by_rows) return staged(columns, rows, element_bytes, false).transposed();
  return blocked(static_cast<int>(rows), static_cast<int>(columns), target_.vector_bytes / element_bytes, target_.lanes,
                 warps_);
}

int threads_for(KernelOp kernel, const Target& target) {
  std::int64_t most = 0;
  auto note = [&](Value v) {
    if (auto type = dyn_cast<RankedTensorType>(v.getType()))
      most = std::max<std::int64_t>(most, 256LL * pieces(type.getDimSize(0), 16) * pieces(type.getDimSize(1), 16));
  };
  kernel.walk([&](Operation* op) {
    for (Value v : op->getResults()) note(v);
  });
  // A state that a loop carries is at home in registers; where there is none, several wide tiles are alive at a time.
  bool carries = false;
  kernel.walk([&](scf::ForOp loop) { carries |= loop.getNumRegionIterArgs() != 0; });
  int threads = 4 * target.lanes;
  if (auto least = kernel->getParentOp()->getAttrOfType<IntegerAttr>("tile.least_threads"); least && carries)
    threads = std::max(threads, static_cast<int>(least.getInt()));
  const int registers = carries ? 64 : 32;
  while (threads < 16 * target.lanes && most / threads > registers) threads *= 2;
  return threads;
}

namespace {

bool is_element_wise(Operation* op) {
  return op->hasTrait<OpTrait::Elementwise>() && op->getNumResults() == 1 && op->getNumRegions() == 0;
}

bool is_matrix(Value v) {
  auto type = dyn_cast<RankedTensorType>(v.getType());
  return type && type.getDimSize(0) > 1 && type.getDimSize(1) > 1;
}

/// Only products read the value, transposed or not: it lies in shared memory.
bool feeds_products_only(Value v) {
  return !v.use_empty() && llvm::all_of(v.getUsers(), [](Operation* user) {
    if (auto t = dyn_cast<TransposeOp>(user)) return feeds_products_only(t.getTile());
    return isa<DotOp>(user);
  });
}

/// Matrices that come from memory, or from ops whose results lie in shared memory, and end there, with element-wise
/// work and reductions between: threads hold pieces of rows, as loads and stores want them. Whatever meets an
/// accumulator, through element-wise work, is held as that is. Only outside of loops: what a loop loads waits in shared
/// memory.
class Pieces {
public:
  explicit Pieces(KernelOp kernel) : block_(&kernel.getBody().front()) {
    // Scores need all registers while they are made; what comes after them is not held until then.
    bool scores = false;
    kernel.walk([&](Operation* op) { scores |= isa<DecayedScoresOp, DecayedApplyOp>(op); });
    if (scores) return;
    for (Operation& op : *block_) result(&op);
    kernel.walk([&](Operation* op) {
      for (Value x : op->getOperands())
        if (nodes_.contains(x) && !reads_pieces(op)) refuse(x);
    });
  }

  bool contains(Value v) const {
    auto at = nodes_.find(v);
    return at != nodes_.end() && !refused_[static_cast<std::size_t>(root(at->second))];
  }
  /// A load or a broadcast serves any layout, and has that of its users where they agree.
  bool is_wanted(Value v) const {
    return is_matrix(v) && !v.use_empty() && llvm::any_of(v.getUsers(), [&](Operation* user) {
             return user->getNumResults() == 1 && contains(user->getResult(0));
           });
  }
  /// Pieces are as wide as the widest access of elements of so many bytes.
  int element_bytes() const { return bytes_; }

private:
  static bool is_row_wise(Operation* op) { return is_element_wise(op) || isa<NeutralOp, MaskOp>(op); }
  static bool is_running(Operation* op) { return isa<CumsumOp, CummaxOp, LogcumsumexpOp, AffineScanOp>(op); }
  /// Results lie in shared memory, and operands are read there.
  static bool is_in_memory(Operation* op) { return is_running(op) || isa<InverseUnitLowerOp, SolveUnitLowerOp>(op); }
  bool reads_pieces(Operation* op) const {
    if (op->getBlock() != block_) return false;
    if (auto t = dyn_cast<TransposeOp>(op)) return feeds_products_only(t.getTile());
    if (auto s = dyn_cast<StoreOp>(op)) return is_along_columns(s.getView().getType());
    if (auto s = dyn_cast<StoreRowsOp>(op)) return is_along_columns(s.getView().getType());
    return is_row_wise(op) || is_in_memory(op) || isa<ReduceOp, RowOp, DotOp>(op);
  }
  static bool is_along_columns(ViewType view) { return view.getUnit() == view.getRank() - 1; }

  void result(Operation* op) {
    if (op->getNumResults() != 1 || !is_matrix(op->getResult(0))) return;
    Value v = op->getResult(0);
    if (isa<LoadOp, LoadRowsOp, BroadcastOp>(op)) return;
    const int own = node(v);
    if (!is_row_wise(op) && !is_in_memory(op)) return refuse(v);
    if (is_running(op)) bytes_ = 4;
    for (Value x : op->getOperands()) {
      if (!is_matrix(x)) continue;
      Operation* source = x.getDefiningOp();
      if (!source || source->getBlock() != block_) return refuse(v);
      if (isa<LoadOp, LoadRowsOp>(source) && cast<RankedTensorType>(x.getType()).getElementTypeBitWidth() == 32)
        bytes_ = 4;
      // What lies in shared memory or comes from global memory may be read in any layout.
      if (isa<LoadOp, LoadRowsOp, BroadcastOp, arith::ConstantOp>(source) || is_in_memory(source)) continue;
      const int other = root(node(x)), mine = root(own);
      parents_[static_cast<std::size_t>(other)] = mine;
      if (refused_[static_cast<std::size_t>(other)]) refused_[static_cast<std::size_t>(mine)] = true;
    }
  }

  int node(Value v) {
    auto [at, added] = nodes_.try_emplace(v, static_cast<int>(parents_.size()));
    if (added) {
      parents_.push_back(at->second);
      refused_.push_back(false);
    }
    return at->second;
  }
  int root(int i) const {
    while (parents_[static_cast<std::size_t>(i)] != i) i = parents_[static_cast<std::size_t>(i)];
    return i;
  }
  void refuse(Value v) { refused_[static_cast<std::size_t>(root(node(v)))] = true; }

  Block* block_;
  llvm::DenseMap<Value, int> nodes_;
  std::vector<int> parents_;
  std::vector<bool> refused_;
  int bytes_ = 2;
};

class Assigner {
public:
  Assigner(KernelOp kernel, const Target& target)
      : kernel_(kernel), choice_(target, threads_for(kernel, target)), pieces_(kernel) {
    kernel->setAttr("threads", Builder(kernel.getContext()).getI64IntegerAttr(threads_for(kernel, target)));
  }

  void run() { block(kernel_.getBody().front()); }

private:
  static RankedTensorType type_of(Value v) { return dyn_cast<RankedTensorType>(v.getType()); }

  void set(Value v, const Layout& layout) {
    auto type = with_layout(type_of(v), layout);
    v.setType(type);
    if (auto constant = v.getDefiningOp<arith::ConstantOp>())
      if (auto splat = dyn_cast<SplatElementsAttr>(constant.getValue())) constant.setValueAttr(splat.resizeSplat(type));
  }
  void set_by_shape(Value v) {
    if (auto type = type_of(v)) set(v, choice_.of(type.getDimSize(0), type.getDimSize(1)));
  }
  void set_pieces(Value v) {
    auto type = type_of(v);
    set(v, choice_.staged(type.getDimSize(0), type.getDimSize(1), pieces_.element_bytes(), false));
  }

  /// The operand in a layout, converted right before its user.
  void require(OpOperand& operand, const Layout& layout) {
    Value v = operand.get();
    auto type = type_of(v);
    if (!type) return;
    auto wanted = with_layout(type, layout);
    if (type == wanted) return;
    Operation* user = operand.getOwner();
    OpBuilder builder(user);
    Value& made = converted_[{v, wanted, user->getBlock()}];
    if (!made) made = ConvertLayoutOp::create(builder, v.getLoc(), wanted, v);
    operand.set(made);
  }
  void require_all(Operation* op, const Layout& layout) {
    for (OpOperand& operand : op->getOpOperands()) {
      auto type = type_of(operand.get()), result = type_of(op->getResult(0));
      if (type && type.getShape() == result.getShape()) require(operand, layout);
    }
  }

  void load(Value v, ViewType view, bool strided_rows) {
    auto type = type_of(v);
    std::int64_t rows = type.getDimSize(0), columns = type.getDimSize(1);
    if (pieces_.is_wanted(v)) return set_pieces(v);
    if (rows == 1 || columns == 1 || !feeds_products_only(v)) return set_by_shape(v);
    // Along the axis whose stride is 1.
    bool by_rows = strided_rows && view.getInner().size() == 2 && view.getUnit() == view.getRank() - 2;
    set(v, choice_.staged(rows, columns, static_cast<int>(type.getElementTypeBitWidth()) / 8, by_rows));
  }

  void block(Block& b) {
    for (Operation& op : llvm::make_early_inc_range(b)) operation(&op);
  }

  void operation(Operation* op) {
    llvm::TypeSwitch<Operation*>(op)
        .Case<scf::ForOp>([&](scf::ForOp loop) { this->loop(loop); })
        .Case<scf::IfOp>([&](scf::IfOp branch) {
          for (Region& region : branch->getRegions())
            if (!region.empty()) block(region.front());
          for (auto [i, result] : llvm::enumerate(branch.getResults())) {
            if (!type_of(result)) continue;
            set_by_shape(result);
            for (Region& region : branch->getRegions())
              require(region.front().getTerminator()->getOpOperand(static_cast<unsigned>(i)),
                      *layout_of(result.getType()));
          }
        })
        .Case<SolveOp, CustomOp>([&](auto inner) {
          set_by_shape(inner.getTile());
          require_all(inner, *layout_of(inner.getTile().getType()));
          for (Region& region : inner->getRegions()) this->region(region);
        })
        .Case<LoadOp>([&](LoadOp l) { load(l.getTile(), l.getView().getType(), true); })
        .Case<LoadRowsOp>([&](LoadRowsOp l) { load(l.getTile(), l.getView().getType(), false); })
        .Case<TransposeOp>([&](TransposeOp t) { set(t.getTile(), layout_of(t.getX().getType())->transposed()); })
        .Case<BroadcastOp>([&](BroadcastOp b) {
          if (pieces_.is_wanted(b.getTile()))
            set_pieces(b.getTile());
          else
            set_by_shape(b.getTile());
          Layout slice = *layout_of(b.getTile().getType());
          auto from = b.getX().getType(), to = b.getTile().getType();
          if (from.getDimSize(0) == 1 && to.getDimSize(0) > 1) slice = slice.slice(Axis::rows);
          if (from.getDimSize(1) == 1 && to.getDimSize(1) > 1) slice = slice.slice(Axis::columns);
          require(b->getOpOperand(0), slice);
        })
        .Case<ReduceOp>([&](ReduceOp r) {
          set(r.getTile(), layout_of(r.getX().getType())->slice(r.getAxis() ? Axis::columns : Axis::rows));
        })
        .Default([&](Operation* other) {
          for (Value v : other->getResults()) {
            if (pieces_.contains(v))
              set_pieces(v);
            else
              set_by_shape(v);
          }
          if (other->getNumResults() != 1 || !type_of(other->getResult(0))) return;
          // Types that must match: element-wise ops, and those of the dialect that work row by row.
          bool alike =
              is_element_wise(other) || isa<NeutralOp, MaskOp, PrevOp, CumsumOp, CummaxOp, LogcumsumexpOp, AffineScanOp,
                                            InverseUnitLowerOp, SolveUnitLowerOp, ContractKronOp>(other);
          if (alike) require_all(other, *layout_of(other->getResult(0).getType()));
        });
  }

  void loop(scf::ForOp loop) {
    for (auto [i, argument] : llvm::enumerate(loop.getRegionIterArgs())) {
      if (!type_of(argument)) continue;
      set_by_shape(argument);
      require(loop.getInitArgsMutable()[i], *layout_of(argument.getType()));
      set_by_shape(loop.getResult(static_cast<unsigned>(i)));
    }
    block(*loop.getBody());
    Operation* yield = loop.getBody()->getTerminator();
    for (auto [i, argument] : llvm::enumerate(loop.getRegionIterArgs()))
      if (type_of(argument)) require(yield->getOpOperand(static_cast<unsigned>(i)), *layout_of(argument.getType()));
  }

  /// A function of tiles: arguments and results by shape.
  void region(Region& region) {
    for (Value v : region.getArguments()) set_by_shape(v);
    block(region.front());
    for (OpOperand& operand : region.front().getTerminator()->getOpOperands())
      if (auto type = type_of(operand.get())) require(operand, choice_.of(type.getDimSize(0), type.getDimSize(1)));
  }

  KernelOp kernel_;
  Choice choice_;
  Pieces pieces_;
  llvm::DenseMap<std::tuple<Value, Type, Block*>, Value> converted_;
};

}  // namespace

LogicalResult assign_layouts(ModuleOp module) {
  const Target* target = target_of(module);
  if (!target) return failure();
  module.walk([&](KernelOp kernel) { Assigner(kernel, *target).run(); });
  return success();
}

}  // namespace latile::simt
