// Random programs on emulated GPUs: every schedule against the interpreter.
#include "compiler/Compile.h"
#include "compiler/Emit.h"
#include "tests/host/HostRun.h"
#include "tests/random/Programs.h"
#include <doctest/doctest.h>

using namespace latile;
using namespace latile::test;

namespace {

/// On NVIDIA every second program, on AMD's waves of 64 and of 32 the others in turn.
template <class Make> void each_program(bool step, Schedule schedule, Make make) {
  test::each_program(step, make, [&](mlir::ModuleOp module, const BatchShape& shape, std::uint64_t seed) {
    constexpr const char* targets[] = {"sm_80", "gfx90a", "sm_80", "gfx1201"};
    (void)check_emulated(module, schedule, shape, seed, targets[seed / 2 % 4]);
  });
}

/// The same on a GPU that is short of something.
template <class Make> void each_with_little(Shortage shortage, Schedule schedule, Make make) {
  int kernels = 0;
  test::each_program(false, make, [&](mlir::ModuleOp module, const BatchShape& shape, std::uint64_t seed) {
    kernels += check_emulated(module, schedule, shape, seed, "sm_80", 2e-5, shortage);
  });
  MESSAGE(kernels << " kernels that put tiles elsewhere");
  CHECK(kernels >= 3);
}

/// An operator at the sizes that models have, for sequences with whole and partial chunks of 64 rows.
int check_operator(const std::string& op, std::int64_t K, std::int64_t V, ElementType io, bool ragged,
                   const std::vector<std::string>& tensors, Shortage shortage = {},
                   const std::string& target = "sm_80") {
  Specialisation s;
  s.op = op;
  s.chunk = 64;
  s.extents = {{"K", K}, {"V", V}};
  s.head_ratio = 2;
  s.io = io;
  for (const std::string& name : tensors) {
    const bool scalar = name == "beta" || (name == "g" && op != "kda" && op != "gla");
    const bool full = scalar || name == "g" || name.starts_with("S.");
    s.tensors.push_back({name, full ? ElementType::f32 : io, scalar ? 2 : 3});
  }
  if (ragged) s.tensors.push_back({"cu_seqlens", ElementType::i32, 0});
  std::vector<Diagnostic> mistakes;
  const auto module = emit_program(*find_operator(op), s, context(), mistakes);
  for (const Diagnostic& mistake : mistakes) MESSAGE(mistake.message());
  REQUIRE(module);
  INFO(op);
  CAPTURE(K);
  CAPTURE(V);
  BatchShape shape{.lengths = {100, 1}, .coarse_heads = 1};
  if (ragged) shape.lengths = {0, 64, 1, 70};
  return check_emulated(*module, Schedule::prepare, shape, 1, target, 2e-5, shortage);
}

const std::vector<std::string> delta{"q", "k", "v", "g", "beta", "o", "S.initial", "S.final"};
const std::vector<std::string> gated{"q", "k", "v", "g", "o", "S.initial", "S.final"};

}  // namespace

TEST_CASE("operators with chunks of 64 rows, bfloat16") {
  CHECK(check_operator("gated_delta_rule", 128, 128, ElementType::bf16, false, delta) == 0);
  CHECK(check_operator("kda", 64, 128, ElementType::bf16, true, delta) == 0);
  CHECK(check_operator("gla", 64, 64, ElementType::bf16, true, gated) == 0);
  CHECK(check_operator("simple_gla", 96, 80, ElementType::bf16, false, gated) == 0);
}
TEST_CASE("operators with chunks of 64 rows, float32") {
  CHECK(check_operator("gated_delta_rule", 64, 64, ElementType::f32, true, delta) == 0);
  CHECK(check_operator("gla", 40, 64, ElementType::f32, false, gated) == 0);
}

TEST_CASE("operators with chunks of 64 rows, AMD") {
  CHECK(check_operator("gated_delta_rule", 64, 64, ElementType::bf16, true, delta, {}, "gfx1201") == 0);
  CHECK(check_operator("gla", 64, 64, ElementType::f16, false, gated, {}, "gfx90a") == 0);
}

TEST_CASE("random programs in float32, chunks and tokens") {
  each_program(false, Schedule::fused, [](auto seed) { return random_wide_scan(seed, false, false); });
}
TEST_CASE("random programs with bfloat16 and float16, chunks and tokens") {
  each_program(false, Schedule::fused, [](auto seed) { return random_wide_scan(seed, false, true); });
}
TEST_CASE("random programs, steps") {
  each_program(true, Schedule::fused, [](auto seed) { return random_wide_scan(seed, true, false); });
}
TEST_CASE("random programs, small tiles") {
  each_program(false, Schedule::fused, [](auto seed) { return random_scan(seed, false); });
}
TEST_CASE("random programs, prepare and serial kernels") {
  each_program(false, Schedule::prepare, [](auto seed) { return random_wide_scan(seed, false, false); });
}
TEST_CASE("random programs, prepare, serial and finish kernels") {
  each_program(false, Schedule::cut, [](auto seed) { return random_wide_scan(seed, false, false); });
}

// Copies of operands, of both types and both ways round, of vectors and of what primitives work on.
TEST_CASE("operators whose copies lie in arenas") {
  CHECK(check_operator("gated_delta_rule", 64, 64, ElementType::bf16, false, delta, {20 << 10, 0}) == 2);
  CHECK(check_operator("kda", 32, 48, ElementType::f32, true, delta, {24 << 10, 0}) == 2);
  CHECK(check_operator("gla", 40, 64, ElementType::bf16, true, gated, {27 << 9, 0}) == 2);
}
TEST_CASE("random programs in arenas") {
  constexpr Shortage little{3 << 10, 0};
  each_with_little(little, Schedule::fused, [](auto seed) { return random_wide_scan(seed, false, true); });
  each_with_little(little, Schedule::prepare, [](auto seed) { return random_wide_scan(seed, false, false); });
}

// Registers, the 16 bits that they were cast from, and what scores read are put aside, vectors and carries among them.
TEST_CASE("operators whose tiles wait in shared memory") {
  CHECK(check_operator("gated_delta_rule", 64, 64, ElementType::bf16, false, delta, {0, 48}) == 2);
  CHECK(check_operator("kda", 32, 48, ElementType::f32, true, delta, {0, 48}) >= 1);
  CHECK(check_operator("gla", 40, 64, ElementType::bf16, true, gated, {0, 48}) == 2);
}
TEST_CASE("random programs whose tiles wait in shared memory") {
  constexpr Shortage little{0, 24};
  each_with_little(little, Schedule::fused, [](auto seed) { return random_wide_scan(seed, false, true); });
  each_with_little(little, Schedule::prepare, [](auto seed) { return random_wide_scan(seed, false, false); });
}

TEST_CASE("chunks have as many rows as registers hold") {
  auto chunk_of = [](const std::string& op, std::map<std::string, std::int64_t> extents,
                     const std::vector<std::pair<std::string, int>>& tensors) {
    Specialisation s;
    s.op = op;
    s.device = "cuda:sm_90";
    s.extents = std::move(extents);
    s.io = ElementType::bf16;
    for (const auto& [name, unit] : tensors)
      s.tensors.push_back({name, name == "g" || name.find('.') != std::string::npos ? ElementType::f32 : s.io, unit});
    Artifact artifact, again;
    CompileFailure failure;
    REQUIRE_MESSAGE(compile(*find_operator(op), s, artifact, failure), failure.text);
    CHECK(artifact.short_of_registers <= 0);
    REQUIRE(compile(*find_operator(op), s, again, failure));
    CHECK(artifact.binary == again.binary);
    return artifact.chunk;
  };
  CHECK(chunk_of("gla", {{"K", 128}, {"V", 128}},
                 {{"q", 3}, {"k", 3}, {"v", 3}, {"g", 3}, {"o", 3}, {"S.initial", 3}, {"S.final", 3}}) == 64);
  CHECK(chunk_of("gsa", {{"K", 128}, {"V", 128}, {"M", 128}},
                 {{"q", 3},
                  {"k", 3},
                  {"v", 3},
                  {"s", 3},
                  {"g", 3},
                  {"o", 3},
                  {"Hk.initial", 3},
                  {"Hk.final", 3},
                  {"Hv.initial", 3},
                  {"Hv.final", 3}}) == 32);
}
