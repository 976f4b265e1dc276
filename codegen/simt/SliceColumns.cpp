#include "codegen/simt/SliceColumns.h"
#include "codegen/simt/SharedStates.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace latile::simt {

using namespace tile;

namespace {

/// Axis 0 or 1 of a tile.
using Extent = std::pair<Value, int>;

RankedTensorType type_of(Value v) { return dyn_cast<RankedTensorType>(v.getType()); }

std::int64_t size_of(Extent e) { return type_of(e.first).getDimSize(e.second); }

/// The tile that an access reads or writes, and the view.
struct Access {
  Value tile, view;
};
std::optional<Access> access_of(Operation* op) {
  return llvm::TypeSwitch<Operation*, std::optional<Access>>(op)
      .Case<LoadOp, LoadRowsOp, StoreOp, StoreRowsOp>(
          [](auto access) { return Access{access.getTile(), access.getView()}; })
      .Default([](Operation*) { return std::nullopt; });
}
bool is_store(Operation* op) { return isa<StoreOp, StoreRowsOp>(op); }

/// Which extents of tiles are one, and which of them some op looks at as a whole.
class Ties {
public:
  explicit Ties(KernelOp kernel) : kernel_(kernel) {
    kernel.walk([&](Operation* op) { visit(op); });
  }

  /// The members of the widest free set, or nothing.
  std::vector<Extent> widest() {
    llvm::DenseMap<int, std::vector<Extent>> sets;
    llvm::DenseSet<int> stopped;
    for (auto [i, e] : llvm::enumerate(extents_)) {
      int leader = static_cast<int>(ties_.getOrInsertLeaderValue(static_cast<int>(i)));
      sets[leader].push_back(e);
      if (stopped_.contains(static_cast<int>(i))) stopped.insert(leader);
    }
    std::vector<Extent> best;
    std::int64_t best_elements = 0;
    for (std::size_t i = 0; i < extents_.size(); ++i) {  // in the order of the kernel, not of the map
      int leader = static_cast<int>(ties_.getOrInsertLeaderValue(static_cast<int>(i)));
      if (leader != static_cast<int>(i) || stopped.contains(leader) || size_of(extents_[i]) < 2) continue;
      std::int64_t elements = 0;
      for (Extent e : sets[leader]) elements += type_of(e.first).getNumElements();
      if (elements > best_elements) best = sets[leader], best_elements = elements;
    }
    return best;
  }

private:
  int number(Extent e) {
    auto [at, added] = numbers_.try_emplace(e, static_cast<int>(extents_.size()));
    if (added) {
      extents_.push_back(e);
      ties_.insert(at->second);
    }
    return at->second;
  }
  void stop(Value v, int axis) {
    if (type_of(v)) stopped_.insert(number({v, axis}));
  }
  void stop(Value v) {
    stop(v, 0);
    stop(v, 1);
  }
  void tie(Value a, int i, Value b, int j) {
    if (size_of({a, i}) == size_of({b, j}))
      ties_.unionSets(number({a, i}), number({b, j}));
    else if (size_of({a, i}) > 1 && size_of({b, j}) > 1) {  // shapes that no op has: no slicing rather than a wrong one
      stop(a, i);
      stop(b, j);
    }
  }
  void tie(Value a, Value b) {
    tie(a, 0, b, 0);
    tie(a, 1, b, 1);
  }
  /// Rows are in some order that matters, columns stand side by side.
  void by_columns(Operation* op) {
    Value first = op->getResult(0);
    for (Value v : op->getOperands()) {
      if (!type_of(v)) continue;
      stop(v, 0);
      tie(v, 1, first, 1);
    }
    stop(first, 0);
  }
  void stop_all(Operation* op) {
    for (Value v : op->getOperands()) stop(v);
    for (Value v : op->getResults()) stop(v);
    for (Region& region : op->getRegions())
      for (Block& block : region)
        for (Value v : block.getArguments()) stop(v);
  }

  void visit(Operation* op) {
    if (auto access = access_of(op)) {
      auto view = cast<ViewType>(access->view.getType());
      stop(access->tile, 0);
      if (view.getInner().empty()) stop(access->tile, 1);
      number({access->tile, 1});
      return;
    }
    llvm::TypeSwitch<Operation*>(op)
        .Case<scf::ForOp>([&](scf::ForOp loop) {
          for (auto [init, argument, yielded, result] :
               llvm::zip(loop.getInitArgs(), loop.getRegionIterArgs(), loop.getYieldedValues(), loop.getResults())) {
            if (!type_of(init)) continue;
            tie(init, argument);
            tie(init, yielded);
            tie(init, result);
          }
        })
        .Case<scf::IfOp>([&](scf::IfOp branch) {
          for (auto [i, result] : llvm::enumerate(branch.getResults())) {
            if (!type_of(result)) continue;
            tie(result, branch.thenYield().getOperand(static_cast<unsigned>(i)));
            tie(result, branch.elseYield().getOperand(static_cast<unsigned>(i)));
          }
        })
        .Case<CustomOp>([&](CustomOp custom) { stop_all(custom); })
        .Case<scf::YieldOp, KernelOp>([](auto) {})  // with the loop, the branch
        .Case<arith::ConstantOp>([&](arith::ConstantOp constant) {
          if (!isa<SplatElementsAttr>(constant.getValue())) stop_all(constant);
        })
        .Case<TransposeOp>([&](TransposeOp t) {
          tie(t.getX(), 0, t.getTile(), 1);
          tie(t.getX(), 1, t.getTile(), 0);
        })
        .Case<BroadcastOp, CastOp, ConvertLayoutOp>([&](auto o) { tie(o.getX(), o.getTile()); })
        .Case<DotOp>([&](DotOp d) {
          tie(d.getA(), 0, d.getTile(), 0);
          tie(d.getB(), 1, d.getTile(), 1);
          stop(d.getA(), 1);
          stop(d.getB(), 0);
        })
        .Case<ReduceOp>([&](ReduceOp r) {
          int axis = static_cast<int>(r.getAxis());
          stop(r.getX(), axis);
          tie(r.getX(), 1 - axis, r.getTile(), 1 - axis);
        })
        .Case<NeutralOp, RowOp, PlaceRowOp, PrevOp, RepeatRowsOp, SumRowsOp, CumsumOp, CummaxOp, LogcumsumexpOp,
              AffineScanOp>([&](auto o) { by_columns(o); })
        .Case<DecayedApplyOp>([&](DecayedApplyOp d) {
          by_columns(d);
          stop(d.getA());
        })
        .Case<SolveUnitLowerOp>([&](SolveUnitLowerOp s) {
          stop(s.getA());
          stop(s.getTile(), 0);
          tie(s.getB(), s.getTile());
        })
        .Default([&](Operation* other) {
          bool alike = other->hasTrait<OpTrait::Elementwise>() && other->getNumResults() == 1;
          if (!alike) return stop_all(other);
          for (Value v : other->getOperands())
            if (type_of(v)) tie(v, other->getResult(0));
        });
  }

  KernelOp kernel_;
  llvm::DenseMap<Extent, int> numbers_;
  std::vector<Extent> extents_;
  llvm::EquivalenceClasses<int> ties_;
  llvm::DenseSet<int> stopped_;
};

/// The set to slice, and its extent.
struct Choice {
  std::vector<Extent> members;
  std::int64_t extent = 0;
};

std::optional<Choice> choose(KernelOp kernel) {
  if (kernel->hasAttr("slices")) return std::nullopt;
  std::vector<Extent> members = Ties(kernel).widest();
  if (members.empty()) return std::nullopt;
  llvm::DenseSet<Extent> in(members.begin(), members.end());
  // A tensor that every slice reads must not be one that the first slice writes.
  llvm::DenseSet<Value> read, written;
  bool fits = true;
  kernel.walk([&](Operation* op) {
    auto access = access_of(op);
    if (!access || in.contains({access->tile, 1})) return;
    (is_store(op) ? written : read).insert(access->view);
    if (access->view.getDefiningOp<ColumnsOp>()) fits = fits && !is_store(op);
  });
  for (Value view : written) fits = fits && !read.contains(view);
  if (!fits) return std::nullopt;
  return Choice{members, size_of(members.front())};
}

void resize(Value v, int axis, std::int64_t extent) {
  auto type = type_of(v);
  SmallVector<std::int64_t> shape(type.getShape());
  shape[static_cast<std::size_t>(axis)] = extent;
  v.setType(RankedTensorType::get(shape, type.getElementType(), type.getEncoding()));
  if (auto constant = v.getDefiningOp<arith::ConstantOp>())
    if (auto splat = dyn_cast<SplatElementsAttr>(constant.getValue()))
      constant.setValueAttr(splat.resizeSplat(cast<ShapedType>(v.getType())));
}

}  // namespace

std::int64_t sliceable_columns(KernelOp kernel) {
  auto choice = choose(kernel);
  return choice ? choice->extent : 0;
}

bool slice_columns(KernelOp kernel, std::int64_t slices, std::int64_t granule) {
  if (slices < 2) return false;
  auto choice = choose(kernel);
  if (!choice || choice->extent % (granule * slices) != 0) return false;
  std::int64_t extent = choice->extent / slices;
  llvm::DenseSet<Extent> in(choice->members.begin(), choice->members.end());

  // The grid's new axis comes last: it is the fastest, so that blocks beside each other share what they read.
  OpBuilder builder(kernel.getContext());
  auto axes = static_cast<unsigned>(kernel.getGrid().size());
  Block& body = kernel.getBody().front();
  Value slice = body.insertArgument(axes, builder.getIndexType(), kernel.getLoc());
  SmallVector<Attribute> grid(kernel.getGrid().getValue());
  grid.push_back(builder.getStringAttr("slice"));
  kernel.setGridAttr(builder.getArrayAttr(grid));
  SmallVector<Type> inputs(body.getArgumentTypes());
  kernel.setFunctionType(builder.getFunctionType(inputs, {}));
  kernel->setAttr("slices", builder.getI64IntegerAttr(slices));

  builder.setInsertionPointToStart(&body);
  Value width = arith::ConstantIndexOp::create(builder, kernel.getLoc(), extent);
  Value first = arith::MulIOp::create(builder, kernel.getLoc(), slice, width);
  llvm::MapVector<Value, Value> columns;
  auto columns_of = [&](Value view) {
    Value& made = columns[view];
    if (made) return made;
    auto type = cast<ViewType>(view.getType());
    SmallVector<std::int64_t> shape(type.getShape());
    shape.back() = extent;
    OpBuilder::InsertionGuard guard(builder);
    if (Operation* op = view.getDefiningOp()) builder.setInsertionPointAfter(op);
    made = ColumnsOp::create(builder, kernel.getLoc(),
                             ViewType::get(builder.getContext(), shape, type.getElementType(), type.getUnit()), view,
                             first);
    return made;
  };
  SmallVector<Operation*> accesses, shared_stores;
  kernel.walk([&](Operation* op) {
    auto access = access_of(op);
    if (!access) return;
    if (in.contains({access->tile, 1}))
      accesses.push_back(op);
    else if (is_store(op))
      shared_stores.push_back(op);
  });
  for (Operation* op : accesses) {
    Value view = access_of(op)->view;
    op->replaceUsesOfWith(view, columns_of(view));
  }
  // A pointer that is wanted behind a loop shall not take registers in it.
  for (auto [view, made] : columns) {
    Operation* first_use = nullptr;
    for (Operation* user : made.getUsers())
      if (Operation* at = made.getParentBlock()->findAncestorOpInBlock(*user);
          at && (!first_use || at->isBeforeInBlock(first_use)))
        first_use = at;
    if (first_use) made.getDefiningOp()->moveBefore(first_use);
  }
  for (Extent e : choice->members) resize(e.first, e.second, extent);
  if (!shared_stores.empty()) {
    builder.setInsertionPointAfter(first.getDefiningOp());
    Value zero = arith::ConstantIndexOp::create(builder, kernel.getLoc(), 0);
    Value is_first = arith::CmpIOp::create(builder, kernel.getLoc(), arith::CmpIPredicate::eq, slice, zero);
    for (Operation* op : shared_stores) {
      builder.setInsertionPoint(op);
      auto branch = scf::IfOp::create(builder, op->getLoc(), is_first, /*withElseRegion=*/false);
      op->moveBefore(branch.thenYield());
    }
  }
  return true;
}

static bool carries_a_tile(KernelOp kernel) {
  bool carries = false;
  kernel.walk([&](scf::ForOp loop) {
    for (Value v : loop.getInitArgs())
      carries = carries || (type_of(v) && type_of(v).getDimSize(0) > 1 && type_of(v).getDimSize(1) > 1);
  });
  return carries;
}

/// Slices a kernel in pieces of at most so many columns, of a multiple of `granule`: the fewest that it allows, or
/// none.
static void slice(KernelOp kernel, std::int64_t most, std::int64_t granule) {
  std::int64_t extent = sliceable_columns(kernel);
  const std::int64_t fewest_columns = std::max<std::int64_t>(granule, 8);
  for (std::int64_t slices = (extent + most - 1) / most; slices <= extent / fewest_columns; ++slices)
    if (slice_columns(kernel, slices, granule)) return;
}

LogicalResult slice_columns(ModuleOp module) {
  auto given = [&](llvm::StringRef name, std::int64_t otherwise) {
    auto attribute = module->getAttrOfType<IntegerAttr>(name);
    return attribute ? attribute.getInt() : otherwise;
  };
  const std::int64_t most = given("tile.slice_columns", 64), granule = given("tile.slice_granule", 16);
  SmallVector<KernelOp> kernels;
  module.walk([&](KernelOp kernel) {
    if (carries_a_tile(kernel)) kernels.push_back(kernel);
  });
  for (KernelOp kernel : kernels) {
    // Half of 64 columns still pay for what each slice repeats, where more blocks find an idle multiprocessor.
    const bool twice = most >= 64 && sliceable_columns(kernel) > most;
    OpBuilder builder(kernel->getContext());
    builder.setInsertionPointAfter(kernel);
    auto whole = cast<KernelOp>(builder.clone(*kernel));
    auto narrow = twice ? cast<KernelOp>(builder.clone(*kernel)) : KernelOp();
    slice(kernel, most, granule);
    if (narrow) slice(narrow, most / 2, granule);
    if (narrow && (!kernel->hasAttr("slices") || !narrow->hasAttr("slices"))) {
      narrow.erase();
      narrow = {};
    }
    store_shared_states(kernel, narrow, whole);
    if (!narrow) continue;
    narrow.setSymName((kernel.getSymName() + "_narrow").str());
    kernel->setAttr("narrow", FlatSymbolRefAttr::get(narrow.getSymNameAttr()));
  }
  return success();
}

}  // namespace latile::simt
