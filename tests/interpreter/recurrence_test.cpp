// Recurrences and what their adjoints need, against their definitions.
#include "tests/interpreter/Body.h"
#include "tests/interpreter/Fixture.h"
#include <cmath>
#include <doctest/doctest.h>
#include <functional>

using namespace latile;
using namespace latile::test;

namespace {

constexpr std::int64_t C = 6, D = 3;

/// The body's result on x, y [C, D] and h [1, D]; rows of the last chunk are missing when `rows` is below C.
struct Bench {
  Array x, y, h;
  std::int64_t rows = C;
  Bench() {
    std::mt19937_64 engine(8);
    x = Array::random({C, D}, engine, -2, 2);
    y = Array::random({C, D}, engine, -2, 2);
    h = Array::random({1, D}, engine, -2, 2);
  }

  Array operator()(std::int64_t cols, const std::function<Value(Body&, Value, Value, Value)>& write) const {
    ScanText scan;
    scan.chunk = C;
    scan.axis = "";
    scan.reads = {{"x", "", {D}}, {"y", "", {D}}, {"h", "", {D}, 0}};
    Body b;
    const auto result = write(b, {"x", C, D}, {"y", C, D}, {"h", 1, D});
    scan.writes = {{"o", "", {cols}}};
    scan.yields = {result.name};
    scan.body = b.text;
    Data data;
    data.rows = rows;
    const auto cut = [&](const Array& a) {
      Array part({1, rows, D});
      std::copy_n(a.data.begin(), part.data.size(), part.data.begin());
      return part;
    };
    data.arrays["x"] = cut(x), data.arrays["y"] = cut(y), data.arrays["h"] = h;
    data.arrays["h"].shape = {D};
    data.arrays["o"] = Array({1, rows, cols}, NAN);
    run(*parse(scan.text()), data, {.sanitize = true});
    data.arrays["o"].shape = {rows, cols};
    return data.arrays["o"];
  }
};

}  // namespace

TEST_CASE("running maxima, log-sums and affine scans") {
  const Bench bench;
  const auto maxima = bench(D, [](Body& b, Value x, Value, Value h) { return b.from_row("tile.cummax", x, h); });
  const auto logs = bench(D, [](Body& b, Value x, Value, Value h) { return b.from_row("tile.logcumsumexp", x, h); });
  const auto scan = bench(D, [](Body& b, Value x, Value y, Value h) { return b.affine_scan(y, x, h); });
  const auto reverse = bench(D, [](Body& b, Value x, Value y, Value h) { return b.affine_scan(y, x, h, " reverse"); });
  const auto behind = bench(D, [](Body& b, Value x, Value, Value h) { return b.from_row("tile.prev", x, h); });
  const auto before =
      bench(D, [](Body& b, Value x, Value, Value h) { return b.from_row("tile.prev", x, h, " reverse"); });
  for (std::int64_t j = 0; j < D; ++j) {
    double largest = bench.h({0, j}), sum = std::exp(largest), down = bench.h({0, j}), up = down;
    for (std::int64_t i = 0; i < C; ++i) {
      const std::int64_t r = C - 1 - i;
      CHECK(behind({i, j}) == (i == 0 ? bench.h({0, j}) : bench.x({i - 1, j})));
      CHECK(before({i, j}) == (i == C - 1 ? bench.h({0, j}) : bench.x({i + 1, j})));
      largest = std::max(largest, bench.x({i, j}));
      sum += std::exp(bench.x({i, j}));
      down = std::exp2(bench.y({i, j})) * down + bench.x({i, j});
      up = std::exp2(bench.y({r, j})) * up + bench.x({r, j});
      CHECK(maxima({i, j}) == largest);
      CHECK(logs({i, j}) == doctest::Approx(std::log(sum)).epsilon(1e-14));
      CHECK(scan({i, j}) == doctest::Approx(down).epsilon(1e-14));
      CHECK(reverse({r, j}) == doctest::Approx(up).epsilon(1e-14));
    }
  }
}

TEST_CASE("log-sums from minus infinity, of minus infinity, with NaN") {
  Bench bench;
  bench.h.data = {-INFINITY, -INFINITY, 0};
  bench.x({0, 0}) = -INFINITY;
  bench.x({2, 1}) = NAN;
  bench.x({1, 2}) = INFINITY;
  const auto logs = bench(D, [](Body& b, Value x, Value, Value h) { return b.from_row("tile.logcumsumexp", x, h); });
  CHECK(logs({0, 0}) == -INFINITY);
  CHECK(logs({1, 0}) == doctest::Approx(bench.x({1, 0})));
  CHECK(logs({0, 1}) == bench.x({0, 1}));
  CHECK(std::isnan(logs({2, 1})));
  CHECK(std::isnan(logs({5, 1})));
  CHECK(logs({1, 2}) == INFINITY);
  CHECK(logs({5, 2}) == INFINITY);
}

TEST_CASE("decayed scores and decayed apply, both ways") {
  const Bench bench;
  for (const std::string kind : {"lower", "strict", "all"}) {
    const auto gates = [](Body& b, Value y) { return b.same("tile.cumsum", y); };
    const auto scores = bench(C, [&](Body& b, Value x, Value y, Value) {
      const auto g = gates(b, y);
      return b.decayed_scores(x, y, g, g, kind);
    });
    const auto apply = [&](bool transposed) {
      return bench(D, [&](Body& b, Value x, Value y, Value) {
        const auto g = gates(b, y);
        return b.decayed_apply(b.dot(x, b.transpose(y)), x, g, g, kind, transposed);
      });
    };
    const auto down = apply(false), up = apply(true);
    Array G = bench.y, A({C, C}), wanted({C, D}), back({C, D});
    for (std::int64_t i = 1; i < C; ++i)
      for (std::int64_t d = 0; d < D; ++d) G({i, d}) += G({i - 1, d});
    for (std::int64_t i = 0; i < C; ++i)
      for (std::int64_t j = 0; j < C; ++j) {
        const bool kept = kind == "all" || (kind == "lower" ? j <= i : j < i);
        double sum = 0, a = 0;
        for (std::int64_t d = 0; d < D; ++d) a += bench.x({i, d}) * bench.y({j, d});
        for (std::int64_t d = 0; d < D && kept; ++d) {
          const double fall = std::exp2(G({i, d}) - G({j, d}));
          sum += bench.x({i, d}) * bench.y({j, d}) * fall;
          wanted({i, d}) += a * bench.x({j, d}) * fall;
          back({j, d}) += a * bench.x({i, d}) * fall;
        }
        CHECK(scores({i, j}) == doctest::Approx(sum).epsilon(1e-13));
      }
    CHECK(largest_difference(down, wanted) < 1e-12);
    CHECK(largest_difference(up, back) < 1e-12);
  }
}

TEST_CASE("rows placed, summed and repeated") {
  Bench bench;
  bench.rows = 4;
  const auto last = bench(D, [](Body& b, Value, Value, Value h) { return b.place_row("last_valid", h, C); });
  const auto at = bench(D, [](Body& b, Value, Value, Value h) { return b.place_row("at", h, C, 1); });
  const auto sums = bench(D, [](Body& b, Value x, Value, Value) { return b.repeat(b.sum_rows(x, 2), 2); });
  for (std::int64_t i = 0; i < bench.rows; ++i)
    for (std::int64_t j = 0; j < D; ++j) {
      CHECK(last({i, j}) == (i == 3 ? bench.h({0, j}) : 0));
      CHECK(at({i, j}) == (i == 1 ? bench.h({0, j}) : 0));
      CHECK(sums({i, j}) == bench.x({i / 2 * 2, j}) + bench.x({i / 2 * 2 + 1, j}));
    }
}

TEST_CASE("rows times themselves, and the adjoint") {
  const Bench bench;
  const auto kron = bench(D * D, [](Body& b, Value x, Value, Value) { return b.kron_rows(x); });
  const auto back = bench(D, [](Body& b, Value x, Value y, Value) { return b.contract_kron(b.kron_rows(x), y); });
  for (std::int64_t i = 0; i < C; ++i) {
    double along = 0;
    for (std::int64_t l = 0; l < D; ++l) along += bench.x({i, l}) * bench.y({i, l});
    for (std::int64_t k = 0; k < D; ++k) {
      for (std::int64_t l = 0; l < D; ++l) CHECK(kron({i, k * D + l}) == bench.x({i, k}) * bench.x({i, l}));
      CHECK(back({i, k}) == doctest::Approx(2 * bench.x({i, k}) * along));
    }
  }
}

TEST_CASE("a Fenwick table looked up, and gathered") {
  // C = 6 rows need levels 0 to 3.
  const Bench bench;
  const auto levels = [](Body& b, Value x, Value y) {
    const auto wide = b.dot(x, b.transpose(y));
    return b.define({"", C, 4, "f32"}, "tile.lookup fenwick %" + wide.name + " transposed", wide.text() + " -> ");
  };
  const auto gathered = bench(4, [&](Body& b, Value x, Value y, Value) { return levels(b, x, y); });
  const auto table = bench(C, [&](Body& b, Value x, Value y, Value) {
    const auto l = levels(b, x, y);
    return b.define({"", C, C, "f32"}, "tile.lookup fenwick %" + l.name, l.text() + " -> ");
  });
  // Highest bit in which i and j differ, plus one.
  const int level[6][6] = {{0}, {1, 0}, {2, 2, 0}, {2, 2, 1, 0}, {3, 3, 3, 3, 0}, {3, 3, 3, 3, 1, 0}};
  for (std::int64_t i = 0; i < C; ++i) {
    double want[4] = {};
    for (std::int64_t j = 0; j <= i; ++j)
      for (std::int64_t d = 0; d < D; ++d) want[level[i][j]] += bench.x({i, d}) * bench.y({j, d});
    for (std::int64_t l = 0; l < 4; ++l) CHECK(gathered({i, l}) == doctest::Approx(want[l]));
    for (std::int64_t j = 0; j < C; ++j)
      CHECK(table({i, j}) == (j <= i ? doctest::Approx(want[level[i][j]]) : doctest::Approx(0)));
  }
}

TEST_CASE("a Fenwick table that counts from a position") {
  const Bench bench;
  const auto table = bench(C, [](Body& b, Value x, Value, Value) {
    const auto from = b.constant(5);
    return b.define({"", C, C, "f32"}, "tile.lookup fenwick %" + x.name + " from %" + from.name + " : tensor<1x1xf32>",
                    x.text() + " -> ");
  });
  // Positions 5 to 10; what lies beyond the D = 3 columns is 0.
  const int level[6][6] = {{0}, {2, 0}, {2, 1, 0}, {4, 4, 4, 0}, {4, 4, 4, 1, 0}, {4, 4, 4, 2, 2, 0}};
  for (std::int64_t i = 0; i < C; ++i)
    for (std::int64_t j = 0; j < C; ++j)
      CHECK(table({i, j}) == (j <= i && level[i][j] < D ? bench.x({i, level[i][j]}) : 0));
}

TEST_CASE("rows times rows of another tile") {
  const Bench bench;
  const auto kron = bench(2 * D, [](Body& b, Value x, Value y, Value) {
    const auto two = b.transpose(b.row("at", b.transpose(x), 0));  // a column of x
    const auto wide = b.broadcast(two, C, 2);
    return b.define({"", C, 2 * D, "f32"}, "tile.kron_rows %" + wide.name + ", %" + y.name + " : " + y.text(),
                    wide.text() + " -> ");
  });
  for (std::int64_t i = 0; i < C; ++i)
    for (std::int64_t k = 0; k < 2; ++k)
      for (std::int64_t l = 0; l < D; ++l) CHECK(kron({i, k * D + l}) == bench.x({i, 0}) * bench.y({i, l}));
}

TEST_CASE("a custom op runs its first region") {
  const Bench bench;
  const auto doubled = bench(D, [](Body& b, Value x, Value y, Value) {
    const auto sum = b.add(x, y);
    auto made = b.define({"", C, D, "f32"}, "tile.custom %" + sum.name, sum.text() + " -> ");
    b.text.pop_back();
    b.text +=
        " {\n    ^bb0(%a: tensor<6x3xf32>):\n      %e = math.exp %a : tensor<6x3xf32>\n      %f = arith.addf %e, %y : "
        "tensor<6x3xf32>\n      tile.yield %f : tensor<6x3xf32>\n    } adjoint {\n    ^bb0(%a: tensor<6x3xf32>, %r: "
        "tensor<6x3xf32>, %g: tensor<6x3xf32>):\n      tile.yield %g : tensor<6x3xf32>\n    }\n";
    return b.add(made, sum);
  });
  for (std::int64_t i = 0; i < C; ++i)
    for (std::int64_t j = 0; j < D; ++j) {
      const double sum = bench.x({i, j}) + bench.y({i, j});
      CHECK(doubled({i, j}) == doctest::Approx(std::exp(sum) + bench.y({i, j}) + sum));
    }
}
