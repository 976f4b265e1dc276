// Running sums and maxima, decayed products, and the structural ops that their adjoints need.
#pragma once
#include "compiler/interpreter/Loops.h"

namespace latile::interpreter {

/// Over rows, from the row `from`.
void running_maximum(double* out, Strided x, Strided from, std::int64_t rows, std::int64_t cols);
/// ln(e^from + sum of e^x).
void running_logsumexp(double* out, Strided x, Strided from, std::int64_t rows, std::int64_t cols);
/// y = exp2(g) y + x, from the row `from`; `reverse`: from the last row up.
void affine_scan(double* out, Strided g, Strided x, Strided from, std::int64_t rows, std::int64_t cols, bool reverse);
/// Rows moved by one behind (`reverse`: before) the row `from`.
void shift_rows(double* out, Strided x, Strided from, std::int64_t rows, std::int64_t cols, bool reverse);

struct Masked {
  std::int64_t kind, stair;
};
/// out[rows, cols] = sum over d of q_id k_jd exp2(gr_id - gc_jd) where the mask holds.
void decayed_scores(double* out, Strided q, Strided k, Strided gr, Strided gc, std::int64_t rows, std::int64_t cols,
                    std::int64_t depth, Masked mask);
/// sum over j of a_ij x_jd exp2(gr_id - gc_jd) where the mask holds; a is [rows, cols]. `transposed`: the sum over i of
/// a_ij x_id exp2(gr_id - gc_jd), a row for each j.
void decayed_apply(double* out, Strided a, Strided x, Strided gr, Strided gc, std::int64_t rows, std::int64_t cols,
                   std::int64_t depth, Masked mask, bool transposed);

/// Sums of n rows in a row; `rows` counts those of the result.
void sum_rows(double* out, Strided x, std::int64_t rows, std::int64_t cols, std::int64_t n);
/// Row by row, x_k y_l at k * L + l.
void kron_rows(double* out, Strided x, Strided y, std::int64_t rows, std::int64_t K, std::int64_t L);
/// Row by row, the sum over l of (m[k * K + l] + m[l * K + k]) x_l.
void contract_kron(double* out, Strided m, Strided x, std::int64_t rows, std::int64_t K);
/// Entry (i, j) is x(i, fenwick(from + i, from + j)) for j <= i, 0 elsewhere and where x has no such column; the result
/// is [rows, rows].
void lookup_fenwick(double* out, Strided x, std::int64_t from, std::int64_t rows, std::int64_t levels);
/// Its adjoint: [rows, levels].
void gather_fenwick(double* out, Strided x, std::int64_t from, std::int64_t rows, std::int64_t levels);

}  // namespace latile::interpreter
