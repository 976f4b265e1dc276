#include "codegen/host/Axes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/TypeSwitch.h"

namespace latile::host {

using namespace tile;

int Axes::id(mlir::Value v, int axis) {
  auto [it, fresh] = first_.try_emplace(v, static_cast<int>(parent_.size()));
  if (fresh)
    for (int k = 0; k < 2; ++k) {
      parent_.push_back(static_cast<int>(parent_.size()));
      used_.push_back(false);
    }
  return it->second + axis;
}
int Axes::find(int x) const {
  while (parent_[static_cast<std::size_t>(x)] != x) x = parent_[static_cast<std::size_t>(x)];
  return x;
}
void Axes::unite(int a, int c) {
  a = find(a), c = find(c);
  if (a == c) return;
  parent_[static_cast<std::size_t>(c)] = a;
  if (used_[static_cast<std::size_t>(c)]) used_[static_cast<std::size_t>(a)] = true;
}
void Axes::mark(int x) { used_[static_cast<std::size_t>(find(x))] = true; }

int Axes::class_of(mlir::Value v, int axis) const {
  auto it = first_.find(v);
  return it == first_.end() ? -1 : find(it->second + axis);
}
bool Axes::column_only(int c) const { return c >= 0 && !used_[static_cast<std::size_t>(c)]; }

Axes::Axes(mlir::Block& block) {
  auto tie = [&](mlir::Value a, int axis_a, mlir::Value c, int axis_c) {
    if (extents(a)[axis_a] == extents(c)[axis_c]) unite(id(a, axis_a), id(c, axis_c));
  };
  auto note = [&](mlir::Value v) {
    if (is_tile(v)) mark(id(v, 0));  // whatever is a row axis cannot be sliced by columns
  };
  for (mlir::Value a : block.getArguments()) note(a);
  for (mlir::Operation& op : block) {
    for (mlir::Value v : op.getOperands()) note(v);
    // What a nested region reads is read whole.
    op.walk([&](mlir::Operation* inner) {
      if (inner == &op) return;
      for (mlir::Value v : inner->getOperands())
        if (is_tile(v) && v.getParentBlock() == &block) {
          mark(id(v, 0));
          mark(id(v, 1));
        }
    });
    for (mlir::Value v : op.getResults()) note(v);
    if (op.getNumRegions())
      for (mlir::Value v :
           llvm::concat<mlir::Value>(llvm::to_vector(op.getOperands()), llvm::to_vector(op.getResults())))
        if (is_tile(v)) mark(id(v, 1));
    if (op.getNumResults() != 1 || !is_tile(op.getResult(0))) {
      // A terminator hands the new carry to the block argument of the next turn.
      if (op.hasTrait<mlir::OpTrait::IsTerminator>())
        for (auto [k, v] : llvm::enumerate(op.getOperands()))
          if (is_tile(v) && k + 1 < block.getNumArguments() && is_tile(block.getArgument(k + 1)))
            tie(v, 1, block.getArgument(k + 1), 1);
      continue;
    }
    mlir::Value r = op.getResult(0);
    llvm::TypeSwitch<mlir::Operation*>(&op)
        .Case<TransposeOp>([&](auto t) {
          tie(t.getX(), 0, r, 1);
          tie(t.getX(), 1, r, 0);
        })
        .Case<DotOp>([&](auto d) {
          tie(d.getA(), 0, r, 0);
          tie(d.getB(), 1, r, 1);
          tie(d.getA(), 1, d.getB(), 0);
          mark(id(d.getA(), 1));
        })
        .Case<SolveUnitLowerOp>([&](auto s) {
          tie(s.getB(), 1, r, 1);
          mark(id(s.getA(), 1));
        })
        .Case<ReduceOp>([&](auto x) {
          int axis = static_cast<int>(x.getAxis());
          mark(id(x.getX(), axis));
          tie(x.getX(), 1 - axis, r, 1 - axis);
        })
        .Case<DecayOp>([&](auto) { mark(id(r, 1)); })
        .Case<DecayedScoresOp, KronRowsOp, LookupOp>([&](auto) {
          mark(id(r, 1));
          for (mlir::Value v : op.getOperands())
            if (is_tile(v)) mark(id(v, 1));
        })
        .Case<DecayedApplyOp>([&](auto d) {
          mark(id(d.getA(), 1));
          for (mlir::Value v : {d.getX(), d.getGr(), d.getGc()}) tie(v, 1, r, 1);
        })
        .Case<CummaxOp, LogcumsumexpOp, AffineScanOp, PrevOp, SumRowsOp, PlaceRowOp>([&](auto) {
          for (mlir::Value v : op.getOperands())
            if (is_tile(v)) tie(v, 1, r, 1);
        })
        .Case<MaskOp, DiagonalOp, InverseUnitLowerOp>([&](auto) {
          mark(id(r, 1));
          for (mlir::Value v : op.getOperands())
            if (is_tile(v)) mark(id(v, 1));
        })
        .Case<RowOp, RepeatRowsOp>([&](auto x) { tie(x.getX(), 1, r, 1); })
        .Default([&](mlir::Operation* o) {
          for (mlir::Value v : o->getOperands())
            if (is_tile(v))
              for (int axis = 0; axis < 2; ++axis) tie(v, axis, r, axis);
        });
  }
}

bool is_lower_triangular(mlir::Value v) {
  mlir::Operation* op = v.getDefiningOp();
  if (!op) return false;
  if (auto d = mlir::dyn_cast<DecayOp>(op)) return d.getKind() != MaskKind::All && d.getStair() == 1;
  if (auto m = mlir::dyn_cast<MaskOp>(op)) return m.getKind() != MaskKind::All && m.getStair() == 1;
  if (auto d = mlir::dyn_cast<DecayedScoresOp>(op)) return d.getKind() != MaskKind::All && d.getStair() == 1;
  if (mlir::isa<InverseUnitLowerOp, DiagonalOp>(op)) return true;
  if (auto c = mlir::dyn_cast<CastOp>(op)) return is_lower_triangular(c.getX());
  if (mlir::isa<mlir::arith::MulFOp>(op))
    return is_lower_triangular(op->getOperand(0)) || is_lower_triangular(op->getOperand(1));
  if (mlir::isa<mlir::arith::AddFOp, mlir::arith::SubFOp>(op))
    return is_lower_triangular(op->getOperand(0)) && is_lower_triangular(op->getOperand(1));
  return false;
}

}  // namespace latile::host
