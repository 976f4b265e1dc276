// Results whose elements lie at other places of the operand: read from its copy in shared memory.
#include "codegen/simt/KernelEmitter.h"

namespace latile::simt {

using namespace tile;

bool KernelEmitter::emit_gather(mlir::Operation* op) {
  if (!mlir::isa<RowOp, PrevOp, PlaceRowOp, RepeatRowsOp, SumRowsOp, LookupOp, KronRowsOp, ContractKronOp,
                 PickColumnsOp>(op))
    return false;
  mlir::Value v = op->getResult(0), x = op->getOperand(0);
  Layout layout = layout_of(v);
  std::int64_t rows = extents(v)[0], columns = extents(v)[1];
  // Places past the extents read what exists.
  auto clamp = [&](PlaceIr at) {
    if (layout.shape().row > rows) at.row = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, at.row, t_.i32(rows - 1));
    if (layout.shape().column > columns)
      at.column = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, at.column, t_.i32(columns - 1));
    return at;
  };
  auto gather = [&](llvm::function_ref<Ir(const PlaceIr&)> f) {
    SmallVector<Ir> values = each(layout, [&](const PlaceIr& at) { return f(clamp(at)); });
    define(v, layout, values);
  };
  if (auto p = mlir::dyn_cast<PlaceRowOp>(op)) {
    Ir at = b_.CreateTrunc(row_place(p.getPick(), v, p.getAt(), p.getRows()), b_.getInt32Ty());
    SmallVector<Ir> row = get(x, layout.slice(Axis::rows));
    int k = 0;
    gather([&](const PlaceIr& here) {
      Ir value = row[static_cast<std::size_t>(layout.slice_register(Axis::rows, k++))];
      return b_.CreateSelect(b_.CreateICmpEQ(here.row, at), value, t_.f32(0));
    });
    return true;
  }
  SmallVector<Ir> edge;
  Ir start = nullptr;
  if (auto l = mlir::dyn_cast<LookupOp>(op); l && l.getFrom()) start = get(l.getFrom(), layout_of(l.getFrom()))[0];
  if (auto p = mlir::dyn_cast<PrevOp>(op)) edge = get(p.getFrom(), layout.slice(Axis::rows));
  Copy c = copy(x), other;
  if (!failure_.empty()) return true;
  mlir::Value second;
  if (auto k = mlir::dyn_cast<ContractKronOp>(op)) second = k.getX();
  if (auto k = mlir::dyn_cast<KronRowsOp>(op)) second = k.getY();
  if (second) other = copy(second);
  if (second)
    accesses({c, other}, {});
  else
    reads(c);
  int reg = 0;
  llvm::TypeSwitch<mlir::Operation*>(op)
      .Case<RowOp>([&](RowOp r) {
        Ir at = b_.CreateTrunc(row_place(r.getPick(), x, r.getAt(), r.getRows()), b_.getInt32Ty());
        gather([&](const PlaceIr& here) { return element(c, at, here.column); });
      })
      .Case<PrevOp>([&](PrevOp p) {
        bool reverse = p.getReverse();
        gather([&](const PlaceIr& here) {
          Ir first = b_.CreateICmpEQ(here.row, t_.i32(reverse ? rows - 1 : 0));
          Ir from = b_.CreateSelect(first, here.row, t_.add(here.row, reverse ? 1 : -1));
          Ir before = edge[static_cast<std::size_t>(layout.slice_register(Axis::rows, reg++))];
          return b_.CreateSelect(first, before, element(c, from, here.column));
        });
      })
      .Case<RepeatRowsOp>([&](RepeatRowsOp r) {
        auto n = static_cast<std::int64_t>(r.getN());
        gather([&](const PlaceIr& here) { return element(c, t_.div(here.row, n), here.column); });
      })
      .Case<SumRowsOp>([&](SumRowsOp s) {
        auto n = static_cast<std::int64_t>(s.getN());
        gather([&](const PlaceIr& here) {
          Ir sum = t_.f32(0);
          for (std::int64_t k = 0; k < n; ++k)
            sum = b_.CreateFAdd(sum, element(c, t_.add(t_.mul(here.row, n), k), here.column));
          return sum;
        });
      })
      .Case<LookupOp>([&](LookupOp l) {
        // 0 on the diagonal, else 1 + the number of the highest bit in which row and column differ, counted from a
        // start.
        Ir from = t_.i32(0);
        if (start) from = b_.CreateFPToSI(start, b_.getInt32Ty());
        auto level = [&](Ir i, Ir j) {
          Ir differ = b_.CreateXor(b_.CreateAdd(i, from), b_.CreateAdd(j, from));
          Ir zeros = b_.CreateBinaryIntrinsic(llvm::Intrinsic::ctlz, differ, b_.getInt1(false));
          return b_.CreateSub(t_.i32(32), zeros);
        };
        std::int64_t levels = extents(l.getTransposed() ? v : x)[1];
        if (!l.getTransposed())
          return gather([&](const PlaceIr& here) {
            Ir column = level(here.row, here.column);
            Ir below = b_.CreateAnd(b_.CreateICmpSLE(here.column, here.row), b_.CreateICmpSLT(column, t_.i32(levels)));
            column = b_.CreateSelect(below, column, t_.i32(0));
            return b_.CreateSelect(below, element(c, here.row, column), t_.f32(0));
          });
        gather([&](const PlaceIr& here) {
          return t_.loop(t_.i32(0), t_.add(here.row, 1), 1, {t_.f32(0)},
                         [&](Ir j, ArrayRef<Ir> sum) -> SmallVector<Ir> {
                           Ir same = b_.CreateICmpEQ(level(here.row, j), here.column);
                           return {b_.CreateFAdd(sum[0], b_.CreateSelect(same, element(c, here.row, j), t_.f32(0)))};
                         })[0];
        });
      })
      .Case<PickColumnsOp>([&](PickColumnsOp p) {
        Ir first = b_.CreateTrunc(indices_.lookup(p.getAt()), b_.getInt32Ty());
        gather([&](const PlaceIr& here) { return element(c, here.row, b_.CreateAdd(first, here.column)); });
      })
      .Case<KronRowsOp>([&](KronRowsOp k) {
        std::int64_t width = columns / extents(x)[1];
        Copy right = k.getY() ? other : c;
        gather([&](const PlaceIr& here) {
          return b_.CreateFMul(element(c, here.row, t_.div(here.column, width)),
                               element(right, here.row, t_.rem(here.column, width)));
        });
      })
      .Case<ContractKronOp>([&](auto) {
        gather([&](const PlaceIr& here) {
          return t_.loop(t_.i32(0), t_.i32(columns), 1, {t_.f32(0)}, [&](Ir l, ArrayRef<Ir> sum) -> SmallVector<Ir> {
            Ir m = b_.CreateFAdd(element(c, here.row, t_.add(t_.mul(here.column, columns), l)),
                                 element(c, here.row, t_.add(t_.mul(l, columns), here.column)));
            return {t_.fma(m, element(other, here.row, l), sum[0])};
          })[0];
        });
      });
  return true;
}

}  // namespace latile::simt
