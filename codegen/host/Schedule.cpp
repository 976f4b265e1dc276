#include "codegen/host/Schedule.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace latile::host {

using namespace tile;

OperandForm operand_form(mlir::Value v) {
  OperandForm form{v, false};
  while (mlir::Operation* op = form.value.getDefiningOp()) {
    if (auto c = mlir::dyn_cast<CastOp>(op))
      form.value = c.getX();
    else if (auto t = mlir::dyn_cast<TransposeOp>(op))
      form = {t.getX(), !form.transposed};
    else
      break;
  }
  return form;
}

mlir::Value uncast(mlir::Value v) {
  while (auto c = v.getDefiningOp<CastOp>()) v = c.getX();
  return v;
}

bool is_outer(DotOp d) { return extents(d.getA())[1] == 1; }

bool is_elementwise(mlir::Operation* op) {
  return llvm::isa<mlir::arith::ArithDialect, mlir::math::MathDialect>(op->getDialect()) ||
         mlir::isa<CastOp, NeutralOp, MaskOp, SigmoidOp, SoftplusOp>(op);
}

static bool is_wide(mlir::Value v) { return is_tile(v) && extents(v)[1] > 1; }
static bool is_row_product(mlir::Operation* op) {
  auto d = mlir::dyn_cast<DotOp>(op);
  return d && !is_outer(d) && extents(d.getTile())[0] == 1 && extents(d.getTile())[1] > 1;
}

bool reads_in_place(mlir::Value v) {
  auto load = v.getDefiningOp<LoadOp>();
  if (!load) return false;
  ViewType view = load.getView().getType();
  return view.getElementType().isF32() && view.getInner().size() == 2 && view.getUnit() == view.getRank() - 1;
}

Streaming streaming(mlir::Value v) {
  auto load = v.getDefiningOp<LoadOp>();
  if (!load || load.getView().getType().getInner().size() != 2) return Streaming::none;
  std::int64_t from_last = load.getView().getType().getRank() - 1 - load.getView().getType().getUnit();
  return from_last == 0 ? Streaming::rows : from_last == 1 ? Streaming::columns : Streaming::none;
}

mlir::Value inclusive_of(mlir::Value exclusive) {
  auto sum = exclusive.getDefiningOp<CumsumOp>();
  if (!sum || !sum.getExclusive() || sum.getReverse()) return nullptr;
  for (mlir::Operation* user : sum.getX().getUsers())
    if (auto other = mlir::dyn_cast<CumsumOp>(user);
        other && other->getBlock() == sum->getBlock() && !other.getExclusive() && !other.getReverse())
      return other.getTile();
  return nullptr;
}

RunningDecay running_decay(mlir::Value v) {
  auto power = v.getDefiningOp<mlir::math::Exp2Op>();
  if (!power || !is_tile(v) || extents(v)[0] == 1 || extents(v)[1] == 1) return {};
  RunningDecay found{power.getOperand(), false};
  if (auto gap = found.gates.getDefiningOp<mlir::arith::SubFOp>()) {
    auto last = gap.getLhs().getDefiningOp<BroadcastOp>();
    auto row = last ? last.getX().getDefiningOp<RowOp>() : nullptr;
    if (!row || row.getPick() != PickKind::Last || row.getX() != gap.getRhs()) return {};
    found = {gap.getRhs(), true};
  }
  auto sum = found.gates.getDefiningOp<CumsumOp>();
  if (!sum || sum.getReverse() || (found.rest && sum.getExclusive())) return {};
  auto decays = [](mlir::Value gates) {
    return gates && llvm::any_of(gates.getUsers(), [](mlir::Operation* user) {
             return mlir::isa<DecayedScoresOp, DecayedApplyOp>(user);
           });
  };
  return decays(found.gates) || decays(inclusive_of(found.gates)) ? found : RunningDecay{};
}

bool is_bfloat16_product(DotOp d) {
  auto result = extents(d.getTile());
  return d.getA().getType().getElementType().isBF16() && !d.getPrecise() && !is_outer(d) && result[0] > 1 &&
         result[1] > 1;
}

/// True when something reads the value itself, not, as most products do, what it is a transpose of.
static bool is_evaluated(mlir::Value v) {
  return llvm::any_of(v.getUses(), [](mlir::OpOperand& use) {
    mlir::Operation* user = use.getOwner();
    if (auto c = mlir::dyn_cast<CastOp>(user)) return is_evaluated(c.getTile());
    auto d = mlir::dyn_cast<DotOp>(user);
    // A column of products takes its left operand row by row.
    return !d || (extents(d.getTile())[1] == 1 && use.getOperandNumber() == 0);
  });
}

/// True for a view of states, of all their columns or some.
static bool holds_state(mlir::Value view) {
  while (auto columns = view.getDefiningOp<ColumnsOp>()) view = columns.getView();
  return mlir::cast<ViewType>(view.getType()).getInner().size() == 2;
}

Storage::Storage(KernelOp kernel, Bfloat16 engine) : engine_(engine) {
  kernel.walk([&](mlir::Operation* op) { visit(op); });
  kernel.walk<mlir::WalkOrder::PreOrder>([&](mlir::Operation* op) { settle(op); });
}

void Storage::visit(mlir::Operation* op) {
  auto need = [&](mlir::Value v, unsigned form) {
    if (is_wide(v)) needs_[v] |= form;
  };
  // A row that every row of a tile reads is computed once.
  auto repeated = [&](mlir::Value row, std::int64_t times) {
    mlir::Operation* def = row.getDefiningOp();
    if (times > 1 && extents(row)[0] == 1 && def && !mlir::isa<LoadOp, LoadRowsOp>(def)) need(row, plain);
  };
  if (auto d = mlir::dyn_cast<DotOp>(op)) {
    bool column = extents(d.getTile())[1] == 1;
    if (engine_ != Bfloat16::widen && is_bfloat16_product(d)) {
      OperandForm a = operand_form(d.getA()), c = operand_form(d.getB());
      bool tiles = engine_ == Bfloat16::tiles;
      need(a.value, !a.transposed ? halves : tiles ? halves_flipped | pairs : pairs);
      need(c.value, c.transposed ? pairs_flipped | halves : pairs);
      if (tiles) need(d.getTile(), plain);
    } else if (!is_outer(d) && !column) {
      OperandForm a = operand_form(d.getA()), c = operand_form(d.getB());
      need(a.value, is_row_product(op) ? plain | copied : plain);
      // A product of one row passes over the state in memory; what has more rows passes over a copy.
      bool passes = is_row_product(op) && d.getB() == c.value && streaming(c.value) != Streaming::none;
      if (!passes) need(c.value, c.transposed ? flipped : plain);
    }
    if (is_row_product(op)) need(d.getTile(), plain);
    if (is_outer(d)) repeated(d.getB(), extents(d.getTile())[0]);
  } else if (auto x = mlir::dyn_cast<BroadcastOp>(op)) {
    repeated(x.getX(), extents(x.getTile())[0]);
  } else if (auto s = mlir::dyn_cast<SolveUnitLowerOp>(op)) {
    need(uncast(s.getA()), plain | copied);
    need(s.getTile(), plain);
  } else if (auto i = mlir::dyn_cast<InverseUnitLowerOp>(op)) {
    need(i.getX(), plain | copied);
    need(i.getTile(), plain);
  } else if (auto t = mlir::dyn_cast<TransposeOp>(op)) {
    if (extents(t.getX())[0] > 1 && is_evaluated(t.getTile())) need(t.getX(), flipped);
  } else if (auto scores = mlir::dyn_cast<DecayedScoresOp>(op)) {
    for (mlir::Value v : {scores.getQ(), scores.getGr(), scores.getTile()}) need(v, plain | copied);
    if (splits_into_blocks(scores, engine_))
      for (mlir::Value v : {scores.getK(), scores.getGc()}) need(v, plain | copied);
  } else if (auto apply = mlir::dyn_cast<DecayedApplyOp>(op)) {
    for (mlir::Value v : {apply.getA(), apply.getGr(), apply.getTile()}) need(v, plain | copied);
    if (apply.getTransposed()) need(apply.getX(), plain | copied);
  } else if (auto solve = mlir::dyn_cast<SolveOp>(op)) {
    need(solve.getTile(), plain);
    need(solve.getMap().front().getArgument(0), plain);
  } else if (mlir::isa<CumsumOp, CummaxOp, LogcumsumexpOp, AffineScanOp, KronRowsOp, LookupOp, SumRowsOp>(op)) {
    need(op->getResult(0), plain);
  } else if (mlir::isa<mlir::math::Exp2Op>(op)) {
    if (running_decay(op->getResult(0)).gates) need(op->getResult(0), plain);
  } else if (auto reduce = mlir::dyn_cast<ReduceOp>(op)) {
    need(op->getResult(0), plain);
  } else if (mlir::isa<StoreOp, StoreRowsOp>(op)) {
    keep_moved(op);
  }
}

// A state may be written where it was read. An element that is stored from the state's element at another place is
// taken from a copy then: nobody can say in which order elements are written.
void Storage::keep_moved(mlir::Operation* store) {
  llvm::SmallVector<mlir::Value> open{store->getOperand(0)};
  llvm::DenseSet<mlir::Value> seen;
  bool of_state = mlir::isa<StoreOp>(store);
  if (auto rows = mlir::dyn_cast<StoreRowsOp>(store)) of_state = holds_state(rows.getView());
  while (of_state && !open.empty()) {
    mlir::Value v = open.pop_back_val();
    mlir::Operation* op = v.getDefiningOp();
    // What a loop carries has buffers of its own.
    if (!op || mlir::isa<mlir::scf::ForOp>(op) || !is_wide(v) || !seen.insert(v).second) continue;
    auto rows = mlir::dyn_cast<LoadRowsOp>(op);
    bool state = mlir::isa<LoadOp>(op) || (rows && holds_state(rows.getView()));
    if (state && (rows || reads_elsewhere(store->getOperand(0), v, *this))) needs_[v] |= plain | copied;
    llvm::append_range(open, op->getOperands());
  }
}

// In order, so that the cost of an operand is known before its user's.
void Storage::settle(mlir::Operation* op) {
  if (op->getNumResults() != 1 || !is_tile(op->getResult(0))) return;
  mlir::Value v = op->getResult(0);
  bool costly = mlir::isa<mlir::math::Exp2Op, mlir::math::ExpOp, mlir::math::LogOp, mlir::math::Log2Op,
                          mlir::math::TanhOp, mlir::math::RsqrtOp, mlir::math::SqrtOp, mlir::arith::DivFOp, SigmoidOp,
                          SoftplusOp, DecayOp, LoadRowsOp>(op);
  if (auto d = mlir::dyn_cast<DotOp>(op)) costly = !is_outer(d);
  for (mlir::Value operand : op->getOperands())
    costly |= is_wide(operand) && !forms(operand) && costly_.lookup(operand);
  costly_[v] = costly;
  if (!is_wide(v)) return;
  std::size_t uses = 0;
  for (mlir::OpOperand& use : v.getUses()) uses += !mlir::isa<DotOp>(use.getOwner());
  uses += (forms(v) & halves ? 1 : 0) + (forms(v) & pairs ? 1 : 0);
  bool load = mlir::isa<LoadRowsOp, LoadOp>(op);
  if (costly && uses > 1 && !load) needs_[v] |= plain;
  if (auto d = mlir::dyn_cast<DotOp>(op); d && !is_outer(d) && !forms(v) && !fuses(v)) needs_[v] |= plain;
}

// A product is computed inside the register block of the value that uses it, as long as only elementwise work lies
// between them and the user is written block by block.
bool Storage::fuses(mlir::Value v) const {
  while (true) {
    if (!v.hasOneUse()) return forms(v) != 0;
    if (forms(v)) return true;
    mlir::Operation* user = *v.getUsers().begin();
    if (mlir::isa<StoreRowsOp, StoreOp, mlir::scf::YieldOp>(user)) return true;
    if (auto s = mlir::dyn_cast<SolveUnitLowerOp>(user)) return s.getB() == v;
    if (auto d = mlir::dyn_cast<DotOp>(user)) return !is_outer(d) && extents(d.getTile())[1] > 1;
    if (!is_elementwise(user)) return false;
    v = user->getResult(0);
  }
}

void gather_row_products(mlir::Block& block) {
  llvm::DenseMap<mlir::Operation*, int> depth;
  std::vector<std::pair<std::tuple<int, int, std::size_t>, mlir::Operation*>> order;  // level, product, place
  bool any = false;
  for (mlir::Operation& op : block) {
    if (op.getNumRegions() || op.hasTrait<mlir::OpTrait::IsTerminator>()) return;
    int level = 0;
    for (mlir::Value v : op.getOperands())
      if (mlir::Operation* def = v.getDefiningOp(); def && def->getBlock() == &block)
        level = std::max(level, depth[def] + (is_row_product(def) ? 1 : 0));
    // Stores stay where they are, after everything.
    bool writes = mlir::isa<StoreRowsOp, StoreOp>(op);
    depth[&op] = level;
    any |= is_row_product(&op);
    order.push_back({{writes ? 1 << 20 : level, is_row_product(&op) ? 1 : 0, order.size()}, &op});
  }
  if (!any) return;
  llvm::sort(order, [](auto& x, auto& y) { return x.first < y.first; });
  for (auto& [key, op] : order) op->moveBefore(&block, block.end());
}

static bool search(mlir::Value v, mlir::Value leaf, const Storage& storage, bool own_place, bool any_place) {
  if (v == leaf) return any_place || !own_place;
  if (!is_tile(v)) return false;
  mlir::Operation* op = v.getDefiningOp();
  if (!op) return false;
  bool keeps = is_elementwise(op) || mlir::isa<BroadcastOp>(op);
  for (mlir::Value operand : op->getOperands()) {
    // A stored operand was written before; only the leaf itself is read now.
    mlir::Value source = mlir::isa<DotOp>(op) ? operand_form(operand).value : operand;
    if (source != leaf && (storage.forms(source) || !is_wide(source))) continue;
    if (search(source, leaf, storage, own_place && keeps, any_place)) return true;
  }
  return false;
}
bool reads_elsewhere(mlir::Value v, mlir::Value leaf, const Storage& s) { return search(v, leaf, s, true, false); }
bool reads(mlir::Value v, mlir::Value leaf, const Storage& s) { return search(v, leaf, s, true, true); }

}  // namespace latile::host
