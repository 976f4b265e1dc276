// Products with a decay for each column of the gate, exact: every entry has its own exponential.
#include "codegen/simt/KernelEmitter.h"

namespace latile::simt {

using namespace tile;

void KernelEmitter::emit_decayed_scores(DecayedScoresOp op) {
  mlir::Value v = op.getTile();
  std::int64_t rows = extents(v)[0], columns = extents(v)[1], width = extents(op.getQ())[1];
  SmallVector<Copy, 4> operands;
  for (mlir::Value x : {op.getQ(), op.getK(), op.getGr(), op.getGc()}) operands.push_back(copy(x));
  if (!failure_.empty()) return;
  Copy to = reserve(rows, columns, b_.getFloatTy());
  writes(to);
  for (const Copy& c : operands) reads(c);
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

// A thread owns an element of the result and walks along the masked sum.
void KernelEmitter::emit_decayed_apply(DecayedApplyOp op) {
  mlir::Value v = op.getTile(), a = op.getA();
  bool transposed = op.getTransposed();
  std::int64_t rows = extents(v)[0], columns = extents(v)[1], terms = extents(a)[transposed ? 0 : 1];
  SmallVector<Copy, 4> operands;
  for (mlir::Value x : {a, mlir::Value(op.getX()), mlir::Value(op.getGr()), mlir::Value(op.getGc())})
    operands.push_back(copy(x));
  if (!failure_.empty()) return;
  Copy to = reserve(rows, columns, b_.getFloatTy());
  writes(to);
  for (const Copy& c : operands) reads(c);
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
