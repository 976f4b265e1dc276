// Scans against plain loops over tokens.
#include "tests/interpreter/Operators.h"
#include <chrono>
#include <cmath>
#include <doctest/doctest.h>

using namespace latile;
using namespace latile::test;

namespace {

void agree(Data& have, Data& want, double bound = 1e-11) {
  for (const char* name : {"o", "S.final", "z.final"}) {
    CAPTURE(std::string(name));
    CHECK(largest_difference(have.arrays[name], want.arrays[name]) <= bound);
  }
}

}  // namespace

TEST_CASE("gated delta rule by tokens and by chunks is the loop over tokens") {
  for (std::int64_t chunk : {1, 4, 16})
    for (std::int64_t length : {1, 3, 16, 17, 37}) {
      CAPTURE(chunk);
      CAPTURE(length);
      const DeltaShape shape{.K = 8, .V = 12, .chunk = chunk};
      auto have = delta_data(shape, 3, {length, length}, 7), want = have;
      const auto module = parse(gated_delta_rule(shape).text());
      run(*module, have, {.sanitize = true});
      gated_delta_rule(shape, want);
      agree(have, want);
    }
}

TEST_CASE("grouped and tiled value heads") {
  for (bool tiled : {false, true}) {
    CAPTURE(tiled);
    const DeltaShape shape{.K = 4, .V = 6, .chunk = 8, .ratio = 2, .tiled = tiled};
    auto have = delta_data(shape, 6, {21}, 3), want = have;
    run(*parse(gated_delta_rule(shape).text()), have, {.sanitize = true});
    gated_delta_rule(shape, want);
    agree(have, want);
  }
}

TEST_CASE("simple gated linear attention, ragged with empty and one-token sequences") {
  const DeltaShape shape{.K = 6, .V = 5, .chunk = 8, .sequences = "ragged32"};
  auto have = delta_data(shape, 2, {0, 1, 13, 0, 8, 30, 0}, 11), want = have;
  run(*parse(simple_gla(shape).text()), have, {.sanitize = true});
  gated_delta_rule(shape, want, false);
  agree(have, want);
  for (std::int64_t i = 0; i < shape.K; ++i)
    CHECK(have.arrays["S.final"]({3, 1, i, 2}) == have.arrays["S.initial"]({3, 1, i, 2}));
}

TEST_CASE("linear attention with its normaliser: two carries, one a row") {
  for (std::int64_t chunk : {1, 8}) {
    CAPTURE(chunk);
    const DeltaShape shape{.K = 6, .V = 5, .chunk = chunk};
    auto have = delta_data(shape, 2, {19, 19}, 5), want = have;
    run(*parse(linear_attention(shape).text()), have, {.sanitize = true});
    linear_attention(shape, want);
    agree(have, want);
  }
}

TEST_CASE("slots: a pool, a negative slot starts from zero and ends nowhere") {
  const DeltaShape shape{.K = 4, .V = 4, .chunk = 4};
  auto scan = gated_delta_rule(shape);
  scan.carries[0].initial_index = scan.carries[0].final_index = true;
  auto have = delta_data(shape, 2, {9, 9, 9}, 2);
  std::mt19937_64 engine(1);
  have.arrays["S.initial"] = Array::random({6, 2, 4, 4}, engine);
  have.arrays["S.final"] = Array({6, 2, 4, 4}, 99);
  have.indices["S.initial_index"] = {5, -1, 2};
  have.indices["S.final_index"] = {0, 3, -1};
  auto want = have;
  run(*parse(scan.text()), have, {.sanitize = true});
  gated_delta_rule(shape, want);
  agree(have, want);
  CHECK(have.arrays["S.final"]({2, 0, 0, 0}) == 99);
}

TEST_CASE("step: a sequence without slots writes zeros and touches no state") {
  const DeltaShape shape{.K = 4, .V = 4};
  auto scan = gated_delta_rule(shape);
  scan.step = true;
  scan.carries[0].initial_index = scan.carries[0].final_index = true;
  auto have = delta_data(shape, 2, {1, 1, 1}, 2);
  have.indices["S.initial_index"] = {1, -1, -1};
  have.indices["S.final_index"] = {1, -1, 2};
  have.arrays["S.final"] = Array({3, 2, 4, 4}, 99);
  auto want = have;
  run(*parse(scan.text()), have, {.sanitize = true});
  gated_delta_rule(shape, want);
  for (std::int64_t h = 0; h < 2; ++h)
    for (std::int64_t j = 0; j < 4; ++j) want.arrays["o"]({1, 0, h, j}) = 0;
  agree(have, want);
}

TEST_CASE("inside a scan: valid, count, index, neutral, last_valid, parameters") {
  ScanText scan;
  scan.chunk = 4;
  scan.axis = "";
  scan.reads = {{"x", "", {2}, 1}, {"y", "", {}, 2}, {"w", "", {2}, 0}};
  scan.writes = {{"o", "", {2}}, {"p", "", {}}};
  scan.carries = {{"c", "", {2}}};
  Body b;
  Value x{"x", 4, 2}, y{"y", 8, 1}, w{"w", 1, 2}, c{"c", 1, 2};
  const auto filled = b.neutral(x, 5);
  const auto valid = b.about_rows("tile.valid", 4), count = b.about_rows("tile.count", 1),
             index = b.about_rows("tile.index", 1);
  const auto last = b.row("last_valid", x);
  const auto o = b.add(b.mul(x, w), b.add(last, count));
  const auto next = b.add(c, b.add(b.reduce("sum", 0, filled), b.reduce("sum", 0, valid)));
  const auto pairs = b.neutral(y, 100, 2);
  const auto p = b.broadcast(b.add(index, b.reduce("sum", 0, pairs)), 4, 1);
  scan.body = b.text;
  scan.yields = {o.name, p.name, next.name};

  Data data;
  data.rows = 6;
  std::mt19937_64 engine(4);
  data.arrays["x"] = Array::random({1, 6, 2}, engine);
  data.arrays["y"] = Array({1, 12}, 1);
  data.arrays["w"] = Array::random({2}, engine);
  data.arrays["o"] = Array({1, 6, 2}, NAN);
  data.arrays["p"] = Array({1, 6}, NAN);
  data.arrays["c.initial"] = Array({1, 2}, 10);
  data.arrays["c.final"] = Array({1, 2}, NAN);
  run(*parse(scan.text()), data, {.sanitize = true});
  auto &xs = data.arrays["x"], &os = data.arrays["o"];
  for (std::int64_t j = 0; j < 2; ++j) {
    double sum = 10 + 6 + 2 * 5;
    for (std::int64_t t = 0; t < 6; ++t) {
      sum += xs({0, t, j});
      CHECK(os({0, t, j}) ==
            doctest::Approx(xs({0, t, j}) * data.arrays["w"]({j}) + xs({0, t < 4 ? 3 : 5, j}) + (t < 4 ? 4 : 2)));
    }
    CHECK(data.arrays["c.final"]({0, j}) == doctest::Approx(sum));
  }
  CHECK(data.arrays["p"]({0, 0}) == 8);
  CHECK(data.arrays["p"]({0, 5}) == 1 + 4 + 400);
}

TEST_CASE("a carry on a coarser head axis is computed by each head and written once") {
  ScanText scan;
  scan.chunk = 2;
  scan.axis = "HQ";
  scan.ratio = 2;
  scan.reads = {{"x", "H", {3}}, {"q", "HQ", {3}}};
  scan.writes = {{"o", "HQ", {3}}};
  scan.carries = {{"c", "H", {3}}};
  Body b;
  Value x{"x", 2, 3}, q{"q", 2, 3}, c{"c", 1, 3};
  const auto sums = b.add(b.same("tile.cumsum", x), c);
  const auto o = b.mul(q, sums), next = b.row("last", sums);
  scan.body = b.text;
  scan.yields = {o.name, next.name};
  Data data;
  data.rows = 5;
  data.heads = 4;
  std::mt19937_64 engine(4);
  data.arrays["x"] = Array::random({1, 5, 2, 3}, engine);
  data.arrays["q"] = Array::random({1, 5, 4, 3}, engine);
  data.arrays["o"] = Array({1, 5, 4, 3}, NAN);
  data.arrays["c.initial"] = Array::random({1, 2, 3}, engine);
  data.arrays["c.final"] = Array({1, 2, 3}, NAN);
  run(*parse(scan.text()), data, {.sanitize = true});
  for (std::int64_t h = 0; h < 4; ++h) {
    double sum = data.arrays["c.initial"]({0, h / 2, 1});
    for (std::int64_t t = 0; t < 5; ++t) {
      sum += data.arrays["x"]({0, t, h / 2, 1});
      CHECK(data.arrays["o"]({0, t, h, 1}) == doctest::Approx(data.arrays["q"]({0, t, h, 1}) * sum));
    }
    CHECK(data.arrays["c.final"]({0, h / 2, 1}) == doctest::Approx(sum));
  }
}

TEST_CASE("speed of the float64 token reference") {
  const DeltaShape shape{.K = 128, .V = 128};
  auto data = delta_data(shape, 1, {2000}, 1);
  const auto module = parse(gated_delta_rule(shape).text());
  const auto begin = std::chrono::steady_clock::now();
  run(*module, data);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  MESSAGE("2000 tokens, K = V = 128, one head: ", seconds, " s");
  CHECK(seconds < 5);
}
