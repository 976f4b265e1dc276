// Each op against its definition, and rounding in declared types.
#include "compiler/interpreter/Loops.h"
#include "tests/interpreter/Body.h"
#include "tests/interpreter/Fixture.h"
#include <bit>
#include <cmath>
#include <doctest/doctest.h>
#include <functional>
#include <limits>

using namespace latile;
using namespace latile::test;

namespace {

constexpr std::int64_t C = 6, D = 5;

/// Runs a body on x [C, D] and y [C, C], whose result goes to an output of `cols` columns (C rows).
Array apply(const std::function<Value(Body&, Value, Value)>& write, const Array& x, const Array& y, std::int64_t cols,
            bool float64 = true) {
  ScanText scan;
  scan.chunk = C;
  scan.axis = "";
  scan.reads = {{"x", "", {D}}, {"y", "", {C}}};
  Body b;
  const auto result = write(b, {"x", C, D}, {"y", C, C});
  scan.writes = {{"o", "", {cols}}};
  scan.yields = {b.broadcast(result, C, cols).name};
  scan.body = b.text;
  Data data;
  data.rows = C;
  data.arrays["x"] = x;
  data.arrays["y"] = y;
  data.arrays["x"].shape.insert(data.arrays["x"].shape.begin(), 1);
  data.arrays["y"].shape.insert(data.arrays["y"].shape.begin(), 1);
  data.arrays["o"] = Array({1, C, cols}, NAN);
  run(*parse(scan.text()), data, {.float64 = float64, .sanitize = true});
  auto o = data.arrays["o"];
  o.shape = {C, cols};
  return o;
}

struct Samples {
  Array x, y;
  Samples() {
    std::mt19937_64 engine(3);
    x = Array::random({C, D}, engine, -2, 2);
    y = Array::random({C, C}, engine, -2, 2);
  }
};

}  // namespace

TEST_CASE("element-wise ops") {
  Samples s;
  const std::pair<const char*, double (*)(double)> ops[] = {
      {"arith.negf", [](double x) { return -x; }},
      {"math.absf", [](double x) { return std::fabs(x); }},
      {"math.exp", [](double x) { return std::exp(x); }},
      {"math.exp2", [](double x) { return std::exp2(x); }},
      {"math.log", [](double x) { return std::log(x); }},
      {"math.log2", [](double x) { return std::log2(x); }},
      {"math.sqrt", [](double x) { return std::sqrt(x); }},
      {"math.rsqrt", [](double x) { return 1 / std::sqrt(x); }},
      {"math.tanh", [](double x) { return std::tanh(x); }},
      {"tile.sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); }},
      {"tile.softplus", [](double x) { return x > 100 ? x : std::log1p(std::exp(x)); }},
  };
  auto x = s.x;
  const double special[] = {INFINITY, -INFINITY, 0, 800, -800, NAN};
  std::copy(std::begin(special), std::end(special), x.data.begin());
  for (const auto& [op, f] : ops) {
    CAPTURE(std::string(op));
    const auto o = apply([&](Body& b, Value v, Value) { return b.same(op, v); }, x, s.y, D);
    for (std::size_t i = 0; i < o.data.size(); ++i) {
      CAPTURE(x.data[i]);
      const double want = f(x.data[i]);
      CHECK((std::isnan(want) ? std::isnan(o.data[i])
                              : o.data[i] == want || o.data[i] == doctest::Approx(want).epsilon(1e-14)));
    }
  }
  CHECK(std::exp2(-INFINITY) == 0);
}

TEST_CASE("two operands, broadcast from a row, a column and one entry; maximum keeps NaN") {
  Samples s;
  const auto row = [](Body& b, Value x, Value) { return b.sub(x, b.row("at", x, 2)); };
  const auto column = [](Body& b, Value x, Value) { return b.two("arith.divf", x, b.reduce("max", 1, x)); };
  const auto one = [](Body& b, Value x, Value) { return b.mul(b.reduce("mean", 0, b.reduce("sum", 1, x)), x); };
  const auto a = apply(row, s.x, s.y, D), c = apply(column, s.x, s.y, D), e = apply(one, s.x, s.y, D);
  double mean = 0;
  for (double value : s.x.data) mean += value / C;
  for (std::int64_t i = 0; i < C; ++i) {
    double largest = -INFINITY;
    for (std::int64_t j = 0; j < D; ++j) largest = std::max(largest, s.x({i, j}));
    for (std::int64_t j = 0; j < D; ++j) {
      CHECK(a({i, j}) == s.x({i, j}) - s.x({2, j}));
      CHECK(c({i, j}) == s.x({i, j}) / largest);
      CHECK(e({i, j}) == doctest::Approx(s.x({i, j}) * mean));
    }
  }
  auto x = s.x;
  x.data[0] = NAN;
  for (const char* op : {"arith.maximumf", "arith.minimumf"}) {
    const auto left = apply([&](Body& b, Value v, Value) { return b.two(op, v, b.constant(0.5)); }, x, s.y, D);
    const auto right = apply([&](Body& b, Value v, Value) { return b.two(op, b.constant(0.5), v); }, x, s.y, D);
    CHECK(std::isnan(left.data[0]));
    CHECK(std::isnan(right.data[0]));
    const bool maximum = op[6] == 'm' && op[7] == 'a';
    for (std::size_t i = 1; i < x.data.size(); ++i)
      CHECK(left.data[i] == (maximum ? std::max(x.data[i], 0.5) : std::min(x.data[i], 0.5)));
    CHECK(std::equal(left.data.begin() + 1, left.data.end(), right.data.begin() + 1));
  }
}

TEST_CASE("a value and its transpose, in one op") {
  Samples s;
  const auto o = apply(
      [](Body& b, Value, Value y) { return b.add(b.same("arith.negf", y), b.transpose(b.same("arith.negf", y))); }, s.x,
      s.y, C);
  const auto p = apply(
      [](Body& b, Value, Value y) {
        const auto n = b.same("arith.negf", y);
        return b.sub(n, b.transpose(n));
      },
      s.x, s.y, C);
  for (std::int64_t i = 0; i < C; ++i)
    for (std::int64_t j = 0; j < C; ++j) {
      CHECK(o({i, j}) == -s.y({i, j}) - s.y({j, i}));
      CHECK(p({i, j}) == s.y({j, i}) - s.y({i, j}));
    }
}

TEST_CASE("dots of every shape and order of strides") {
  std::mt19937_64 engine(5);
  for (std::int64_t M : {1, 2, 5, 8, 33})
    for (std::int64_t N : {1, 3, 16, 37})
      for (std::int64_t K : {1, 4, 7, 40})
        for (int order = 0; order < 4; ++order) {
          const auto a = Array::random({M, K}, engine), b = Array::random({K, N}, engine);
          std::vector<double> at(a.data.size()), bt(b.data.size()), out(static_cast<std::size_t>(M * N), NAN);
          std::vector<double> scratch(static_cast<std::size_t>(K * std::max(M, N)));
          for (std::int64_t i = 0; i < M; ++i)
            for (std::int64_t k = 0; k < K; ++k) at[static_cast<std::size_t>(k * M + i)] = a({i, k});
          for (std::int64_t k = 0; k < K; ++k)
            for (std::int64_t j = 0; j < N; ++j) bt[static_cast<std::size_t>(j * K + k)] = b({k, j});
          const interpreter::Strided left =
              (order & 1) != 0 ? interpreter::Strided{at.data(), 1, M} : interpreter::Strided{a.data.data(), K, 1};
          const interpreter::Strided right =
              (order & 2) != 0 ? interpreter::Strided{bt.data(), 1, K} : interpreter::Strided{b.data.data(), N, 1};
          interpreter::dot(out.data(), left, right, M, N, K, scratch.data());
          double worst = 0;
          for (std::int64_t i = 0; i < M; ++i)
            for (std::int64_t j = 0; j < N; ++j) {
              double sum = 0;
              for (std::int64_t k = 0; k < K; ++k) sum += a({i, k}) * b({k, j});
              const double error = std::fabs(sum - out[static_cast<std::size_t>(i * N + j)]);
              worst = error <= worst ? worst : error;
            }
          CAPTURE(M);
          CAPTURE(N);
          CAPTURE(K);
          CAPTURE(order);
          CHECK(worst < 1e-13);
        }
}

TEST_CASE("masks, decay, cumsum, reduce, diagonal, repeat") {
  Samples s;
  const auto lower = apply([](Body& b, Value, Value y) { return b.mask("lower", y); }, s.x, s.y, C);
  const auto strict = apply([](Body& b, Value, Value y) { return b.mask("strict", y); }, s.x, s.y, C);
  const auto decay = apply(
      [](Body& b, Value x, Value) {
        const auto g = b.reduce("sum", 1, x);
        return b.decay(b.same("tile.cumsum", g), g, "lower");
      },
      s.x, s.y, C);
  const auto exclusive =
      apply([](Body& b, Value x, Value) { return b.same("tile.cumsum", x, " exclusive"); }, s.x, s.y, D);
  const auto reverse = apply([](Body& b, Value x, Value) { return b.same("tile.cumsum", x, " reverse"); }, s.x, s.y, D);
  const auto diagonal = apply([](Body& b, Value x, Value) { return b.diagonal(b.reduce("max", 1, x)); }, s.x, s.y, C);
  const auto stairs =
      apply([](Body& b, Value,
               Value y) { return b.dot(b.mask("lower", b.dot(y, b.transpose(b.repeat(y, 2))), 2), b.repeat(y, 2)); },
            s.x, s.y, C);
  double running = 0;
  for (std::int64_t i = 0; i < C; ++i) {
    double largest = -INFINITY;
    for (std::int64_t j = 0; j < D; ++j) {
      running += s.x({i, j});
      largest = std::max(largest, s.x({i, j}));
      double before = 0, after = 0;
      for (std::int64_t t = 0; t < C; ++t) (t < i ? before : after) += s.x({t, j});
      CHECK(exclusive({i, j}) == doctest::Approx(before));
      CHECK(reverse({i, j}) == doctest::Approx(after));
    }
    for (std::int64_t j = 0; j < C; ++j) {
      CHECK(lower({i, j}) == (j <= i ? s.y({i, j}) : 0));
      CHECK(strict({i, j}) == (j < i ? s.y({i, j}) : 0));
      CHECK(diagonal({i, j}) == (i == j ? largest : 0));
      double gate = 0;
      for (std::int64_t d = 0; d < D; ++d) gate += s.x({j, d});
      CHECK(decay({i, j}) == (j <= i ? doctest::Approx(std::exp2(running - gate)) : doctest::Approx(0)));
      double twice = 0;
      for (std::int64_t t = 0; t <= i; ++t)
        for (std::int64_t d = 0; d < C; ++d) twice += 2 * s.y({i, d}) * s.y({t, d}) * s.y({t, j});
      CHECK(stairs({i, j}) == doctest::Approx(twice));
    }
  }
}

TEST_CASE("the inverse, the triangular solve and conjugate gradients") {
  Samples s;
  // (I + strictly lower y) times its inverse, and times the solution.
  const auto unit = [](Body& b, Value y) {
    return b.add(b.mask("strict", y), b.diagonal(b.broadcast(b.constant(1), C, 1)));
  };
  const auto identity = apply(
      [&](Body& b, Value, Value y) { return b.dot(unit(b, y), b.same("tile.inverse_unit_lower", y)); }, s.x, s.y, C);
  const auto solved = apply([&](Body& b, Value x, Value y) { return b.dot(unit(b, y), b.solve(y, x)); }, s.x, s.y, D);
  for (std::int64_t i = 0; i < C; ++i) {
    for (std::int64_t j = 0; j < C; ++j) CHECK(identity({i, j}) == doctest::Approx(i == j ? 1 : 0).epsilon(1e-12));
    for (std::int64_t j = 0; j < D; ++j) CHECK(solved({i, j}) == doctest::Approx(s.x({i, j})).epsilon(1e-12));
  }
  // Rows of x (I + xᵀx): D steps are exact but for rounding.
  const auto gradients = apply(
      [](Body& b, Value x, Value) {
        const auto gram = b.dot(b.transpose(x), x);
        const auto y = b.define({"", C, D, "f32"}, "tile.solve %x steps 5", "", " : ");
        b.text.pop_back();
        b.text +=
            " {\n    ^bb0(%p: tensor<6x5xf32>):\n      %m = tile.dot %p, %" + gram.name +
            " : tensor<6x5xf32>, tensor<5x5xf32> -> tensor<6x5xf32>\n      %n = arith.addf %m, %p : tensor<6x5xf32>\n"
            "      tile.yield %n : tensor<6x5xf32>\n    }\n";
        return b.add(b.dot(y, gram), y);
      },
      s.x, s.y, D);
  for (std::int64_t i = 0; i < C; ++i)
    for (std::int64_t j = 0; j < D; ++j) CHECK(gradients({i, j}) == doctest::Approx(s.x({i, j})).epsilon(1e-9));
}

TEST_CASE("rounding to nearest even: every float16 and bfloat16, midpoints, subnormals, overflow") {
  using interpreter::round_to;
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const double value = std::bit_cast<float>(bits << 16);
    if (!std::isnan(value))
      REQUIRE(std::bit_cast<std::uint64_t>(round_to(ElementType::bf16, value)) == std::bit_cast<std::uint64_t>(value));
    // The float halfway to the next: to even.
    const double halfway = std::bit_cast<float>(bits << 16 | 0x8000);
    if (std::isnan(halfway) || (bits & 0x7fff) >= 0x7f7f) continue;
    const auto even = (bits & 1) != 0 ? bits + 1 : bits;
    REQUIRE(round_to(ElementType::bf16, halfway) == std::bit_cast<float>(even << 16));
    REQUIRE(round_to(ElementType::bf16, std::nextafter(halfway, 0.0)) == std::bit_cast<float>(bits << 16));
  }
  CHECK(round_to(ElementType::f16, 65519.9) == 65504);
  CHECK(std::isinf(round_to(ElementType::f16, 65520)));
  CHECK(round_to(ElementType::f16, 0x1p-24) == 0x1p-24);
  CHECK(round_to(ElementType::f16, 0x1p-25) == 0);
  CHECK(round_to(ElementType::f16, 0x1.8p-24) == 0x1p-23);
  CHECK(round_to(ElementType::f16, 1 + 0x1p-11) == 1);
  CHECK(round_to(ElementType::f16, 1 + 0x3p-11) == 1 + 0x1p-9);
  CHECK(std::signbit(round_to(ElementType::bf16, -0.0)));
  CHECK(std::isinf(round_to(ElementType::bf16, 1e300)));
  CHECK(round_to(ElementType::bf16, -INFINITY) == -INFINITY);
  CHECK(std::isnan(round_to(ElementType::f16, NAN)));
  CHECK(round_to(ElementType::f32, 1 + 0x1p-24) == 1);
}

TEST_CASE("declared types: a cast rounds, a dot rounds once, float64 does neither") {
  Samples s;
  const auto cast = [](Body& b, Value x, Value) { return b.cast(b.cast(b.mul(x, x), "bf16"), "f32"); };
  const auto rounded = apply(cast, s.x, s.y, D, false), exact = apply(cast, s.x, s.y, D);
  const auto dot = apply([](Body& b, Value, Value y) { return b.dot(y, y); }, s.x, s.y, C, false);
  for (std::int64_t i = 0; i < C; ++i)
    for (std::int64_t j = 0; j < D; ++j) {
      const auto x = static_cast<double>(static_cast<float>(s.x({i, j})));
      const auto square = static_cast<double>(static_cast<float>(x * x));
      CHECK(rounded({i, j}) == interpreter::round_to(ElementType::bf16, square));
      CHECK(exact({i, j}) == s.x({i, j}) * s.x({i, j}));
      double sum = 0;
      for (std::int64_t k = 0; k < C; ++k)
        sum +=
            static_cast<double>(static_cast<float>(s.y({i, k}))) * static_cast<double>(static_cast<float>(s.y({k, j})));
      CHECK(dot({i, j}) == doctest::Approx(static_cast<double>(static_cast<float>(sum))).epsilon(1e-15));
      CHECK(dot({i, j}) == static_cast<double>(static_cast<float>(dot({i, j}))));
    }
}

TEST_CASE("memory of every type is read and written as it is") {
  const auto program = [](const std::string& type) {
    return "tile.program @p(%s: !tile.sequences<dense>, %x: !tile.view<?x?x2x" + type + ">, %o: !tile.view<?x?x2x" +
           type +
           ">) attributes {arg_names = [\"sequences\", \"x\", \"o\"]} {\n  tile.scan %s chunk 2 axis \"\" in(%x) "
           "initial() at() "
           "final() at() out(%o) {reads = [\"x\"], read_heads = [\"\"], rates = array<i64: 1>, carries = [], "
           "carry_heads = [], "
           "has_initial = array<i1>, has_initial_index = array<i1>, has_final = array<i1>, has_final_index = "
           "array<i1>, writes = "
           "[\"o\"], write_heads = [\"\"], head_ratio = 1, head_map = 0 : i32} : !tile.sequences<dense>, "
           "in(!tile.view<?x?x2x" +
           type + ">) initial() at() final() at() out(!tile.view<?x?x2x" + type + ">) {\n  ^bb0(%t: tensor<2x2x" +
           type + ">):\n    tile.yield %t : tensor<2x2x" + type + ">\n  }\n}\n";
  };
  std::vector<std::uint16_t> from(0x10000), to(0x10000 * 2, 0);
  for (std::uint32_t i = 0; i < 0x10000; ++i) from[i] = static_cast<std::uint16_t>(i);
  for (auto type : {ElementType::f16, ElementType::bf16}) {
    InterpreterInputs inputs;
    inputs.rows = 0x8000;
    // Read with a stride of -2 rows from the end, written with gaps.
    inputs.tensors["x"] = {from.data() + 0xfffe, type, {1, 0x8000, 2}, {0, -2, 1}};
    inputs.tensors["o"] = {to.data(), type, {1, 0x8000, 2}, {0, 4, 2}};
    const auto report =
        interpret(*parse(program(type == ElementType::f16 ? "f16" : "bf16")), inputs, {.float64 = false});
    CHECK(report.ok());
    int wrong = 0;
    for (std::size_t row = 0; row < 0x8000; ++row)
      for (std::size_t j = 0; j < 2; ++j) {
        const auto want = from[0xfffe - 2 * row + j], have = to[row * 4 + j * 2];
        const int infinity = type == ElementType::f16 ? 0x7c00 : 0x7f80;
        const bool nan = (want & 0x7fff) > infinity;
        wrong += nan ? (have & 0x7fff) <= infinity : have != want;
      }
    CHECK(wrong == 0);
  }
}
