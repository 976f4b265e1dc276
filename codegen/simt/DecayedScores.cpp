// Scores with a decay for each column of the gate, sum over d of q_id k_jd exp2(Gr_id - Gc_jd), all by matrix products
// of scaled operands. Where all rows i of a product lie below all its columns j, with m the last row above the first i,
// a term is (q_id exp2(Gr_id - Gc_md)) (k_jd exp2(Gc_md - Gc_jd)): both exponents are at most 0 whatever the gates are,
// since they fall from row to row and Gr_i <= Gc_m. So blocks of 16 rows and 16 columns below the diagonal are products
// with m the row above the block, and inside a diagonal block the same holds for halves of 8 rows, of 4, of 2 and of 1:
// at each level the lower half of a group is q's side and the upper half k's, one product has all groups of a level,
// and of its entries those within a group are kept.
//
// A lane scales what its fragments hold straight from the copies of q, k and the gates: in a level all of its rows are
// on the same side, those on q's side are operand A's, those on k's side operand B's, so that the same registers serve
// as both. Where operand A has two rows for each column of B (NVIDIA), a lane has an even row and the odd one below it:
// the one farther from row m has the other's exponential times what the odd row loses to the even one, and the last
// level is between the two. Scores with the same columns' gate share all of this.
#include "codegen/simt/DecayedScores.h"
#include "codegen/simt/Instructions.h"

namespace latile::simt {

using namespace tile;

/// Most steps of 16 columns of d in a turn of the loop over them.
static constexpr int most_steps = 2;

static Operand operand_of(llvm::Type* type) {
  return type->isFloatTy() ? Operand::f32 : type->isBFloatTy() ? Operand::bf16 : Operand::f16;
}

DecayedScores::DecayedScores(KernelEmitter& emitter, std::int64_t rows, std::int64_t width, llvm::Type* type)
    : e_(emitter), t_(emitter.t_), b_(emitter.b_), type_(type), way_(emitter.target_.product(operand_of(type))),
      mi_(way_.instruction), slots_(mi_.m / mi_.n), run_(16 * mi_.n / t_.lanes), rows_(rows),
      steps_((width + 15) / 16) {
  unit_ = unit_of(t_.place_of_lane(mi_.b, Axis::columns));
  int step = 16;
  for (const Place& base : mi_.b.bases(Carrier::lanes))
    if (base.row) step = std::min(step, base.row);
  first_column_ = t_.mul(t_.div(t_.place_of_lane(mi_.b, Axis::rows), step), run_);
  Ir row = t_.place_of_lane(mi_.c, Axis::rows), column = t_.place_of_lane(mi_.c, Axis::columns);
  for (int r = 0; r < mi_.c.registers(); ++r) {
    const Place at = mi_.c.at(r, 0, 0);
    sums_.push_back({unit_of(t_.add(row, at.row % mi_.n)), unit_of(t_.add(column, at.column)), at.row / mi_.n});
  }
}

// A unit is the rows of a lane. Lanes 0, 1, 2, … of a matrix with 8 have pairs 0, 2, 1, …: those that are read together
// lie four rows apart, in different banks.
Ir DecayedScores::unit_of(Ir lane_row) {
  if (slots_ == 1) return lane_row;
  auto bit = [&](int from) { return b_.CreateAnd(lane_row, t_.i32(1 << from)); };
  return b_.CreateOr(b_.CreateOr(b_.CreateShl(bit(0), t_.i32(1)), b_.CreateLShr(bit(1), t_.i32(1))), bit(2));
}

static bool same(const Copy& x, const Copy& y) {
  return x.region.begin == y.region.begin && x.transposed == y.transposed;
}

std::size_t DecayedScores::side(const Copy& x, std::size_t gate, bool left) {
  for (auto [i, s] : llvm::enumerate(sets_)) {
    const std::optional<Copy>& have = left ? s.left : s.right;
    if (have && same(*have, x) && (!left || s.gate == gate)) return i;
  }
  for (auto [i, s] : llvm::enumerate(sets_)) {
    std::optional<Copy>& have = left ? s.left : s.right;
    if (have) continue;
    have = x;
    if (left) s.gate = gate;
    return i;
  }
  sets_.push_back({});
  (left ? sets_.back().left : sets_.back().right) = x;
  if (left) sets_.back().gate = gate;
  return sets_.size() - 1;
}

// In bfloat16 each operand loses up to 2^-9 of a term; q in two parts loses 2^-17, which keeps half of the loss out.
void DecayedScores::add(const Copy& q, const Copy& k, const Copy& gr, bool above, const Copy& gc, MaskKind kind,
                        bool multiplied, const Copy& to) {
  columns_gate_ = gc;
  std::size_t gate = 0;
  while (gate < gates_.size() && !(same(gates_[gate].copy, gr) && gates_[gate].above == above)) ++gate;
  if (gate == gates_.size()) gates_.push_back({gr, above});
  const std::size_t left = side(q, gate, true), right = side(k, gate, false);
  const int left_parts = multiplied && !type_->isFloatTy() ? 2 : way_.parts;
  sets_[left].parts = std::max(sets_[left].parts, left_parts);
  sets_[right].parts = std::max(sets_[right].parts, way_.parts);
  scores_.push_back({left, right, kind, left_parts, way_.parts, to});
}

bool DecayedScores::is_columns(const Gate& gate) const { return !gate.above && same(gate.copy, columns_gate_); }

// Rows in shared memory

DecayedScores::Row DecayedScores::row_of(const Copy& c, Ir row) {
  const std::int64_t bytes = bytes_of(c.element), stride = c.transposed ? c.pitch : bytes;
  Ir offset = t_.add(t_.mul(row, c.transposed ? bytes : c.pitch), t_.mul(first_column_, stride));
  if (c.stage) offset = t_.add(offset, c.stage);
  return {t_.add(offset, c.region.offset()), c.element, stride, c.region.in_arena()};
}

// No entry that is kept needs the gate above the first row.
DecayedScores::Row DecayedScores::row_of(const Gate& gate, Ir row) {
  if (gate.above) row = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, t_.add(row, -1), t_.i32(0));
  return row_of(gate.copy, row);
}

DecayedScores::Line DecayedScores::either(Ir condition, const Row& yes, const Row& no) {
  if (yes.element == no.element && yes.stride == no.stride && yes.in_arena == no.in_arena)
    return {{b_.CreateSelect(condition, yes.offset, no.offset), yes.element, yes.stride, yes.in_arena},
            std::nullopt,
            nullptr};
  return {yes, no, condition};
}

DecayedScores::Values DecayedScores::load(const Row& row, Ir d, int more) {
  Ir at = t_.at(t_.at(e_.memory(row.in_arena), t_.add(row.offset, t_.mul(d, row.stride))), t_.i32(more * row.stride));
  const int bytes = bytes_of(row.element), together = row.stride == bytes ? std::min(run_, 16 / bytes) : 1;
  Values out;
  for (int k = 0; k < run_; k += together) {
    Ir from = t_.at(at, t_.i32(k * row.stride));
    const llvm::Align align(static_cast<std::uint64_t>(together * bytes));
    if (together == 1) {
      out.push_back(b_.CreateAlignedLoad(row.element, from, align));
      continue;
    }
    // 16-bit elements come as words of two.
    const int in_word = bytes == 2 ? 2 : 1;
    llvm::Type* word = bytes == 2 ? b_.getInt32Ty() : row.element;
    Ir all =
        b_.CreateAlignedLoad(llvm::FixedVectorType::get(word, static_cast<unsigned>(together / in_word)), from, align);
    for (int i = 0; i < together / in_word; ++i) {
      Ir x = b_.CreateExtractElement(all, static_cast<std::uint64_t>(i));
      if (in_word == 1) {
        out.push_back(x);
        continue;
      }
      Ir pair = b_.CreateBitCast(x, llvm::FixedVectorType::get(row.element, 2));
      for (std::uint64_t half : {0, 1}) out.push_back(b_.CreateExtractElement(pair, half));
    }
  }
  return out;
}

DecayedScores::Values DecayedScores::wide(ArrayRef<Ir> from) {
  Values out;
  for (Ir x : from) out.push_back(t_.convert(x, b_.getFloatTy()));
  return out;
}

DecayedScores::Values DecayedScores::values(const Line& line, Ir d, int more) {
  Values out = wide(load(line.row, d, more));
  if (!line.other) return out;
  Values other = wide(load(*line.other, d, more));
  for (auto [x, y] : llvm::zip(out, other)) x = b_.CreateSelect(line.use_row, x, y);
  return out;
}

// Operands

DecayedScores::Side DecayedScores::side_of(const Set& set, ArrayRef<Ir> values) {
  Side out(static_cast<std::size_t>(set.parts));
  for (Ir x : values) {
    SmallVector<Ir> parts{x};
    if (set.parts > 1)
      parts = t_.isa.split(t_, mi_, t_.convert(x, b_.getFloatTy()), set.parts);
    else
      parts[0] = t_.convert(x, type_);
    for (std::size_t k = 0; k < out.size(); ++k) out[k].push_back(parts[k]);
  }
  return out;
}

DecayedScores::Values DecayedScores::times(ArrayRef<Ir> x, ArrayRef<Ir> y) {
  Values out;
  for (auto [a, c] : llvm::zip(x, y)) out.push_back(b_.CreateFMul(a, c));
  return out;
}

/// exp2(x - y).
DecayedScores::Values DecayedScores::decay(ArrayRef<Ir> x, ArrayRef<Ir> y) {
  Values out;
  for (auto [a, c] : llvm::zip(x, y)) out.push_back(t_.exp2(b_.CreateFSub(a, c)));
  return out;
}

/// sums += the product over 16 columns of d: `left` operand A's rows of a lane, `right` operand B's.
void DecayedScores::multiply(const Score& score, ArrayRef<const Side*> left, const Side& right, Ir* sums) {
  // Of a lane's elements of a row, those of one instruction in the order of its terms.
  auto fragment = [&](const Layout& layout, bool is_left, int part, int from) {
    SmallVector<Ir> elements;
    for (int r = 0; r < layout.registers(); ++r) {
      const Place at = layout.at(r, 0, 0);
      const int term = is_left ? at.column : at.row, slot = is_left ? at.row / mi_.n : 0;
      int before = 0;  // the lane's terms below this one
      for (int other = 0; other < layout.registers(); ++other) {
        const Place place = layout.at(other, 0, 0);
        before += (is_left ? place.column < term && place.row / mi_.n == slot : place.row < term);
      }
      const Side& of = is_left ? *left[static_cast<std::size_t>(slot)] : right;
      elements.push_back(of[static_cast<std::size_t>(part)][static_cast<std::size_t>(from + before)]);
    }
    return t_.isa.pack(t_, mi_, elements);
  };
  const int each = run_ * mi_.k / 16;
  llvm::MutableArrayRef<Ir> c(sums, static_cast<std::size_t>(mi_.c.registers()));
  for (int from = 0; from < run_; from += each)
    for (int both = std::max(score.left_parts, score.right_parts); both-- > 0;)
      for (int j = std::max(0, both - score.left_parts + 1); j <= both && j < score.right_parts; ++j)
        t_.isa.multiply(t_, mi_, fragment(mi_.a, true, both - j, from), fragment(mi_.b, false, j, from), c);
}

SmallVector<Ir> DecayedScores::over_columns(std::size_t count,
                                            llvm::function_ref<void(Ir d, int more, Ir* sums)> step) {
  std::int64_t unrolled = most_steps;
  while (steps_ % unrolled) unrolled /= 2;
  SmallVector<Ir> zero(count, t_.f32(0));
  auto turn = [&](Ir d, ArrayRef<Ir> so_far) {
    SmallVector<Ir> sums(so_far);
    for (int s = 0; s < unrolled; ++s) step(d, 16 * s, sums.data());
    return sums;
  };
  if (unrolled == steps_) return turn(t_.i32(0), zero);
  return t_.loop(t_.i32(0), t_.i32(16 * steps_), 16 * unrolled, zero, turn);
}

void DecayedScores::over_warps(std::int64_t count, std::int64_t first, llvm::function_ref<void(Ir)> body) {
  const std::int64_t warps = t_.warps(), skip = first % warps;
  Ir mine = skip ? t_.rem(t_.add(t_.warp, warps - skip), warps) : t_.warp;
  if (count > warps) return t_.loop(mine, t_.i32(count), warps, body);
  if (count == warps) return body(mine);
  t_.when(b_.CreateICmpSLT(mine, t_.i32(count)), [&] { body(mine); });
}

void DecayedScores::put(const Score& score, Ir row, Ir column, Place more, Ir value) {
  e_.set_element(score.to, row, column, t_.convert(value, score.to.element), more);
}

// A level of a diagonal block: groups of 2 `span` rows, the upper half k's side, the lower one q's. `rows`: the lane's.
DecayedScores::Level DecayedScores::level(ArrayRef<Ir> rows, std::int64_t span) {
  Level out;
  Ir first = rows.front(), last = rows.back();
  out.low = b_.CreateICmpNE(b_.CreateAnd(first, t_.i32(span)), t_.i32(0));
  Ir middle =
      b_.CreateSelect(out.low, t_.add(b_.CreateAnd(first, t_.i32(-span)), -1), b_.CreateOr(first, t_.i32(span - 1)));
  for (const Gate& gate : gates_)
    out.gates.push_back({either(out.low, row_of(gate, first), row_of(columns_gate_, middle)),
                         either(out.low, row_of(columns_gate_, middle), row_of(columns_gate_, last))});
  // From the row near the middle to the one far from it.
  for (const Set& s : sets_) {
    out.sets.emplace_back();
    for (std::size_t k = 0; k < rows.size(); ++k) {
      Ir on_left = rows[k], on_right = rows[rows.size() - 1 - k];
      if (!s.right)
        out.sets.back().push_back({row_of(*s.left, on_left), std::nullopt, nullptr});
      else if (!s.left)
        out.sets.back().push_back({row_of(*s.right, on_right), std::nullopt, nullptr});
      else
        out.sets.back().push_back(either(out.low, row_of(*s.left, on_left), row_of(*s.right, on_right)));
    }
  }
  return out;
}

/// The products of rows with those near them: of an odd row with the even one above it, where a lane has both, and of a
/// row with itself. `at`: their sums, those of one score after another's.
void DecayedScores::multiply_near(ArrayRef<Ir> rows, Ir d, int more, Ir* at) {
  auto is_lower = [&](std::size_t set, bool left) {
    return llvm::any_of(scores_,
                        [&](const Score& x) { return x.kind == MaskKind::Lower && (left ? x.left : x.right) == set; });
  };
  auto gate = [&](const auto& c, std::size_t k) { return wide(load(row_of(c, rows[k]), d, more)); };
  struct Near {
    SmallVector<Side, 2> own, right;  ///< of each row: k's, and q's with its own decay
    Side odd;                         ///< q's odd row with what it loses to the even one
  };
  std::vector<Near> sides(sets_.size());
  for (auto [i, s] : llvm::enumerate(sets_)) {
    const Gate& row_gate = gates_[s.gate];
    for (std::size_t k = 0; k < rows.size(); ++k) {
      if (s.right && (is_lower(i, false) || k + 1 < rows.size()))
        sides[i].right.push_back(side_of(s, load(row_of(*s.right, rows[k]), d, more)));
      if (!s.left) continue;
      const Values x = load(row_of(*s.left, rows[k]), d, more);
      if (k == 1) sides[i].odd = side_of(s, times(wide(x), decay(gate(row_gate, 1), gate(columns_gate_, 0))));
      if (!is_lower(i, true)) continue;
      sides[i].own.push_back(is_columns(row_gate)
                                 ? side_of(s, x)
                                 : side_of(s, times(wide(x), decay(gate(row_gate, k), gate(columns_gate_, k)))));
    }
  }
  // Of the first product the even rows are kept where they meet themselves, the odd ones beside that.
  for (const Score& s : scores_) {
    const Near &left = sides[s.left], &right = sides[s.right];
    const bool lower = s.kind == MaskKind::Lower;
    for (std::size_t k = 0; k < (lower ? rows.size() : rows.size() - 1); ++k, at += mi_.c.registers()) {
      SmallVector<const Side*, 2> a(rows.size(), lower ? &left.own[k] : &left.odd);
      if (k + 1 < rows.size()) a.back() = &left.odd;
      multiply(s, a, right.right[k], at);
    }
  }
}

/// Scores within the block of 16 rows and columns `block`: those of rows in different halves of groups of 2 `span`
/// rows, from the largest span on, and with `near` those that have no level, and zeros above.
void DecayedScores::diagonal_block(Ir block, ArrayRef<std::int64_t> spans, bool near) {
  const auto slots = static_cast<std::size_t>(slots_), registers = sums_.size();
  Ir first = t_.mul(block, 16);
  SmallVector<Ir> rows;
  for (int k = 0; k < slots_; ++k) rows.push_back(t_.add(first, t_.add(t_.mul(unit_, slots_), k)));
  std::vector<Level> levels;
  for (std::int64_t span : spans) levels.push_back(level(rows, span));
  const std::size_t of_level = slots * registers * scores_.size();
  auto of_near = [&](const Score& s) { return (s.kind == MaskKind::Lower ? slots : slots - 1) * registers; };
  std::size_t count = spans.size() * of_level;
  for (const Score& s : scores_) count += near ? of_near(s) : 0;
  SmallVector<Ir> sums = over_columns(count, [&](Ir d, int more, Ir* at) {
    // What an odd row loses to the even one above it.
    auto steps = [&](const auto& gate) {
      if (slots == 1 || levels.empty()) return Values();
      return decay(wide(load(row_of(gate, rows[1]), d, more)), wide(load(row_of(gate, rows[0]), d, more)));
    };
    const Values column_steps = steps(columns_gate_);
    SmallVector<Values> row_steps;
    for (const Gate& gate : gates_) row_steps.push_back(is_columns(gate) ? column_steps : steps(gate));
    for (const Level& l : levels) {
      SmallVector<SmallVector<Values, 2>> factors;
      for (std::size_t g = 0; g < gates_.size(); ++g) {
        factors.push_back({decay(values(l.gates[g][0], d, more), values(l.gates[g][1], d, more))});
        if (slots == 1) continue;
        Values step = row_steps[g];
        if (!is_columns(gates_[g]))
          for (auto [x, y] : llvm::zip(step, column_steps)) x = b_.CreateSelect(l.low, x, y);
        factors.back().push_back(times(factors.back()[0], step));
      }
      std::vector<SmallVector<Side, 2>> sides;
      for (auto [s, lines] : llvm::zip(sets_, l.sets)) {
        sides.emplace_back();
        for (std::size_t k = 0; k < slots; ++k)
          sides.back().push_back(side_of(s, times(values(lines[k], d, more), factors[s.gate][k])));
      }
      for (const Score& s : scores_)
        for (std::size_t tile = 0; tile < slots; ++tile, at += registers) {
          SmallVector<const Side*, 2> left;
          for (const Side& side : sides[s.left]) left.push_back(&side);
          multiply(s, left, sides[s.right][tile], at);
        }
    }
    if (near) multiply_near(rows, d, more, at);
  });
  // Units of rows that differ first in a bit belong to its level.
  const std::int64_t from = near ? 0 : spans.back() / slots_;
  const std::int64_t to = spans.empty() ? 1 : 2 * spans.front() / slots_;
  const Ir* near_sums = sums.data() + spans.size() * of_level;
  for (auto [number, s] : llvm::enumerate(scores_)) {
    const bool lower = s.kind == MaskKind::Lower;
    for (auto [r, place] : llvm::enumerate(sums_)) {
      Ir apart = b_.CreateXor(place.row, place.column);
      auto all = [&] {
        for (int j = 0; j < slots_; ++j) {
          Ir value = t_.f32(0);
          if (near && place.slot >= j && (place.slot > j || lower))
            value = near_sums[static_cast<std::size_t>(j) * registers + r];
          for (std::size_t l = spans.size(); l-- > 0;) {
            // On k's side the last row is the near one.
            const auto tile = static_cast<std::size_t>(slots_ - 1 - j);
            Ir sum = sums[l * of_level + (number * slots + tile) * registers + r];
            value = b_.CreateSelect(b_.CreateICmpUGE(apart, t_.i32(spans[l] / slots_)), sum, value);
          }
          value = b_.CreateSelect(b_.CreateICmpULT(place.row, place.column), t_.f32(0), value);
          put(s, t_.add(first, t_.mul(place.row, slots_)), t_.add(first, t_.mul(place.column, slots_)), {place.slot, j},
              value);
        }
      };
      Ir mine = nullptr;
      if (from) mine = b_.CreateICmpUGE(apart, t_.i32(from));
      if (to * slots_ < 16) mine = b_.CreateICmpULT(apart, t_.i32(to));
      if (mine)
        t_.when(mine, all);
      else
        all();
    }
    if (near) near_sums += of_near(s);
  }
}

/// Scores of the rows of block `below` and the columns of block `block`, and of the next one where `two` (null: never).
void DecayedScores::blocks_below(Ir below, Ir block, Ir two) {
  const auto slots = static_cast<std::size_t>(slots_), registers = sums_.size();
  Ir first = t_.mul(below, 16), first_column = t_.mul(block, 16), own = t_.mul(unit_, slots_);
  const Row above = row_of(columns_gate_, t_.add(first, -1));
  const std::size_t of_block = slots * registers * scores_.size();
  SmallVector<Ir> sums = over_columns(two ? 2 * of_block : of_block, [&](Ir d, int more, Ir* all) {
    const Values middle = wide(load(above, d, more));
    std::vector<SmallVector<Side, 2>> left(sets_.size());
    for (std::size_t k = 0; k < slots; ++k) {
      Ir row = t_.add(t_.add(first, own), static_cast<std::int64_t>(k));
      for (auto [g, gate] : llvm::enumerate(gates_)) {
        Values factor;
        for (auto [i, s] : llvm::enumerate(sets_)) {
          if (!s.left || s.gate != g) continue;
          if (factor.empty()) factor = decay(wide(load(row_of(gate, row), d, more)), middle);
          left[i].push_back(side_of(s, times(wide(load(row_of(*s.left, row), d, more)), factor)));
        }
      }
    }
    auto one = [&](std::int64_t down, Ir* at) {
      for (std::size_t tile = 0; tile < slots; ++tile) {
        Ir row = t_.add(t_.add(first_column, own), down + static_cast<std::int64_t>(tile));
        const Values factor = decay(middle, wide(load(row_of(columns_gate_, row), d, more)));
        SmallVector<Side> right(sets_.size());
        for (auto [i, s] : llvm::enumerate(sets_))
          if (s.right) right[i] = side_of(s, times(wide(load(row_of(*s.right, row), d, more)), factor));
        for (auto [k, s] : llvm::enumerate(scores_)) {
          SmallVector<const Side*, 2> a;
          for (const Side& side : left[s.left]) a.push_back(&side);
          multiply(s, a, right[s.right], at + (k * slots + tile) * registers);
        }
      }
    };
    one(0, all);
    if (!two) return;
    SmallVector<Ir> second = t_.choose(
        two,
        [&] {
          SmallVector<Ir> next(all + of_block, all + 2 * of_block);
          one(16, next.data());
          return next;
        },
        [&] { return SmallVector<Ir>(all + of_block, all + 2 * of_block); });
    llvm::copy(second, all + of_block);
  });
  auto store = [&](int down, const Ir* from) {
    for (const Score& s : scores_)
      for (int tile = 0; tile < slots_; ++tile)
        for (const Sum& place : sums_)
          put(s, t_.add(first, t_.mul(place.row, slots_)), t_.add(first_column, t_.mul(place.column, slots_)),
              {place.slot, down + tile}, *from++);
  };
  store(0, sums.data());
  if (two) t_.when(two, [&] { store(16, sums.data() + of_block); });
}

void DecayedScores::emit() {
  const std::int64_t blocks = rows_ / 16;
  // Above the diagonal blocks.
  for (const Score& s : scores_)
    for (std::int64_t block = 0; block + 1 < blocks; ++block) {
      const std::int64_t from = 16 * (block + 1), pieces = 16 / bytes_of(s.to.element), wide = (rows_ - from) / pieces;
      t_.spread(16 * wide, [&](Ir e) {
        Ir row = t_.div(e, wide), column = t_.mul(t_.rem(e, wide), pieces);
        auto* type = llvm::FixedVectorType::get(s.to.element, static_cast<unsigned>(pieces));
        b_.CreateAlignedStore(llvm::Constant::getNullValue(type),
                              e_.pointer(s.to, row, column, {static_cast<int>(16 * block), static_cast<int>(from)}),
                              llvm::Align(16));
      });
    }
  // Many scores at once take the levels of a block in two turns, so that the sums fit in registers.
  const bool many = scores_.size() > 2;
  SmallVector<std::int64_t> high{8, 4}, low{2};
  if (slots_ == 1) low.push_back(1);
  if (many) {
    over_warps(blocks, 0, [&](Ir block) { diagonal_block(block, high, false); });
    over_warps(blocks, blocks, [&](Ir block) { diagonal_block(block, low, true); });
  } else {
    high.append(low);
    over_warps(blocks, 0, [&](Ir block) { diagonal_block(block, high, true); });
  }
  // Blocks below the diagonal, up to two side by side, those with more first.
  struct Item {
    std::int64_t below, block, count;
  };
  const std::int64_t most = many ? 1 : 2;
  std::vector<Item> items;
  for (std::int64_t count = most; count >= 1; --count)
    for (std::int64_t below = 1; below < blocks; ++below)
      for (std::int64_t block = 0; block < below; block += most)
        if (std::min(most, below - block) == count) items.push_back({below, block, count});
  if (items.empty()) return;
  over_warps(static_cast<std::int64_t>(items.size()), blocks, [&](Ir number) {
    Ir below = t_.i32(items[0].below), block = t_.i32(items[0].block), two = t_.i32(0);
    const bool ever_two = items[0].count == 2;
    for (std::size_t k = 1; k < items.size(); ++k) {
      Ir here = b_.CreateICmpEQ(number, t_.i32(static_cast<std::int64_t>(k)));
      below = b_.CreateSelect(here, t_.i32(items[k].below), below);
      block = b_.CreateSelect(here, t_.i32(items[k].block), block);
    }
    if (ever_two) {
      const auto twos = llvm::count_if(items, [](const Item& x) { return x.count == 2; });
      two = b_.CreateICmpSLT(number, t_.i32(twos));
    }
    blocks_below(below, block, ever_two ? two : nullptr);
  });
}

}  // namespace latile::simt
