// Every pass on random bodies.
#include "tests/interpreter/Body.h"
#include "tests/passes/ScanData.h"
#include <doctest/doctest.h>

using namespace latile;
using namespace latile::test;

namespace {

/// Writes bodies whose values stay small, so that rewrites can be told from rounding.
class Writer {
public:
  Writer(std::uint64_t seed, std::int64_t chunk) : engine_(seed), C(chunk) {}

  ScanText write() {
    ScanText scan;
    scan.chunk = C;
    scan.ratio = 2;
    scan.axis = "HV";
    scan.sequences = flip() ? "ragged32" : "dense";
    scan.map = flip() ? "tiled" : "grouped";
    scan.reads = {{"q", "H", {K}}, {"k", "H", {K}},     {"v", "HV", {V}},
                  {"c", "HV", {}}, {"w", "HV", {K}, 0}, {"u", "", {}, 0}};
    scan.scalars = {"scale"};
    scan.carries = {{"S", "HV", {K, V}, flip(4), flip(4)}, {"z", "HV", {K}}};
    scan.writes = {{"o", "HV", {V}}, {"p", "HV", {K}}};
    pool_ = {{"q", C, K}, {"k", C, K},     {"v", C, V}, {"c", C, 1}, {"w", 1, K},
             {"u", 1, 1}, {"scale", 1, 1}, {"S", K, V}, {"z", 1, K}};
    const int count = 12 + static_cast<int>(engine_() % 25);
    for (int i = 0; i < count; ++i) step();
    for (auto [rows, cols] : {std::pair{C, V}, {C, K}, {K, V}, {std::int64_t{1}, K}})
      scan.yields.push_back(flip(6) && rows != C ? pick(rows, cols).name : small(pick(rows, cols)).name);
    scan.body = body_.text;
    return scan;
  }

private:
  static constexpr std::int64_t K = 4, V = 3;

  bool flip(unsigned one_in = 2) { return engine_() % one_in != 0 || one_in == 1; }
  Value small(const Value& x) { return body_.same("math.tanh", x); }
  void keep(const Value& x) { pool_.push_back(x); }

  /// The latest values are likelier, so that chains grow.
  Value any() { return pool_[pool_.size() - 1 - std::min(engine_() % pool_.size(), engine_() % pool_.size())]; }
  Value pick(std::int64_t rows, std::int64_t cols) {
    for (int attempt = 0; attempt < 30; ++attempt)
      if (Value x = any(); x.rows == rows && x.cols == cols) return x;
    // Nothing of that shape turned up: made from a row, a column or a number.
    for (int attempt = 0; attempt < 30; ++attempt)
      if (Value x = any(); (x.rows == rows || x.rows == 1) && (x.cols == cols || x.cols == 1))
        return body_.broadcast(x, rows, cols);
    return body_.broadcast(pool_[6], rows, cols);
  }
  Value gate() {
    Value x = body_.sub(body_.same("tile.sigmoid", pick(C, 1)), body_.constant(1));
    return body_.same("tile.cumsum", body_.neutral(x, 0));
  }
  Value dot(Value a, Value b) {
    if (C > 1 && flip(3)) a = body_.cast(a, "bf16"), b = body_.cast(b, "bf16");
    return body_.dot(a, b);
  }

  void step() {
    switch (engine_() % 14) {
    case 0: keep(small(any())); break;
    case 1: {
      Value x = any();
      keep(body_.add(x, pick(x.rows, x.cols)));
      break;
    }
    case 2: {
      Value x = any();
      keep(body_.mul(x, pick(flip() ? x.rows : 1, flip() ? x.cols : 1)));
      break;
    }
    case 3: keep(small(dot(pick(C, K), pick(K, V)))); break;
    case 4: keep(small(dot(pick(C, K), body_.transpose(pick(C, K))))); break;
    case 5: keep(small(dot(pick(C, C), pick(C, flip() ? K : V)))); break;
    case 6: keep(small(dot(body_.transpose(pick(C, K)), pick(C, V)))); break;
    case 7: {
      Value G = gate();
      keep(body_.mul(pick(C, C), body_.decay(G, G, flip() ? "lower" : "strict")));
      break;
    }
    case 8: {
      Value T = body_.same("tile.inverse_unit_lower", body_.mul(small(pick(C, C)), body_.constant(0.3)));
      keep(small(dot(T, pick(C, V))));
      if (flip(4)) break;
      keep(T);
      break;
    }
    case 9: keep(body_.row(flip() ? "last" : "last_valid", pick(C, K))); break;
    case 10: keep(body_.reduce(flip() ? "sum" : "max", 1, pick(C, flip() ? K : V))); break;
    case 11: {  // The update of a state as references write it.
      Value s = body_.mul(body_.same("tile.sigmoid", flip() ? pick(1, 1) : body_.transpose(pick(1, K))), pick(K, V));
      Value outer = body_.dot(body_.transpose(body_.row("last", pick(C, K))), body_.row("last", pick(C, V)));
      keep(flip() ? body_.add(s, outer) : body_.sub(s, outer));
      break;
    }
    case 12: keep(body_.mask("lower", pick(C, C))); break;
    default: keep(body_.mul(pick(C, K), body_.about_rows("tile.valid", C))); break;
    }
  }

  std::mt19937_64 engine_;
  std::int64_t C;
  Body body_;
  std::vector<Value> pool_;
};

}  // namespace

TEST_CASE("random bodies keep their meaning through every schedule") {
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    INFO("seed " << seed);
    const std::int64_t chunk = seed % 3 == 0 ? 1 : 4;
    ScanText scan = Writer(seed, chunk).write();
    INFO(scan.text());
    auto module = parse(scan.text());
    BatchShape shape{.lengths = {9, 4, 0, 1}};
    for (Schedule schedule : {Schedule::fused, Schedule::prepare, Schedule::cut})
      check_pipeline(*module, schedule, shape, seed);
  }
}
