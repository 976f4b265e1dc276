// The embedded language. An operator is a function `void name(Operator&)` that declares tensors and options and
// gives two bodies: a reference (one token), and a chunk body (C tokens at a time) or kernels of the lower layer.
// Calling it records them as expression graphs; nothing is computed. Options are plain C++ values in it, so a plain
// `if` selects.
//
// Mistakes are collected, not thrown: see Operator::diagnostics().
#pragma once
#include "latile/types.h"
#include <array>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <source_location>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace latile {

using Loc = std::source_location;
class Recorder;
struct OperatorInfo;

/// Which entries (row i, column j) of a square of rows are kept: all, j <= i, or j < i.
enum class Mask : std::uint8_t { all, lower, strict };
inline constexpr Mask lower = Mask::lower, strict = Mask::strict;
inline constexpr Type io = Type::io, f32 = Type::f32;
/// Operands of a dot: rounded to the operator's tensor type, or left in float32.
enum class Dot : std::uint8_t { io, precise };
/// Static tables of `lookup`: the Fenwick level of (row, column), 0 on the diagonal.
enum class Table : std::uint8_t { fenwick };

/// A symbolic extent. Two extents are equal only when they are the same symbol, whatever their sizes.
struct Dim {
  Recorder* rec = nullptr;
  int id = 0;
};
Dim operator*(Dim, Dim);

class Operand;

/// A value of exactly two extents. Made by the functions below; belongs to the body in which it was made.
class [[nodiscard]] Tile {
public:
  Tile() = default;
  Tile(Recorder* r, int n) : rec(r), node(n) {}
  Tile(const Operand&, Loc = Loc::current());  ///< keeps an operand's present value, e.g. a carry's
  explicit operator bool() const = delete;     ///< a tile has no value while a body is recorded
  Tile T(Loc = Loc::current()) const;          ///< transpose
  Tile row(Loc = Loc::current()) const;        ///< [C, 1] -> [1, C]
  Tile col(Loc = Loc::current()) const;        ///< [1, K] -> [K, 1]

  Recorder* rec = nullptr;
  int node = -1;
};

class Window;
class Carry;
class Output;
struct Rows;
struct Columns;
struct Tap;

/// Something declared with a name; reads as a tile in a body.
class Operand {
public:
  Operand(Recorder* r, int i) : rec(r), id(i) {}
  explicit operator bool() const = delete;
  Tile T(Loc l = Loc::current()) const { return read(l).T(l); }
  Tile row(Loc l = Loc::current()) const { return read(l).row(l); }
  Tile col(Loc l = Loc::current()) const { return read(l).col(l); }
  Tile read(Loc = Loc::current()) const;
  /// False for an optional tensor that is not bound in this specialisation.
  bool given() const;

  Recorder* rec;
  int id;
};

/// Any argument of a language function, together with the user's line.
struct Arg {
  Arg(Tile t, Loc l = Loc::current()) : tile(t), loc(l) {}
  Arg(const Operand& o, Loc l = Loc::current()) : tile(o.read(l)), loc(l) {}
  Arg(const Window& w, Loc l = Loc::current());
  Arg(const Output& o, Loc l = Loc::current());  ///< recorded as a mistake: an output cannot be read
  template <class N>
    requires(std::is_arithmetic_v<N> && !std::is_same_v<N, bool>)
  Arg(N v, Loc l = Loc::current()) : number(static_cast<double>(v)), is_number(true), loc(l) {}

  Tile tile{};
  double number = 0;
  bool is_number = false;
  Loc loc;
};

/// A sequence or a parameter.
class Input : public Operand {
public:
  using Operand::Operand;
  /// Value of the rows that a partial chunk lacks, applied after through(). Default 0.
  Input& neutral(double);
  /// Rows per token. Default 1.
  Input& rate(int rows_per_token);
  /// May be left unbound: given() is then false, and an optional gate reads as 0.
  Input& optional();
  /// States a range of the values after through(): a fact that schedules may use.
  Input& within(double lo, double hi);
  /// The range from which checks draw the tensor's numbers; it limits nothing.
  Input& typical(double lo, double hi);
  /// Checks draw rows of unit length: a key that the operator erases with, where the declaration doesn't tell.
  Input& typical_key();
  /// Checks take the other sequence, declared before, times numbers from the range: so a pair of keys belongs together.
  Input& typical(const Input& other, double lo, double hi);
  /// A function between load and both bodies; may be repeated. `f` takes and gives a tile of the same shape.
  template <class F> Input& through(F&& f, Loc l = Loc::current()) {
    Tile x = begin_prologue(l);
    if constexpr (std::is_same_v<std::decay_t<F>, Tile (*)(Arg)>)
      end_prologue(f(Arg(x, l)), l);
    else
      end_prologue(f(x), l);
    return *this;
  }

  /// In a kernel: a window of a sequence, [rows, inner] or [rows, columns]. `before` is a state that holds the rows
  /// before the sequence's first, the newest last; without it they read as 0, as do rows past the end.
  Window operator()(Rows, Loc = Loc::current()) const;
  Window operator()(Rows, Columns, Loc = Loc::current()) const;
  Window operator()(Rows, const Carry& before, Loc = Loc::current()) const;
  Window operator()(Rows, Columns, const Carry& before, Loc = Loc::current()) const;
  /// In a kernel: columns of a parameter, one row of it, or columns of that row.
  Window operator()(Columns, Loc = Loc::current()) const;
  Window operator()(Tap, Loc = Loc::current()) const;
  Window operator()(Tap, Columns, Loc = Loc::current()) const;

private:
  Tile begin_prologue(Loc);
  void end_prologue(Tile, Loc);
};

/// A variable that lives from chunk to chunk, float32: reads as what was assigned last, before that as the old state.
/// It cannot be copied; `Tile old = S;` keeps a value.
class Carry : public Operand {
public:
  using Operand::Operand;
  Carry(const Carry&) = delete;
  Carry& operator=(const Carry&) = delete;
  Carry& operator=(Arg);
  /// The range from which checks draw initial states; it limits nothing.
  Carry& typical(double lo, double hi);
  /// In a kernel over last rows: where they are kept, written when assigned.
  Window operator()(Rows, Loc = Loc::current()) const;
  Window operator()(Rows, Columns, Loc = Loc::current()) const;
};

/// Assigned once in each body, never read.
class Output {
public:
  Output(Recorder* r, int i) : rec(r), id(i) {}
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;
  Output& operator=(Arg);
  bool given() const;
  /// May be left unbound: given() is then false, and nothing may be assigned.
  Output& optional();
  /// In a kernel: a window, written when assigned.
  Window operator()(Rows, Loc = Loc::current()) const;
  Window operator()(Rows, Columns, Loc = Loc::current()) const;

  Recorder* rec;
  int id;
};

/// What a body knows of its rows. The last chunk of a sequence may have fewer than C.
struct Chunk {
  Recorder* rec;
  Tile valid(Loc = Loc::current()) const;      ///< [C, 1]: 1 for rows that exist, 0 for the rest
  Tile count(Loc = Loc::current()) const;      ///< [1, 1]: how many rows exist
  Tile index(Loc = Loc::current()) const;      ///< [1, 1]: the chunk's number in its sequence
  Tile iota(Loc = Loc::current()) const;       ///< [C, 1]: 0, 1, … C − 1
  Tile iota(Dim, Loc = Loc::current()) const;  ///< [1, D]: 0, 1, … D − 1
};
using Token = Chunk;

/// Rows that a program of a kernel works on. `i - 3` are the rows three earlier in the same sequence.
struct Rows {
  Recorder* rec;
  int node;
  int extent;
  int back = 0;
  int tap = -1, taps = 0;
  bool tap_reversed = false;
};
/// Columns of a dimension: as many at a time as the target chooses.
struct Columns {
  Recorder* rec;
  int node;
  int dim;
};
/// The number 0 … n − 1 of a term of Kernel::sum.
struct Tap {
  Recorder* rec;
  int node;
  int dim;
  bool is_reversed = false;
  Tap reversed() const { return {rec, node, dim, !is_reversed}; }  ///< n − 1 − this number
};
Rows operator-(Rows, int);
Rows operator-(Rows, Tap);

/// A tile-shaped part of a tensor: loads when read, stores when assigned.
class Window {
public:
  Window() = default;
  Window(const Window&) = default;
  Window& operator=(Arg);
  Window& operator=(const Window& w) { return *this = Arg(w, w.loc); }  ///< loads and stores, like any assignment
  operator Tile() const;

  Recorder* rec = nullptr;
  int id = 0;
  Rows rows{nullptr, -1, 0};
  Columns cols{nullptr, -1, -1};
  Tap tap{nullptr, -1, -1};
  int before = -1;
  Loc loc;
};

namespace detail {
enum class Over : std::uint8_t { nothing, sum, mean, max, taps };
Columns begin_columns(Recorder*, Dim, Over, Loc);
Tap begin_taps(Recorder*, Dim, Loc);
void end_columns(Recorder*);
Tile end_columns(Recorder*, Arg result);
}  // namespace detail

/// The lower layer: programs that read and write windows, in any order and at the same time. The kernels of an operator
/// run one after another; together they are its prefill.
struct Kernel {
  Recorder* rec;
  /// One program for each block of rows of a sequence and each head. The target chooses how many rows a block has.
  Rows rows(Loc = Loc::current()) const;
  /// One program for each sequence and head: its last n rows, and before them what came before the sequence.
  Rows last(Dim n, Loc = Loc::current()) const;
  Rows last(Loc = Loc::current()) const;  ///< one row

  /// Does f for all columns of a dimension, some at a time.
  template <class F> void columns(Dim d, F&& f, Loc l = Loc::current()) const {
    Columns j = detail::begin_columns(rec, d, detail::Over::nothing, l);
    f(j);
    detail::end_columns(rec);
  }
  /// Σ over all columns of a dimension of what f gives for some of them: [R, columns] -> [R, 1].
  template <class F> Tile rowsum(Dim d, F&& f, Loc l = Loc::current()) const {
    return over(d, detail::Over::sum, f, l);
  }
  template <class F> Tile rowmean(Dim d, F&& f, Loc l = Loc::current()) const {
    return over(d, detail::Over::mean, f, l);
  }
  template <class F> Tile rowmax(Dim d, F&& f, Loc l = Loc::current()) const {
    return over(d, detail::Over::max, f, l);
  }
  /// f(0) + … + f(n − 1), unrolled.
  template <class F> Tile sum(Dim n, F&& f, Loc l = Loc::current()) const {
    Tap t = detail::begin_taps(rec, n, l);
    return detail::end_columns(rec, Arg(f(t), l));
  }

private:
  template <class F> Tile over(Dim d, detail::Over what, F&& f, Loc l) const {
    Columns j = detail::begin_columns(rec, d, what, l);
    return detail::end_columns(rec, Arg(f(j), l));
  }
};

/// A kernel in CUDA C++, compiled by NVRTC and launched as one of a plan's own. It runs in mode prefill, on CUDA
/// devices alone, behind the chunk body or the kernels of the operator, and reads and writes its tensors in memory. The
/// reference says what all of them compute together; recurrent and step come from it, as always.
///
/// Before the source stand, in namespace latile: `io`, the type of the operator's tensors; inner dims as constants;
/// `Arguments`, the type of the kernel's only parameter: pointers `a.q` (of "S.final": `a.S_final`), strides in
/// elements `a.strides.q[axis]`, `a.sizes.B`, `.T`, `.N` and head axes, `a.scalars.scale`; and `block(a)`, where a
/// block stands on the axes of the grid: `block(a).T`. LATILE_HAS_q is defined for each tensor that is bound; others
/// are left out.
struct ExternKernel {
  struct Axis {
    std::string name;  ///< "B", "T" (rows), "N" (sequences), a head axis, or, last, an inner dimension
    int span = 1;      ///< indices of the axis that a block covers; there are extent / span blocks, rounded up
  };
  std::string entry;  ///< of: extern "C" __global__ void entry(const latile::Arguments a)
  std::string source;
  std::vector<Axis> grid{};           ///< one block for each combination; blockIdx.x counts them, the last axis fastest
  int threads = 128;                  ///< of a block, threadIdx.x
  int shared_bytes = 0;               ///< of dynamic shared memory
  std::vector<std::string> reads{};   ///< names as in a plan: "q", "S.initial"
  std::vector<std::string> writes{};  ///< outputs and states, which hold what the kernels before have written
  std::vector<std::string> options{};  ///< of NVRTC, after latile's: "-I/opt/include", "-use_fast_math"
};

/// One specialisation, as far as a definition can see it.
struct Config {
  std::vector<std::pair<std::string, std::string>> options;  ///< given ones; the rest keep their default
  std::vector<std::string> bound;                            ///< tensors of the plan; empty: all
};

struct Diagnostic {
  Loc loc;                      ///< line 0 when the mistake is in the configuration and not in a definition
  std::string text;             ///< one sentence, beginning with the operator's name
  std::string message() const;  ///< "file:line: text"
};

class Operator {
public:
  explicit Operator(std::string name, Config = {});
  ~Operator();
  Operator(const Operator&) = delete;
  Operator& operator=(const Operator&) = delete;

  /// Head axes: "H", or "HV % H" for an axis whose heads are grouped under those of H.
  template <class... S> auto heads(S... s) { return std::array<Dim, sizeof...(S)>{dim(s, true)...}; }
  template <class... S> auto dims(S... s) { return std::array<Dim, sizeof...(S)>{dim(s, false)...}; }

  /// [batch, row, (head), (inner)]; reads as [C, inner] or a column [C, 1].
  Input sequence(std::string_view, std::initializer_list<Dim>, Type = Type::io, Loc = Loc::current());
  /// A sequence of natural logarithms of decays; reads in log2 units, each at least −126, neutral 0.
  Input gate(std::string_view, std::initializer_list<Dim>, Loc = Loc::current());
  /// [(head), (inner)]; reads as [1, inner] or [1, 1].
  Input param(std::string_view, std::initializer_list<Dim>, Type = Type::f32, Loc = Loc::current());
  /// A double given at each run, [1, 1]. Without a default it is K^-1/2.
  Operand scalar(std::string_view, std::optional<double> = {}, Loc = Loc::current());
  /// [sequence or slot, (head), inner…]; reads as [K, V], or [1, K] with one inner extent. Float32 in a body.
  Carry carry(std::string_view, std::initializer_list<Dim>, Type = Type::any, Loc = Loc::current());
  /// A carry of the reference alone: zero at the start of each sequence, no tensor gives or takes it. With it and
  /// mini_batch() a definition over mini-batches is written token by token.
  Carry hidden(std::string_view, std::initializer_list<Dim>, Loc = Loc::current());
  /// [batch, row, (head), (inner)]
  Output output(std::string_view, std::initializer_list<Dim>, Type = Type::io, Loc = Loc::current());

  /// Options: fixed when a plan is made.
  bool flag(std::string_view, bool fallback = false);
  int integer(std::string_view, int fallback, int lo, int hi);
  std::optional<double> number(std::string_view);
  std::optional<double> number(std::string_view, double lo, double hi);
  std::string_view choice(std::string_view, std::initializer_list<std::string_view>);  ///< the first is the default
  /// A condition on options and bound tensors, and the sentence for when it doesn't hold.
  void require(bool, std::string_view why, Loc = Loc::current());
  /// Tokens of a chunk where that number is part of the meaning: option "mini_batch", 16 by default. The target does
  /// not choose the chunk then, a run starts with a new mini-batch, and modes recurrent and step are refused: between
  /// two tokens of one mini-batch there is no state that a tensor holds.
  int mini_batch();
  /// An inner extent above which the operator is refused, and the reason.
  void limit(Dim, int most, std::string_view why);
  /// Why the operator has no segmented form.
  void no_segment(std::string_view why);
  /// Why there is no chunk body with these options.
  void no_prefill(std::string_view why);

  template <class F> void reference(F&& f, Loc l = Loc::current()) { begin(0, l), f(Token{rec()}), end(l); }
  template <class F> void chunk(F&& f, Loc l = Loc::current()) { begin(1, l), f(Chunk{rec()}), end(l); }
  template <class F> void kernel(F&& f, Loc l = Loc::current()) { begin(2, l), f(Kernel{rec()}), end(l); }

  /// May be repeated: they run in the order of the calls.
  void extern_kernel(ExternKernel, Loc = Loc::current());

  /// Reports what shows only after the definition has run: options and tensors that nothing declares.
  void finish();
  const std::vector<Diagnostic>& diagnostics() const;
  OperatorInfo info() const;
  /// The recorded graph without locations. The same for every host compiler.
  std::string text() const;
  Recorder* rec() const { return impl.get(); }

private:
  Dim dim(std::string_view, bool head);
  void begin(int kind, Loc);
  void end(Loc);
  std::unique_ptr<Recorder> impl;
};

// Element-wise. Extents are equal or 1; nothing else broadcasts.
Tile operator+(Arg, Arg);
Tile operator-(Arg, Arg);
Tile operator*(Arg, Arg);
Tile operator/(Arg, Arg);
Tile operator-(Arg);
Tile max(Arg, Arg);
Tile min(Arg, Arg);
Tile select(Arg condition, Arg then, Arg otherwise);  ///< `then` where the condition is not 0
Tile exp(Arg);
Tile exp2(Arg);
Tile log(Arg);
Tile log2(Arg);
Tile sqrt(Arg);
Tile rsqrt(Arg);
Tile sigmoid(Arg);
Tile tanh(Arg);
Tile floor(Arg);
Tile softplus(Arg);
Tile silu(Arg);
Tile relu(Arg);
Tile stop_gradient(Arg);
Tile log2_gate(Arg);  ///< natural logarithm of a decay as gates read: in log2 units, at least −126

// Contraction and reduction.
Tile dot(Arg a, Arg b, Dot = Dot::io);  ///< [M, K] · [K, N] -> [M, N], accumulated in float32
Tile outer(Arg a, Arg b);               ///< rows a [1, K], b [1, V] -> [K, V]
Tile rowsum(Arg);                       ///< [R, C] -> [R, 1]
Tile rowmean(Arg);
Tile rowmax(Arg);
Tile rowvar(Arg);
Tile colsum(Arg);  ///< [R, C] -> [1, C]
Tile softmax_rows(Arg);
Tile l2norm(Arg);  ///< each row times (Σ x² + 1e-6)^-1/2

// Over rows.
struct Cumsum {
  bool exclusive = false, reverse = false;
};
Tile cumsum(Arg, Cumsum = {});
Tile cummax(Arg, Arg from);             ///< running maximum, from a row [1, D]
Tile last(Arg);                         ///< row C − 1, [1, D]
Tile last_valid(Arg);                   ///< the last row that exists, [1, D]
Tile prev(Arg, Arg from);               ///< rows moved down by one; the first is `from` [1, D]
Tile next(Arg, Arg from);               ///< rows moved up by one; the last is `from` [1, D]
Tile pick(Arg, int row);                ///< one row, [1, D]
Tile repeat_rows(Arg, int n);           ///< each row n times in a row
Tile diagonal(Arg);                     ///< a column [C, 1] on the diagonal of [C, C]
Tile kron_rows(Arg);                    ///< [C, K] -> [C, K·K], each row times itself
Tile kron_rows(Arg, Arg);               ///< [C, K], [C, L] -> [C, K·L], rows times rows
Tile lookup(Arg, Table);                ///< [C, L] -> [C, C]: entry (i, j) is x(i, table(i, j))
Tile lookup(Arg, Table, Arg from);      ///< i and j count from a number [1, 1]; levels past the last column give 0
Tile masked(Arg, Mask, int stair = 1);  ///< 0 where the mask doesn't hold; column j counts as j div stair

// The closed set. Gates are cumulative, in log2 units, and Gr_i <= Gc_j wherever the mask holds.
/// exp2(Gr_i − Gc_j) where the mask holds: columns [C, 1], [C', 1] -> [C, C'].
Tile decay(Arg Gr, Arg Gc, Mask, int stair = 1);
/// Σ_d q_id k_jd exp2(Gr_id − Gc_jd) where the mask holds: [C, K]⁴ -> [C, C].
Tile decayed_scores(Arg q, Arg k, Arg Gr, Arg Gc, Mask);
/// Σ_j A_ij x_jd exp2(Gr_id − Gc_jd) where the mask holds: [C, C], [C, D]³ -> [C, D].
Tile decayed_apply(Arg A, Arg x, Arg Gr, Arg Gc, Mask);
/// Σ_i A_ij x_id exp2(Gr_id − Gc_jd) where the mask holds.
Tile decayed_apply_transposed(Arg A, Arg x, Arg Gr, Arg Gc, Mask);
/// (I + A)^-1 of the strictly lower triangle of A: [C, C] -> [C, C].
Tile inverse_unit_lower(Arg);
/// y_i = exp2(g_i) y_(i−1) + x_i from h [1, D]: [C, D].
Tile affine_scan(Arg g, Arg x, Arg h);
/// Running ln Σ e^s, from z [1, M]: [C, M].
Tile logcumsumexp(Arg s, Arg z);

namespace detail {
enum class RegionOp : std::uint8_t { solve, loop, custom, adjoint };
Tile begin_region(RegionOp, std::initializer_list<Arg>, int n);  ///< the region's first argument
Tile argument(Tile first, int k);
Tile end_region(Tile first, Arg result);
}  // namespace detail

/// Conjugate gradients, one symmetric system a row: x with map(x) = rhs.
template <class F> Tile solve(Arg rhs, int steps, F&& map) {
  Tile x = detail::begin_region(detail::RegionOp::solve, {rhs}, steps);
  return detail::end_region(x, Arg(map(x), rhs.loc));
}
/// f applied n times, kept as a loop.
template <class F> Tile loop(int n, Arg init, F&& f) {
  Tile x = detail::begin_region(detail::RegionOp::loop, {init}, n);
  return detail::end_region(x, Arg(f(x), init.loc));
}
/// y = f(x) with the adjoint dx = g(x, y, dy). g may use tiles of outside only where they need no gradient.
template <class F, class G> Tile with_adjoint(Arg x, F&& f, G&& g) {
  Tile in = detail::begin_region(detail::RegionOp::custom, {x}, 0);
  Tile out = f(in);
  Tile again = detail::begin_region(detail::RegionOp::adjoint, {Arg(in, x.loc), Arg(out, x.loc), Arg(out, x.loc)}, 0);
  Tile dx = g(again, detail::argument(again, 1), detail::argument(again, 2));
  (void)detail::end_region(again, Arg(dx, x.loc));
  return detail::end_region(in, Arg(out, x.loc));
}

}  // namespace latile
