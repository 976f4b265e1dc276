// The records that compiler and runtime share, and the arithmetic of overlaps.
#include "compiler/Specialisation.h"
#include "runtime/Artifact.h"
#include "runtime/Failure.h"
#include "runtime/HostIsa.h"
#include "runtime/Overlap.h"
#include <cstdlib>
#include <doctest/doctest.h>

using namespace latile;

TEST_CASE("an artifact's facts survive their text; other texts are refused") {
  Artifact a;
  a.target = "host:avx512";
  a.kernels = {{"f", {"N", "HV"}, 16, {{"q", 4}, {"workspace.T", 4}}, {"T"}, {"scale"}, 4096}};
  a.workspace = {{"T", "HV", 16, 16, 2, 16}};
  a.binary = "bytes";
  Artifact b;
  b.binary = "kept";
  REQUIRE(Artifact::from_json(a.facts_json(), b));
  CHECK(b.facts_json() == a.facts_json());
  CHECK(b.binary == "kept");
  for (const char* text : {"", "{", "[]", "{}", "{\"target\": 3, \"kernels\": [], \"workspace\": []}",
                           "{\"target\": \"host\", \"kernels\": [{}], \"workspace\": []}", "\xff\xfe"}) {
    CHECK(!Artifact::from_json(text, b));
    CHECK(b.target == "host:avx512");
  }
}

TEST_CASE("equal specialisations give equal text, whatever the order of options") {
  Specialisation s;
  s.op = "toy";
  s.options = {{"b", "1"}, {"a", "2"}};
  s.extents = {{"K", 8}};
  Specialisation t = s;
  std::swap(t.options[0], t.options[1]);
  CHECK(s.json() == t.json());
  t.extents["K"] = 16;
  CHECK(s.json() != t.json());
  s.op = "\xff";  // no UTF-8: still a text
  CHECK(!s.json().empty());
}

TEST_CASE("levels of the host") {
  HostIsa isa;
  CHECK(!HostIsa::named("sse2", isa));
  CHECK(!HostIsa::named("none", isa));
  REQUIRE(HostIsa::named("avx512", isa));
  CHECK(isa.vector_floats() == 16);
  const HostIsa native = HostIsa::native();
  MESSAGE("native level: ", native.level);
  if (native.level == "none") return;
  CHECK(host_supports(native));
  setenv("LATILE_HOST_ISA", "x86-64-v3", 1);
  CHECK(HostIsa::native().level == "x86-64-v3");
  CHECK(host_isa_complaint().empty());
  setenv("LATILE_HOST_ISA", "pentium", 1);
  CHECK(HostIsa::native().level == native.level);
  CHECK(host_isa_complaint().find("pentium") != std::string::npos);
  unsetenv("LATILE_HOST_ISA");
}

TEST_CASE("which tensors share bytes") {
  using runtime::Footprint;
  static char memory[4096];
  const auto print = [](std::size_t offset, std::initializer_list<std::pair<int, int>> axes, int element = 4) {
    Footprint p;
    p.begin = memory + offset;
    p.element = element;
    for (const auto& [extent, stride] : axes) p.add(extent, stride, element);
    return p;
  };
  const Footprint rows = print(0, {{4, 32}, {8, 1}});
  CHECK(!rows.overlaps_itself());
  CHECK(print(0, {{4, 7}, {8, 1}}).overlaps_itself());
  CHECK(print(0, {{4, 0}, {8, 1}}).overlaps_itself());
  CHECK(!print(0, {{1, 0}, {8, 1}}).overlaps_itself());
  CHECK(!print(0, {{8, 1}, {4, 8}}).overlaps_itself());  // transposed
  CHECK(disjoint(rows, print(4096 - 64, {{8, 1}})));
  CHECK(disjoint(rows, print(32, {{4, 32}, {8, 1}})));  // beside it in the same rows
  CHECK(disjoint(rows, print(96, {{4, 32}, {8, 1}})));
  CHECK(!disjoint(rows, print(28, {{4, 32}, {8, 1}})));
  CHECK(!disjoint(rows, print(100, {{4, 32}, {8, 1}})));
  CHECK(!disjoint(rows, rows));
  CHECK(!disjoint(rows, print(0, {{4, 48}, {8, 1}})));
  CHECK(disjoint(print(32, {{2, 64}, {8, 1}}), rows));  // a multiple of the other's stride
  CHECK(!print(0, {{INT32_MAX, INT32_MAX / 8}}).too_large);
  Footprint huge;
  huge.add(INT64_MAX, 2, 4);
  CHECK(huge.too_large);
}

TEST_CASE("suggestions") {
  using runtime::suggestion;
  CHECK(suggestion("gated_delta", {"gated_delta_rule", "simple_gla"}) ==
        "; there are: 'gated_delta_rule', 'simple_gla'");
  CHECK(suggestion("gated_delt_rule", {"gated_delta_rule", "simple_gla"}) == ", did you mean 'gated_delta_rule'?");
  CHECK(suggestion("x", {}).empty());
}
