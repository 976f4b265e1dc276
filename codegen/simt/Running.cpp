// Recurrences over rows: one thread walks down a column in shared memory.
#include "codegen/simt/KernelEmitter.h"
#include <limits>

namespace latile::simt {

using namespace tile;

bool KernelEmitter::emit_running(mlir::Operation* op) {
  if (!mlir::isa<CumsumOp, CummaxOp, LogcumsumexpOp, AffineScanOp>(op)) return false;
  mlir::Value v = op->getResult(0);
  std::int64_t rows = extents(v)[0], columns = extents(v)[1];
  auto sum = mlir::dyn_cast<CumsumOp>(op);
  auto affine = mlir::dyn_cast<AffineScanOp>(op);
  bool reverse = (sum && sum.getReverse()) || (affine && affine.getReverse()), exclusive = sum && sum.getExclusive();
  mlir::Value start = sum ? mlir::Value() : affine ? affine.getH() : op->getOperand(1);
  Copy gates, first;
  if (affine) gates = copy(affine.getG());
  if (start) first = copy(start);
  Copy to = fresh_copy(affine ? affine.getX() : op->getOperand(0));
  if (!failure_.empty()) return true;
  SmallVector<Copy> read;
  if (affine) read.push_back(gates);
  if (start) read.push_back(first);
  accesses(read, {to});
  auto combine = [&](Ir above, Ir x, Ir row, Ir column) -> Ir {
    if (sum) return b_.CreateFAdd(above, x);
    if (affine) return t_.fma(t_.exp2(element(gates, row, column)), above, x);
    if (mlir::isa<CummaxOp>(op)) return t_.maximum(above, x);
    // ln(e^a + e^x) from the larger one; two of -inf stay so.
    constexpr double inf = std::numeric_limits<double>::infinity();
    Ir high = t_.maximum(above, x), low = t_.minimum(above, x);
    Ir gap = b_.CreateSelect(b_.CreateFCmpOEQ(high, t_.f32(-inf)), t_.f32(0), b_.CreateFSub(low, high));
    return b_.CreateFAdd(high, t_.softplus(gap));
  };
  t_.spread(columns, [&](Ir column) {
    Ir above = start ? element(first, t_.i32(0), column) : t_.f32(0);
    t_.loop(t_.i32(0), t_.i32(rows), 1, {above}, [&](Ir k, ArrayRef<Ir> so_far) -> SmallVector<Ir> {
      Ir row = reverse ? b_.CreateSub(t_.i32(rows - 1), k) : k;
      Ir next = combine(so_far[0], element(to, row, column), row, column);
      set_element(to, row, column, exclusive ? so_far[0] : next);
      return {next};
    });
  });
  define(v, to);
  return true;
}

}  // namespace latile::simt
