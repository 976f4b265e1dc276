#include "compiler/interpreter/Loops.h"
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

// One copy of a loop for each vector width; the loader picks.
#if defined(__x86_64__) && defined(__linux__)
#define LATILE_WIDE __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define LATILE_WIDE
#endif
#define LATILE_INLINE __attribute__((always_inline)) inline

namespace latile::interpreter {
namespace wide {

/// Turns columns, and operands that run on from row to row, into one long row.
template <class... Operands> LATILE_INLINE void flatten(std::int64_t& rows, std::int64_t& cols, Operands&... operands) {
  if (cols == 1) {
    ((operands.col_stride = operands.row_stride), ...);
    cols = rows;
    rows = 1;
  } else if (((operands.row_stride == cols * operands.col_stride) && ...)) {
    cols *= rows;
    rows = 1;
  }
}

template <class F> LATILE_INLINE void map(double* out, Strided a, std::int64_t rows, std::int64_t cols, F f) {
  flatten(rows, cols, a);
  for (std::int64_t i = 0; i < rows; ++i, out += cols) {
    const double* x = a.data + i * a.row_stride;
    if (a.col_stride == 1) {
      for (std::int64_t j = 0; j < cols; ++j) out[j] = f(x[j]);
    } else if (a.col_stride == 0) {
      const double y = f(x[0]);
      for (std::int64_t j = 0; j < cols; ++j) out[j] = y;
    } else {
      for (std::int64_t j = 0; j < cols; ++j) out[j] = f(x[j * a.col_stride]);
    }
  }
}

template <class F>
LATILE_INLINE void map(double* out, Strided a, Strided b, std::int64_t rows, std::int64_t cols, F f) {
  flatten(rows, cols, a, b);
  for (std::int64_t i = 0; i < rows; ++i, out += cols) {
    const double* x = a.data + i * a.row_stride;
    const double* y = b.data + i * b.row_stride;
    if (a.col_stride == 1 && b.col_stride == 1) {
      for (std::int64_t j = 0; j < cols; ++j) out[j] = f(x[j], y[j]);
    } else if (a.col_stride == 1 && b.col_stride == 0) {
      const double s = y[0];
      for (std::int64_t j = 0; j < cols; ++j) out[j] = f(x[j], s);
    } else if (a.col_stride == 0 && b.col_stride == 1) {
      const double s = x[0];
      for (std::int64_t j = 0; j < cols; ++j) out[j] = f(s, y[j]);
    } else {
      for (std::int64_t j = 0; j < cols; ++j) out[j] = f(x[j * a.col_stride], y[j * b.col_stride]);
    }
  }
}

LATILE_WIDE void unary(Op op, double* out, Strided a, std::int64_t rows, std::int64_t cols) {
  switch (op) {
  case Op::negate: return map(out, a, rows, cols, [](double x) { return -x; });
  case Op::absolute: return map(out, a, rows, cols, [](double x) { return __builtin_fabs(x); });
  case Op::sqrt: return map(out, a, rows, cols, [](double x) { return __builtin_sqrt(x); });
  case Op::rsqrt: return map(out, a, rows, cols, [](double x) { return 1.0 / __builtin_sqrt(x); });
  case Op::exp: return map(out, a, rows, cols, [](double x) { return std::exp(x); });
  case Op::exp2: return map(out, a, rows, cols, [](double x) { return std::exp2(x); });
  case Op::log: return map(out, a, rows, cols, [](double x) { return std::log(x); });
  case Op::log2: return map(out, a, rows, cols, [](double x) { return std::log2(x); });
  case Op::floor: return map(out, a, rows, cols, [](double x) { return std::floor(x); });
  case Op::tanh: return map(out, a, rows, cols, [](double x) { return std::tanh(x); });
  case Op::sigmoid:
    return map(out, a, rows, cols, [](double x) {
      const double e = std::exp(-__builtin_fabs(x));
      return (x < 0 ? e : 1.0) / (1.0 + e);
    });
  case Op::softplus:
    // The comparison is written so that NaN passes through.
    return map(out, a, rows, cols,
               [](double x) { return (x < 0 ? 0.0 : x) + std::log1p(std::exp(-__builtin_fabs(x))); });
  default: return map(out, a, rows, cols, [](double x) { return x; });
  }
}

LATILE_WIDE void binary(Op op, double* out, Strided a, Strided b, std::int64_t rows, std::int64_t cols) {
  switch (op) {
  case Op::add: return map(out, a, b, rows, cols, [](double x, double y) { return x + y; });
  case Op::subtract: return map(out, a, b, rows, cols, [](double x, double y) { return x - y; });
  case Op::multiply: return map(out, a, b, rows, cols, [](double x, double y) { return x * y; });
  case Op::divide: return map(out, a, b, rows, cols, [](double x, double y) { return x / y; });
  case Op::maximum: return map(out, a, b, rows, cols, [](double x, double y) { return x != x || x > y ? x : y; });
  default: return map(out, a, b, rows, cols, [](double x, double y) { return x != x || x < y ? x : y; });
  }
}

/// Four rows of a by sixteen columns of b in registers.
template <int R>
LATILE_INLINE void dot_rows(double* out, Strided a, const double* b, std::int64_t ldb, std::int64_t N, std::int64_t K) {
  constexpr int W = 16;
  std::int64_t j = 0;
  for (; j + W <= N; j += W) {
    double acc[R][W] = {};
    for (std::int64_t k = 0; k < K; ++k) {
      const double* y = b + k * ldb + j;
      for (int r = 0; r < R; ++r) {
        const double x = a.data[r * a.row_stride + k * a.col_stride];
        for (int w = 0; w < W; ++w) acc[r][w] += x * y[w];
      }
    }
    for (int r = 0; r < R; ++r)
      for (int w = 0; w < W; ++w) out[r * N + j + w] = acc[r][w];
  }
  for (; j < N; ++j)
    for (int r = 0; r < R; ++r) {
      double acc = 0;
      for (std::int64_t k = 0; k < K; ++k) acc += a.data[r * a.row_stride + k * a.col_stride] * b[k * ldb + j];
      out[r * N + j] = acc;
    }
}

/// One row of a; b streams through once, four rows at a time.
LATILE_INLINE void dot_row(double* out, const double* a, std::int64_t step, const double* b, std::int64_t ldb,
                           std::int64_t N, std::int64_t K) {
  for (std::int64_t j = 0; j < N; ++j) out[j] = 0;
  std::int64_t k = 0;
  for (; k + 4 <= K; k += 4) {
    const double *y0 = b + k * ldb, *y1 = y0 + ldb, *y2 = y1 + ldb, *y3 = y2 + ldb;
    const double x0 = a[k * step], x1 = a[(k + 1) * step], x2 = a[(k + 2) * step], x3 = a[(k + 3) * step];
    for (std::int64_t j = 0; j < N; ++j) out[j] += (x0 * y0[j] + x1 * y1[j]) + (x2 * y2[j] + x3 * y3[j]);
  }
  for (; k < K; ++k) {
    const double* y = b + k * ldb;
    const double x = a[k * step];
    for (std::int64_t j = 0; j < N; ++j) out[j] += x * y[j];
  }
}

LATILE_INLINE double inner(const double* x, const double* y, std::int64_t n) {
  constexpr int W = 16;
  double acc[W] = {};
  std::int64_t k = 0;
  for (; k + W <= n; k += W)
    for (int w = 0; w < W; ++w) acc[w] += x[k + w] * y[k + w];
  for (; k < n; ++k) acc[k % W] += x[k] * y[k];
  for (int half = W / 2; half > 0; half /= 2)
    for (int w = 0; w < half; ++w) acc[w] += acc[w + half];
  return acc[0];
}

LATILE_WIDE void dot(double* out, Strided a, Strided b, std::int64_t M, std::int64_t N, std::int64_t K,
                     double* scratch) {
  if (N == 1 && M > 1) {
    // A column is a row of the transposed product; the memory of the result is the same.
    std::swap(a, b);
    std::swap(a.row_stride, a.col_stride);
    std::swap(b.row_stride, b.col_stride);
    std::swap(M, N);
  }
  if (M == 1 && K > 1 && b.row_stride == 1 && b.col_stride != 1 && a.col_stride == 1) {
    for (std::int64_t j = 0; j < N; ++j) out[j] = inner(a.data, b.data + j * b.col_stride, K);
    return;
  }
  const double* rows = b.data;
  std::int64_t ldb = b.row_stride;
  if (N > 1 && b.col_stride != 1) {
    for (std::int64_t k = 0; k < K; ++k)
      for (std::int64_t j = 0; j < N; ++j) scratch[k * N + j] = b.data[k * b.row_stride + j * b.col_stride];
    rows = scratch;
    ldb = N;
  }
  std::int64_t i = 0;
  for (; i + 4 <= M; i += 4)
    dot_rows<4>(out + i * N, {a.data + i * a.row_stride, a.row_stride, a.col_stride}, rows, ldb, N, K);
  for (; i < M; ++i) dot_row(out + i * N, a.data + i * a.row_stride, a.col_stride, rows, ldb, N, K);
}

LATILE_WIDE void cumsum(double* out, Strided x, std::int64_t rows, std::int64_t cols, bool exclusive, bool reverse) {
  // Row by row; `out` may be x itself, so a row of x is read before it is overwritten.
  for (std::int64_t j = 0; j < cols; ++j) {
    double sum = 0;
    for (std::int64_t step = 0; step < rows; ++step) {
      const std::int64_t i = reverse ? rows - 1 - step : step;
      const double value = x.data[i * x.row_stride + j * x.col_stride];
      out[i * cols + j] = exclusive ? sum : sum + value;
      sum += value;
    }
  }
}

LATILE_WIDE void solve_unit_lower(double* out, Strided a, Strided b, std::int64_t rows, std::int64_t cols) {
  for (std::int64_t i = 0; i < rows; ++i) {
    double* y = out + i * cols;
    for (std::int64_t j = 0; j < cols; ++j) y[j] = b.data[i * b.row_stride + j * b.col_stride];
    for (std::int64_t k = 0; k < i; ++k) {
      const double factor = a.data[i * a.row_stride + k * a.col_stride];
      const double* x = out + k * cols;
      for (std::int64_t j = 0; j < cols; ++j) y[j] -= factor * x[j];
    }
  }
}

/// To `bits` of mantissa with the implicit one, exponents from `lowest`: adding and subtracting 1.5 * 2^(52 + the
/// unit's exponent) rounds to that unit, to nearest even.
LATILE_INLINE double round_bits(double x, int bits, int lowest, double limit) {
  const auto pattern = std::bit_cast<std::uint64_t>(x);
  std::int64_t exponent = static_cast<std::int64_t>(pattern >> 52 & 0x7ff) - 1023;
  exponent = exponent < lowest ? lowest : exponent > 200 ? 200 : exponent;
  const double anchor =
      std::bit_cast<double>(static_cast<std::uint64_t>(exponent - bits + 1 + 52 + 1023) << 52 | std::uint64_t{1} << 51);
  const double rounded = (x + anchor) - anchor;
  const double magnitude = __builtin_fabs(rounded);
  const double signed_rounded = __builtin_copysign(magnitude, x);
  return x != x                         ? x
         : __builtin_fabs(x) >= 0x1p200 ? __builtin_copysign(std::numeric_limits<double>::infinity(), x)
         : magnitude >= limit           ? __builtin_copysign(std::numeric_limits<double>::infinity(), x)
                                        : signed_rounded;
}

LATILE_INLINE double to_f32(double x) { return static_cast<double>(static_cast<float>(x)); }
LATILE_INLINE double to_bf16(double x) { return round_bits(x, 8, -126, 0x1p128); }
LATILE_INLINE double to_f16(double x) { return round_bits(x, 11, -14, 65536.0); }

LATILE_WIDE void round_all(ElementType type, double* x, std::int64_t count) {
  switch (type) {
  case ElementType::f32:
    for (std::int64_t i = 0; i < count; ++i) x[i] = to_f32(x[i]);
    return;
  case ElementType::bf16:
    for (std::int64_t i = 0; i < count; ++i) x[i] = to_bf16(x[i]);
    return;
  case ElementType::f16:
    for (std::int64_t i = 0; i < count; ++i) x[i] = to_f16(x[i]);
    return;
  default: return;
  }
}

}  // namespace wide

void unary(Op op, double* out, Strided a, std::int64_t rows, std::int64_t cols) { wide::unary(op, out, a, rows, cols); }
void binary(Op op, double* out, Strided a, Strided b, std::int64_t rows, std::int64_t cols) {
  wide::binary(op, out, a, b, rows, cols);
}
void dot(double* out, Strided a, Strided b, std::int64_t M, std::int64_t N, std::int64_t K, double* scratch) {
  wide::dot(out, a, b, M, N, K, scratch);
}
void cumsum(double* out, Strided x, std::int64_t rows, std::int64_t cols, bool exclusive, bool reverse) {
  wide::cumsum(out, x, rows, cols, exclusive, reverse);
}
void solve_unit_lower(double* out, Strided a, Strided b, std::int64_t rows, std::int64_t cols) {
  wide::solve_unit_lower(out, a, b, rows, cols);
}
void round_all(ElementType type, double* x, std::int64_t count) { wide::round_all(type, x, count); }
double round_to(ElementType type, double x) {
  wide::round_all(type, &x, 1);
  return x;
}

void compare(std::int64_t predicate, double* out, Strided a, Strided b, std::int64_t rows, std::int64_t cols) {
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < cols; ++j) {
      const double x = a.data[i * a.row_stride + j * a.col_stride], y = b.data[i * b.row_stride + j * b.col_stride];
      const int bit = x == y ? 1 : x > y ? 2 : x < y ? 4 : 8;
      out[i * cols + j] = (predicate & bit) != 0 ? 1.0 : 0.0;
    }
}

void ternary(Op op, double* out, Strided a, Strided b, Strided c, std::int64_t rows, std::int64_t cols) {
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < cols; ++j) {
      const double x = a.data[i * a.row_stride + j * a.col_stride], y = b.data[i * b.row_stride + j * b.col_stride];
      const double z = c.data[i * c.row_stride + j * c.col_stride];
      out[i * cols + j] = op == Op::fma ? std::fma(x, y, z) : x != 0 ? y : z;
    }
}

void decay(double* out, Strided gr, Strided gc, std::int64_t rows, std::int64_t cols, std::int64_t kind,
           std::int64_t stair) {
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < cols; ++j)
      out[i * cols + j] =
          kept(kind, stair, i, j) ? std::exp2(gr.data[i * gr.row_stride] - gc.data[j * gc.row_stride]) : 0.0;
}

void mask(double* out, Strided x, std::int64_t rows, std::int64_t cols, std::int64_t kind, std::int64_t stair) {
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < cols; ++j)
      out[i * cols + j] = kept(kind, stair, i, j) ? x.data[i * x.row_stride + j * x.col_stride] : 0.0;
}

void reduce(double* out, Strided x, std::int64_t rows, std::int64_t cols, std::int64_t kind, std::int64_t axis) {
  if (axis == 0) {
    std::swap(rows, cols);
    std::swap(x.row_stride, x.col_stride);
  }
  for (std::int64_t i = 0; i < rows; ++i) {
    const double* row = x.data + i * x.row_stride;
    double result = kind == 2 ? row[0] : 0.0;
    for (std::int64_t j = 0; j < cols; ++j) {
      const double value = row[j * x.col_stride];
      if (kind != 2)
        result += value;
      else if (result == result && !(value <= result))
        result = value;
    }
    out[i] = kind == 1 ? result / static_cast<double>(cols) : result;
  }
}

void gradients_step(double* x, double* r, double* p, double* rr, Strided image, std::int64_t rows, std::int64_t cols) {
  for (std::int64_t i = 0; i < rows; ++i) {
    const double* map = image.data + i * image.row_stride;
    double curvature = 0, next = 0;
    for (std::int64_t j = 0; j < cols; ++j) curvature += p[i * cols + j] * map[j * image.col_stride];
    const double alpha = rr[i] == 0 ? 0 : rr[i] / curvature;
    for (std::int64_t j = 0; j < cols; ++j) {
      x[i * cols + j] += alpha * p[i * cols + j];
      r[i * cols + j] -= alpha * map[j * image.col_stride];
      next += r[i * cols + j] * r[i * cols + j];
    }
    const double beta = rr[i] == 0 ? 0 : next / rr[i];
    for (std::int64_t j = 0; j < cols; ++j) p[i * cols + j] = r[i * cols + j] + beta * p[i * cols + j];
    rr[i] = next;
  }
}

}  // namespace latile::interpreter
