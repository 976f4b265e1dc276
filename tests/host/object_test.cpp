// What the emitted code of the operators is made of, for each instruction set, whatever this CPU is.
#include "compiler/Compile.h"
#include "dsl/Describe.h"
#include <algorithm>
#include <doctest/doctest.h>
#include <sstream>

using namespace latile;

namespace {

Specialisation specialisation(const OperatorRow& row, const char* level, ElementType io, Mode mode) {
  Specialisation s;
  s.op = row.name;
  s.mode = mode;
  s.io = io;
  REQUIRE(HostIsa::named(level, s.isa));
  std::vector<Diagnostic> mistakes;
  const OperatorInfo info = describe(row, {}, mistakes);
  for (auto& d : info.dims)
    if (!d.head) s.extents[d.name] = d.most ? std::min<std::int64_t>(d.most, 128) : 128;
  for (auto& t : info.tensors) {
    const bool carry = t.kind == TensorInfo::Kind::carry;
    const int rank = static_cast<int>(t.dims.size()) + (carry ? 1 : t.kind == TensorInfo::Kind::param ? 0 : 2);
    const int unit = t.dims.size() > (t.head.empty() ? 0u : 1u) ? rank - 1 : -1;
    const ElementType type = t.type == Type::io ? io : ElementType::f32;
    for (const char* part : {".initial", ".final"})
      if (carry) s.tensors.push_back({t.name + part, type, unit});
    if (!carry) s.tensors.push_back({t.name, type, unit});
  }
  return s;
}

std::string stage(const OperatorRow& row, const Specialisation& s, Stage stage) {
  std::string text;
  CompileFailure failure;
  REQUIRE_MESSAGE(emit_stage(row, s, stage, text, failure), failure.text);
  return text;
}

/// Bytes of a head's states in float32; an inner extent may be a product, "K*L".
std::size_t state_bytes(const OperatorInfo& info, const Specialisation& s) {
  std::size_t all = 0;
  for (const TensorInfo& t : info.tensors) {
    if (t.kind != TensorInfo::Kind::carry) continue;
    std::size_t bytes = 4;
    for (const std::string& dim : t.dims) {
      if (dim == t.head) continue;
      std::stringstream factors(dim);
      for (std::string name; std::getline(factors, name, '*');) {
        const auto found = s.extents.find(name);
        bytes *= static_cast<std::size_t>(found == s.extents.end() ? std::stoll(name) : found->second);
      }
    }
    all += bytes;
  }
  return all;
}

std::size_t count(const std::string& text, const std::string& word) {
  std::size_t n = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++n;
  return n;
}

}  // namespace

TEST_CASE("no kernel calls anything, and each instruction set gets its own products") {
  for (const char* level : {"x86-64-v3", "avx512", "avx512bf16", "amx"})
    for (const OperatorRow& row : operators())
      for (ElementType io : {ElementType::f32, ElementType::bf16}) {
        Specialisation s = specialisation(row, level, io, Mode::prefill);
        std::string text = stage(row, s, Stage::assembly);
        CAPTURE(level);
        CAPTURE(row.name);
        CAPTURE(name(io));
        CHECK(count(text, "\tcall") == 0);
        const std::string tile = stage(row, s, Stage::tile);
        if (count(tile, "tile.dot") == 0) continue;  // element-wise
        const bool narrow = io == ElementType::bf16 && count(tile, "tile.dot") > count(tile, " precise : tensor<");
        const bool wide_registers = std::string(level) != "x86-64-v3";
        CHECK((count(text, "%zmm") > 0) == wide_registers);
        CHECK((count(text, "tdpbf16ps") > 0) == (narrow && std::string(level) == "amx"));
        CHECK((count(text, "vdpbf16ps") > 0) == (narrow && std::string(level) == "avx512bf16"));
        if (!narrow) CHECK(count(text, "vfmadd") > 16);
      }
}

TEST_CASE("a kernel's object is small and links alone") {
  for (const OperatorRow& row : operators())
    for (Mode mode : {Mode::prefill, Mode::step}) {
      std::vector<Diagnostic> mistakes;
      if (mode == Mode::step && !describe(row, {}, mistakes).no_step.empty()) continue;
      CAPTURE(row.name);
      Artifact artifact;
      CompileFailure failure;
      const Specialisation s = specialisation(row, "avx512", ElementType::f32, mode);
      const OperatorInfo info = describe(row, {}, mistakes);
      REQUIRE_MESSAGE(compile(row, s, artifact, failure), failure.text);
      CHECK(artifact.binary.size() < 32 * 1024);
      REQUIRE(!artifact.kernels.empty());
      // A scan is one kernel; an operator of kernels has those that it names.
      if (mode == Mode::step || info.has_chunk) CHECK(artifact.kernels.size() == 1);
      for (const KernelFacts& kernel : artifact.kernels) {
        CHECK(kernel.arena_bytes % 4096 == 0);
        CHECK(kernel.arena_bytes < std::max<std::size_t>(1024 * 1024, 2 * state_bytes(info, s)));
      }
    }
}

TEST_CASE("equal specialisations give equal bytes") {
  const OperatorRow* row = find_operator("gated_delta_rule");
  Specialisation s = specialisation(*row, "avx512", ElementType::bf16, Mode::prefill);
  Artifact a, c;
  CompileFailure failure;
  REQUIRE(compile(*row, s, a, failure));
  REQUIRE(compile(*row, s, c, failure));
  CHECK(a.binary == c.binary);
  CHECK(a.facts_json() == c.facts_json());
}
