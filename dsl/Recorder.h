// The expression graph that recording builds. Read by the compiler; not a public header.
#pragma once
#include "dsl/OperatorInfo.h"
#include "latile/dsl.h"
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace latile {

/// All operations of the language. Composites (softmax, l2norm, silu …) are recorded as their parts.
// clang-format off
#define LATILE_OPS(X) \
  X(poison) X(read) X(argument) X(constant) X(valid) X(count) X(index) X(iota) \
  X(add) X(sub) X(mul) X(div) X(max) X(min) X(select) \
  X(neg) X(exp) X(exp2) X(log) X(log2) X(sqrt) X(rsqrt) X(sigmoid) X(tanh) X(floor) X(softplus) X(stop_gradient) X(cast) \
  X(transpose) X(dot) X(reduce_sum) X(reduce_mean) X(reduce_max) X(reduce_columns) \
  X(cumsum) X(cummax) X(last) X(last_valid) X(pick) X(prev) X(next) X(repeat_rows) X(diagonal) X(kron_rows) X(lookup) \
  X(mask) X(decay) X(decayed_scores) X(decayed_apply) X(decayed_apply_transposed) X(inverse_unit_lower) \
  X(affine_scan) X(logcumsumexp) X(solve) X(loop) X(custom) X(adjoint) X(grid) X(columns) X(taps) X(load) X(store)
// clang-format on
enum class Op : std::uint8_t {
#define LATILE_OP(name) name,
  LATILE_OPS(LATILE_OP)
#undef LATILE_OP
};
const char* name(Op);

/// Two interned extents: indices into Recorder::extents.
struct Shape {
  int r = 0, c = 0;
  bool operator==(const Shape&) const = default;
};

struct Node {
  Op op = Op::poison;
  std::vector<int> in{};
  Shape shape{};
  bool io = false;  ///< in the operator's tensor type; else float32
  Loc loc{};
  double value = 0;  ///< constant
  int n = 0;         ///< steps, times, row, table; rows back; of a grid 1: last rows; detail::Over
  int decl = -1;     ///< read, load, store; dimension of columns and taps
  int before = -1;   ///< the carry that holds what comes before a window's sequence
  /// Of a window: the nodes of its grid, columns and tap, which are operands too, or -1. Its tap may be reversed.
  int rows = -1, cols = -1, tap = -1;
  Mask mask = Mask::all;
  int stair = 1;
  bool precise = false, exclusive = false, reverse = false;
  int head = -1;        ///< finest head axis among the operands; -1: none
  bool poison = false;  ///< follows from a mistake: no more reports about it
  int region = -1;      ///< the list of nodes it belongs to
  std::vector<int> regions{};
};

struct Declaration {
  enum class Kind : std::uint8_t { sequence, param, scalar, carry, output };
  Kind kind = Kind::sequence;
  std::string name;
  std::vector<int> dims;
  Type type = Type::io;
  int head = -1;
  Shape shape;  ///< of the tile; rows are C * rate for a sequence
  int rate = 1;
  double neutral = 0;
  bool optional = false, given = true, gate = false;
  std::vector<int> prologues;  ///< regions of one argument
  bool hidden = false;         ///< a carry of the reference alone
  bool sealed = false;         ///< another prologue has read it: no more prologues, so that none wait for each other
  int value_head = -1;         ///< head axis after the prologues
  std::optional<std::pair<double, double>> range, typical;
  bool typical_key = false;
  std::string typical_of;
  std::optional<double> fallback;
  Loc loc;
  /// A value that needs no work between load and use: stays in the tensors' type.
  bool raw() const { return type == Type::io && prologues.empty() && neutral == 0 && !gate; }
};

struct Region {
  std::vector<int> nodes;
  int yield = -1;
};

struct Body {
  enum Kind : int { reference, chunk, kernel };
  int kind = -1, region = -1;
  std::map<int, int> reads, carries, outputs;  ///< declaration -> node; of a kernel its last store
  int grid = -1;                               ///< of a kernel: node
};

struct ExternDefinition {
  ExternKernel kernel;
  Loc loc;
};

class Recorder {
public:
  std::string name;
  Config config;
  std::vector<std::string> extents{"1", "C"};
  std::vector<int> parent{-1, -1};  ///< HV -> H
  std::vector<bool> is_head{false, false};
  std::vector<int> declared_dims;
  std::vector<Declaration> decls;
  std::vector<Node> nodes;
  std::vector<Region> regions;
  std::vector<Body> bodies;
  std::vector<ExternDefinition> externs;
  std::vector<int> stack;       ///< open regions
  std::vector<int> open_nodes;  ///< nodes whose region is open
  std::vector<OptionInfo> options;
  std::vector<Diagnostic> mistakes;
  std::string no_segment, no_prefill;
  int mini_batch = 0;                                          ///< tokens of a chunk where that is part of the meaning
  std::map<int, std::pair<std::int64_t, std::string>> limits;  ///< of inner extents, with the reason

  int intern(const std::string&);
  int product(int, int);
  int times(int extent, int n);
  std::string show(Shape s) const { return "[" + extents[s.r] + ", " + extents[s.c] + "]"; }

  void report(Loc, const std::string& sentence);
  /// A poisoned tile of the most likely shape.
  Tile mistake(Loc, const std::string& sentence, Shape guess = {});
  Tile poison(Loc, Shape guess, std::vector<int> from = {});
  Tile emit(Node);
  /// An argument as a node of this graph.
  int value(const Arg&);
  int widen(int node, Loc);   ///< to float32, exact
  int narrow(int node, Loc);  ///< to the tensors' type: a rounding point

  bool refines(int fine, int coarse) const;
  int join(int, int, Loc);
  int open();
  void close(int yield);
  /// In the body's (or prologue's) outermost region, so that nested regions may use it too.
  Tile emit_outermost(Node);
  bool in_body() const { return !bodies.empty() && !stack.empty() && bodies.back().region == stack.front(); }
  bool in_kernel() const { return in_body() && bodies.back().kind == Body::kernel; }
  bool in_reference() const { return in_body() && bodies.back().kind == Body::reference; }
  bool bound(const std::string& tensor) const;

  /// Nodes of a region that its results need, operands first: an order that doesn't depend on the order in which the
  /// host compiler evaluated a call's arguments.
  std::vector<int> ordered(int region, const std::vector<int>& roots) const;
  /// The first body of that kind; there may be several kernels.
  const Body* body(Body::Kind) const;
  /// Results of a body: the outputs, then the carries.
  std::vector<int> results(const Body&) const;

private:
  void outside(int node, std::vector<int>& out) const;
};

/// The value that every entry of the result has when each operand's entries all have the given one; none if unknown.
std::optional<double> fold(const Node&, std::span<const std::optional<double>> operands);
/// True when the prologue maps a row of zeros to the neutral value, whatever its parameters are.
bool keeps_neutral(const Recorder&, const Declaration&);
/// The candidate with the smallest edit distance, or empty when none resembles the word.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace latile
