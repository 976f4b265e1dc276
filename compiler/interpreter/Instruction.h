// The flat code that a scan or a kernel is translated to: instructions over one arena of doubles and one file of
// integer registers for each thread, so that running it neither looks up nor allocates.
#pragma once
#include "dsl/OperatorInfo.h"
#include <cstdint>
#include <string>
#include <vector>

namespace latile::interpreter {

/// A two-dimensional view of the arena. Broadcasts, transposes and rows are views, never copies.
struct Tile {
  std::int64_t offset = 0, rows = 0, cols = 0, row_stride = 0, col_stride = 0;
  std::int64_t count() const { return rows * cols; }
  bool dense() const { return (row_stride == cols || rows == 1) && (col_stride == 1 || cols == 1); }
  static Tile dense(std::int64_t offset, std::int64_t rows, std::int64_t cols) { return {offset, rows, cols, cols, 1}; }
};

/// `r` are registers, `in` and `out` tiles; every `out` is dense.
enum class Op : std::uint8_t {
  // One operand, element-wise.
  copy,
  negate,
  absolute,
  exp,
  exp2,
  log,
  log2,
  floor,
  sqrt,
  rsqrt,
  tanh,
  sigmoid,
  softplus,
  // Two operands.
  add,
  subtract,
  multiply,
  divide,
  maximum,
  minimum,
  compare,  // n: arith::CmpFPredicate; 1 or 0
  // Three.
  select,
  fma,
  select_whole,  // r0 != 0 ? in0 : in1
  // Tiles.
  fill,    // value
  scalar,  // kernel argument n, a run-time scalar
  decay,   // n: mask kind, m: stair
  mask,    // likewise
  diagonal,
  dot,
  inverse,
  solve,
  repeat_rows,      // n times
  reduce,           // n: kind, m: axis
  cumsum,           // n: exclusive, m: reverse
  neutral,          // r0: count, n: rate, value
  valid,            // r0: count, n: rate
  last_valid,       // r0: count, n: rate
  place_row,        // n: the row, or -1 and the last valid one of r0: count, m: rate
  running_maximum,  // from in1
  running_logsumexp,
  affine_scan,     // g, x, from; n: reverse
  shift_rows,      // x, from; n: reverse
  decayed_scores,  // q, k, gr, gc; n: mask kind, m: stair
  decayed_apply,   // a, x, gr, gc; likewise
  decayed_apply_transposed,
  sum_rows,         // n rows
  kron_rows,        // x, and with n another y
  contract_kron,    // m, x
  pick_columns,     // from column r0
  lookup,           // n: 1 transposed, 2 counting from in1
  from_integer,     // r0
  gradients_begin,  // in0: right side, out: x, then r, p, and r·r in in1, in2, in3
  gradients_step,   // in0: map(p), out: x, in1: r, in2: p, in3: r·r
  // Integers: r0 is the result.
  int_constant,  // n
  int_copy,
  int_add,
  int_subtract,
  int_multiply,
  int_divide,
  int_ceil_divide,
  int_remainder,
  int_minimum,
  int_maximum,
  int_and,
  int_or,
  int_xor,
  int_compare,  // n: arith::CmpIPredicate
  int_select,   // r1 ? r2 : r3
  // Positions.
  sequence,     // r0 batch, r1 begin, r2 end of r3
  chunk,        // r0 n, r1 batch, r2 begin, r3 position, r4 end of r5; m: chunk size
  chunk_begin,  // r0 of r1; m: chunk size
  rows,         // r0 first, r1 count, r2 number of r3 begin, r4 position, r5 end; m: chunk size, n: reversed
  head,         // r0 of r1; n: ratio, m: 1 for tiled
  member,       // r0: number r1 of the heads of r2; n: ratio, m: 1 for tiled
  slot,         // r0 = memory[r1], or memory[r1, r2]
  // Memory: `memory` is the kernel argument, or -2 - k for scratch k of the program.
  load,
  store,  // r: indices, n of them
  load_rows,
  store_rows,  // r0 batch, r1 first, r2 count, r3 head or -1, r4 rows before the first or -1; n: rate, m: reversed
  // Control: m is the target.
  jump,
  jump_unless,       // r0
  jump_unless_less,  // r0 < r1
};

struct Instruction {
  Op op = Op::copy;
  /// The type the result is rounded to; f64: not at all.
  ElementType round = ElementType::f64;
  int memory = -1;
  Tile out;
  Tile in[4];
  int r[6] = {-1, -1, -1, -1, -1, -1};
  int column = -1;  ///< register of a load's or store's first column; -1: 0
  int row = -1;     ///< of its first row of the inner tile
  double value = 0;
  std::int64_t n = 0, m = 0;
  int place = 0;  ///< index into Code::places
};

/// Memory that each program has for itself.
struct ScratchShape {
  std::vector<std::int64_t> shape;
  ElementType type = ElementType::f32;
};

struct Code {
  std::vector<Instruction> once;  ///< constants, run once in a thread
  std::vector<Instruction> body;  ///< run for each program of the grid
  std::vector<ScratchShape> scratch;
  std::vector<std::string> places;  ///< "file:line:column: tile.load"
  std::int64_t arena = 0;           ///< doubles
  int registers = 0;                ///< the first ones hold the grid's indices
  std::vector<std::string> grid;    ///< axes
  std::int64_t chunk = 0;           ///< rows of the axis "chunks"; 0 without one
  std::int64_t slices = 1;          ///< extent of the axis "slice"
};

}  // namespace latile::interpreter
