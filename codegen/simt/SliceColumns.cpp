#include "codegen/simt/SliceColumns.h"
#include "codegen/simt/SharedStates.h"
#include "codegen/simt/Ties.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace latile::simt {

using namespace tile;

namespace {

/// The set to slice, and its extent.
struct Choice {
  std::vector<Extent> members;
  std::int64_t extent = 0;
};

std::optional<Choice> choose(KernelOp kernel) {
  if (kernel->hasAttr("slices")) return std::nullopt;
  std::vector<Extent> members = Ties(kernel, Ties::Parts::columns).widest();
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
      carries = carries || (tile_type(v) && tile_type(v).getDimSize(0) > 1 && tile_type(v).getDimSize(1) > 1);
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
