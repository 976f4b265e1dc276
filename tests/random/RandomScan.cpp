#include "tests/random/RandomScan.h"
#include "tests/interpreter/Body.h"
#include <cmath>

namespace latile::test {
namespace {

/// A value, how large it can be, and whether it varies over the finer heads.
struct Known {
  Value value;
  double bound;
  bool fine;
};

class Generator {
public:
  explicit Generator(std::uint64_t seed, bool wide = false, bool narrow = true)
      : wide_(wide), narrow_(narrow), engine_(seed) {}

  ScanText scan(bool step);

private:
  int below(int n) { return std::uniform_int_distribution<int>(0, n - 1)(engine_); }
  bool chance(int percent) { return below(100) < percent; }
  const Known& any() { return known_[static_cast<std::size_t>(below(static_cast<int>(known_.size())))]; }
  /// A known value of these extents (0: any), or one made by broadcasting.
  Known of(std::int64_t rows, std::int64_t cols);
  Known fitted(Known x, std::int64_t rows, std::int64_t cols);
  Known keep(Value value, double bound, bool fine);
  Known small(const Known& x, double bound);
  void step();
  Known unary();
  Known binary();
  Known dot();
  Known square();
  Known about_rows();
  Known shape();
  Known sums();
  Known gradients();
  Known recurrence();
  Known update(const Value& carry, bool coarse);
  void wide_op();
  Known selection();
  Known loop();
  std::int64_t wide_extent();
  int unit(std::size_t inner);
  /// A sum of several known values, so that few ops are dead.
  Known gathered(std::int64_t rows, std::int64_t cols);

  bool wide_, narrow_;
  std::mt19937_64 engine_;
  Body body_;
  std::int64_t C_ = 4, K_ = 3, V_ = 5, M_ = 0;
  std::vector<Known> known_;
};

Known Generator::keep(Value value, double bound, bool fine) {
  Known made{value, bound, fine};
  if (bound > 20) made = {body_.mul(value, body_.constant(20 / bound)), 20, fine};
  known_.push_back(made);
  return made;
}

/// x scaled by a constant to `bound`.
Known Generator::small(const Known& x, double bound) {
  if (x.bound <= bound) return x;
  return {body_.mul(x.value, body_.constant(bound / x.bound)), bound, x.fine};
}

Known Generator::of(std::int64_t rows, std::int64_t cols) {
  std::vector<const Known*> fits;
  for (const auto& x : known_)
    if ((x.value.rows == rows || rows == 0) && (x.value.cols == cols || cols == 0)) fits.push_back(&x);
  if (!fits.empty() && !chance(5)) return *fits[static_cast<std::size_t>(below(static_cast<int>(fits.size())))];
  rows = std::max<std::int64_t>(rows, 1), cols = std::max<std::int64_t>(cols, 1);
  return fitted(any(), rows, cols);
}

Known Generator::fitted(Known x, std::int64_t rows, std::int64_t cols) {
  // A reduction gives an extent of 1, which broadcasts to any.
  if (x.value.rows != rows && x.value.rows != 1) x = {body_.reduce("mean", 0, x.value), x.bound, x.fine};
  if (x.value.cols != cols && x.value.cols != 1) x = {body_.reduce("max", 1, x.value), x.bound, x.fine};
  return {body_.broadcast(x.value, rows, cols), x.bound, x.fine};
}

Known Generator::unary() {
  const auto x = any();
  const auto& v = x.value;
  const auto square_plus_one = [&] { return body_.add(body_.mul(v, v), body_.constant(1)); };
  switch (below(12)) {
  case 0: return keep(body_.same("math.tanh", v), 1, x.fine);
  case 1: return keep(body_.same("tile.sigmoid", v), 1, x.fine);
  case 2: return keep(body_.same("tile.softplus", v), x.bound + 1, x.fine);
  case 3: return keep(body_.same("arith.negf", v), x.bound, x.fine);
  case 4: return keep(body_.same("math.absf", v), x.bound, x.fine);
  case 5: return keep(body_.exp2(small(x, 4).value), 16, x.fine);
  case 6: return keep(body_.same("math.exp", body_.same("arith.negf", body_.same("math.absf", v))), 1, x.fine);
  case 7:
    return keep(body_.same(chance(50) ? "math.log" : "math.log2", square_plus_one()), 2 * std::log2(x.bound + 1),
                x.fine);
  case 8: return keep(body_.same("math.sqrt", square_plus_one()), x.bound + 1, x.fine);
  case 9: return keep(body_.same("math.rsqrt", square_plus_one()), 1, x.fine);
  case 10: return keep(body_.two("arith.divf", body_.constant(1), square_plus_one()), 1, x.fine);
  default:
    if (!narrow_) return keep(body_.same("math.tanh", v), 1, x.fine);
    return keep(body_.cast(body_.cast(v, chance(50) ? "bf16" : "f16"), "f32"), x.bound, x.fine);
  }
}

Known Generator::binary() {
  const auto a = any();
  auto b = of(chance(50) ? a.value.rows : 1, chance(50) ? a.value.cols : 1);
  const bool fine = a.fine || b.fine;
  switch (below(6)) {
  case 0: return keep(body_.add(a.value, b.value), a.bound + b.bound, fine);
  case 1: return keep(body_.sub(a.value, b.value), a.bound + b.bound, fine);
  case 2: return keep(body_.two("arith.maximumf", a.value, b.value), std::max(a.bound, b.bound), fine);
  case 3: return keep(body_.two("arith.minimumf", a.value, b.value), std::max(a.bound, b.bound), fine);
  default: return keep(body_.mul(a.value, b.value), a.bound * b.bound, fine);
  }
}

Known Generator::dot() {
  const auto a = any();
  const auto b = of(a.value.cols, chance(50) ? 0 : V_);
  const bool fine = a.fine || b.fine;
  const double bound = a.bound * b.bound * static_cast<double>(a.value.cols);
  if (chance(wide_ ? 60 : 30) && narrow_)
    return keep(body_.dot(body_.cast(a.value, "bf16"), body_.cast(b.value, "bf16")), bound, fine);
  return keep(body_.dot(a.value, b.value), bound, fine);
}

/// Ops on squares of rows.
Known Generator::square() {
  const auto rows = of(C_, chance(70) ? K_ : 0);
  auto A = Known{body_.dot(rows.value, body_.transpose(rows.value)),
                 rows.bound * rows.bound * static_cast<double>(rows.value.cols), rows.fine};
  A = small(A, wide_ ? std::min(0.5, 4.0 / static_cast<double>(C_)) : 0.5);
  const auto gate = small(of(C_, 1), 2);
  const char* kind = chance(50) ? "lower" : "strict";
  switch (below(6)) {
  case 0: return keep(body_.mask(kind, A.value), A.bound, A.fine);
  case 1: {
    const auto G = body_.same("tile.cumsum", body_.same("arith.negf", body_.same("math.absf", gate.value)));
    return keep(body_.mul(A.value, body_.decay(G, G, kind)), A.bound, A.fine || gate.fine);
  }
  case 2: return keep(body_.same("tile.inverse_unit_lower", A.value), 40, A.fine);
  case 3: {
    const auto x = small(of(C_, 0), 1);
    return keep(body_.solve(A.value, x.value), 40, A.fine || x.fine);
  }
  case 4: {
    // What solve-instead-of-inverse looks for.
    const auto T = body_.same("tile.inverse_unit_lower", A.value);
    const auto x = small(of(C_, 0), 1);
    const bool narrow = chance(30) && narrow_;
    const auto y = narrow ? body_.dot(body_.cast(T, "bf16"), body_.cast(x.value, "bf16")) : body_.dot(T, x.value);
    return keep(y, 40, A.fine || x.fine);
  }
  default: return keep(body_.add(A.value, body_.diagonal(gate.value)), A.bound + gate.bound, A.fine || gate.fine);
  }
}

Known Generator::about_rows() {
  switch (below(5)) {
  case 0: return keep(body_.about_rows("tile.valid", C_), 1, false);
  case 1: return keep(body_.mul(body_.about_rows("tile.count", 1), body_.constant(0.1)), 2, false);
  case 2: return keep(body_.same("math.tanh", body_.about_rows("tile.index", 1)), 1, false);
  case 3: {
    const auto x = of(C_, 0);
    return keep(body_.row("last_valid", x.value), x.bound, x.fine);
  }
  default: {
    const auto x = of(C_, 0);
    return keep(body_.neutral(x.value, 0.25), x.bound + 0.25, x.fine);
  }
  }
}

Known Generator::shape() {
  const auto x = any();
  switch (below(6)) {
  case 0: return keep(body_.transpose(x.value), x.bound, x.fine);
  case 1: return keep(body_.row("last", x.value), x.bound, x.fine);
  case 2: return keep(body_.row("at", x.value, below(static_cast<int>(x.value.rows))), x.bound, x.fine);
  case 3: {
    // Two rows a token on one side of a staircase.
    const auto a = of(C_, K_), b = of(C_, K_);
    const auto scores = body_.dot(a.value, body_.transpose(body_.repeat(b.value, 2)));
    return keep(body_.mask(chance(50) ? "lower" : "strict", scores, 2), a.bound * b.bound * static_cast<double>(K_),
                a.fine || b.fine);
  }
  case 4: return keep(body_.transpose(body_.transpose(x.value)), x.bound, x.fine);
  default: {
    const auto y = of(1, x.value.cols);
    return keep(body_.broadcast(y.value, x.value.rows, x.value.cols), y.bound, y.fine);
  }
  }
}

Known Generator::sums() {
  const auto x = any();
  const double rows = static_cast<double>(x.value.rows), cols = static_cast<double>(x.value.cols);
  switch (below(6)) {
  case 0: return keep(body_.reduce("sum", 1, x.value), x.bound * cols, x.fine);
  case 1: return keep(body_.reduce("mean", 0, x.value), x.bound, x.fine);
  case 2: return keep(body_.reduce("max", below(2), x.value), x.bound, x.fine);
  default: {
    const char* flags[] = {"", " exclusive", " reverse", " exclusive reverse"};
    return keep(body_.same("tile.cumsum", x.value, flags[below(4)]), x.bound * rows, x.fine);
  }
  }
}

Known Generator::gradients() {
  const auto x = small(of(C_, K_), wide_ ? 0.1 : 0.5), rhs = of(C_, K_);
  const auto gram = body_.dot(body_.transpose(x.value), x.value);
  const auto tile = Value{"", C_, K_}.text();
  auto y = body_.define({"", C_, K_}, "tile.solve %" + rhs.value.name + " steps 2", "");
  body_.text.pop_back();
  body_.text += " {\n    ^bb0(%p" + y.name + ": " + tile + "):\n      %m" + y.name + " = tile.dot %p" + y.name + ", %" +
                gram.name + " : " + tile + ", " + gram.text() + " -> " + tile + "\n      %n" + y.name +
                " = arith.addf %m" + y.name + ", %p" + y.name + " : " + tile + "\n      tile.yield %n" + y.name +
                " : " + tile + "\n    }\n";
  return keep(y, rhs.bound * 4, x.fine || rhs.fine);
}

Known Generator::recurrence() {
  const auto x = of(C_, 0);
  const auto from = of(1, x.value.cols), other = of(C_, x.value.cols);
  const bool fine = x.fine || from.fine || other.fine;
  const double both = x.bound + from.bound, rows = static_cast<double>(C_);
  const auto gate = body_.same("arith.negf", body_.same("math.absf", small(other, 2).value));
  const char* flags = chance(50) ? " reverse" : "";
  const char* kind = chance(50) ? "lower" : "strict";
  switch (below(8)) {
  case 0: return keep(body_.from_row("tile.cummax", x.value, from.value), both, fine);
  case 1: return keep(body_.from_row("tile.logcumsumexp", x.value, from.value), both + std::log(rows + 1), fine);
  case 2: return keep(body_.from_row("tile.prev", x.value, from.value, flags), both, fine);
  case 3: return keep(body_.affine_scan(gate, x.value, from.value, flags), both * (rows + 1), fine);
  case 4: return keep(body_.place_row(chance(50) ? "last_valid" : "last", from.value, C_), from.bound, from.fine);
  case 5: return keep(body_.sum_rows(body_.repeat(x.value, 3), 3), 3 * x.bound, x.fine);
  default: {
    const auto G = body_.same("tile.cumsum", gate);
    const double columns = static_cast<double>(x.value.cols);
    const auto scores = body_.decayed_scores(x.value, x.value, G, G, kind);
    if (chance(50)) return keep(scores, x.bound * x.bound * columns, fine);
    const auto y = body_.decayed_apply(body_.mul(scores, body_.constant(0.1)), x.value, G, G, kind, chance(50));
    return keep(y, 0.1 * x.bound * x.bound * x.bound * columns * rows, fine);
  }
  }
}

/// What only wide programs have: entries chosen by others, turns of a loop, row-wise products of a narrow tile.
void Generator::wide_op() {
  switch (below(3)) {
  case 0: selection(); return;
  case 1: loop(); return;
  default: {
    if (M_ == 0) return;
    const auto x = of(C_, M_);
    keep(body_.kron_rows(x.value), x.bound * x.bound, x.fine);
  }
  }
}

Known Generator::selection() {
  const auto x = any();
  const auto y = of(x.value.rows, x.value.cols), by = of(chance(50) ? x.value.rows : 1, chance(50) ? x.value.cols : 1);
  auto wide = body_.broadcast(by.value, x.value.rows, x.value.cols);
  auto zero = body_.broadcast(body_.constant(0.01), x.value.rows, x.value.cols);
  Value holds = x.value;
  holds.type = "i1";
  const auto predicate = chance(50) ? "ogt" : "ole";
  holds = body_.define(holds, std::string("arith.cmpf ") + predicate + ", %" + wide.name + ", %" + zero.name,
                       wide.text(), " : ");
  // Its text form gives the type of the operands only.
  body_.text.erase(body_.text.rfind(holds.text()), holds.text().size());
  return keep(body_.define({"", x.value.rows, x.value.cols},
                           "arith.select %" + holds.name + ", %" + x.value.name + ", %" + y.value.name,
                           holds.text() + ", "),
              std::max(x.bound, y.bound), x.fine || y.fine || by.fine);
}

/// p = tanh(p m + x), three times.
Known Generator::loop() {
  const auto x = of(chance(70) ? C_ : 1, chance(50) ? K_ : V_);
  const auto m = small(of(x.value.cols, x.value.cols), 2 / static_cast<double>(x.value.cols));
  const auto tile = x.value.text();
  const auto y = body_.define({"", x.value.rows, x.value.cols}, "@", "");
  const auto at = body_.text.rfind("    %" + y.name + " = @");
  const auto n = y.name;
  body_.text.erase(at);
  body_.text += "    %b" + n + " = arith.constant 0 : index\n    %e" + n + " = arith.constant 3 : index\n    %s" + n +
                " = arith.constant 1 : index\n    %" + n + " = scf.for %i" + n + " = %b" + n + " to %e" + n +
                " step %s" + n + " iter_args(%p" + n + " = %" + x.value.name + ") -> (" + tile + ") {\n      %d" + n +
                " = tile.dot %p" + n + ", %" + m.value.name + " : " + tile + ", " + m.value.text() + " -> " + tile +
                "\n      %a" + n + " = arith.addf %d" + n + ", %" + x.value.name + " : " + tile + "\n      %t" + n +
                " = math.tanh %a" + n + " : " + tile + "\n      scf.yield %t" + n + " : " + tile + "\n    }\n";
  return keep(y, 1, x.fine || m.fine);
}

std::int64_t Generator::wide_extent() {
  static const std::int64_t large[] = {48, 64, 65, 80, 96, 100, 130, 192};
  return chance(60) ? 8 + below(33) : large[below(8)];
}

/// Any axis of a tensor may be the one with stride 1, the last most often.
int Generator::unit(std::size_t inner) {
  if (!wide_ || chance(20)) return -1;
  return inner == 2 && chance(40) ? 1 : 0;
}

void Generator::step() {
  if (wide_ && chance(10)) return wide_op();
  const int which = below(100);
  if (which < 18)
    unary();
  else if (which < 38)
    binary();
  else if (which < 56)
    dot();
  else if (which < 68)
    square();
  else if (which < 78)
    about_rows();
  else if (which < 88)
    shape();
  else if (which < 94)
    sums();
  else if (which < 98)
    recurrence();
  else
    gradients();
}

/// A new carry that stays below 3: decayed, plus something small. `coarse`: from values without fine heads only.
Known Generator::update(const Value& carry, bool coarse) {
  auto all = known_;
  if (coarse) std::erase_if(known_, [](const Known& x) { return x.fine; });
  // One factor for all, for each row, for each column, or constant.
  const int form = below(4);
  const auto factor = of(form == 1 ? carry.rows : 1, form == 2 ? carry.cols : 1);
  auto decay =
      form == 3 ? body_.constant(0.75) : body_.mul(body_.same("tile.sigmoid", factor.value), body_.constant(0.9));
  auto added = small(gathered(carry.rows, carry.cols), 0.3);
  if (chance(50)) {
    const auto left = of(C_, carry.rows), right = of(C_, carry.cols);
    const double bound = left.bound * right.bound * static_cast<double>(C_);
    added = small({body_.dot(body_.transpose(left.value), right.value), bound, true}, 0.3);
  }
  const auto decayed = body_.mul(decay, carry);
  const auto next =
      chance(80) ? body_.add(decayed, added.value) : body_.same("math.tanh", body_.sub(added.value, decayed));
  known_ = all;
  known_.push_back({next, 3.5, !coarse});
  return known_.back();
}

Known Generator::gathered(std::int64_t rows, std::int64_t cols) {
  auto sum = of(rows, cols);
  for (int i = 0; i < 6; ++i) {
    const auto x = fitted(any(), rows, cols);
    sum = {body_.add(sum.value, x.value), sum.bound + x.bound, sum.fine || x.fine};
  }
  return sum;
}

ScanText Generator::scan(bool step_mode) {
  ScanText scan;
  const std::int64_t chunks[] = {1, 2, 4, 5, 8, 16};
  scan.chunk = C_ = step_mode ? 1 : chunks[below(6)];
  scan.step = step_mode;
  K_ = 2 + below(5), V_ = 2 + below(7);
  if (wide_) {
    const std::int64_t rows[] = {1, 3, 8, 16, 16, 24, 32};
    scan.chunk = C_ = step_mode ? 1 : rows[below(7)];
    K_ = wide_extent(), V_ = wide_extent(), M_ = 2 + below(6);
  }
  if (!step_mode && chance(50)) scan.sequences = "ragged32";
  const int heads = below(3);
  scan.axis = heads == 0 ? "" : "HV";
  scan.ratio = heads == 2 ? 2 : 1;
  scan.map = chance(50) ? "tiled" : "grouped";
  const std::string fine = scan.axis, coarse = heads == 2 ? "H" : fine;
  const auto head = [&] { return chance(50) ? coarse : fine; };
  const bool distinct = heads == 2;

  const auto read = [&](const std::string& name, std::vector<std::int64_t> inner, int rate) {
    const auto axis = heads != 0 && rate == 0 && chance(30) ? "" : head();
    scan.reads.push_back({name, axis, inner, rate, chance(30) && narrow_ ? "bf16" : "f32"});
    scan.reads.back().unit = unit(inner.size());
    const auto& made = scan.reads.back();
    Value value{name, rate == 0 ? 1 : C_ * rate, inner.empty() ? 1 : inner[0], made.type};
    value = body_.cast(value, "f32");
    if (name == "g") {
      value = body_.two("arith.maximumf", body_.mul(value, body_.constant(1.4426950408889634)), body_.constant(-126));
      value = body_.neutral(value, 0);
      value = body_.same("tile.cumsum", value);
      known_.push_back({body_.exp2(value), 1, distinct && axis == fine});
      // Cumulative gates may be large; only what is bounded goes on.
      const auto decay = body_.decay(value, value, chance(50) ? "lower" : "strict");
      known_.push_back({decay, 1, distinct && axis == fine});
      return;
    }
    if (rate == 2) {
      value = body_.neutral(value, 0.5, 2);
      value = body_.dot(body_.broadcast(body_.constant(0.5), C_, 2 * C_), value);
      known_.push_back(small({value, static_cast<double>(C_), distinct && axis == fine}, 2));
      return;
    }
    known_.push_back({value, 1, distinct && axis == fine});
  };
  read("x", {K_}, 1);
  read("y", {V_}, 1);
  if (chance(60)) read("g", {}, 1);
  if (chance(30)) read("z", {K_}, 2);
  if (chance(60)) read("w", chance(50) ? std::vector<std::int64_t>{K_} : std::vector<std::int64_t>{}, 0);
  if (wide_ && chance(50))
    read("m", {M_}, 1);
  else
    M_ = 0;
  scan.scalars = {"scale"};
  known_.push_back({{"scale", 1, 1}, 1, false});

  // The second carry or all may live on the coarser heads; then their updates see nothing of the finer ones.
  const bool all_coarse = distinct && chance(40);
  const int carries = 1 + below(wide_ ? 3 : 2);
  std::vector<Value> before;
  for (int i = 0; i < carries; ++i) {
    ScanText::Carry carry;
    carry.name = "S" + std::to_string(i);
    const bool on_coarse = all_coarse || (i == 1 && distinct && chance(50));
    carry.head = on_coarse ? coarse : fine;
    carry.inner = chance(70) ? std::vector<std::int64_t>{K_, V_} : std::vector<std::int64_t>{chance(50) ? K_ : V_};
    if (wide_ && chance(20))
      carry.inner = chance(50) ? std::vector<std::int64_t>{} : std::vector<std::int64_t>{chance(50) ? K_ : V_, 1};
    carry.unit = unit(carry.inner.size());
    carry.initial = chance(80), carry.final = chance(80);
    carry.initial_index = carry.initial && chance(40);
    carry.final_index = carry.final && (step_mode ? carry.initial_index && chance(80) : chance(40));
    scan.carries.push_back(carry);
    before.push_back(
        {carry.name, carry.inner.size() == 2 ? carry.inner[0] : 1, carry.inner.empty() ? 1 : carry.inner.back()});
    known_.push_back({before.back(), 3.5, distinct && !on_coarse});
  }
  const int ops = 12 + below(28);
  for (int i = 0; i < ops; ++i) step();
  std::vector<Known> after;
  for (std::size_t i = 0; i < before.size(); ++i)
    after.push_back(update(before[i], distinct && scan.carries[i].head == coarse));
  // Dots with the new carry: what reassociation looks for.
  for (const auto& next : after)
    if (chance(70)) {
      const auto x = of(C_, next.value.rows);
      keep(body_.dot(x.value, next.value), x.bound * next.bound * static_cast<double>(next.value.rows), true);
    }
  for (int i = 1 + below(2); i-- > 0;) {
    const auto inner = chance(30) ? std::vector<std::int64_t>{} : std::vector<std::int64_t>{chance(50) ? K_ : V_};
    const auto value = gathered(C_, inner.empty() ? 1 : inner[0]);
    ScanText::Tensor write{"o" + std::to_string(i), fine, inner};
    if (chance(30) && narrow_) write.type = "bf16";
    write.unit = unit(inner.size());
    scan.writes.push_back(write);
    scan.yields.push_back(body_.cast(value.value, write.type).name);
  }
  for (const auto& next : after) scan.yields.push_back(next.value.name);
  scan.body = body_.text;
  return scan;
}

/// Direction, histories and accepted counts, from an engine of its own: the body of a seed stays what it is.
ScanText with_surface(std::uint64_t seed, ScanText scan) {
  std::mt19937_64 engine(seed + 0x5eed);
  scan.reversed = !scan.step && engine() % 3 == 0;
  scan.accepted = engine() % 3 == 0;
  for (auto& carry : scan.carries)
    if (!scan.step && engine() % 3 == 0) carry.every = scan.chunk * static_cast<std::int64_t>(1 + engine() % 3);
  if (std::none_of(scan.carries.begin(), scan.carries.end(), [](const auto& carry) { return carry.initial_index; }))
    scan.accepted = false;
  return scan;
}

}  // namespace

ScanText random_scan(std::uint64_t seed, bool step) { return with_surface(seed, Generator(seed).scan(step)); }
ScanText random_wide_scan(std::uint64_t seed, bool step, bool narrow) {
  return with_surface(seed, Generator(seed, true, narrow).scan(step));
}

}  // namespace latile::test
