// Small programs that host code once got wrong, each for the instruction sets of this CPU.
#include "tests/host/HostRun.h"
#include "tests/interpreter/Body.h"
#include <doctest/doctest.h>
#include <functional>

using namespace latile;
using namespace latile::test;

namespace {

/// A scan that reads x [19] and y [70] and a gate g, carries S [19,70], and writes what `body` gives for o [70].
ScanText scan(std::int64_t chunk, const std::function<Value(Body&)>& body) {
  ScanText scan;
  scan.chunk = chunk;
  scan.step = chunk == 1;
  scan.reads = {{"x", "H", {19}, 1, "f32", 0}, {"y", "H", {70}, 1, "f32", 0}, {"g", "H", {}, 1, "f32", 0}};
  scan.carries = {{"S", "H", {19, 70}}};
  Body made;
  const auto o = body(made);
  scan.writes = {{"o", "H", {70}}};
  scan.body = made.text;
  scan.yields = {made.broadcast(o, chunk, 70).name, "S"};
  scan.body = made.text;
  return scan;
}

void check(const ScanText& scan, Schedule schedule = Schedule::fused, double base = 2e-5) {
  const auto text = scan.text();
  INFO(text);
  BatchShape shape{.lengths = {scan.step ? 1 : 37, 1}};
  check_host(*parse(text), schedule, shape, 1, host_levels(), base);
}

Value x(std::int64_t rows) { return {"x", rows, 19}; }
Value y(std::int64_t rows) { return {"y", rows, 70}; }
Value g(std::int64_t rows) { return {"g", rows, 1}; }

/// Cumulative gates of one factor an element of x.
Value gates(Body& b, std::int64_t rows) {
  return b.same("tile.cumsum", b.same("arith.negf", b.same("math.absf", x(rows))));
}

}  // namespace

TEST_CASE("an exclusive sum over one row is zero") {
  check(scan(1, [](Body& b) { return b.add(y(1), b.same("tile.cumsum", g(1), " exclusive")); }));
  check(scan(16, [](Body& b) {
    const auto one = b.reduce("sum", 0, b.reduce("sum", 1, x(16)));
    return b.add(y(16), b.same("tile.cumsum", one, " exclusive reverse"));
  }));
}

TEST_CASE("a row of a step stands under every row of a state") {
  auto made = scan(1, [](Body&) { return y(1); });
  Body b;
  made.yields = {"y", b.add({"S", 19, 70}, y(1)).name};
  made.body = b.text;
  check(made);
}

TEST_CASE("decayed products of one row and of one column") {
  for (const char* kind : {"lower", "strict"}) {
    check(scan(1, [&](Body& b) {
      const auto G = gates(b, 1);
      const auto A = b.decayed_scores(x(1), x(1), G, G, kind);
      return b.add(y(1), b.add(A, b.reduce("sum", 1, b.decayed_apply(g(1), x(1), G, G, kind))));
    }));
    check(scan(16, [&](Body& b) {
      const auto h = b.reduce("mean", 1, x(16)), G = b.reduce("sum", 1, gates(b, 16));
      const auto A = b.decayed_scores(h, h, G, G, kind);
      return b.add(y(16), b.add(b.decayed_apply(A, h, G, G, kind), b.decayed_apply(A, h, G, G, kind, true)));
    }));
  }
}

TEST_CASE("a transpose that a column of products reads") {
  check(scan(16, [](Body& b) {
    const auto column = b.dot(b.transpose(x(16)), b.reduce("sum", 1, y(16)));
    return b.add(y(16), b.reduce("sum", 0, column));
  }));
}

TEST_CASE("a triangular solve by a transpose") {
  check(scan(16, [](Body& b) {
    const auto A = b.mul(b.dot(x(16), b.transpose(b.add(x(16), x(16)))), b.constant(0.1));
    return b.solve(b.transpose(b.mask("strict", b.transpose(b.mask("lower", A)))), y(16));
  }));
}

TEST_CASE("the result of a loop in a product, its bounds in the scan") {
  for (Schedule schedule : {Schedule::fused, Schedule::prepare, Schedule::cut}) {
    auto made = scan(16, [](Body& b) {
      b.text += R"(    %zero = arith.constant 0 : index
    %three = arith.constant 3 : index
    %one = arith.constant 1 : index
    %p = scf.for %i = %zero to %three step %one iter_args(%q = %x) -> (tensor<16x19xf32>) {
      %t = math.tanh %q : tensor<16x19xf32>
      %u = arith.addf %t, %x : tensor<16x19xf32>
      scf.yield %u : tensor<16x19xf32>
    }
)";
      const Value p{"p", 16, 19};
      return b.dot(b.dot(p, b.transpose(p)), y(16));
    });
    check(made, schedule);
  }
}

TEST_CASE("a comparison does not cross from kernel to kernel") {
  for (Schedule schedule : {Schedule::prepare, Schedule::cut}) {
    auto made = scan(16, [](Body& b) {
      b.text += R"(    %holds = arith.cmpf ogt, %x, %x : tensor<16x19xf32>
    %n = arith.negf %x : tensor<16x19xf32>
    %chosen = arith.select %holds, %n, %x : tensor<16x19xi1>, tensor<16x19xf32>
)";
      return b.dot(Value{"chosen", 16, 19}, {"S", 19, 70});
    });
    check(made, schedule);
  }
}

TEST_CASE("decayed scores with gates that were transposed") {
  check(scan(16, [](Body& b) {
    // Nothing is known of the lanes past the columns of a transpose.
    const auto wide = b.dot(b.broadcast(b.constant(0.1), 19, 16), x(16));
    const auto steps = b.same("tile.cumsum", b.same("arith.negf", b.same("math.absf", wide)));
    const auto flat = b.transpose(b.same("arith.negf", b.transpose(b.same("arith.negf", steps))));
    const auto A = b.decayed_scores(wide, wide, flat, flat, "lower");
    return b.add(y(16), b.reduce("sum", 1, b.dot(x(16), A)));
  }));
}

TEST_CASE("decayed scores of every mask and gate whose first decays are known, exact and with bfloat16 operands") {
  for (std::int64_t rows : {16, 32, 64})
    for (const char* operand : {"", " {operand = bf16}"})
      for (const char* kind : {"lower", "strict", "strict after"}) {
        CAPTURE(rows);
        CAPTURE(kind);
        const bool narrow = *operand != 0;
        const auto made = scan(rows, [&](Body& b) {
          const auto loss = b.same("arith.negf", b.same("math.absf", y(rows)));
          const auto G = b.same("tile.cumsum", loss);
          const bool after = std::string(kind) == "strict after";
          const auto before = after ? b.same("tile.cumsum", loss, " exclusive") : G;
          const auto A = b.decayed_scores(y(rows), b.add(y(rows), b.constant(0.5)), before, G,
                                          (after ? "strict" : kind) + std::string(operand));
          const auto rest = b.exp2(b.sub(b.broadcast(b.row("last", G), rows, 70), G));
          const auto sums = b.add(b.mul(y(rows), b.exp2(before)), b.mul(y(rows), rest));
          return b.add(b.dot(A, y(rows)), sums);
        });
        check(made, Schedule::fused, narrow ? 5e-3 : 2e-5);
      }
}

TEST_CASE("one element that is repeated, then summed") {
  check(scan(1, [](Body& b) { return b.add(y(1), b.sum_rows(b.repeat(b.reduce("max", 1, x(1)), 3), 3)); }));
}

TEST_CASE("a loop between products with a wide state") {
  auto made = scan(16, [](Body& b) {
    const Value S{"S", 19, 70};
    const auto before = b.dot(b.cast(x(16), "bf16"), b.cast(S, "bf16"));
    b.text += R"(    %zero = arith.constant 0 : index
    %three = arith.constant 3 : index
    %one = arith.constant 1 : index
    %p = scf.for %i = %zero to %three step %one iter_args(%q = %x) -> (tensor<16x19xf32>) {
      %u = arith.addf %q, %x : tensor<16x19xf32>
      scf.yield %u : tensor<16x19xf32>
    }
)";
    const auto after = b.dot(b.cast({"p", 16, 19}, "bf16"), b.cast(S, "bf16"));
    return b.add(b.same("math.tanh", before), after);
  });
  check(made);
}

TEST_CASE("a coarse carry is written by one head of its group") {
  for (const char* map : {"grouped", "tiled"}) {
    auto made = scan(16, [](Body&) { return y(16); });
    made.axis = "HV", made.ratio = 2, made.map = map;
    for (auto& read : made.reads) read.head = "H";
    made.writes[0].head = "HV";
    check(made);
  }
}

TEST_CASE("a triangular system with one column on the right") {
  check(scan(16, [](Body& b) {
    const auto column = b.reduce("sum", 1, x(16));
    const auto A = b.mul(b.decay(b.same("tile.cumsum", b.same("arith.negf", b.same("math.absf", g(16)))),
                                 b.same("tile.cumsum", b.same("arith.negf", b.same("math.absf", g(16)))), "strict"),
                         b.broadcast(b.constant(0.1), 16, 16));
    return b.add(y(16), b.broadcast(b.solve(A, column), 16, 70));
  }));
}

TEST_CASE("rows times rows of another tile, narrow and wide") {
  const auto kron = [](Body& b, const Value& x, const Value& y) {
    return b.define({"", x.rows, x.cols * y.cols, "f32"},
                    "tile.kron_rows %" + x.name + ", %" + y.name + " : " + y.text(), x.text() + " -> ");
  };
  for (std::int64_t rows : {16, 1}) {
    check(scan(rows, [&](Body& b) { return kron(b, g(rows), y(rows)); }));
    check(scan(rows, [&](Body& b) {
      return b.mul(y(rows), b.broadcast(b.reduce("max", 1, kron(b, x(rows), y(rows))), rows, 70));
    }));
  }
}

TEST_CASE("levels looked up from a position, and gathered") {
  const auto levels = [](Body& b, const std::string& from) {
    return b.define({"", 16, 16, "f32"}, "tile.lookup fenwick %x" + from, x(16).text() + " -> ");
  };
  check(scan(16, [&](Body& b) { return b.dot(levels(b, ""), y(16)); }));
  for (double position : {0.0, 13.0, 100000.0})
    check(scan(16, [&](Body& b) {
      const auto from = b.constant(position);
      return b.dot(levels(b, " from %" + from.name + " : tensor<1x1xf32>"), y(16));
    }));
  check(scan(16, [&](Body& b) {
    const auto wide = b.dot(x(16), b.transpose(x(16)));
    const auto gathered =
        b.define({"", 16, 19, "f32"}, "tile.lookup fenwick %" + wide.name + " transposed", wide.text() + " -> ");
    return b.dot(gathered, Value{"S", 19, 70});
  }));
}

TEST_CASE("whole parts") {
  check(scan(16, [](Body& b) { return b.same("math.floor", b.mul(y(16), b.broadcast(b.constant(40), 16, 70))); }));
}

TEST_CASE("a state whose rows move up") {
  for (std::int64_t rows : {1, 16}) {
    auto made = scan(rows, [&](Body&) { return y(rows); });
    made.body +=
        "    %last = tile.row last %y : " + y(rows).text() +
        " -> tensor<1x70xf32>\n    %moved = tile.prev %S from %last reverse : tensor<1x70xf32>, tensor<19x70xf32>\n";
    made.yields[1] = "moved";
    check(made);
  }
}
