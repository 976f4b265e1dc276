// The adjoint of each op, and of whole bodies, against differences of the forward code.
#include "compiler/Emit.h"
#include "dialect/Adjoint.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Verifier.h"
#include "tests/interpreter/Body.h"
#include "tests/interpreter/Fixture.h"
#include <cmath>
#include <doctest/doctest.h>

using namespace latile;
using namespace latile::test;

namespace {

constexpr std::int64_t C = 6, D = 5;

/// A kernel that runs the region of a scan once: in0 … are its arguments, out0 … its results. With gradients it reads
/// up0 … and writes d0 … as well. `count` rows are valid.
struct Runner {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::vector<mlir::RankedTensorType> inputs, outputs;

  Runner(tile::ScanOp scan, std::int64_t count, bool gradients) {
    mlir::MLIRContext* ctx = scan.getContext();
    mlir::OpBuilder b(ctx);
    mlir::Location loc = scan.getLoc();
    module = mlir::ModuleOp::create(loc);
    mlir::Block& region = scan.getBody().front();
    auto results = mlir::cast<tile::YieldOp>(region.getTerminator()).getValues();
    auto f32 = [&](mlir::Type type) {
      return mlir::RankedTensorType::get(mlir::cast<mlir::RankedTensorType>(type).getShape(), b.getF32Type());
    };
    for (mlir::Type type : region.getArgumentTypes()) inputs.push_back(f32(type));
    for (mlir::Value value : results) outputs.push_back(f32(value.getType()));

    llvm::SmallVector<mlir::Type> types{tile::SequencesType::get(ctx, 0)};
    std::vector<std::string> names{"sequences"};
    auto view = [&](const std::string& stem, const std::vector<mlir::RankedTensorType>& tiles) {
      for (std::size_t i = 0; i < tiles.size(); ++i) {
        types.push_back(tile::ViewType::get(ctx, tiles[i].getShape(), b.getF32Type(), -1));
        names.push_back(stem + std::to_string(i));
      }
    };
    view("in", inputs), view("out", outputs);
    if (gradients) view("up", outputs), view("d", inputs);
    llvm::SmallVector<llvm::StringRef> refs(names.begin(), names.end());

    b.setInsertionPointToEnd(module->getBody());
    llvm::SmallVector<mlir::Type> kernel_types{b.getIndexType()};
    kernel_types.append(types);
    auto kernel = tile::KernelOp::create(b, loc, "k", b.getFunctionType(kernel_types, {}), b.getStrArrayAttr({"N"}),
                                         b.getStrArrayAttr(refs), mlir::ArrayAttr(), mlir::ArrayAttr());
    auto program = tile::ProgramOp::create(b, loc, "p", b.getFunctionType(types, {}), b.getStrArrayAttr(refs),
                                           mlir::ArrayAttr(), mlir::ArrayAttr());
    auto block = [&](mlir::Region& of, mlir::TypeRange arguments) -> mlir::Block* {
      mlir::Block& made = of.emplaceBlock();
      for (mlir::Type type : arguments) made.addArgument(type, loc);
      b.setInsertionPointToStart(&made);
      return &made;
    };
    mlir::Block* body = block(program.getBody(), types);
    tile::LaunchOp::create(b, loc, "k", mlir::ValueRange(body->getArguments()));
    body = block(kernel.getBody(), kernel_types);

    auto argument = [&](const std::string& name) -> mlir::Value {
      auto at = std::find(names.begin(), names.end(), name) - names.begin();
      return body->getArgument(static_cast<unsigned>(at) + 1);
    };
    mlir::Value zero = mlir::arith::ConstantIndexOp::create(b, loc, 0);
    mlir::Value end = mlir::arith::ConstantIndexOp::create(b, loc, count);
    mlir::Value rows = tile::RowsOp::create(b, loc, tile::RowsType::get(ctx, scan.getChunk()), zero, zero, end);
    mlir::IRMapping mapping;
    auto load = [&](const std::string& name, mlir::Type type) -> mlir::Value {
      return tile::LoadOp::create(b, loc, type, argument(name), mlir::ValueRange());
    };
    auto store = [&](mlir::Value value, const std::string& name) {
      tile::StoreOp::create(b, loc, value, argument(name), mlir::ValueRange());
    };
    for (std::size_t i = 0; i < inputs.size(); ++i)
      mapping.map(region.getArgument(static_cast<unsigned>(i)), load("in" + std::to_string(i), inputs[i]));
    llvm::SmallVector<mlir::Operation*> ops;
    for (mlir::Operation& op : region.without_terminator()) {
      mlir::Operation* copy = b.clone(op, mapping);
      ops.push_back(copy);
      copy->walk([&](mlir::Operation* inner) {
        if (auto o = mlir::dyn_cast<tile::ValidOp>(inner)) o.getRowsMutable().assign(rows);
        if (auto o = mlir::dyn_cast<tile::CountOp>(inner)) o.getRowsMutable().assign(rows);
        if (auto o = mlir::dyn_cast<tile::IndexOp>(inner)) o.getRowsMutable().assign(rows);
        if (auto o = mlir::dyn_cast<tile::NeutralOp>(inner)) o.getRowsMutable().assign(rows);
        if (auto o = mlir::dyn_cast<tile::RowOp>(inner); o && o.getPick() == tile::PickKind::LastValid)
          o.getRowsMutable().assign(rows);
        if (auto o = mlir::dyn_cast<tile::PlaceRowOp>(inner); o && o.getPick() == tile::PickKind::LastValid)
          o.getRowsMutable().assign(rows);
      });
    }
    for (std::size_t i = 0; i < outputs.size(); ++i) store(mapping.lookup(results[i]), "out" + std::to_string(i));
    if (gradients) {
      tile::Gradients reverse;
      for (std::size_t i = 0; i < outputs.size(); ++i)
        tile::accumulate(b, loc, reverse, mapping.lookup(results[i]), load("up" + std::to_string(i), outputs[i]));
      REQUIRE(mlir::succeeded(tile::build_reverse(b, ops, reverse)));
      for (std::size_t i = 0; i < inputs.size(); ++i)
        if (mlir::Value gradient = reverse.lookup(mapping.lookup(region.getArgument(static_cast<unsigned>(i)))))
          store(gradient, "d" + std::to_string(i));
    }
    REQUIRE(mlir::succeeded(mlir::verify(*module)));
  }
};

std::vector<std::int64_t> shape(mlir::RankedTensorType type) {
  return {type.getShape().begin(), type.getShape().end()};
}

struct Range {
  double low = -1, high = 1;
};

/// Gradients of all entries of all inputs of a scan's region against fourth-order differences. `ranges` by argument.
void check_region(tile::ScanOp scan, const std::vector<Range>& ranges = {}, std::int64_t count = C,
                  double tolerance = 2e-8) {
  Runner forward(scan, count, false), reverse(scan, count, true);
  std::mt19937_64 engine(5);
  Data data;
  data.rows = count;
  for (std::size_t i = 0; i < forward.inputs.size(); ++i) {
    Range range = i < ranges.size() ? ranges[i] : Range{};
    data.arrays["in" + std::to_string(i)] = Array::random(shape(forward.inputs[i]), engine, range.low, range.high);
    data.arrays["d" + std::to_string(i)] = Array(shape(forward.inputs[i]), 0);
  }
  for (std::size_t i = 0; i < forward.outputs.size(); ++i) {
    data.arrays["out" + std::to_string(i)] = Array(shape(forward.outputs[i]), 0);
    data.arrays["up" + std::to_string(i)] = Array::random(shape(forward.outputs[i]), engine);
  }
  run(*reverse.module, data);
  auto value = [&] {
    run(*forward.module, data);
    double sum = 0;
    for (std::size_t i = 0; i < forward.outputs.size(); ++i) {
      auto &out = data.arrays["out" + std::to_string(i)].data, &up = data.arrays["up" + std::to_string(i)].data;
      for (std::size_t k = 0; k < out.size(); ++k) sum += out[k] * up[k];
    }
    return sum;
  };
  constexpr double h = 2e-4;
  for (std::size_t i = 0; i < forward.inputs.size(); ++i) {
    INFO("argument " << i);
    auto &x = data.arrays["in" + std::to_string(i)].data, &d = data.arrays["d" + std::to_string(i)].data;
    double worst = 0;
    for (std::size_t k = 0; k < x.size(); ++k) {
      double at = x[k], differences[4];
      for (int step = 0; step < 4; ++step) {
        x[k] = at + h * (step < 2 ? step - 2 : step - 1);
        differences[step] = value();
      }
      x[k] = at;
      double slope = (8 * (differences[2] - differences[1]) - (differences[3] - differences[0])) / (12 * h);
      worst = std::max(worst, std::fabs(slope - d[k]) / std::max(1.0, std::fabs(slope)));
    }
    CHECK(worst <= tolerance);
  }
}

struct Case {
  const char* name;
  std::function<Value(Body&, Value x, Value y, Value a, Value c, Value r)> write;
};

/// x, y [C, D], a [C, C], c [C, 1], r [1, D].
ScanText one_op(const Case& test) {
  ScanText scan;
  scan.chunk = C;
  scan.axis = "";
  scan.reads = {{"x", "", {D}}, {"y", "", {D}}, {"a", "", {C}}, {"c", "", {1}}, {"r", "", {D}, 0}};
  Body b;
  Value out = test.write(b, {"x", C, D}, {"y", C, D}, {"a", C, C}, {"c", C, 1}, {"r", 1, D});
  // Outputs have C rows; what the op gives is brought there by products with fixed tiles.
  if (out.rows != C) out = b.dot(b.broadcast(b.constant(0.7), C, out.rows), out);
  scan.writes = {{"o", "", {out.cols}}};
  scan.yields = {out.name};
  scan.body = b.text;
  return scan;
}

std::string six(const std::string& type, int n) {
  std::string text;
  for (int i = 0; i < n; ++i) text += (i ? ", " : "") + type;
  return text;
}

const std::string CD = Value{"", C, D}.text(), CC = Value{"", C, C}.text(), RD = Value{"", 1, D}.text();

}  // namespace

TEST_CASE("adjoints of single ops") {
  using V = const Value&;
  auto exp2_gates = [](Body& b, V y) {
    return b.same("tile.cumsum", b.sub(b.same("tile.sigmoid", y), b.constant(1.2)));
  };
  const Case cases[] = {
      {"add, broadcast", [](Body& b, V x, V, V, V c, V r) { return b.add(b.add(x, c), r); }},
      {"sub", [](Body& b, V x, V y, V, V, V) { return b.sub(x, y); }},
      {"mul", [](Body& b, V x, V y, V, V, V) { return b.mul(x, y); }},
      {"div", [](Body& b, V x, V y, V, V, V) { return b.two("arith.divf", x, b.add(b.mul(y, y), b.constant(1))); }},
      {"neg", [](Body& b, V x, V, V, V, V) { return b.same("arith.negf", b.mul(x, x)); }},
      {"max", [](Body& b, V x, V y, V, V, V) { return b.two("arith.maximumf", x, y); }},
      {"min", [](Body& b, V x, V y, V, V, V) { return b.two("arith.minimumf", x, y); }},
      {"exp", [](Body& b, V x, V, V, V, V) { return b.same("math.exp", x); }},
      {"exp2", [](Body& b, V x, V, V, V, V) { return b.exp2(x); }},
      {"log", [](Body& b, V x, V, V, V, V) { return b.same("math.log", b.add(x, b.constant(3))); }},
      {"log2", [](Body& b, V x, V, V, V, V) { return b.same("math.log2", b.add(x, b.constant(3))); }},
      {"sqrt", [](Body& b, V x, V, V, V, V) { return b.same("math.sqrt", b.add(x, b.constant(3))); }},
      {"rsqrt", [](Body& b, V x, V, V, V, V) { return b.same("math.rsqrt", b.add(x, b.constant(3))); }},
      {"tanh", [](Body& b, V x, V, V, V, V) { return b.same("math.tanh", x); }},
      {"sigmoid", [](Body& b, V x, V, V, V, V) { return b.same("tile.sigmoid", x); }},
      {"softplus", [](Body& b, V x, V, V, V, V) { return b.same("tile.softplus", x); }},
      {"transpose, dot", [](Body& b, V x, V y, V, V, V) { return b.dot(x, b.transpose(y)); }},
      {"row last", [](Body& b, V x, V, V, V, V) { return b.mul(x, b.row("last", x)); }},
      {"row at", [](Body& b, V x, V, V, V, V) { return b.mul(x, b.row("at", x, 2)); }},
      {"row last_valid", [](Body& b, V x, V, V, V, V) { return b.mul(x, b.row("last_valid", x)); }},
      {"place_row", [](Body& b, V x, V, V, V, V r) {
         return b.mul(x, b.define({"", C, D}, "tile.place_row at %" + r.name + " {at = 2 : i64}", RD + " -> "));
       }},
      {"prev", [](Body& b, V x, V y, V, V, V r) {
         return b.mul(y, b.define({"", C, D}, "tile.prev %" + x.name + " from %" + r.name, RD + ", "));
       }},
      {"prev reverse", [](Body& b, V x, V y, V, V, V r) {
         return b.mul(y, b.define({"", C, D}, "tile.prev %" + x.name + " from %" + r.name + " reverse", RD + ", "));
       }},
      {"repeat_rows", [](Body& b, V x, V, V, V, V) { return b.mul(b.repeat(x, 2), b.repeat(x, 2)); }},
      {"sum_rows", [](Body& b, V x, V, V, V, V) {
         return b.define({"", C / 2, D}, "tile.sum_rows %" + b.mul(x, x).name + " by 2", CD + " -> ");
       }},
      {"mask", [](Body& b, V, V, V a, V, V) { return b.mask("strict", b.mul(a, a)); }},
      {"diagonal", [](Body& b, V, V, V a, V c, V) { return b.mul(a, b.diagonal(c)); }},
      {"neutral", [](Body& b, V x, V, V, V, V) { return b.neutral(b.mul(x, x), 2); }},
      {"reduce sum", [](Body& b, V x, V y, V, V, V) { return b.mul(y, b.reduce("sum", 1, x)); }},
      {"reduce mean", [](Body& b, V x, V y, V, V, V) { return b.mul(y, b.reduce("mean", 0, x)); }},
      {"reduce max", [](Body& b, V x, V y, V, V, V) { return b.mul(y, b.reduce("max", 1, x)); }},
      {"lookup", [](Body& b, V x, V, V a, V, V) {
         return b.mul(a, b.define({"", C, C}, "tile.lookup fenwick %" + x.name, CD + " -> "));
       }},
      {"lookup transposed", [](Body& b, V x, V, V a, V, V) {
         return b.mul(x, b.define({"", C, D}, "tile.lookup fenwick %" + a.name + " transposed", CC + " -> "));
       }},
      {"kron_rows", [](Body& b, V x, V, V, V, V) {
         return b.define({"", C, D * D}, "tile.kron_rows %" + x.name, CD + " -> ");
       }},
      {"kron_rows of two", [](Body& b, V x, V, V a, V, V) {
         return b.define({"", C, D * C}, "tile.kron_rows %" + x.name + ", %" + a.name + " : " + CC, CD + " -> ");
       }},
      {"lookup from a position", [](Body& b, V x, V, V a, V, V) {
         Value from = b.constant(3);
         return b.mul(a, b.define({"", C, C}, "tile.lookup fenwick %" + x.name + " from %" + from.name +
                                                  " : tensor<1x1xf32>", CD + " -> "));
       }},
      {"floor", [](Body& b, V x, V y, V, V, V) { 
         return b.mul(x, b.same("math.floor", b.add(b.mul(y, b.constant(0.01)), b.constant(2.5))));
       }},
      {"contract_kron", [](Body& b, V x, V y, V, V, V) {
         Value m = b.define({"", C, D * D}, "tile.kron_rows %" + x.name, CD + " -> ");
         return b.define({"", C, D}, "tile.contract_kron %" + m.name + ", %" + y.name, m.text() + ", ");
       }},
      {"cumsum", [](Body& b, V x, V y, V, V, V) { return b.mul(y, b.same("tile.cumsum", x)); }},
      {"cumsum exclusive reverse", [](Body& b, V x, V y, V, V, V) {
         return b.mul(y, b.same("tile.cumsum", x, " exclusive reverse"));
       }},
      {"logcumsumexp", [](Body& b, V x, V, V, V, V r) {
         return b.define({"", C, D}, "tile.logcumsumexp %" + x.name + " from %" + r.name, RD + ", ");
       }},
      {"affine_scan", [](Body& b, V x, V y, V, V, V r) {
         return b.define({"", C, D}, "tile.affine_scan %" + y.name + ", %" + x.name + " from %" + r.name, RD + ", ");
       }},
      {"affine_scan reverse", [](Body& b, V x, V y, V, V, V r) {
         return b.define({"", C, D}, "tile.affine_scan %" + y.name + ", %" + x.name + " from %" + r.name + " reverse",
                         RD + ", ");
       }},
      {"decay", [](Body& b, V, V, V a, V c, V) { return b.mul(a, b.decay(c, b.mul(c, c), "lower")); }},
      {"decayed_scores", [&](Body& b, V x, V y, V, V, V) {
         Value g = exp2_gates(b, y), e = b.sub(g, b.mul(x, x));
         return b.define({"", C, C}, "tile.decayed_scores %" + x.name + ", %" + y.name + ", %" + e.name + ", %" + g.name + " lower",
                         six(CD, 4) + " -> ");
       }},
      {"decayed_apply", [&](Body& b, V x, V y, V a, V, V) {
         Value g = exp2_gates(b, y), e = b.sub(g, b.mul(x, x));
         return b.define({"", C, D}, "tile.decayed_apply %" + a.name + ", %" + x.name + ", %" + e.name + ", %" + g.name + " strict",
                         CC + ", " + six(CD, 3) + " -> ");
       }},
      {"decayed_apply transposed", [&](Body& b, V x, V y, V a, V, V) {
         Value g = exp2_gates(b, y), e = b.sub(g, b.mul(x, x));
         return b.define({"", C, D},
                         "tile.decayed_apply %" + a.name + ", %" + x.name + ", %" + e.name + ", %" + g.name + " lower transposed",
                         CC + ", " + six(CD, 3) + " -> ");
       }},
      {"inverse_unit_lower", [](Body& b, V, V, V a, V, V) { return b.same("tile.inverse_unit_lower", a); }},
      {"solve_unit_lower", [](Body& b, V x, V, V a, V, V) { return b.solve(a, x); }},
      {"custom", [](Body& b, V x, V y, V, V, V) {
         Value out = b.define({"", C, D}, "tile.custom %" + x.name, CD + " -> ");
         b.text.pop_back();
         b.text += " {\n^bb0(%p: " + CD + "):\n %e = math.exp %p : " + CD + "\n tile.yield %e : " + CD +
                   "\n} adjoint {\n^bb0(%p: " + CD + ", %e: " + CD + ", %g: " + CD + "):\n %d = arith.mulf %e, %g : " + CD +
                   "\n tile.yield %d : " + CD + "\n}\n";
         return b.mul(out, y);
       }},
  };
  for (const Case& test : cases) {
    INFO(std::string(test.name));
    auto module = parse(one_op(test).text());
    tile::ScanOp scan;
    module->walk([&](tile::ScanOp found) { scan = found; });
    check_region(scan, {}, C - 1);
  }
}

TEST_CASE("the adjoint of a solve reaches what its map captures") {
  // map(p) = 2 p + p (xᵀ x + c): symmetric and well conditioned; D + 2 steps are exact.
  Case solve{"", [](Body& b, const Value& x, const Value& y, const Value&, const Value&, const Value&) {
               Value gram = b.dot(b.transpose(x), x);
               Value out = b.define({"", C, D}, "tile.solve %" + y.name + " steps 7", "");
               b.text.pop_back();
               const std::string DD = gram.text();
               b.text += " {\n^bb0(%p: " + CD + "):\n %m = tile.dot %p, %" + gram.name + " precise : " + CD + ", " +
                         DD + " -> " + CD + "\n %s = arith.addf %p, %m : " + CD + "\n tile.yield %s : " + CD + "\n}\n";
               return out;
             }};
  auto module = parse(one_op(solve).text());
  tile::ScanOp scan;
  module->walk([&](tile::ScanOp found) { scan = found; });
  check_region(scan, {}, C, 1e-6);
}

TEST_CASE("the operators' chunk bodies") {
  for (const char* op : {"gated_delta_rule", "simple_gla", "linear_attn"}) {
    INFO(std::string(op));
    Specialisation s;
    s.op = op;
    s.chunk = C;
    s.extents = {{"K", 4}, {"V", 3}};
    std::vector<std::string> names{"q", "k", "v", "o", "S.initial", "S.final"};
    if (s.op != "linear_attn") names.push_back("g");
    if (s.op == "linear_attn") names.push_back("z.initial");
    if (s.op == "gated_delta_rule") {
      names.insert(names.end(), {"beta", "A_log", "dt_bias"});
      s.options = {{"qk_l2norm", "true"}, {"gate_in_kernel", "true"}, {"beta", "sigmoid"}};
    }
    for (auto& name : names) s.tensors.push_back({name, ElementType::f32, -1});
    std::vector<Diagnostic> mistakes;
    auto module = emit_program(*find_operator(op), s, context(), mistakes);
    REQUIRE(module);
    tile::ScanOp scan;
    module->walk([&](tile::ScanOp found) { scan = found; });
    // The normaliser divides by q z: both are kept away from 0.
    std::vector<Range> ranges(6, s.op == "linear_attn" ? Range{0.2, 1} : Range{});
    for (std::int64_t count : {C, C - 2}) check_region(scan, ranges, count, 1e-7);
  }
}
