#include "compiler/interpreter/Recurrences.h"
#include <algorithm>
#include <bit>
#include <cmath>

namespace latile::interpreter {
namespace {

double at(Strided x, std::int64_t i, std::int64_t j) { return x.data[i * x.row_stride + j * x.col_stride]; }

/// Column by column from `from`: out = next(running, i, j).
template <class Next>
void run_down(double* out, Strided from, std::int64_t rows, std::int64_t cols, bool reverse, Next next) {
  for (std::int64_t j = 0; j < cols; ++j) {
    double running = at(from, 0, j);
    for (std::int64_t step = 0; step < rows; ++step) {
      const std::int64_t i = reverse ? rows - 1 - step : step;
      out[i * cols + j] = running = next(running, i, j);
    }
  }
}

/// 0 on the diagonal, else 1 + the number of the highest bit in which i and j differ.
std::int64_t fenwick(std::int64_t i, std::int64_t j) { return std::bit_width(static_cast<std::uint64_t>(i ^ j)); }

}  // namespace

void running_maximum(double* out, Strided x, Strided from, std::int64_t rows, std::int64_t cols) {
  run_down(out, from, rows, cols, false, [&](double running, std::int64_t i, std::int64_t j) {
    const double value = at(x, i, j);
    return running != running || running > value ? running : value;
  });
}

void running_logsumexp(double* out, Strided x, Strided from, std::int64_t rows, std::int64_t cols) {
  run_down(out, from, rows, cols, false, [&](double running, std::int64_t i, std::int64_t j) {
    const double value = at(x, i, j), larger = std::max(running, value), smaller = std::min(running, value);
    if (std::isnan(running) || std::isnan(value)) return running + value;
    // Equal infinities have no difference.
    if (std::isinf(larger)) return larger;
    return larger + std::log1p(std::exp(smaller - larger));
  });
}

void affine_scan(double* out, Strided g, Strided x, Strided from, std::int64_t rows, std::int64_t cols, bool reverse) {
  run_down(out, from, rows, cols, reverse, [&](double running, std::int64_t i, std::int64_t j) {
    return std::exp2(at(g, i, j)) * running + at(x, i, j);
  });
}

void shift_rows(double* out, Strided x, Strided from, std::int64_t rows, std::int64_t cols, bool reverse) {
  for (std::int64_t i = 0; i < rows; ++i) {
    const std::int64_t source = reverse ? i + 1 : i - 1;
    const bool inside = source >= 0 && source < rows;
    for (std::int64_t j = 0; j < cols; ++j) out[i * cols + j] = inside ? at(x, source, j) : at(from, 0, j);
  }
}

void decayed_scores(double* out, Strided q, Strided k, Strided gr, Strided gc, std::int64_t rows, std::int64_t cols,
                    std::int64_t depth, Masked mask) {
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < cols; ++j) {
      double sum = 0;
      if (kept(mask.kind, mask.stair, i, j))
        for (std::int64_t d = 0; d < depth; ++d)
          sum += at(q, i, d) * at(k, j, d) * std::exp2(at(gr, i, d) - at(gc, j, d));
      out[i * cols + j] = sum;
    }
}

void decayed_apply(double* out, Strided a, Strided x, Strided gr, Strided gc, std::int64_t rows, std::int64_t cols,
                   std::int64_t depth, Masked mask, bool transposed) {
  std::fill_n(out, (transposed ? cols : rows) * depth, 0.0);
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < cols; ++j)
      if (kept(mask.kind, mask.stair, i, j))
        for (std::int64_t d = 0; d < depth; ++d)
          out[(transposed ? j : i) * depth + d] +=
              at(a, i, j) * at(x, transposed ? i : j, d) * std::exp2(at(gr, i, d) - at(gc, j, d));
}

void sum_rows(double* out, Strided x, std::int64_t rows, std::int64_t cols, std::int64_t n) {
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < cols; ++j) {
      double sum = 0;
      for (std::int64_t r = 0; r < n; ++r) sum += at(x, i * n + r, j);
      out[i * cols + j] = sum;
    }
}

void kron_rows(double* out, Strided x, Strided y, std::int64_t rows, std::int64_t K, std::int64_t L) {
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t k = 0; k < K; ++k)
      for (std::int64_t l = 0; l < L; ++l) *out++ = at(x, i, k) * at(y, i, l);
}

void contract_kron(double* out, Strided m, Strided x, std::int64_t rows, std::int64_t K) {
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t k = 0; k < K; ++k) {
      double sum = 0;
      for (std::int64_t l = 0; l < K; ++l) sum += (at(m, i, k * K + l) + at(m, i, l * K + k)) * at(x, i, l);
      *out++ = sum;
    }
}

void lookup_fenwick(double* out, Strided x, std::int64_t from, std::int64_t rows, std::int64_t levels) {
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < rows; ++j) {
      const std::int64_t level = fenwick(from + i, from + j);
      *out++ = j <= i && level < levels ? at(x, i, level) : 0.0;
    }
}

void gather_fenwick(double* out, Strided x, std::int64_t from, std::int64_t rows, std::int64_t levels) {
  std::fill_n(out, rows * levels, 0.0);
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j <= i; ++j)
      if (const std::int64_t level = fenwick(from + i, from + j); level < levels)
        out[i * levels + level] += at(x, i, j);
}

}  // namespace latile::interpreter
