// Recurrences over rows. Rows are cut in pieces: a thread walks down a piece of a column in registers, what lies above
// it comes from the pieces before in their order. A single column is a warp's, and its pieces are exchanged by
// shuffles.
#include "codegen/simt/KernelEmitter.h"
#include <limits>

namespace latile::simt {

using namespace tile;

namespace {

/// What a run of rows makes of the value above it: factor · above + value for an affine scan; above + value, their
/// maximum or the logarithm of their exponentials' sum otherwise, without a factor.
struct Run {
  Ir factor = nullptr, value = nullptr;
};

class Recurrence {
public:
  Recurrence(mlir::Operation* op, Thread& t) : t_(t), affine_(mlir::isa<AffineScanOp>(op)) {
    if (auto sum = mlir::dyn_cast<CumsumOp>(op)) {
      reverse = sum.getReverse();
      exclusive = sum.getExclusive();
      join_ = &Recurrence::add;
    } else if (auto affine = mlir::dyn_cast<AffineScanOp>(op)) {
      reverse = affine.getReverse();
      join_ = &Recurrence::chain;
    } else {
      join_ = mlir::isa<CummaxOp>(op) ? &Recurrence::larger : &Recurrence::log_sum;
      neutral_ = -std::numeric_limits<double>::infinity();
    }
    dear = mlir::isa<LogcumsumexpOp>(op);
  }

  bool reverse = false, exclusive = false;
  bool dear = false;  ///< joining costs so much that doing it twice for each row does not pay

  /// One run after another.
  Run join(const Run& above, const Run& below) const { return (this->*join_)(above, below); }
  Run neutral() const { return {affine_ ? t_.f32(1) : nullptr, t_.f32(neutral_)}; }
  Run select(Ir condition, const Run& yes, const Run& no) const {
    Ir factor = affine_ ? t_.b.CreateSelect(condition, yes.factor, no.factor) : nullptr;
    return {factor, t_.b.CreateSelect(condition, yes.value, no.value)};
  }
  Run shuffled(const Run& r, int mask) const {
    return {affine_ ? t_.shuffle_xor(r.factor, mask) : nullptr, t_.shuffle_xor(r.value, mask)};
  }
  bool commutes() const { return !affine_; }

private:
  Run add(const Run& a, const Run& b) const { return {nullptr, t_.b.CreateFAdd(a.value, b.value)}; }
  Run larger(const Run& a, const Run& b) const { return {nullptr, t_.maximum(a.value, b.value)}; }
  // ln(e^a + e^b) from the larger one; two of -inf stay so.
  Run log_sum(const Run& a, const Run& b) const {
    constexpr double inf = std::numeric_limits<double>::infinity();
    Ir high = t_.maximum(a.value, b.value), low = t_.minimum(a.value, b.value);
    Ir gap = t_.b.CreateSelect(t_.b.CreateFCmpOEQ(high, t_.f32(-inf)), t_.f32(0), t_.b.CreateFSub(low, high));
    return {nullptr, t_.b.CreateFAdd(high, t_.softplus(gap))};
  }
  Run chain(const Run& a, const Run& b) const {
    Ir factor = a.factor && b.factor ? t_.b.CreateFMul(a.factor, b.factor) : nullptr;
    return {factor, t_.fma(b.factor, a.value, b.value)};
  }

  Thread& t_;
  bool affine_;
  double neutral_ = 0;
  Run (Recurrence::*join_)(const Run&, const Run&) const = nullptr;
};

/// The largest power of two that divides x, at most `most`.
int power_in(std::int64_t x, std::int64_t most) {
  int p = 1;
  while (2 * p <= most && x % (2 * p) == 0) p *= 2;
  return p;
}

}  // namespace

bool KernelEmitter::emit_running(mlir::Operation* op) {
  if (!mlir::isa<CumsumOp, CummaxOp, LogcumsumexpOp, AffineScanOp>(op)) return false;
  mlir::Value v = op->getResult(0);
  const std::int64_t rows = extents(v)[0], columns = extents(v)[1];
  const Recurrence way(op, t_);
  auto affine = mlir::dyn_cast<AffineScanOp>(op);
  mlir::Value start;
  if (affine)
    start = affine.getH();
  else if (!mlir::isa<CumsumOp>(op))
    start = op->getOperand(1);
  Copy gates, first;
  if (affine) gates = copy(affine.getG());
  if (start) first = copy(start);
  Copy to = fresh_copy(affine ? affine.getX() : op->getOperand(0));
  if (!failure_.empty()) return true;
  SmallVector<Copy> read;
  if (affine) read.push_back(gates);
  if (start) read.push_back(first);
  accesses(read, {to});

  // Rows are counted in the order of the recurrence.
  auto row_of = [&](Ir begin, std::int64_t k) {
    return way.reverse ? b_.CreateSub(t_.i32(rows - 1 - k), begin) : t_.add(begin, k);
  };
  auto load = [&](Ir begin, std::int64_t count, Ir column, Ir condition = nullptr) {
    auto values = [&](const Copy& c) {
      auto read = [&] {
        SmallVector<Ir> out;
        for (std::int64_t k = 0; k < count; ++k) out.push_back(element(c, row_of(begin, k), column));
        return out;
      };
      auto none = [&] { return SmallVector<Ir>(static_cast<std::size_t>(count), t_.f32(0)); };
      return condition ? t_.choose(condition, read, none) : read();
    };
    SmallVector<Run> out;
    for (Ir x : values(to)) out.push_back({nullptr, x});
    if (affine)
      for (auto [run, g] : llvm::zip(out, values(gates))) run.factor = t_.exp2(g);
    return out;
  };
  auto initial = [&](Ir column) -> Run {
    return {nullptr, start ? element(first, t_.i32(0), column) : way.neutral().value};
  };
  // The results of a piece from its runs, each counted from the piece's first row.
  auto store = [&](Ir begin, ArrayRef<Run> runs, const Run& above, Ir column) {
    for (std::size_t k = 0; k < runs.size(); ++k) {
      Ir result = way.exclusive && k == 0 ? above.value : way.join(above, runs[k - way.exclusive]).value;
      set_element(to, row_of(begin, static_cast<std::int64_t>(k)), column, result);
    }
  };
  auto accumulate = [&](SmallVector<Run> runs) {
    for (std::size_t k = 1; k < runs.size(); ++k) runs[k] = way.join(runs[k - 1], runs[k]);
    return runs;
  };

  if (columns == 1 && rows > 1) {
    const int pieces = power_in(rows, t_.lanes);
    const std::int64_t size = rows / pieces;
    t_.when(b_.CreateICmpEQ(t_.warp, t_.i32(0)), [&] {
      Ir piece = t_.rem(t_.lane, pieces), begin = t_.mul(piece, size);
      // Lanes without a piece of their own must not read what others write.
      Ir owns = pieces < t_.lanes ? b_.CreateICmpSLT(t_.lane, t_.i32(pieces)) : nullptr;
      const SmallVector<Run> runs = accumulate(load(begin, size, t_.i32(0), owns));
      Run total = runs.back(), before = way.neutral();
      for (int mask = 1; mask < pieces; mask *= 2) {
        const Run other = way.shuffled(total, mask);
        Ir later = b_.CreateICmpNE(b_.CreateAnd(piece, t_.i32(mask)), t_.i32(0));
        before = way.select(later, way.join(other, before), before);
        const Run joined = way.join(total, other);
        total = way.commutes() ? joined : way.select(later, way.join(other, total), joined);
      }
      const Run above = way.join(initial(t_.i32(0)), before);
      auto put = [&] { store(begin, runs, above, t_.i32(0)); };
      if (owns)
        t_.when(owns, put);
      else
        put();
    });
    define(v, to);
    return true;
  }

  // As many pieces as there are threads for, if a piece fits in 32 registers.
  int pieces = way.dear ? 1 : power_in(rows, std::min<std::int64_t>(16, t_.threads / columns));
  if (rows / pieces * (affine ? 2 : 1) > 32) pieces = 1;
  if (pieces == 1) {
    constexpr std::int64_t at_once = 16;
    t_.spread(columns, [&](Ir column) {
      Run above = initial(column);
      auto several = [&](Ir begin, std::int64_t count, Ir before) -> SmallVector<Ir> {
        Run last{nullptr, before};
        SmallVector<Ir> results;
        for (const Run& r : load(begin, count, column)) {
          const Run next = way.join(last, r);
          results.push_back(way.exclusive ? last.value : next.value);
          last = next;
        }
        for (auto [k, x] : llvm::enumerate(results))
          set_element(to, row_of(begin, static_cast<std::int64_t>(k)), column, x);
        return {last.value};
      };
      const std::int64_t whole = rows / at_once * at_once;
      if (whole > at_once)
        above.value = t_.loop(t_.i32(0), t_.i32(whole), at_once, {above.value},
                              [&](Ir begin, ArrayRef<Ir> so_far) { return several(begin, at_once, so_far[0]); })[0];
      else if (whole)
        above.value = several(t_.i32(0), whole, above.value)[0];
      if (whole < rows) several(t_.i32(whole), rows - whole, above.value);
    });
    define(v, to);
    return true;
  }

  const std::int64_t size = rows / pieces, tasks = columns * pieces;
  Copy totals = reserve(pieces, columns, b_.getFloatTy()), factors;
  if (affine) factors = reserve(pieces, columns, b_.getFloatTy());
  SmallVector<Copy> both{totals};
  if (affine) both.push_back(factors);
  // Threads without a piece do one that another has, and keep it to themselves.
  Ir column = t_.rem(t_.tid, columns), piece = t_.div(t_.tid, columns);
  if (tasks < t_.threads) piece = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, piece, t_.i32(pieces - 1));
  auto own = [&](llvm::function_ref<void()> put) {
    if (tasks < t_.threads)
      t_.when(b_.CreateICmpSLT(t_.tid, t_.i32(tasks)), put);
    else
      put();
  };
  Ir begin = t_.mul(piece, size);
  const SmallVector<Run> runs = accumulate(load(begin, size, column));
  accesses({}, both);
  own([&] {
    set_element(totals, piece, column, runs.back().value);
    if (affine) set_element(factors, piece, column, runs.back().factor);
  });
  accesses(both, {});
  Run above = initial(column);
  for (int k = 0; k + 1 < pieces; ++k) {
    const Run total{affine ? element(factors, t_.i32(k), column) : nullptr, element(totals, t_.i32(k), column)};
    above.value = b_.CreateSelect(b_.CreateICmpSGT(piece, t_.i32(k)), way.join(above, total).value, above.value);
  }
  writes(to);
  own([&] { store(begin, runs, above, column); });
  for (const Copy& c : both) scratch_.release(c.region);
  define(v, to);
  return true;
}

}  // namespace latile::simt
