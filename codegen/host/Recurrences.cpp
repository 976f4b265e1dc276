// Decayed products, running scans over rows, and the conjugate gradients of a solve.
#include "codegen/host/KernelEmitter.h"
#include <cmath>
#include <limits>

namespace latile::host {

using namespace tile;

/// Row i holds exp2(G_i - G_(i-1)): what a decay loses from one row to the next. Row 0 of an inclusive sum is
/// exp2(G_0), that of others is never read.
KernelEmitter::Buffer KernelEmitter::step_decays(mlir::Value gates) {
  if (auto it = steps_.find(gates); it != steps_.end()) return it->second;
  if (mlir::Value through = inclusive_of(gates); through && plain_.contains(through)) {
    // Row i of an exclusive sum is row i - 1 of the inclusive one.
    Buffer same = step_decays(through);
    same.base = l_.at(same.base, builder_.CreateNeg(same.row_bytes));
    return steps_[gates] = same;
  }
  Buffer to{allocate(extents(gates)[0] * columns(gates) * 4), l_.index(columns(gates) * 4), 0};
  const Buffer from = stored(plain_, gates);
  auto sum = gates.getDefiningOp<CumsumOp>();
  bool whole = sum && !sum.getExclusive() && !sum.getReverse();
  l_.loop(l_.index(0), l_.index(columns(gates)), l_.width, [&](Ir j) {
    auto put = [&](Ir i, Ir gap) {
      Ir step = l_.exp2(gap);
      // Lanes past the columns may hold anything, NaN as well, and a product with zero would keep that.
      if (Ir mask = column_mask(gates, j)) step = builder_.CreateSelect(mask, step, l_.splat(0.0));
      l_.store(step, address(to, i, j, false), ElementType::f32, nullptr);
    };
    Ir first = whole ? l_.splat(0.0) : l_.load(address(from, l_.index(0), j, false), ElementType::f32, nullptr);
    l_.loop(l_.index(whole ? 0 : 1), l_.index(extents(gates)[0]), 1, {first},
            [&](Ir i, ArrayRef<Ir> above) -> SmallVector<Ir> {
              Ir here = l_.load(address(from, i, j, false), ElementType::f32, nullptr);
              put(i, builder_.CreateFSub(here, above[0]));
              return {here};
            });
  });
  return steps_[gates] = to;
}

void KernelEmitter::emit_running_decay(mlir::Value v) {
  RunningDecay of = running_decay(v);
  Buffer to = new_buffer(v, false);
  const Buffer decays = step_decays(of.gates);
  std::int64_t rows = extents(v)[0];
  bool exclusive = of.gates.getDefiningOp<CumsumOp>().getExclusive(), starts_at_one = of.rest || exclusive;
  l_.loop(l_.index(0), l_.index(columns(v)), l_.width, [&](Ir j) {
    auto row = [&](Ir k) { return of.rest ? builder_.CreateSub(l_.index(rows - 1), k) : k; };
    auto put = [&](Ir k, Ir x) { l_.store(x, address(to, row(k), j, in_panel(v)), ElementType::f32, nullptr); };
    Ir one = l_.splat(1.0);
    if (starts_at_one) put(l_.index(0), one);
    l_.loop(l_.index(starts_at_one ? 1 : 0), l_.index(rows), 1, {one}, [&](Ir k, ArrayRef<Ir> x) -> SmallVector<Ir> {
      Ir step = of.rest ? l_.add(row(k), 1) : k;
      Ir next = builder_.CreateFMul(x[0], l_.load(address(decays, step, j, false), ElementType::f32, nullptr));
      put(k, next);
      return {next};
    });
  });
  plain_[v] = to;
}

/// The first row in which a mask keeps a column.
Ir KernelEmitter::first_row(Ir column, MaskKind kind, std::int64_t stair) {
  if (kind == MaskKind::All) return l_.index(0);
  Ir row = stair == 1 ? column : builder_.CreateSDiv(column, l_.index(stair));
  return kind == MaskKind::Strict ? l_.add(row, 1) : row;
}

/// exp2(Gr_row - Gc_column), lanes from j, the row lying `distance` below the column (negative: unknown); null for 1.
Ir KernelEmitter::decay_between(mlir::Value gr, mlir::Value gc, Ir row, Ir column, int distance, Ir j) {
  auto load = [&](const Buffer& from) { return l_.load(address(from, row, j, false), ElementType::f32, nullptr); };
  if (gr == gc && distance == 0) return nullptr;
  if (gr == gc && distance == 1) return load(step_decays(gr));
  // An exclusive sum in row j + 1 is, to the bit, the inclusive one in row j.
  if (distance == 1 && inclusive_of(gr) == gc) return nullptr;
  return l_.exp2(builder_.CreateFSub(load(stored(plain_, gr)), evaluate(gc, {column, 1, j, 1})[0]));
}

/// How far below a column the first row lies that a mask keeps, negative where that varies.
static int first_distance(MaskKind kind, std::uint64_t stair) {
  return stair != 1 || kind == MaskKind::All ? -1 : kind == MaskKind::Strict ? 1 : 0;
}

// Down one column j, the decayed key t = k_j exp2(Gr_i - Gc_j) shrinks by the same factors for every j, so that one
// exponential an element of the gate serves all columns, nothing overflows, and no block needs a reference.
void KernelEmitter::emit_decayed_scores(DecayedScoresOp op) {
  mlir::Value v = op.getTile(), q = op.getQ(), gr = op.getGr();
  std::int64_t rows = extents(v)[0], cols = extents(v)[1], width = columns(q);
  Buffer to = new_buffer(v, false);
  const Buffer left = stored(plain_, q), decays = step_decays(gr);
  const int distance = first_distance(op.getKind(), op.getStair());
  l_.loop(l_.index(0), l_.index(rows), 1, [&](Ir i) {
    l_.loop(l_.index(0), l_.index(columns(v)), l_.width,
            [&](Ir j) { l_.store(l_.splat(0.0), address(to, i, j, false), ElementType::f32, nullptr); });
  });
  const bool blocks = splits_into_blocks(op, engine_);
  if (blocks) emit_score_blocks(op, to);
  // The decayed key stays in registers: at most eight vectors at a time, whose sums are added up.
  for (std::int64_t from = 0; from < width; from += 8 * l_.width) {
    int vectors = static_cast<int>(std::min<std::int64_t>(8, (width - from) / l_.width));
    auto each = [&](llvm::function_ref<Ir(Ir column, std::size_t n)> f) {
      SmallVector<Ir> out;
      for (int n = 0; n < vectors; ++n) out.push_back(f(l_.index(from + n * l_.width), static_cast<std::size_t>(n)));
      return out;
    };
    l_.loop(l_.index(0), l_.index(cols), 1, [&](Ir j) {
      pace(6 * (blocks ? exact_rows : rows));
      Ir end = blocks ? l_.add(builder_.CreateAnd(j, l_.index(-exact_rows)), exact_rows) : l_.index(rows);
      Ir first = first_row(j, op.getKind(), static_cast<std::int64_t>(op.getStair()));
      Ir inside = builder_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, first, l_.index(rows - 1));
      SmallVector<Ir> key = each([&](Ir d, std::size_t) {
        Ir x = evaluate(op.getK(), {j, 1, d, 1})[0];
        if (Ir decay = decay_between(gr, op.getGc(), inside, j, distance, d)) x = builder_.CreateFMul(x, decay);
        if (Ir mask = column_mask(q, d)) x = builder_.CreateSelect(mask, x, l_.splat(0.0));
        return x;
      });
      auto row = [&](Ir i, ArrayRef<Ir> t) {
        Ir sum = nullptr;
        for (std::size_t n = 0; n < t.size(); ++n) {
          Ir x = l_.load(address(left, i, l_.index(from + static_cast<std::int64_t>(n) * l_.width), false),
                         ElementType::f32, nullptr);
          if (Ir mask = column_mask(q, l_.index(from + static_cast<std::int64_t>(n) * l_.width)))
            x = builder_.CreateSelect(mask, x, l_.splat(0.0));
          sum = sum ? l_.fma(x, t[n], sum) : builder_.CreateFMul(x, t[n]);
        }
        Ir at = address(to, i, j, false);
        builder_.CreateStore(builder_.CreateFAdd(l_.load_scalar(at, ElementType::f32), l_.sum(sum)), at);
      };
      l_.when(builder_.CreateICmpSLT(first, end), [&] {
        row(first, key);
        l_.loop(l_.add(first, 1), end, 1, key, [&](Ir i, ArrayRef<Ir> t) {
          SmallVector<Ir> next = each([&](Ir d, std::size_t n) {
            Ir factor = l_.load(address(decays, i, d, false), ElementType::f32, nullptr);
            return builder_.CreateFMul(t[n], factor);
          });
          row(i, next);
          return next;
        });
      });
    });
  }
  plain_[v] = to;
}

// The same walk down the rows of each column: forward, a row of the result gathers A_ij t; transposed, row j of the
// result is the sum of A_ij x_i exp2(Gr_i - Gc_j).
void KernelEmitter::emit_decayed_apply(DecayedApplyOp op) {
  mlir::Value v = op.getTile(), a = op.getA(), gr = op.getGr();
  bool transposed = op.getTransposed();
  std::int64_t rows = extents(a)[0], cols = extents(a)[1], width = columns(gr);
  Buffer to = new_buffer(v, false);
  const Buffer matrix = stored(plain_, a), decays = step_decays(gr);
  const int distance = first_distance(op.getKind(), op.getStair());
  l_.loop(l_.index(0), l_.index(extents(v)[0]), 1, [&](Ir i) {
    l_.loop(l_.index(0), l_.index(width), l_.width,
            [&](Ir j) { l_.store(l_.splat(0.0), address(to, i, j, false), ElementType::f32, nullptr); });
  });
  for (std::int64_t from = 0; from < width; from += 8 * l_.width) {
    int vectors = static_cast<int>(std::min<std::int64_t>(8, (width - from) / l_.width));
    auto column = [&](std::size_t n) { return l_.index(from + static_cast<std::int64_t>(n) * l_.width); };
    l_.loop(l_.index(0), l_.index(cols), 1, [&](Ir j) {
      pace(6 * rows);
      Ir first = first_row(j, op.getKind(), static_cast<std::int64_t>(op.getStair()));
      Ir inside = builder_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, first, l_.index(rows - 1));
      SmallVector<Ir> t;
      for (int n = 0; n < vectors; ++n) {
        Ir d = column(static_cast<std::size_t>(n));
        Ir x = transposed ? l_.splat(1.0) : evaluate(op.getX(), {j, 1, d, 1})[0];
        if (Ir decay = decay_between(gr, op.getGc(), inside, j, distance, d)) x = builder_.CreateFMul(x, decay);
        t.push_back(x);
      }
      auto row = [&](Ir i, std::size_t n, Ir decayed) {
        Ir factor = l_.splat(l_.load_scalar(address(matrix, i, j, false), ElementType::f32));
        if (transposed) factor = builder_.CreateFMul(factor, evaluate(op.getX(), {i, 1, column(n), 1})[0]);
        Ir at = address(to, transposed ? j : i, column(n), false);
        l_.store(l_.fma(factor, decayed, l_.load(at, ElementType::f32, nullptr)), at, ElementType::f32, nullptr);
      };
      l_.when(builder_.CreateICmpSLT(first, l_.index(rows)), [&] {
        for (std::size_t n = 0; n < t.size(); ++n) row(first, n, t[n]);
        l_.loop(l_.add(first, 1), l_.index(rows), 1, t, [&](Ir i, ArrayRef<Ir> above) {
          SmallVector<Ir> next;
          for (std::size_t n = 0; n < above.size(); ++n) {
            Ir factor = l_.load(address(decays, i, column(n), false), ElementType::f32, nullptr);
            next.push_back(builder_.CreateFMul(above[n], factor));
            row(i, n, next.back());
          }
          return next;
        });
      });
    });
  }
  plain_[v] = to;
}

// One vector of columns at a time, the row above in a register.
void KernelEmitter::emit_running(mlir::Operation* op) {
  mlir::Value v = op->getResult(0);
  Buffer to = new_buffer(v, true);
  std::int64_t rows = extents(v)[0];
  auto affine = mlir::dyn_cast<AffineScanOp>(op);
  bool reverse = affine && affine.getReverse();
  mlir::Value start = affine ? affine.getH() : op->getOperand(1);
  auto combine = [&](Ir above, llvm::function_ref<Ir(mlir::Value)> read) -> Ir {
    if (affine) return l_.fma(l_.exp2(read(affine.getG())), above, read(affine.getX()));
    Ir x = read(op->getOperand(0));
    if (mlir::isa<CummaxOp>(op)) return l_.maximum(above, x);
    // ln(e^a + e^x) from the larger one; two of -inf stay so.
    constexpr double inf = std::numeric_limits<double>::infinity();
    Ir high = l_.maximum(above, x), low = l_.minimum(above, x);
    Ir gap = builder_.CreateSelect(builder_.CreateFCmpOEQ(high, l_.splat(-inf)), l_.splat(0.0),
                                   builder_.CreateFSub(low, high));
    return builder_.CreateFAdd(high, l_.softplus(gap));
  };
  bool column = extents(v)[1] == 1;
  l_.loop(l_.index(0), l_.index(column ? 1 : columns(v)), column ? 1 : l_.width, [&](Ir j) {
    Ir first = column ? l_.splat(scalar(start)) : evaluate(start, {l_.index(0), 1, j, 1})[0];
    l_.loop(l_.index(0), l_.index(rows), 1, {first}, [&](Ir k, ArrayRef<Ir> above) -> SmallVector<Ir> {
      Ir row = reverse ? builder_.CreateSub(l_.index(rows - 1), k) : k;
      Ir next = combine(above[0], [&](mlir::Value x) {
        if (!column) return evaluate(x, {row, 1, j, 1})[0];
        return l_.splat(extents(x)[0] == 1 ? scalar(x) : read_column_scalar(x, row));
      });
      if (column)
        builder_.CreateStore(l_.first_lane(next), l_.at(to.base, l_.mul(row, 4)));
      else
        l_.store(next, address(to, row, j, in_panel(v)), ElementType::f32, nullptr);
      return {next};
    });
  });
  plain_[v] = to;
}

void KernelEmitter::emit_kron_rows(KronRowsOp op) {
  mlir::Value v = op.getTile(), x = op.getX(), y = op.getY() ? mlir::Value(op.getY()) : x;
  std::int64_t n = extents(y)[1];
  Buffer to = new_buffer(v, false);
  // Rows as scalars and as vectors: the vector of each product starts where the one before ends.
  auto keep = [&](mlir::Value of) {
    Ir row = allocate((columns(of) + l_.width) * 4);
    return [this, of, row](Ir r) {
      l_.loop(l_.index(0), l_.index(columns(of)), l_.width, [&](Ir j) {
        l_.store(evaluate(of, {r, 1, j, 1})[0], l_.at(row, l_.mul(j, 4)), ElementType::f32, nullptr);
      });
      return row;
    };
  };
  auto keep_x = keep(x), keep_y = x == y ? keep_x : keep(y);
  l_.loop(l_.index(0), l_.index(extents(v)[0]), 1, [&](Ir r) {
    Ir left = keep_x(r), right = x == y ? left : keep_y(r);
    l_.loop(l_.index(0), l_.index(extents(x)[1]), 1, [&](Ir k) {
      Ir factor = l_.splat(l_.load_scalar(l_.at(left, l_.mul(k, 4)), ElementType::f32));
      l_.loop(l_.index(0), l_.index(columns(y)), l_.width, [&](Ir j) {
        Ir product = builder_.CreateFMul(factor, l_.load(l_.at(right, l_.mul(j, 4)), ElementType::f32, nullptr));
        l_.store(product, address(to, r, l_.add(l_.mul(k, n), j), false), ElementType::f32, column_mask(y, j));
      });
    });
  });
  plain_[v] = to;
}

// Entry by entry: a chunk has few, and levels are bits of the rows' numbers.
void KernelEmitter::emit_lookup(LookupOp op) {
  auto& b = builder_;
  mlir::Value v = op.getTile(), x = op.getX();
  std::int64_t levels = extents(op.getTransposed() ? v : x)[1];
  Buffer to = new_buffer(v, false);
  Ir from = op.getFrom() ? b.CreateFPToSI(scalar(op.getFrom()), b.getInt64Ty()) : l_.index(0);
  Ir row = allocate(columns(x) * 4);
  l_.loop(l_.index(0), l_.index(extents(x)[0]), 1, [&](Ir i) {
    auto over = [&](mlir::Value shape, llvm::function_ref<void(Ir)> body) {
      l_.loop(l_.index(0), l_.index(columns(shape)), l_.width, body);
    };
    over(x, [&](Ir j) { l_.store(evaluate(x, {i, 1, j, 1})[0], l_.at(row, l_.mul(j, 4)), ElementType::f32, nullptr); });
    over(v, [&](Ir j) { l_.store(l_.splat(0.0), address(to, i, j, false), ElementType::f32, nullptr); });
    l_.loop(l_.index(0), l_.add(i, 1), 1, [&](Ir j) {
      Ir differ = b.CreateXor(l_.add(from, i), l_.add(from, j));
      Ir zeros = b.CreateBinaryIntrinsic(llvm::Intrinsic::ctlz, differ, b.getFalse());
      Ir level = b.CreateSub(l_.index(64), zeros), known = b.CreateICmpSLT(level, l_.index(levels));
      level = b.CreateSelect(known, level, l_.index(0));
      Ir read = op.getTransposed() ? j : level, write = op.getTransposed() ? level : j;
      Ir value = l_.load_scalar(l_.at(row, l_.mul(read, 4)), ElementType::f32);
      value = b.CreateSelect(known, value, l_.scalar(0.0));
      Ir at = address(to, i, write, false);
      if (op.getTransposed()) value = b.CreateFAdd(value, l_.load_scalar(at, ElementType::f32));
      b.CreateStore(value, at);
    });
  });
  plain_[v] = to;
}

void KernelEmitter::emit_sum_rows(SumRowsOp op) {
  mlir::Value v = op.getTile();
  auto n = static_cast<std::int64_t>(op.getN());
  bool column = extents(v)[1] == 1;
  Buffer to = new_buffer(v, true);
  l_.loop(l_.index(0), l_.index(extents(v)[0]), 1, [&](Ir r) {
    l_.loop(l_.index(0), l_.index(column ? 1 : columns(v)), column ? 1 : l_.width, [&](Ir j) {
      Ir sum = l_.splat(0.0);
      for (std::int64_t k = 0; k < n; ++k) {
        Ir row = l_.add(l_.mul(r, n), k);
        sum = builder_.CreateFAdd(sum, column ? l_.splat(read_column_scalar(op.getX(), row))
                                              : evaluate(op.getX(), {row, 1, j, 1})[0]);
      }
      if (column)
        builder_.CreateStore(l_.first_lane(sum), l_.at(to.base, l_.mul(r, 4)));
      else
        l_.store(sum, address(to, r, j, in_panel(v)), ElementType::f32, nullptr);
    });
  });
  plain_[v] = to;
}

// Each row is a system of its own: x += a p, r -= a map(p), p = r + b p. A row whose residual is exactly 0 stops.
void KernelEmitter::emit_solve_system(SolveOp op) {
  mlir::Value v = op.getTile();
  mlir::Block& map = op.getMap().front();
  mlir::Value direction = map.getArgument(0), image = map.getTerminator()->getOperand(0);
  std::int64_t rows = extents(v)[0], cols = columns(v);
  auto fresh = [&] { return Buffer{allocate((rows + 15) / 16 * 16 * cols * 4), l_.index(cols * 4), 0}; };
  Buffer x = fresh(), residual = fresh(), p = fresh();
  Ir squares = allocate(rows * 4);
  auto over = [&](llvm::function_ref<void(Ir row, Ir j)> body) {
    l_.loop(l_.index(0), l_.index(rows), 1,
            [&](Ir r) { l_.loop(l_.index(0), l_.index(cols), l_.width, [&](Ir j) { body(r, j); }); });
  };
  auto get = [&](const Buffer& from, Ir r, Ir j) {
    return l_.load(address(from, r, j, false), ElementType::f32, nullptr);
  };
  auto put = [&](Ir value, const Buffer& to, Ir r, Ir j) {
    l_.store(value, address(to, r, j, false), ElementType::f32, nullptr);
  };
  auto row_dot = [&](llvm::function_ref<Ir(Ir j)> left, llvm::function_ref<Ir(Ir j)> right) {
    Ir sum =
        l_.loop(l_.index(0), l_.index(cols), l_.width, {l_.splat(0.0)}, [&](Ir j, ArrayRef<Ir> acc) -> SmallVector<Ir> {
          Ir product = builder_.CreateFMul(left(j), right(j));
          if (Ir mask = column_mask(v, j)) product = builder_.CreateSelect(mask, product, l_.splat(0.0));
          return {builder_.CreateFAdd(acc[0], product)};
        })[0];
    return l_.sum(sum);
  };
  auto ratio = [&](Ir a, Ir c) {
    Ir usable = builder_.CreateFCmpUNE(c, l_.scalar(0.0));
    return builder_.CreateSelect(usable, builder_.CreateFDiv(a, builder_.CreateSelect(usable, c, l_.scalar(1.0))),
                                 l_.scalar(0.0));
  };
  over([&](Ir r, Ir j) {
    Ir rhs = evaluate(op.getRhs(), {r, 1, j, 1})[0];
    put(l_.splat(0.0), x, r, j);
    put(rhs, residual, r, j);
    put(rhs, p, r, j);
  });
  l_.loop(l_.index(0), l_.index(rows), 1, [&](Ir r) {
    auto here = [&](Ir j) { return get(residual, r, j); };
    builder_.CreateStore(row_dot(here, here), l_.at(squares, l_.mul(r, 4)));
  });
  plain_[direction] = p;
  ++depth_;
  l_.loop(l_.index(0), l_.index(static_cast<std::int64_t>(op.getSteps())), 1, [&](Ir) {
    store_forms(direction);
    emit_operations(map);
    Buffer mapped = fresh();
    over([&](Ir r, Ir j) { put(evaluate(image, {r, 1, j, 1})[0], mapped, r, j); });
    l_.loop(l_.index(0), l_.index(rows), 1, [&](Ir r) {
      Ir square = l_.load_scalar(l_.at(squares, l_.mul(r, 4)), ElementType::f32);
      Ir curvature = row_dot([&](Ir j) { return get(p, r, j); }, [&](Ir j) { return get(mapped, r, j); });
      Ir step = l_.splat(ratio(square, curvature));
      l_.loop(l_.index(0), l_.index(cols), l_.width, [&](Ir j) {
        put(l_.fma(step, get(p, r, j), get(x, r, j)), x, r, j);
        put(l_.fma(builder_.CreateFNeg(step), get(mapped, r, j), get(residual, r, j)), residual, r, j);
      });
      auto here = [&](Ir j) { return get(residual, r, j); };
      Ir next = row_dot(here, here);
      builder_.CreateStore(next, l_.at(squares, l_.mul(r, 4)));
      Ir turn = l_.splat(ratio(next, square));
      l_.loop(l_.index(0), l_.index(cols), l_.width,
              [&](Ir j) { put(l_.fma(turn, get(p, r, j), get(residual, r, j)), p, r, j); });
    });
  });
  --depth_;
  plain_[v] = x;
}

}  // namespace latile::host
