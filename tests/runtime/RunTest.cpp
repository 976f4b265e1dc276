// What a plan computes: modes, ragged batches, states, slots, heads, scalars, workspace, queries.
#include "Toy.h"
#include <cmath>
#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

using namespace latile::test;
using latile::api::Context;
using latile::api::Plan;
using latile::api::PlanDescription;

namespace {

double run(Problem& problem, Context& context) {
  problem.make();
  PlanDescription description("toy", problem.mode);
  problem.describe(description);
  const Plan plan(context, description);
  auto workspace = workspace_of(plan, problem.dims);
  plan.run(problem.data, problem.dims, problem.strides, workspace);
  return problem.error();
}

}  // namespace

TEST_CASE("dense and ragged, with states, slots and tiled heads, on one thread and three") {
  const auto check = [](Problem& p) {
    for (int threads : {1, 3}) {
      Context context(threads, "");
      CHECK(run(p, context) < 1e-5);
    }
  };
  Problem p;
  SUBCASE("dense") {
    p.B = 3;
    check(p);
  }
  SUBCASE("tiled heads") {
    p.tiled = true;
    check(p);
  }
  SUBCASE("states") {
    p.B = 2, p.initial = p.final = true;
    check(p);
  }
  SUBCASE("ragged with empty sequences and rows that belong to none") {
    p.borders = {0, 0, 1, 9, 9, 19}, p.initial = p.final = true;
    check(p);
    p.wide_index = true;
    check(p);
  }
  SUBCASE("a pool of slots, in place, absent sequences among them") {
    p.B = 4, p.T = 1, p.mode = "step", p.initial = p.final = p.in_place = true, p.slots = 9;
    p.initial_index = {7, -1, 2, -1}, p.final_index = {7, 1, -1, -1};
    check(p);
    p.borders = {0, 3, 3, 7, 8}, p.B = 1, p.T = 8, p.mode = "prefill";
    check(p);
    p.wide_index = true;
    check(p);
  }
  SUBCASE("no tokens carry the state through, no sequences do nothing") {
    p.T = 0, p.initial = p.final = true;
    check(p);
    p.B = 0, p.T = 20;
    check(p);
  }
}

TEST_CASE("two kernels with a workspace between them") {
  for (int threads : {1, 4}) {
    Context context(threads, "");
    Problem p;
    p.B = 3, p.T = 100, p.options = {{"cut", "true"}};
    run(p, context);
    for (std::size_t row = 0; row < p.v.size() / 12; ++row) {
      float sum = 0;
      for (std::size_t j = 0; j < 12; ++j) sum += p.v[row * 12 + j];
      for (std::size_t j = 0; j < 12; ++j) REQUIRE(p.o[row * 12 + j] == p.v[row * 12 + j] * sum);
    }
  }
}

TEST_CASE("one plan serves every length; scalars replace the default") {
  Context context(2, "");
  Problem p;
  p.make();
  PlanDescription description("toy", "prefill");
  p.describe(description);
  const Plan plan(context, description);
  for (std::int64_t T : {1, 15, 63, 100}) {
    p.T = T;
    p.make();
    auto workspace = workspace_of(plan, p.dims);
    plan.run(p.data, p.dims, p.strides, workspace);
    CHECK(p.error() < 1e-4);
    const double scalars[] = {2 / std::sqrt(8.0), 0};
    plan.run(p.data, p.dims, p.strides, workspace, scalars);
    for (float& value : p.expected_o) value *= 2;
    CHECK(p.error() < 1e-4);
  }
}

TEST_CASE("queries") {
  Context context(2, "");
  Problem p;
  p.borders = {0, 5, 20}, p.initial = p.final = true;
  p.make();
  PlanDescription description("toy", "prefill");
  p.describe(description);
  const Plan plan(context, description);
  CHECK(plan.shape(p.at("q"), p.dims) == std::vector<std::int64_t>{1, 20, 2, 8});
  CHECK(plan.shape(p.at("o"), p.dims) == std::vector<std::int64_t>{1, 20, 4, 12});
  CHECK(plan.shape(p.at("S.final"), p.dims) == std::vector<std::int64_t>{2, 4, 8, 12});
  CHECK(plan.shape(p.at("cu_seqlens"), p.dims) == std::vector<std::int64_t>{3});
  CHECK(plan.parts(p.dims) == 2);
  std::size_t before = 0;
  for (std::int64_t n : {0, 1, 2, 100}) {
    auto dims = p.dims;
    dims[6] = n, dims[5] = 10 * n;
    CHECK(plan.workspace(dims) >= before);
    before = plan.workspace(dims);
  }
  const auto stages = nlohmann::json::parse(plan.stages());
  CHECK(stages["source"] == "compiler");
  CHECK(stages["stages"].size() >= 4);
}

TEST_CASE("operator rows hold what any option brings in") {
  Context context(1, "");
  const auto rows = context.operators();
  REQUIRE(rows.size() == 2);
  const auto row = nlohmann::json::parse(rows[0]);
  CHECK(row["name"] == "toy");
  CHECK(row["modes"].size() == 3);
  CHECK(row["tensors"].back()["name"] == "weights");
  CHECK(row["tensors"].back()["with"] == "weighted=true");
  CHECK(row["options"].back()["name"] == "squared");
  CHECK(row["scalars"][0]["default"] == "K^-1/2");
  CHECK(latile_operator_json(context.get(), 2) == nullptr);
}

TEST_CASE("q, k, v and o may be interleaved in one matrix") {
  Context context(1, "");
  Problem p;
  p.H = p.HV = 2, p.V = 8;
  p.make();
  const std::int64_t row = 4 * 2 * 8;
  std::vector<float> packed(static_cast<std::size_t>(p.T * row), 0.5f);
  PlanDescription d("toy", "prefill");
  d.dim("H", 2).dim("HV", 2).dim("K", 8).dim("V", 8).dim("B", 1).dim("T", 0, 99);
  for (const char* name : {"q", "k", "v", "o"}) d.tensor(name, LATILE_F32, {-1, row, 8, 1});
  const Plan plan(context, d);
  const std::vector<std::int64_t> dims = {2, 2, 8, 8, 1, p.T}, strides(4, p.T * row);
  auto workspace = workspace_of(plan, dims);
  std::vector<void*> data;
  for (int i = 0; i < 4; ++i) data.push_back(packed.data() + 16 * i);
  plan.run(data, dims, strides, workspace);
  CHECK(packed[48] == doctest::Approx(0.5 * 0.5 * 0.5 * 8 / std::sqrt(8.0)));
  data[3] = packed.data() + 40;
  CHECK_THROWS_WITH(plan.run(data, dims, strides, workspace), doctest::Contains("'o' is written and overlaps 'v'"));
}
