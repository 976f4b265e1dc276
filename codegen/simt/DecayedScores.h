// Decayed scores of blocks of 16 rows by matrix products; internal to the emitter.
#pragma once
#include "codegen/simt/KernelEmitter.h"
#include <array>

namespace latile::simt {

/// Emits scores that share the columns' gate, their operands' type and their shape. All operands and results are copies
/// in shared memory or the arena; the caller announces the accesses.
class DecayedScores {
public:
  /// `rows`: a multiple of 16. `width`: columns of q, k and the gates. `type`: of the products' operands.
  DecayedScores(KernelEmitter&, std::int64_t rows, std::int64_t width, llvm::Type* type);
  /// `kind`: Lower or Strict.
  /// `above`: the rows' gate is the row above of `gr` (whose first row has none: `kind` is Strict). `multiplied`:
  /// what the scores lose may be many times as much of a result.
  void add(const Copy& q, const Copy& k, const Copy& gr, bool above, const Copy& gc, tile::MaskKind kind,
           bool multiplied, const Copy& to);
  void emit();

private:
  using Values = SmallVector<Ir, 8>;
  /// A row of a copy as a lane reads it: `offset` of its first element in its memory, `stride` from one to the next.
  struct Row {
    Ir offset = nullptr;
    llvm::Type* element = nullptr;
    std::int64_t stride = 0;
    bool in_arena = false;
  };
  /// One row, or by `use_row` this or the other, where no address stands for both.
  struct Line {
    Row row;
    std::optional<Row> other;
    Ir use_row = nullptr;
  };
  /// What a lane holds of one row of an operand: for each part of the product its elements, in the instruction's type.
  using Side = SmallVector<Values, 2>;
  /// Registers that are operand A for lanes on q's side and operand B for lanes on k's side.
  struct Set {
    std::optional<Copy> left, right;
    std::size_t gate = 0;  ///< of the left one
    int parts = 1;         ///< that its elements are the sum of: the most that a score of it needs
  };
  struct Score {
    std::size_t left, right;  ///< sets
    tile::MaskKind kind;
    int left_parts, right_parts;  ///< of the operands' elements
    Copy to;
  };
  struct Level {
    Ir low = nullptr;                        ///< whether the lane's rows are q's side
    std::vector<std::array<Line, 2>> gates;  ///< of each row gate: the exponent is the first minus the second
    std::vector<std::vector<Line>> sets;     ///< from the row near the middle to the one far from it
  };
  /// Where an accumulator's register belongs: units of row and column in a block, and which row of the unit.
  struct Sum {
    Ir row, column;
    int slot;
  };

  struct Gate {
    Copy copy;
    bool above = false;
  };

  Ir unit_of(Ir lane_row);
  std::size_t side(const Copy&, std::size_t gate, bool left);
  Row row_of(const Copy&, Ir row);
  Row row_of(const Gate&, Ir row);
  bool is_columns(const Gate&) const;
  Line either(Ir condition, const Row& yes, const Row& no);
  Values load(const Row&, Ir d, int more);
  Values wide(ArrayRef<Ir>);
  Values values(const Line&, Ir d, int more);
  Side side_of(const Set&, ArrayRef<Ir> values);
  Values times(ArrayRef<Ir>, ArrayRef<Ir>);
  Values decay(ArrayRef<Ir> x, ArrayRef<Ir> y);
  void multiply(const Score&, ArrayRef<const Side*> left, const Side& right, Ir* sums);
  SmallVector<Ir> over_columns(std::size_t count, llvm::function_ref<void(Ir d, int more, Ir* sums)> step);
  void over_warps(std::int64_t count, std::int64_t first, llvm::function_ref<void(Ir)> body);
  void put(const Score&, Ir row, Ir column, Place more, Ir value);
  Level level(ArrayRef<Ir> rows, std::int64_t span);
  void multiply_near(ArrayRef<Ir> rows, Ir d, int more, Ir* at);
  void diagonal_block(Ir block, ArrayRef<std::int64_t> spans, bool near);
  void blocks_below(Ir below, Ir block, Ir two);

  KernelEmitter& e_;
  Thread& t_;
  llvm::IRBuilder<>& b_;
  llvm::Type* type_;
  const MatrixProduct& way_;
  const MatrixInstruction& mi_;
  const int slots_;  ///< rows of operand A for each column of B in a lane: 2 on NVIDIA, 1 on AMD
  const int run_;    ///< neighbouring columns of d that a lane has of 16
  const std::int64_t rows_, steps_;
  Ir unit_ = nullptr, first_column_ = nullptr;
  SmallVector<Sum> sums_;
  Copy columns_gate_;
  SmallVector<Gate, 2> gates_;  ///< of rows
  SmallVector<Set, 2> sets_;
  SmallVector<Score, 4> scores_;
};

}  // namespace latile::simt
