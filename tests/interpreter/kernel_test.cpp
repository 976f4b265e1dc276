// Kernels written by hand: grids, workspace, loops, branches, slots, and what the sanitizer says of wrong ones.
#include "tests/interpreter/Fixture.h"
#include <cmath>
#include <doctest/doctest.h>

using namespace latile;
using namespace latile::test;

namespace {

// Squares chunk by chunk through the workspace, then running sums from a carry.
const char* const cut = R"(
tile.kernel @prepare(%c: index, %h: index, %seq: !tile.sequences<ragged32>, %x: !tile.view<?x?x?x3xf32>,
    %w: !tile.view<?x?x4x3xf32>) attributes {grid = ["chunks", "H"], arg_names = ["sequences", "x", "w"]} {
  %n, %batch, %begin, %position, %end = tile.chunk %seq, %c size 4 : !tile.sequences<ragged32>
  %rows = tile.rows %begin, %position, %end : !tile.rows<4>
  %t = tile.load_rows %x[%batch, %rows, %h] : !tile.view<?x?x?x3xf32>, !tile.rows<4> -> tensor<4x3xf32>
  %s = arith.mulf %t, %t : tensor<4x3xf32>
  tile.store %s, %w[%c, %h] : tensor<4x3xf32>, !tile.view<?x?x4x3xf32>
}
tile.kernel @serial(%n: index, %h: index, %seq: !tile.sequences<ragged32>, %w: !tile.view<?x?x4x3xf32>,
    %c0: !tile.view<?x?x3xf32>, %o: !tile.view<?x?x?x3xf32>, %c1: !tile.view<?x?x3xf32>, %scale: f64)
    attributes {grid = ["N", "H"], arg_names = ["sequences", "w", "c0", "o", "c1", "scale"]} {
  %batch, %begin, %end = tile.sequence %seq, %n : !tile.sequences<ragged32>
  %first = tile.chunk_begin %seq, %n size 4 : !tile.sequences<ragged32>
  %start = tile.load %c0[%n, %h] : !tile.view<?x?x3xf32> -> tensor<1x3xf32>
  %four = arith.constant 4 : index
  %one = arith.constant 1 : index
  %factor = tile.splat %scale : tensor<1x1xf32>
  %wide = tile.broadcast %factor : tensor<1x1xf32> -> tensor<4x3xf32>
  %last, %used = scf.for %p = %begin to %end step %four iter_args(%sum = %start, %c = %first) -> (tensor<1x3xf32>, index) {
    %rows = tile.rows %begin, %p, %end : !tile.rows<4>
    %s = tile.load %w[%c, %h] : !tile.view<?x?x4x3xf32> -> tensor<4x3xf32>
    %run = tile.cumsum %s : tensor<4x3xf32>
    %all = tile.broadcast %sum : tensor<1x3xf32> -> tensor<4x3xf32>
    %y = arith.addf %run, %all : tensor<4x3xf32>
    %z = arith.mulf %y, %wide : tensor<4x3xf32>
    tile.store_rows %z, %o[%batch, %rows, %h] : tensor<4x3xf32>, !tile.view<?x?x?x3xf32>, !tile.rows<4>
    %next = tile.row last %y : tensor<4x3xf32> -> tensor<1x3xf32>
    %d = arith.addi %c, %one : index
    scf.yield %next, %d : tensor<1x3xf32>, index
  }
  tile.store %last, %c1[%n, %h] : tensor<1x3xf32>, !tile.view<?x?x3xf32>
}
tile.program @p(%seq: !tile.sequences<ragged32>, %x: !tile.view<?x?x?x3xf32>, %c0: !tile.view<?x?x3xf32>,
    %o: !tile.view<?x?x?x3xf32>, %c1: !tile.view<?x?x3xf32>, %scale: f64)
    attributes {arg_names = ["sequences", "x", "c.initial", "o", "c.final", "scale"]} {
  %w = tile.workspace "squares" %seq chunk 4 axis "H" : !tile.sequences<ragged32> -> !tile.view<?x?x4x3xf32>
  tile.launch @prepare(%seq, %x, %w) : !tile.sequences<ragged32>, !tile.view<?x?x?x3xf32>, !tile.view<?x?x4x3xf32>
  tile.launch @serial(%seq, %w, %c0, %o, %c1, %scale) : !tile.sequences<ragged32>, !tile.view<?x?x4x3xf32>,
    !tile.view<?x?x3xf32>, !tile.view<?x?x?x3xf32>, !tile.view<?x?x3xf32>, f64
}
)";

Data cut_data() {
  std::mt19937_64 engine(9);
  Data data;
  data.sequences = 4;
  data.heads = 2;
  data.indices["cu_seqlens"] = {0, 5, 5, 6, 15};
  data.arrays["x"] = Array::random({1, 15, 2, 3}, engine);
  data.arrays["c.initial"] = Array::random({4, 2, 3}, engine);
  data.arrays["o"] = Array({1, 15, 2, 3}, NAN);
  data.arrays["c.final"] = Array({4, 2, 3}, NAN);
  data.scalars["scale"] = 2;
  return data;
}

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  const auto at = text.find(what);
  REQUIRE(at != std::string::npos);
  return text.replace(at, what.size(), by);
}

void expect(mlir::ModuleOp module, Data data, std::vector<std::string> parts, bool sanitize = true) {
  const auto report = interpret(module, data.inputs(), {.sanitize = sanitize});
  REQUIRE(!report.problems.empty());
  INFO(report.problems[0]);
  for (const auto& part : parts) {
    CAPTURE(part);
    CHECK(report.problems[0].find(part) != std::string::npos);
  }
}

/// A kernel over (N) with these ops on x [N, 2] and y [N, 2]; %n is the sequence.
std::string small(const std::string& ops) {
  return "tile.kernel @k(%n: index, %seq: !tile.sequences<dense>, %x: !tile.view<?x2xf32>, %y: !tile.view<?x2xf32>, "
         "%at: !tile.view<?xi32>) attributes {grid = [\"N\"], arg_names = [\"sequences\", \"x\", \"y\", \"at\"]} {\n" +
         ops +
         "}\ntile.program @p(%seq: !tile.sequences<dense>, %x: !tile.view<?x2xf32>, %y: !tile.view<?x2xf32>, "
         "%at: !tile.view<?xi32>) attributes {arg_names = [\"sequences\", \"x\", \"y\", \"at\"]} {\n  tile.launch "
         "@k(%seq, %x, "
         "%y, %at) : !tile.sequences<dense>, !tile.view<?x2xf32>, !tile.view<?x2xf32>, !tile.view<?xi32>\n}\n";
}

Data small_data() {
  Data data;
  data.sequences = 3;
  data.rows = 1;
  data.arrays["x"] = Array({3, 2});
  for (std::size_t i = 0; i < 6; ++i) data.arrays["x"].data[i] = static_cast<double>(i);
  data.arrays["y"] = Array({3, 2}, 77);
  data.indices["at"] = {2, -1, 0};
  return data;
}

const std::string load = "  %t = tile.load %x[%n] : !tile.view<?x2xf32> -> tensor<1x2xf32>\n";
const std::string store = "  tile.store %t, %y[%n] : tensor<1x2xf32>, !tile.view<?x2xf32>\n";

}  // namespace

TEST_CASE("two kernels through the workspace, ragged") {
  auto data = cut_data();
  const auto module = parse(cut);
  run(*module, data, {.sanitize = true});
  const auto& ends = data.indices["cu_seqlens"];
  for (std::size_t n = 0; n < 4; ++n)
    for (std::int64_t h = 0; h < 2; ++h)
      for (std::int64_t j = 0; j < 3; ++j) {
        const auto s = static_cast<std::int64_t>(n);
        double sum = data.arrays["c.initial"]({s, h, j});
        for (std::int64_t t = ends[n]; t < ends[n + 1]; ++t) {
          sum += std::pow(data.arrays["x"]({0, t, h, j}), 2);
          CHECK(data.arrays["o"]({0, t, h, j}) == doctest::Approx(2 * sum));
        }
        CHECK(data.arrays["c.final"]({s, h, j}) == doctest::Approx(sum));
      }
}

TEST_CASE("slots and negative indices") {
  auto data = small_data();
  run(*parse(small("  %s = tile.slot %at[%n] : !tile.view<?xi32>\n"
                   "  %t = tile.load %x[%s] : !tile.view<?x2xf32> -> tensor<1x2xf32>\n" +
                   store)),
      data, {.sanitize = true});
  CHECK(data.arrays["y"].data == std::vector<double>{4, 5, 0, 0, 0, 1});
  data = small_data();
  run(*parse(small(load + "  %s = tile.slot %at[%n] : !tile.view<?xi32>\n"
                          "  tile.store %t, %y[%s] : tensor<1x2xf32>, !tile.view<?x2xf32>\n")),
      data, {.sanitize = true});
  CHECK(data.arrays["y"].data == std::vector<double>{4, 5, 77, 77, 0, 1});
}

TEST_CASE("columns of a view") {
  const std::string column = "  %one = arith.constant 1 : index\n"
                             "  %c = tile.columns %x at %one : !tile.view<?x2xf32> -> !tile.view<?x1xf32>\n"
                             "  %t = tile.load %c[%n] : !tile.view<?x1xf32> -> tensor<1x1xf32>\n";
  auto data = small_data();
  run(*parse(small(column + "  %zero = arith.constant 0 : index\n"
                            "  %d = tile.columns %y at %zero : !tile.view<?x2xf32> -> !tile.view<?x1xf32>\n"
                            "  tile.store %t, %d[%n] : tensor<1x1xf32>, !tile.view<?x1xf32>\n")),
      data, {.sanitize = true});
  CHECK(data.arrays["y"].data == std::vector<double>{1, 77, 3, 77, 5, 77});
  expect(*parse(small("  %c = tile.columns %x at %n : !tile.view<?x2xf32> -> !tile.view<?x1xf32>\n"
                      "  %s = tile.load %c[%n] : !tile.view<?x1xf32> -> tensor<1x1xf32>\n"
                      "  %t = tile.broadcast %s : tensor<1x1xf32> -> tensor<1x2xf32>\n" +
                      store)),
         small_data(), {"reads columns of 'x' out of bounds: 2 and following, 1 of 2"});
}

TEST_CASE("a program's own memory, rows of it, columns of a tile") {
  const std::string own = "  %one = arith.constant 1 : index\n"
                          "  %m = tile.scratch : !tile.view<3x2xf32, unit 1>\n";
  const auto block = [](const std::string& name, const std::string& at) {
    return "  " + name + " = tile.row_block %m at " + at +
           " : !tile.view<3x2xf32, unit 1> -> !tile.view<1x2xf32, unit 1>\n";
  };
  const std::string keep = "  tile.store %t, %b[] : tensor<1x2xf32>, !tile.view<1x2xf32, unit 1>\n";
  const auto read = [](const std::string& from) {
    return "  %s = tile.load " + from + "[] : !tile.view<1x2xf32, unit 1> -> tensor<1x2xf32>\n";
  };
  const auto pick = [](const std::string& at) {
    return "  %c = tile.pick_columns %s at " + at + " : tensor<1x2xf32> -> tensor<1x1xf32>\n" +
           "  %w = tile.broadcast %c : tensor<1x1xf32> -> tensor<1x2xf32>\n" +
           "  tile.store %w, %y[%n] : tensor<1x2xf32>, !tile.view<?x2xf32>\n";
  };
  auto data = small_data();
  run(*parse(small(own + load + block("%b", "%one") + keep + read("%b") + pick("%one"))), data, {.sanitize = true});
  CHECK(data.arrays["y"].data == std::vector<double>{1, 1, 3, 3, 5, 5});
  // Nothing is there before it is stored, and nothing is left by another program.
  data = small_data();
  const std::string zero = "  %zero = arith.constant 0 : index\n";
  run(*parse(small(own + zero + load + block("%b", "%n") + keep + block("%first", "%zero") + read("%first") +
                   pick("%one"))),
      data, {.sanitize = true});
  CHECK(data.arrays["y"].data[0] == 1);
  for (std::size_t i = 2; i < 6; ++i) CHECK(std::isnan(data.arrays["y"].data[i]));
  const std::string three = "  %three = arith.constant 3 : index\n";
  expect(*parse(small(own + three + load + block("%b", "%three") + keep)), small_data(),
         {"writes rows of 'scratch' out of bounds: 3 and following, 1 of 3"});
  expect(*parse(small(own + load + block("%b", "%n") + keep + read("%b") + pick("%n"))), small_data(),
         {"picks columns out of bounds: 2 and following, 1 of 2"});
}

TEST_CASE("rows before a sequence and past its end are zero, and not written") {
  const char* const text = R"(
tile.kernel @k(%n: index, %seq: !tile.sequences<ragged32>, %x: !tile.view<?x?x1xf32>, %y: !tile.view<?x?x1xf32>)
    attributes {grid = ["N"], arg_names = ["sequences", "x", "y"]} {
  %b, %begin, %end = tile.sequence %seq, %n : !tile.sequences<ragged32>
  %rows = tile.rows %begin, %end, %end back 3 : !tile.rows<4>
  %t = tile.load_rows %x[%b, %rows] : !tile.view<?x?x1xf32>, !tile.rows<4> -> tensor<4x1xf32>
  %s = tile.reduce sum 0 %t : tensor<4x1xf32> -> tensor<1x1xf32>
  %u = tile.broadcast %s : tensor<1x1xf32> -> tensor<4x1xf32>
  tile.store_rows %u, %y[%b, %rows] : tensor<4x1xf32>, !tile.view<?x?x1xf32>, !tile.rows<4>
}
tile.program @p(%seq: !tile.sequences<ragged32>, %x: !tile.view<?x?x1xf32>, %y: !tile.view<?x?x1xf32>)
    attributes {arg_names = ["sequences", "x", "y"]} {
  tile.launch @k(%seq, %x, %y) : !tile.sequences<ragged32>, !tile.view<?x?x1xf32>, !tile.view<?x?x1xf32>
})";
  Data data;
  data.sequences = 4;
  data.indices["cu_seqlens"] = {0, 5, 5, 6, 8};
  data.arrays["x"] = Array({1, 8, 1});
  for (std::size_t i = 0; i < 8; ++i) data.arrays["x"].data[i] = static_cast<double>(1 << i);
  data.arrays["y"] = Array({1, 8, 1}, 0);
  run(*parse(text), data, {.sanitize = true});
  CHECK(data.arrays["y"].data == std::vector<double>{0, 0, 28, 28, 28, 32, 192, 192});
}

TEST_CASE("branches give values and skip stores") {
  auto data = small_data();
  run(*parse(small(
          load +
          "  %zero = arith.constant 0 : index\n  %two = arith.constant 2 : index\n"
          "  %odd = arith.remsi %n, %two : index\n  %is = arith.cmpi eq, %odd, %zero : index\n"
          "  %u, %i = scf.if %is -> (tensor<1x2xf32>, index) {\n"
          "    %d = arith.addf %t, %t : tensor<1x2xf32>\n    scf.yield %d, %n : tensor<1x2xf32>, index\n"
          "  } else {\n    %m = arith.subi %zero, %n : index\n    scf.yield %t, %m : tensor<1x2xf32>, index\n  }\n"
          "  tile.store %u, %y[%i] : tensor<1x2xf32>, !tile.view<?x2xf32>\n")),
      data);
  CHECK(data.arrays["y"].data == std::vector<double>{0, 2, 77, 77, 8, 10});
}

TEST_CASE("loop-carried values that change places") {
  auto data = small_data();
  run(*parse(small(
          "  %zero = arith.constant 0 : index\n  %one = arith.constant 1 : index\n  %three = arith.constant 3 : index\n"
          "  %a0 = tile.load %x[%zero] : !tile.view<?x2xf32> -> tensor<1x2xf32>\n"
          "  %b0 = tile.load %x[%one] : !tile.view<?x2xf32> -> tensor<1x2xf32>\n"
          "  %a, %b = scf.for %i = %zero to %three step %one iter_args(%p = %a0, %q = %b0) -> (tensor<1x2xf32>, "
          "tensor<1x2xf32>) {\n"
          "    %s = arith.addf %p, %q : tensor<1x2xf32>\n"
          "    scf.yield %q, %s : tensor<1x2xf32>, tensor<1x2xf32>\n  }\n"
          "  tile.store %b, %y[%n] : tensor<1x2xf32>, !tile.view<?x2xf32>\n")),
      data);
  // (0, 1), (2, 3), then 2 4, 4 7, 6 ...: Fibonacci from 0, 2 and from 1, 3.
  CHECK(data.arrays["y"].data == std::vector<double>{6, 11, 6, 11, 6, 11});
}

TEST_CASE("a read of what nothing wrote") {
  const auto module =
      parse(replaced(cut, "  tile.store %s, %w[%c, %h] : tensor<4x3xf32>, !tile.view<?x?x4x3xf32>\n", ""));
  expect(*module, cut_data(), {"test.mlir:", "tile.load reads 'squares'[0, 0, 0, 0]", "which nothing has written"});
}

TEST_CASE("an index out of bounds, with and without the sanitizer") {
  for (bool sanitize : {false, true}) {
    const auto reads = parse(small("  %one = arith.constant 1 : index\n  %i = arith.addi %n, %one : index\n"
                                   "  %t = tile.load %x[%i] : !tile.view<?x2xf32> -> tensor<1x2xf32>\n" +
                                   store));
    expect(*reads, small_data(), {"tile.load reads 'x' out of bounds: index 3 on axis 0 of extent 3"}, sanitize);
    const auto writes = parse(small("  %one = arith.constant 1 : index\n  %i = arith.addi %n, %one : index\n" + load +
                                    "  tile.store %t, %y[%i] : tensor<1x2xf32>, !tile.view<?x2xf32>\n"));
    expect(*writes, small_data(), {"tile.store writes 'y' out of bounds: index 3 on axis 0 of extent 3"}, sanitize);
  }
}

TEST_CASE("two programs that write one element") {
  const auto module = parse(small("  %i = arith.constant 1 : index\n" + load +
                                  "  tile.store %t, %y[%i] : tensor<1x2xf32>, !tile.view<?x2xf32>\n"));
  expect(*module, small_data(), {"tile.store writes 'y'[1, 0], which another program of the same launch writes"});
  auto slots = small_data();
  slots.indices["at"] = {1, 1, -1};
  expect(*parse(small(load + "  %s = tile.slot %at[%n] : !tile.view<?xi32>\n"
                             "  tile.store %t, %y[%s] : tensor<1x2xf32>, !tile.view<?x2xf32>\n")),
         slots, {"writes 'y'[1, 0], which another program"});
}

TEST_CASE("an element that one program reads and another writes, through overlapping tensors") {
  auto data = small_data();
  auto inputs = data.inputs();
  inputs.tensors["y"] = inputs.tensors["x"];
  const auto clash = interpret(*parse(small("  %i = arith.constant 0 : index\n"
                                            "  %t = tile.load %x[%i] : !tile.view<?x2xf32> -> tensor<1x2xf32>\n" +
                                            store)),
                               inputs, {.sanitize = true});
  REQUIRE(!clash.ok());
  CHECK(clash.problems[0].find("reads 'x'[0, 0], which another program of the same launch writes") !=
        std::string::npos);
  CHECK(interpret(*parse(small(load + store)), inputs, {.sanitize = true}).ok());
}

TEST_CASE("bindings that do not fit are told before anything runs") {
  const auto module = parse(cut);
  const auto first = [&](Data data) { return interpret(*module, data.inputs(), {}).problems.at(0); };
  auto data = cut_data();
  data.arrays.erase("x");
  CHECK(first(data) == "'x' is not bound");
  data = cut_data();
  data.arrays["x"] = Array({1, 15, 2, 4});
  CHECK(first(data) == "'x' has extent 4 on axis 3; the program takes 3");
  data = cut_data();
  data.arrays["o"] = Array({15, 2, 3});
  CHECK(first(data) == "'o' has 3 axes; the program takes 4");
  data = cut_data();
  data.indices["cu_seqlens"] = {0, 5, 4, 6, 15};
  CHECK(first(data) == "'cu_seqlens' decreases at sequence 1: from 5 to 4");
  data = cut_data();
  data.scalars.clear();
  CHECK(first(data) == "scalar 'scale' is not given");
  data = cut_data();
  data.indices["cu_seqlens"].back() = 17;
  CHECK(first(data).find("reads 'x' out of bounds: index 16 on axis 1 of extent 15") != std::string::npos);
}

TEST_CASE("an op without a meaning is named") {
  const auto module = parse(small(load + "  %u = math.cbrt %t : tensor<1x2xf32>\n" + store));
  expect(*module, small_data(), {"test.mlir:3:8: math.cbrt has no meaning in the interpreter"});
}
