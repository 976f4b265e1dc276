#include "codegen/simt/Ties.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace latile::simt {

using namespace tile;

RankedTensorType tile_type(Value v) { return dyn_cast<RankedTensorType>(v.getType()); }
std::int64_t size_of(Extent e) { return tile_type(e.first).getDimSize(e.second); }

void resize(Value v, int axis, std::int64_t extent) {
  auto type = tile_type(v);
  SmallVector<std::int64_t> shape(type.getShape());
  shape[static_cast<std::size_t>(axis)] = extent;
  v.setType(RankedTensorType::get(shape, type.getElementType(), type.getEncoding()));
  if (auto constant = v.getDefiningOp<arith::ConstantOp>())
    if (auto splat = dyn_cast<SplatElementsAttr>(constant.getValue()))
      constant.setValueAttr(splat.resizeSplat(cast<ShapedType>(v.getType())));
}

std::optional<Access> access_of(Operation* op) {
  return llvm::TypeSwitch<Operation*, std::optional<Access>>(op)
      .Case<LoadOp, LoadRowsOp, StoreOp, StoreRowsOp>([](auto o) { return Access{o.getTile(), o.getView()}; })
      .Default([](Operation*) { return std::nullopt; });
}
bool is_store(Operation* op) { return isa<StoreOp, StoreRowsOp>(op); }

Ties::Ties(KernelOp kernel, Parts parts) : parts_(parts) {
  kernel.walk([&](Operation* op) { visit(op); });
}

std::vector<Extent> Ties::widest() const {
  llvm::DenseMap<int, std::vector<Extent>> sets;
  llvm::DenseSet<int> stopped;
  for (auto [i, e] : llvm::enumerate(extents_)) {
    sets[leader(static_cast<int>(i))].push_back(e);
    if (stopped_.contains(static_cast<int>(i))) stopped.insert(leader(static_cast<int>(i)));
  }
  std::vector<Extent> best;
  std::int64_t best_elements = 0;
  for (std::size_t i = 0; i < extents_.size(); ++i) {  // in the order of the kernel, not of the map
    const int own = static_cast<int>(i);
    if (leader(own) != own || stopped.contains(own) || size_of(extents_[i]) < 2) continue;
    std::int64_t elements = 0;
    for (Extent e : sets[own]) elements += tile_type(e.first).getNumElements();
    if (elements > best_elements) best = sets[own], best_elements = elements;
  }
  return best;
}

std::vector<Extent> Ties::of(Extent e) const {
  auto at = numbers_.find(e);
  if (at == numbers_.end()) return {};
  std::vector<Extent> out;
  for (std::size_t i = 0; i < extents_.size(); ++i) {
    if (leader(static_cast<int>(i)) != leader(at->second)) continue;
    if (stopped_.contains(static_cast<int>(i))) return {};
    out.push_back(extents_[i]);
  }
  return out;
}

int Ties::number(Extent e) {
  auto [at, added] = numbers_.try_emplace(e, static_cast<int>(extents_.size()));
  if (added) {
    extents_.push_back(e);
    ties_.insert(at->second);
  }
  return at->second;
}
void Ties::stop(Value v, int axis) {
  if (tile_type(v)) stopped_.insert(number({v, axis}));
}
void Ties::stop(Value v) {
  stop(v, 0);
  stop(v, 1);
}
void Ties::stop_all(Operation* op) {
  for (Value v : op->getOperands()) stop(v);
  for (Value v : op->getResults()) stop(v);
  for (Region& region : op->getRegions())
    for (Block& block : region)
      for (Value v : block.getArguments()) stop(v);
}
void Ties::tie(Value a, int i, Value b, int j) {
  if (size_of({a, i}) == size_of({b, j}))
    ties_.unionSets(number({a, i}), number({b, j}));
  else if (size_of({a, i}) > 1 && size_of({b, j}) > 1) {  // shapes that no op has: no parts rather than wrong ones
    stop(a, i);
    stop(b, j);
  }
}
void Ties::tie(Value a, Value b) {
  tie(a, 0, b, 0);
  tie(a, 1, b, 1);
}
/// Rows are in some order that matters, columns stand side by side.
void Ties::by_columns(Operation* op) {
  Value first = op->getResult(0);
  for (Value v : op->getOperands()) {
    if (!tile_type(v)) continue;
    stop(v, 0);
    tie(v, 1, first, 1);
  }
  stop(first, 0);
}

void Ties::access(const Access& access, Operation* op) {
  const std::size_t inner = cast<ViewType>(access.view.getType()).getInner().size();
  // A row of a state stands for its column where rows are meant: [1,D] of a view with one inner extent.
  const int free = parts_ == Parts::columns ? 1 : inner == 2 ? 0 : 1;
  stop(access.tile, 1 - free);
  if (inner == 0 || (parts_ == Parts::rows && !isa<LoadOp, StoreOp>(op))) stop(access.tile, free);
  number({access.tile, free});
}

void Ties::product(DotOp d) {
  tie(d.getA(), 0, d.getTile(), 0);
  tie(d.getB(), 1, d.getTile(), 1);
  if (parts_ == Parts::rows) return tie(d.getA(), 1, d.getB(), 0);
  stop(d.getA(), 1);
  stop(d.getB(), 0);
}

void Ties::visit(Operation* op) {
  if (auto found = access_of(op)) return access(*found, op);
  llvm::TypeSwitch<Operation*>(op)
      .Case<scf::ForOp>([&](scf::ForOp loop) {
        for (auto [init, argument, yielded, result] :
             llvm::zip(loop.getInitArgs(), loop.getRegionIterArgs(), loop.getYieldedValues(), loop.getResults())) {
          if (!tile_type(init)) continue;
          tie(init, argument);
          tie(init, yielded);
          tie(init, result);
        }
      })
      .Case<scf::IfOp>([&](scf::IfOp branch) {
        for (auto [i, result] : llvm::enumerate(branch.getResults())) {
          if (!tile_type(result)) continue;
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
      .Case<DotOp>([&](DotOp d) { product(d); })
      .Case<ReduceOp>([&](ReduceOp r) {
        int axis = static_cast<int>(r.getAxis());
        if (parts_ == Parts::columns || r.getKind() != ReduceKind::Sum)
          stop(r.getX(), axis);
        else
          number({r.getX(), axis});
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
      .Case<KronRowsOp>([&](KronRowsOp k) {
        for (Value v : k->getOperands()) stop(v);
        stop(k.getTile(), 0);
        if (parts_ == Parts::columns)
          stop(k.getTile(), 1);
        else
          number({k.getTile(), 1});
      })
      .Default([&](Operation* other) {
        bool alike = other->hasTrait<OpTrait::Elementwise>() && other->getNumResults() == 1;
        if (!alike) return stop_all(other);
        for (Value v : other->getOperands())
          if (tile_type(v)) tie(v, other->getResult(0));
      });
}

}  // namespace latile::simt
