// Products with a decay for each column of the gate: which way they take, and how those are emitted that are no scores
// of blocks (DecayedScores.h).
#include "codegen/simt/DecayedScores.h"

namespace latile::simt {

using namespace tile;

/// The type of a product's operands: float32 where none is asked for.
llvm::Type* KernelEmitter::operand_type(std::optional<mlir::Type> wanted) {
  if (wanted && wanted->isBF16()) return b_.getBFloatTy();
  return wanted && wanted->isF16() ? b_.getHalfTy() : b_.getFloatTy();
}

static bool by_blocks(DecayedScoresOp op) {
  return op.getKind() != MaskKind::All && op.getStair() == 1 && extents(op.getTile())[0] % 16 == 0 &&
         extents(op.getQ())[1] > 1;
}

/// Whether a value is there when `op` is emitted.
static bool is_before(mlir::Value v, mlir::Operation* op) {
  mlir::Operation* by = v.getDefiningOp();
  return !by || by->getBlock() != op->getBlock() || by->isBeforeInBlock(op);
}

/// Whether scores become, up to factors and roundings, a triangular system.
static bool feeds_inverse(DecayedScoresOp op) {
  SmallVector<mlir::Value> reached{op.getTile()};
  for (std::size_t at = 0; at < reached.size(); ++at)
    for (mlir::Operation* user : reached[at].getUsers()) {
      if (mlir::isa<InverseUnitLowerOp>(user)) return true;
      if (user->hasTrait<mlir::OpTrait::Elementwise>()) reached.push_back(user->getResult(0));
    }
  return false;
}

// Scores of one columns' gate whose operands are there are emitted with the first of them, and rounded where nothing
// else is asked of them. Losses are multiplied where products of scores of one query are added up and cancel (keys
// removed and added, in dplr and rwkv7), and by the inverse of a triangular system; among other scores a system's is
// left as it is: it would take registers that they do not have, and theirs (kda, gdn2) are not the larger part of what
// is lost.
void KernelEmitter::scores_of_blocks(DecayedScoresOp first) {
  auto result = [](DecayedScoresOp op) -> mlir::Value {
    auto cast = op.getTile().hasOneUse() ? mlir::dyn_cast<CastOp>(*op.getTile().getUsers().begin()) : CastOp();
    return cast && cast->getBlock() == op->getBlock() ? cast.getTile() : op.getTile();
  };
  if (!held_[result(first)].copies.empty()) return;
  SmallVector<DecayedScoresOp> all;
  for (mlir::Operation* op = first; op; op = op->getNextNode()) {
    auto other = mlir::dyn_cast<DecayedScoresOp>(op);
    if (other && !other->use_empty() && by_blocks(other) && other.getGc() == first.getGc() &&
        other.getOperand() == first.getOperand() &&
        llvm::all_of(other->getOperands(), [&](mlir::Value v) { return is_before(v, first); }))
      all.push_back(other);
  }
  SmallVector<Copy> read, written;
  const std::int64_t rows = extents(first.getTile())[0];
  for (DecayedScoresOp op : all) {
    for (mlir::Value v : {op.getQ(), op.getK()}) read.push_back(copy_by_rows(v));
    for (mlir::Value v : {reads_row_above(op) ? op.getGc() : op.getGr(), op.getGc()}) read.push_back(copy(v));
    if (!failure_.empty()) return;
    written.push_back(reserve(rows, rows, element_type(result(op))));
  }
  accesses(read, written);
  auto same_query = [&](DecayedScoresOp op) {
    return llvm::count_if(all, [&](DecayedScoresOp x) { return x.getQ() == op.getQ() && x.getKind() == op.getKind(); });
  };
  auto multiplied = [&](DecayedScoresOp op) {
    return op.getKind() == MaskKind::Lower ? same_query(op) > 1 : all.size() == 1 && feeds_inverse(op);
  };
  DecayedScores scores(*this, rows, extents(first.getQ())[1], operand_type(first.getOperand()));
  for (auto [i, op] : llvm::enumerate(all))
    scores.add(read[4 * i], read[4 * i + 1], read[4 * i + 2], reads_row_above(op), read[4 * i + 3], op.getKind(),
               multiplied(op), written[i]);
  scores.emit();
  for (auto [op, to] : llvm::zip(all, written)) define(result(op), to);
}

void KernelEmitter::emit_decayed_scores(DecayedScoresOp op) {
  if (by_blocks(op)) return scores_of_blocks(op);
  mlir::Value v = op.getTile();
  std::int64_t rows = extents(v)[0], columns = extents(v)[1], width = extents(op.getQ())[1];
  SmallVector<Copy, 4> operands;
  for (mlir::Value x : {op.getQ(), op.getK(), op.getGr(), op.getGc()}) operands.push_back(copy(x));
  if (!failure_.empty()) return;
  Copy to = reserve(rows, columns, b_.getFloatTy());
  accesses(operands, {to});
  std::int64_t stored_rows = to.transposed ? to.columns : to.rows,
               stored_columns = to.transposed ? to.rows : to.columns;
  t_.spread(stored_rows * stored_columns, [&](Ir e) {
    PlaceIr at{t_.div(e, stored_columns), t_.rem(e, stored_columns)};
    Ir inside = b_.CreateAnd(b_.CreateICmpSLT(at.row, t_.i32(rows)), b_.CreateICmpSLT(at.column, t_.i32(columns)));
    if (Ir keep = kept(op.getKind(), static_cast<std::int64_t>(op.getStair()), at)) inside = b_.CreateAnd(inside, keep);
    Ir sum = t_.choose(
        inside,
        [&] {
          return t_.loop(t_.i32(0), t_.i32(width), 1, {t_.f32(0)}, [&](Ir d, ArrayRef<Ir> so_far) -> SmallVector<Ir> {
            Ir gap = b_.CreateFSub(element(operands[2], at.row, d), element(operands[3], at.column, d));
            Ir decayed = b_.CreateFMul(element(operands[1], at.column, d), t_.exp2(gap));
            return {t_.fma(element(operands[0], at.row, d), decayed, so_far[0])};
          });
        },
        [&] { return SmallVector<Ir>{t_.f32(0)}; })[0];
    set_element(to, at.row, at.column, sum);
  });
  define(v, to);
}

// Inside a block a thread owns a column and walks down from every row j, x_j shrinking as it goes; what lies before the
// block comes by a product, scaled to the block's first row on both sides.
void KernelEmitter::apply_of_blocks(DecayedApplyOp op, ArrayRef<Copy> operands, const Copy& to) {
  const auto &a = operands[0], &x = operands[1], &gr = operands[2], &gc = operands[3];
  std::int64_t rows = extents(op.getTile())[0], width = extents(op.getTile())[1];
  bool strict = op.getKind() == MaskKind::Strict;
  accesses(operands, {to});
  std::int64_t padded = to.transposed ? to.rows : to.columns;
  t_.spread(rows / 16 * padded, [&](Ir e) {
    Ir first = t_.mul(t_.div(e, padded), 16), d = t_.rem(e, padded);
    SmallVector<Ir> gates, steps{nullptr}, sums(16, t_.f32(0));
    for (int i = 0; i < 16; ++i) {
      gates.push_back(element(gr, t_.add(first, i), d));
      if (i) steps.push_back(t_.exp2(b_.CreateFSub(gates[gates.size() - 1], gates[gates.size() - 2])));
    }
    for (int j = 0; j < 16; ++j) {
      Ir column = t_.add(first, j);
      const int start = j + strict;  // the first row that the mask keeps
      if (start == 16) break;
      Ir gap = b_.CreateFSub(gates[static_cast<std::size_t>(start)], element(gc, column, d));
      Ir value = b_.CreateFMul(element(x, column, d), t_.exp2(gap));
      for (int i = start; i < 16; ++i) {
        auto at = static_cast<std::size_t>(i);
        if (i > start) value = b_.CreateFMul(value, steps[at]);
        sums[at] = t_.fma(element(a, t_.add(first, i), column), value, sums[at]);
      }
    }
    for (int i = 0; i < 16; ++i) set_element(to, t_.add(first, i), d, sums[static_cast<std::size_t>(i)]);
  });
  llvm::Type* type = operand_type(op.getOperand());
  for (std::int64_t from = 16; from < rows; from += 16) {
    Copy left = reserve(16, from, type), right = reserve(from, width, type);
    accesses({a, x, gr, gc}, {left, right});
    t_.spread(16 * from, [&](Ir e) {
      Ir row = t_.div(e, from), column = t_.rem(e, from);
      set_element(left, row, column, t_.convert(element(a, t_.add(row, from), column), type));
    });
    t_.spread(from * right.columns, [&](Ir e) {
      Ir row = t_.div(e, right.columns), d = t_.rem(e, right.columns);
      Ir gap = b_.CreateFSub(element(gr, t_.i32(from), d), element(gc, row, d));
      set_element(right, row, d, t_.convert(b_.CreateFMul(element(x, row, d), t_.exp2(gap)), type));
    });
    Layout layout = accumulators(16, width);
    SmallVector<Ir> zero(static_cast<std::size_t>(layout.registers()), t_.f32(0));
    Operand l;
    l.copy = left;
    l.element = type;
    SmallVector<Ir> values = product(l, right, from, layout, zero);
    scratch_.release(left.region);
    scratch_.release(right.region);
    accesses({gr}, {to});
    auto put = [&] {
      for (int r = 0; r < layout.registers(); ++r) {
        PlaceIr at = place(layout, r);
        Ir row = t_.add(at.row, from);
        Ir gap = b_.CreateFSub(element(gr, row, at.column), element(gr, t_.i32(from), at.column));
        Ir sum = t_.fma(values[static_cast<std::size_t>(r)], t_.exp2(gap), element(to, row, at.column));
        set_element(to, row, at.column, sum);
      }
    };
    if (Ir only = t_.is_first_replica(layout))
      t_.when(only, put);
    else
      put();
  }
}

// A thread owns an element of the result and walks along the masked sum.
void KernelEmitter::emit_decayed_apply(DecayedApplyOp op) {
  mlir::Value v = op.getTile(), a = op.getA();
  bool transposed = op.getTransposed();
  std::int64_t rows = extents(v)[0], columns = extents(v)[1], terms = extents(a)[transposed ? 0 : 1];
  SmallVector<Copy, 4> operands;
  for (mlir::Value x : {a, mlir::Value(op.getX()), mlir::Value(op.getGr()), mlir::Value(op.getGc())})
    operands.push_back(copy(x));
  if (!failure_.empty()) return;
  if (op.getKind() != MaskKind::All && op.getStair() == 1 && rows % 16 == 0 && columns > 1 && !transposed) {
    Copy to = reserve(rows, columns, b_.getFloatTy());
    apply_of_blocks(op, operands, to);
    return define(v, to);
  }
  Copy to = reserve(rows, columns, b_.getFloatTy());
  accesses(operands, {to});
  std::int64_t stored_rows = to.transposed ? to.columns : to.rows,
               stored_columns = to.transposed ? to.rows : to.columns;
  t_.spread(stored_rows * stored_columns, [&](Ir e) {
    PlaceIr at{t_.div(e, stored_columns), t_.rem(e, stored_columns)};
    Ir inside = b_.CreateAnd(b_.CreateICmpSLT(at.row, t_.i32(rows)), b_.CreateICmpSLT(at.column, t_.i32(columns)));
    Ir sum = t_.choose(
        inside,
        [&] {
          return t_.loop(t_.i32(0), t_.i32(terms), 1, {t_.f32(0)}, [&](Ir k, ArrayRef<Ir> so_far) -> SmallVector<Ir> {
            Ir i = transposed ? k : at.row, j = transposed ? at.row : k;
            auto term = [&]() -> SmallVector<Ir> {
              Ir gap = b_.CreateFSub(element(operands[2], i, at.column), element(operands[3], j, at.column));
              Ir weight = b_.CreateFMul(element(operands[0], i, j), t_.exp2(gap));
              return {t_.fma(weight, element(operands[1], k, at.column), so_far[0])};
            };
            Ir keep = kept(op.getKind(), static_cast<std::int64_t>(op.getStair()), {i, j});
            return keep ? t_.choose(keep, term, [&] { return SmallVector<Ir>{so_far[0]}; }) : term();
          });
        },
        [&] { return SmallVector<Ir>{t_.f32(0)}; })[0];
    set_element(to, at.row, at.column, sum);
  });
  define(v, to);
}

}  // namespace latile::simt
