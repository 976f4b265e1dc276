// The inner loops, over contiguous doubles wherever the operands are.
#pragma once
#include "compiler/interpreter/Instruction.h"

namespace latile::interpreter {

/// A Tile resolved to memory.
struct Strided {
  const double* data;
  std::int64_t row_stride, col_stride;
};

void unary(Op op, double* out, Strided a, std::int64_t rows, std::int64_t cols);
void binary(Op op, double* out, Strided a, Strided b, std::int64_t rows, std::int64_t cols);
/// `predicate` is an arith::CmpFPredicate: bits 0 to 2 are equal, greater, less; bit 3 accepts unordered.
void compare(std::int64_t predicate, double* out, Strided a, Strided b, std::int64_t rows, std::int64_t cols);
void ternary(Op op, double* out, Strided a, Strided b, Strided c, std::int64_t rows, std::int64_t cols);

/// out[M,N] = a[M,K] b[K,N]; `scratch` holds at least K * N doubles.
void dot(double* out, Strided a, Strided b, std::int64_t M, std::int64_t N, std::int64_t K, double* scratch);

/// Whether entry (i, j) is kept; `kind`: 0 all, 1 lower, 2 strict.
inline bool kept(std::int64_t kind, std::int64_t stair, std::int64_t i, std::int64_t j) {
  return kind == 0 || (kind == 1 ? j / stair <= i : j / stair < i);
}
void decay(double* out, Strided gr, Strided gc, std::int64_t rows, std::int64_t cols, std::int64_t kind,
           std::int64_t stair);
void mask(double* out, Strided x, std::int64_t rows, std::int64_t cols, std::int64_t kind, std::int64_t stair);
/// `kind`: 0 sum, 1 mean, 2 max; axis 1 gives a column, axis 0 a row.
void reduce(double* out, Strided x, std::int64_t rows, std::int64_t cols, std::int64_t kind, std::int64_t axis);
void cumsum(double* out, Strided x, std::int64_t rows, std::int64_t cols, bool exclusive, bool reverse);
/// x of (I + strictly lower a) x = b. `out` may be b's own memory when b is dense.
void solve_unit_lower(double* out, Strided a, Strided b, std::int64_t rows, std::int64_t cols);

/// One step of conjugate gradients for each row; `image` is map(p). A row whose residual is 0 stays as it is.
void gradients_step(double* x, double* r, double* p, double* rr, Strided image, std::int64_t rows, std::int64_t cols);

/// To nearest even, subnormals kept, overflow to infinity.
double round_to(ElementType type, double x);
void round_all(ElementType type, double* x, std::int64_t count);

}  // namespace latile::interpreter
