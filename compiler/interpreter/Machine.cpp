#include "compiler/interpreter/Machine.h"
#include "compiler/interpreter/Loops.h"
#include "compiler/interpreter/Recurrences.h"
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <deque>
#include <limits>
#include <thread>

namespace latile::interpreter {
namespace {

/// One thread of a launch: its arena, its registers, its program.
class Worker {
public:
  Worker(const Launch& launch, Report& report)
      : launch_(launch), report_(report), arena_(static_cast<std::size_t>(launch.code.arena), std::nan("")),
        registers_(static_cast<std::size_t>(launch.code.registers), 0) {
    execute(launch.code.once);
    for (const ScratchShape& shape : launch.code.scratch) scratches_.emplace_back(shape);
  }

  void program(std::int64_t number) {
    program_ = static_cast<std::uint32_t>(number + 1);
    for (std::size_t axis = launch_.grid.size(); axis-- > 0;) {
      registers_[axis] = number % launch_.grid[axis];
      number /= launch_.grid[axis];
    }
    for (Scratch& scratch : scratches_) std::fill(scratch.values.begin(), scratch.values.end(), std::nan(""));
    execute(launch_.code.body);
  }

private:
  /// Memory of the program at work.
  struct Scratch {
    std::vector<double> values;
    Memory memory;
    explicit Scratch(const ScratchShape& of) {
      std::int64_t count = 1;
      memory.shape = of.shape;
      memory.strides.resize(of.shape.size());
      for (std::size_t axis = of.shape.size(); axis-- > 0; count *= of.shape[axis]) memory.strides[axis] = count;
      values.resize(static_cast<std::size_t>(count));
      memory.name = "scratch";
      memory.data = reinterpret_cast<char*>(values.data());
      memory.declared = of.type;
    }
  };

  void execute(const std::vector<Instruction>& code);
  bool execute_integer(const Instruction& i, std::size_t& next);
  void execute_memory(const Instruction& i);
  void execute_tile(const Instruction& i);
  bool execute_recurrence(const Instruction& i);

  Access access(const Instruction& i) const {
    return {launch_.code.places[i.place], launch_.number, program_, report_};
  }
  const Memory& memory(const Instruction& i) const {
    return i.memory < -1 ? scratches_[static_cast<std::size_t>(-2 - i.memory)].memory
                         : *launch_.arguments[i.memory].memory;
  }
  double* out(const Tile& tile) { return arena_.data() + tile.offset; }
  Strided in(const Tile& tile) const { return {arena_.data() + tile.offset, tile.row_stride, tile.col_stride}; }
  std::int64_t& reg(const Instruction& i, int which) { return registers_[i.r[which]]; }

  const Launch& launch_;
  Report& report_;
  std::vector<double> arena_;
  std::vector<double> scratch_;
  std::deque<Scratch> scratches_;
  std::vector<std::int64_t> registers_;
  std::uint32_t program_ = 0;
};

void Worker::execute(const std::vector<Instruction>& code) {
  for (std::size_t at = 0; at < code.size();) {
    const Instruction& i = code[at++];
    if (i.op >= Op::load && i.op <= Op::store_rows) {
      execute_memory(i);
    } else if (i.op >= Op::int_constant) {
      if (!execute_integer(i, at)) return;
    } else {
      execute_tile(i);
      if (i.round != ElementType::f64) round_all(i.round, out(i.out), i.out.count());
    }
  }
}

std::int64_t divide(std::int64_t a, std::int64_t b) { return b == 0 ? 0 : b == -1 ? -a : a / b; }

bool Worker::execute_integer(const Instruction& i, std::size_t& next) {
  const auto two = [&](auto f) { reg(i, 0) = f(reg(i, 1), reg(i, 2)); };
  using Int = std::int64_t;
  switch (i.op) {
  case Op::int_constant: reg(i, 0) = i.n; break;
  case Op::int_copy: reg(i, 0) = reg(i, 1); break;
  case Op::int_add: two([](Int a, Int b) { return a + b; }); break;
  case Op::int_subtract: two([](Int a, Int b) { return a - b; }); break;
  case Op::int_multiply: two([](Int a, Int b) { return a * b; }); break;
  case Op::int_divide:
  case Op::int_ceil_divide:
  case Op::int_remainder:
    if (reg(i, 2) == 0) {
      report_.add(launch_.code.places[i.place] + " divides by zero");
      return false;
    }
    two([&](Int a, Int b) {
      const Int quotient = divide(a, b), rest = a - quotient * b;
      return i.op == Op::int_remainder ? rest
             : i.op == Op::int_divide  ? quotient
                                       : quotient + (rest != 0 && (rest < 0) == (b < 0));
    });
    break;
  case Op::int_minimum: two([](Int a, Int b) { return std::min(a, b); }); break;
  case Op::int_maximum: two([](Int a, Int b) { return std::max(a, b); }); break;
  case Op::int_and: two([](Int a, Int b) { return a & b; }); break;
  case Op::int_or: two([](Int a, Int b) { return a | b; }); break;
  case Op::int_xor: two([](Int a, Int b) { return a ^ b; }); break;
  case Op::int_compare:
    two([&](Int a, Int b) -> Int {
      const auto ua = static_cast<std::uint64_t>(a), ub = static_cast<std::uint64_t>(b);
      const bool results[] = {a == b, a != b, a<b, a <= b, a> b, a >= b, ua<ub, ua <= ub, ua> ub, ua >= ub};
      return results[i.n];
    });
    break;
  case Op::int_select: reg(i, 0) = reg(i, 1) != 0 ? reg(i, 2) : reg(i, 3); break;
  case Op::sequence:
  case Op::chunk:
  case Op::chunk_begin: {
    const auto& ranges = launch_.sequences.ranges;
    const bool chunk = i.op == Op::chunk;
    const Int number = i.op == Op::sequence ? reg(i, 3) : chunk ? reg(i, 5) : reg(i, 1);
    const auto* table = i.op == Op::sequence ? nullptr : &launch_.sequences.chunks(i.m);
    const Int limit = chunk ? table->back() : launch_.sequences.count() + (i.op == Op::chunk_begin ? 1 : 0);
    if (number < 0 || number >= limit) {
      report_.add(launch_.code.places[i.place] + " asks for number " + std::to_string(number) + " of " +
                  std::to_string(limit));
      return false;
    }
    if (i.op == Op::chunk_begin) {
      reg(i, 0) = (*table)[number];
      break;
    }
    if (i.op == Op::sequence) {
      const auto& range = ranges[number];
      reg(i, 0) = range.batch, reg(i, 1) = range.begin, reg(i, 2) = range.end;
      break;
    }
    const Int n = std::upper_bound(table->begin(), table->end(), number) - table->begin() - 1;
    const auto& range = ranges[n];
    reg(i, 0) = n, reg(i, 1) = range.batch, reg(i, 2) = range.begin, reg(i, 4) = range.end;
    reg(i, 3) = range.begin + (number - (*table)[n]) * i.m;
    break;
  }
  case Op::rows: {
    const Int begin = reg(i, 3), position = reg(i, 4), end = reg(i, 5);
    reg(i, 0) = i.n != 0 ? end - 1 - (position - begin) : position;
    reg(i, 1) = std::clamp<Int>(end - position, 0, i.m);
    reg(i, 2) = divide(position - begin, i.m);
    break;
  }
  case Op::head: reg(i, 0) = i.m != 0 ? reg(i, 1) % std::max<Int>(launch_.heads / i.n, 1) : reg(i, 1) / i.n; break;
  case Op::member:
    reg(i, 0) = i.m != 0 ? reg(i, 1) * (launch_.heads / i.n) + reg(i, 2) : reg(i, 2) * i.n + reg(i, 1);
    break;
  case Op::slot: {
    const auto& slots = memory(i);
    const auto who = access(i);
    Int offset = 0;
    const Int indices[2] = {reg(i, 1), i.r[2] >= 0 ? reg(i, 2) : 0};
    if (!slots.locate(indices, i.r[2] >= 0 ? 2 : 1, who, "reads", offset)) return false;
    reg(i, 0) = slots.read_integer(offset, who);
    break;
  }
  case Op::jump: next = static_cast<std::size_t>(i.m); break;
  case Op::jump_unless:
    if (reg(i, 0) == 0) next = static_cast<std::size_t>(i.m);
    break;
  case Op::jump_unless_less:
    if (reg(i, 0) >= reg(i, 1)) next = static_cast<std::size_t>(i.m);
    break;
  default: break;
  }
  return true;
}

void Worker::execute_memory(const Instruction& i) {
  const auto& tensor = memory(i);
  const auto who = access(i);
  const bool reads = i.op == Op::load || i.op == Op::load_rows;
  const Tile& tile = reads ? i.out : i.in[0];
  const char* verb = reads ? "reads" : "writes";
  std::int64_t offset = 0, before = 0, rows = tile.rows, leading = i.n;
  if (i.op == Op::load || i.op == Op::store) {
    std::int64_t indices[6] = {};
    for (std::int64_t axis = 0; axis < leading; ++axis) indices[axis] = reg(i, static_cast<int>(axis));
    if (leading > 0 && indices[0] < 0) {
      if (reads) std::fill_n(out(tile), tile.count(), 0.0);
      return;
    }
    if (!tensor.locate(indices, static_cast<int>(leading), who, verb, offset)) rows = -1;
  } else {
    const std::int64_t first = reg(i, 1) * i.n, count = reg(i, 2) * i.n;
    const bool headed = i.r[3] >= 0;
    leading = headed ? 3 : 2;
    rows = std::min(count, tile.rows);
    if (i.r[4] >= 0) before = std::min(reg(i, 4), rows);
    if (reg(i, 0) < 0) {
      if (reads) std::fill_n(out(tile), tile.count(), 0.0);
      return;
    }
    std::int64_t indices[3] = {reg(i, 0), first + before, headed ? reg(i, 3) : 0};
    const std::int64_t last[3] = {indices[0], i.m != 0 ? first - rows + i.n : first + rows - 1, indices[2]};
    rows -= before;
    std::int64_t ignored = 0;
    if (rows > 0 && (!tensor.locate(last, static_cast<int>(leading), who, verb, ignored) ||
                     !tensor.locate(indices, static_cast<int>(leading), who, verb, offset)))
      rows = -1;
  }
  if (rows < 0) {
    // A value that nobody may rely on.
    if (reads) std::fill_n(out(tile), tile.count(), std::nan(""));
    return;
  }
  const auto inner = static_cast<std::int64_t>(tensor.shape.size()) - leading;
  const bool of_sequence = i.op == Op::load_rows || i.op == Op::store_rows;
  const std::int64_t col_stride = inner >= 1 ? tensor.strides.back() : 0;
  const std::int64_t row_stride = of_sequence ? tensor.strides[1] : inner >= 2 ? tensor.strides[leading] : 0;
  // Of reversed rows those of one token still ascend.
  const std::int64_t group = of_sequence && i.m != 0 ? i.n : std::max<std::int64_t>(rows, 1);
  if (i.column >= 0) {
    const std::int64_t column = registers_[static_cast<std::size_t>(i.column)];
    if (column < 0 || column + tile.cols > tensor.shape.back()) {
      if (reads) std::fill_n(out(tile), tile.count(), std::nan(""));
      return report_.add(who.place + " " + verb + " columns of '" + tensor.name +
                         "' out of bounds: " + std::to_string(column) + " and following, " + std::to_string(tile.cols) +
                         " of " + std::to_string(tensor.shape.back()));
    }
    offset += column * col_stride;
  }
  if (i.row >= 0) {
    const std::int64_t row = registers_[static_cast<std::size_t>(i.row)],
                       limit = tensor.shape[static_cast<std::size_t>(leading)];
    if (row < 0 || row + tile.rows > limit) {
      if (reads) std::fill_n(out(tile), tile.count(), std::nan(""));
      return report_.add(who.place + " " + verb + " rows of '" + tensor.name +
                         "' out of bounds: " + std::to_string(row) + " and following, " + std::to_string(tile.rows) +
                         " of " + std::to_string(limit));
    }
    offset += row * row_stride;
  }
  for (std::int64_t row = 0; row < rows; row += group) {
    const std::int64_t at = offset - row * row_stride, line = before + row;
    if (reads)
      tensor.read(out(tile) + line * tile.cols, at, group, tile.cols, row_stride, col_stride, who);
    else
      tensor.write(arena_.data() + tile.offset + line * tile.row_stride, tile.row_stride, tile.col_stride, at, group,
                   tile.cols, row_stride, col_stride, who);
  }
  if (!reads) return;
  std::fill_n(out(tile), before * tile.cols, 0.0);
  std::fill_n(out(tile) + (before + rows) * tile.cols, (tile.rows - before - rows) * tile.cols, 0.0);
}

bool Worker::execute_recurrence(const Instruction& i) {
  const std::int64_t rows = i.out.rows, cols = i.out.cols;
  double* to = out(i.out);
  const auto a = in(i.in[0]), b = in(i.in[1]), c = in(i.in[2]), d = in(i.in[3]);
  switch (i.op) {
  case Op::place_row: {
    const std::int64_t row = i.n >= 0 ? i.n : std::clamp<std::int64_t>(reg(i, 0) * i.m - 1, 0, rows - 1);
    std::fill_n(to, rows * cols, 0.0);
    unary(Op::copy, to + row * cols, a, 1, cols);
    return true;
  }
  case Op::running_maximum: running_maximum(to, a, b, rows, cols); return true;
  case Op::running_logsumexp: running_logsumexp(to, a, b, rows, cols); return true;
  case Op::affine_scan: affine_scan(to, a, b, c, rows, cols, i.n != 0); return true;
  case Op::shift_rows: shift_rows(to, a, b, rows, cols, i.n != 0); return true;
  case Op::decayed_scores: decayed_scores(to, a, b, c, d, rows, cols, i.in[0].cols, {i.n, i.m}); return true;
  case Op::decayed_apply:
  case Op::decayed_apply_transposed:
    decayed_apply(to, a, b, c, d, i.in[0].rows, i.in[0].cols, cols, {i.n, i.m}, i.op == Op::decayed_apply_transposed);
    return true;
  case Op::sum_rows: sum_rows(to, a, rows, cols, i.n); return true;
  case Op::kron_rows: {
    const bool two = i.n != 0;
    kron_rows(to, a, two ? b : a, rows, i.in[0].cols, two ? i.in[1].cols : i.in[0].cols);
    return true;
  }
  case Op::pick_columns: {
    const std::int64_t first = reg(i, 0);
    if (first < 0 || first + cols > i.in[0].cols) {
      report_.add(launch_.code.places[i.place] + " picks columns out of bounds: " + std::to_string(first) +
                  " and following, " + std::to_string(cols) + " of " + std::to_string(i.in[0].cols));
      std::fill_n(to, rows * cols, std::nan(""));
      return true;
    }
    unary(Op::copy, to, {a.data + first * a.col_stride, a.row_stride, a.col_stride}, rows, cols);
    return true;
  }
  case Op::contract_kron: contract_kron(to, a, b, rows, cols); return true;
  case Op::lookup: {
    const auto from = (i.n & 2) != 0 ? static_cast<std::int64_t>(*b.data) : 0;
    (i.n & 1) != 0 ? gather_fenwick(to, a, from, rows, cols) : lookup_fenwick(to, a, from, rows, i.in[0].cols);
    return true;
  }
  default: return false;
  }
}

void Worker::execute_tile(const Instruction& i) {
  if (execute_recurrence(i)) return;
  const std::int64_t rows = i.out.rows, cols = i.out.cols;
  double* to = out(i.out);
  switch (i.op) {
  case Op::add:
  case Op::subtract:
  case Op::multiply:
  case Op::divide:
  case Op::maximum:
  case Op::minimum: binary(i.op, to, in(i.in[0]), in(i.in[1]), rows, cols); break;
  case Op::compare: compare(i.n, to, in(i.in[0]), in(i.in[1]), rows, cols); break;
  case Op::select:
  case Op::fma: ternary(i.op, to, in(i.in[0]), in(i.in[1]), in(i.in[2]), rows, cols); break;
  case Op::select_whole: unary(Op::copy, to, in(i.in[reg(i, 0) != 0 ? 0 : 1]), rows, cols); break;
  case Op::fill: std::fill_n(to, rows * cols, i.value); break;
  case Op::scalar: to[0] = launch_.arguments[i.memory].scalar; break;
  case Op::decay: decay(to, in(i.in[0]), in(i.in[1]), rows, cols, i.n, i.m); break;
  case Op::mask: mask(to, in(i.in[0]), rows, cols, i.n, i.m); break;
  case Op::diagonal:
    std::fill_n(to, rows * cols, 0.0);
    for (std::int64_t r = 0; r < rows; ++r) to[r * cols + r] = in(i.in[0]).data[r * i.in[0].row_stride];
    break;
  case Op::dot: {
    const std::int64_t depth = i.in[0].cols;
    const auto need = static_cast<std::size_t>(depth * std::max(rows, cols));
    if (scratch_.size() < need) scratch_.resize(need);
    dot(to, in(i.in[0]), in(i.in[1]), rows, cols, depth, scratch_.data());
    break;
  }
  case Op::inverse: {
    // Solved against the identity.
    const auto need = static_cast<std::size_t>(rows * rows);
    scratch_.assign(std::max(scratch_.size(), need), 0.0);
    for (std::int64_t r = 0; r < rows; ++r) scratch_[r * rows + r] = 1;
    solve_unit_lower(to, in(i.in[0]), {scratch_.data(), rows, 1}, rows, rows);
    break;
  }
  case Op::solve: solve_unit_lower(to, in(i.in[0]), in(i.in[1]), rows, cols); break;
  case Op::repeat_rows:
    for (std::int64_t r = 0; r < rows; ++r) {
      const double* from = in(i.in[0]).data + r / i.n * i.in[0].row_stride;
      for (std::int64_t c = 0; c < cols; ++c) to[r * cols + c] = from[c * i.in[0].col_stride];
    }
    break;
  case Op::reduce: reduce(to, in(i.in[0]), i.in[0].rows, i.in[0].cols, i.n, i.m); break;
  case Op::cumsum: cumsum(to, in(i.in[0]), rows, cols, i.n != 0, i.m != 0); break;
  case Op::neutral: {
    const std::int64_t valid = std::min(reg(i, 0) * i.n, rows);
    unary(Op::copy, to, in(i.in[0]), valid, cols);
    std::fill_n(to + valid * cols, (rows - valid) * cols, i.value);
    break;
  }
  case Op::valid:
    for (std::int64_t r = 0; r < rows; ++r) to[r] = r < reg(i, 0) * i.n ? 1.0 : 0.0;
    break;
  case Op::last_valid: {
    const std::int64_t row = std::clamp<std::int64_t>(reg(i, 0) * i.n - 1, 0, i.in[0].rows - 1);
    auto from = in(i.in[0]);
    from.data += row * from.row_stride;
    unary(Op::copy, to, from, 1, cols);
    break;
  }
  case Op::from_integer: to[0] = static_cast<double>(reg(i, 0)); break;
  case Op::gradients_begin: {
    std::fill_n(to, rows * cols, 0.0);
    double *r = out(i.in[1]), *p = out(i.in[2]), *rr = out(i.in[3]);
    unary(Op::copy, r, in(i.in[0]), rows, cols);
    unary(Op::copy, p, in(i.in[0]), rows, cols);
    for (std::int64_t row = 0; row < rows; ++row) {
      rr[row] = 0;
      for (std::int64_t c = 0; c < cols; ++c) rr[row] += r[row * cols + c] * r[row * cols + c];
    }
    break;
  }
  case Op::gradients_step: gradients_step(to, out(i.in[1]), out(i.in[2]), out(i.in[3]), in(i.in[0]), rows, cols); break;
  default: unary(i.op, to, in(i.in[0]), rows, cols); break;
  }
}

}  // namespace

void Sequences::prepare(std::int64_t size) {
  auto& table = chunks_[size];
  table.assign(1, 0);
  for (const auto& range : ranges) table.push_back(table.back() + (range.end - range.begin + size - 1) / size);
}

void run(const Launch& launch, Report& report) {
  std::int64_t programs = 1;
  for (auto extent : launch.grid) programs *= extent;
  if (programs <= 0) return;
  std::atomic<std::int64_t> next{0};
  const auto work = [&] {
    Worker worker(launch, report);
    for (std::int64_t number; (number = next.fetch_add(1)) < programs;) worker.program(number);
  };
  std::vector<std::thread> threads;
  for (std::int64_t extra = 1; extra < std::min<std::int64_t>(launch.threads, programs); ++extra)
    threads.emplace_back(work);
  work();
  for (auto& thread : threads) thread.join();
}

}  // namespace latile::interpreter
