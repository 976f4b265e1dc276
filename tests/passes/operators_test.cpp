// Every pass on the built-in operators, in every mode and schedule, against the recorded scan.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include "compiler/Emit.h"
#include "tests/passes/ScanData.h"
#include <bit>
#include <cmath>
#include <doctest/doctest.h>

using namespace latile;
using namespace latile::test;

namespace {

using Options = std::vector<std::pair<std::string, std::string>>;

Specialisation specialise(const std::string& op, Mode mode, std::vector<std::string> tensors, Options options = {}) {
  Specialisation s;
  s.op = op;
  s.mode = mode;
  s.chunk = 16;
  s.extents = {{"K", 8}, {"V", 12}};
  s.head_ratio = 2;
  s.options = std::move(options);
  for (auto& name : tensors) {
    bool index = name.ends_with("_index") || name == "cu_seqlens";
    s.tensors.push_back({name, index ? ElementType::i32 : ElementType::f32, -1});
  }
  return s;
}

mlir::OwningOpRef<mlir::ModuleOp> emit(const Specialisation& s) {
  std::vector<Diagnostic> mistakes;
  auto module = emit_program(*find_operator(s.op), s, context(), mistakes);
  for (auto& mistake : mistakes) MESSAGE(mistake.message());
  REQUIRE(module);
  return module;
}

void check(const Specialisation& s, const BatchShape& shape) {
  auto module = emit(s);
  INFO(s.op);
  INFO(static_cast<int>(s.mode));
  for (Schedule schedule : {Schedule::fused, Schedule::prepare, Schedule::cut}) {
    INFO(static_cast<int>(schedule));
    for (std::uint64_t seed : {1, 2}) check_pipeline(*module, schedule, shape, seed);
  }
}

const std::vector<std::string> delta{"q", "k", "v", "g", "beta", "o", "S.initial", "S.final"};
const std::vector<std::string> gla{"q", "k", "v", "g", "o", "S.initial", "S.final"};
const std::vector<std::string> linear{"q", "k", "v", "o", "S.initial", "S.final", "z.initial", "z.final"};

std::vector<std::string> with(std::vector<std::string> names, std::initializer_list<const char*> more) {
  names.insert(names.end(), more.begin(), more.end());
  return names;
}

}  // namespace

TEST_CASE("dense batches, chunks and tokens") {
  for (Mode mode : {Mode::prefill, Mode::recurrent}) {
    check(specialise("gated_delta_rule", mode, delta), {});
    check(specialise("gated_delta_rule", mode, with(delta, {"A_log", "dt_bias"}),
                     {{"qk_l2norm", "true"}, {"gate_in_kernel", "true"}, {"beta", "twice_sigmoid"}}),
          {});
    check(specialise("simple_gla", mode, with(gla, {"g_gamma"})), {});
    check(specialise("linear_attn", mode, linear), {});
  }
}

TEST_CASE("ragged batches with empty sequences") {
  BatchShape ragged{.lengths = {0, 5, 40, 0, 16, 1}};
  for (Mode mode : {Mode::prefill, Mode::recurrent}) {
    check(specialise("gated_delta_rule", mode, with(delta, {"cu_seqlens"})), ragged);
    check(specialise("linear_attn", mode, with(linear, {"cu_seqlens"})), ragged);
  }
}

TEST_CASE("a step, with slots and without") {
  BatchShape one{.lengths = {1, 1, 1}};
  check(specialise("gated_delta_rule", Mode::step, delta), one);
  auto slots = with(delta, {"S.initial_index", "S.final_index"});
  check(specialise("gated_delta_rule", Mode::step, slots), one);
  check(specialise("simple_gla", Mode::step, with(gla, {"S.initial_index", "S.final_index"})), one);
}

TEST_CASE("an absent sequence of a step: zero output, nothing else touched") {
  BatchShape one{.lengths = {1, 1, 1}, .absent = true};
  auto module = emit(specialise("gated_delta_rule", Mode::step, with(delta, {"S.initial_index", "S.final_index"})));
  Data data = data_for(*module, one, 3);
  Array initial = data.arrays["S.initial"];
  REQUIRE(mlir::succeeded(lower_to_kernels(*module)));
  run(*module, data, {.float64 = true, .sanitize = true});
  auto& o = data.arrays["o"];
  for (std::size_t i = 0; i < o.data.size() / 3; ++i) CHECK(o.data[i] == 0);
  for (std::size_t i = o.data.size() / 3; i < o.data.size(); ++i) CHECK(o.data[i] != 777);
  CHECK(largest_difference(data.arrays["S.initial"], initial) == 0);
  std::int64_t untouched = 0;
  for (double x : data.arrays["S.final"].data) untouched += x == 777;
  CHECK(untouched == 3 * 4 * 8 * 12);
}

TEST_CASE("slots of a prefill: a negative one starts from zero and is not written") {
  BatchShape ragged{.lengths = {20, 3, 0, 17}, .absent = true};
  auto tensors = with(delta, {"S.initial_index", "S.final_index", "cu_seqlens"});
  check(specialise("gated_delta_rule", Mode::prefill, tensors), ragged);
}

TEST_CASE("one head map or the other") {
  for (bool tiled : {false, true}) {
    auto s = specialise("gated_delta_rule", Mode::prefill, delta);
    s.head_ratio = 3;
    s.tiled_heads = tiled;
    check(s, {});
  }
}

TEST_CASE("rewrites of bfloat16 bodies round no worse than the recorded body") {
  auto s = specialise("gated_delta_rule", Mode::prefill, delta, {{"qk_l2norm", "true"}, {"beta", "sigmoid"}});
  s.io = ElementType::bf16;
  s.chunk = 32;
  s.extents = {{"K", 32}, {"V", 24}};
  for (auto& tensor : s.tensors)
    if (tensor.name.size() == 1 && tensor.name != "g") tensor.type = ElementType::bf16;
  auto recorded = emit(s);
  Data exact = data_for(*recorded, {.lengths = {100, 100}}, 7);
  for (const char* name : {"q", "k", "v"})
    for (double& x : exact.arrays[name].data) {
      // Both runs see the same bfloat16 numbers.
      auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(x));
      x = std::bit_cast<float>(bits & 0xffff0000u);
    }
  auto error = [&](mlir::ModuleOp module) {
    Data rounded = exact;
    run(module, rounded, {.float64 = false});
    double difference = 0, size = 0;
    for (std::size_t i = 0; i < exact.arrays["o"].data.size(); ++i) {
      double x = exact.arrays["o"].data[i], d = rounded.arrays["o"].data[i] - x;
      difference += d * d, size += x * x;
    }
    return std::sqrt(difference / size);
  };
  Data before = exact;
  run(*recorded, before);
  exact.arrays["o"] = before.arrays["o"];
  const double budget = error(*recorded);
  CHECK(budget > 1e-4);
  for (Schedule schedule : {Schedule::fused, Schedule::prepare, Schedule::cut}) {
    mlir::OwningOpRef<mlir::ModuleOp> lowered(recorded->clone());
    REQUIRE(mlir::succeeded(lower_to_kernels(*lowered, {.schedule = schedule})));
    CHECK(error(*lowered) <= 1.5 * budget);
    MESSAGE("schedule " << static_cast<int>(schedule) << ": " << error(*lowered) << " of " << budget);
  }
}
