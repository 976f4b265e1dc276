#include "tools/latile/Problem.h"
#include <cmath>
#include <doctest/doctest.h>
#include <set>

using namespace latile;

namespace {

const OperatorRow& gated() { return *find_operator("gated_delta_rule"); }

Case small() {
  Case c;
  c.extents = {8, 24};
  c.heads = 2;
  c.ratio = 2;
  return c;
}

double product(const HostTensor& x, std::int64_t a, std::int64_t b, std::int64_t width) {
  double sum = 0;
  for (std::int64_t i = 0; i < width; ++i) sum += x.get(a * width + i) * x.get(b * width + i);
  return sum;
}

}  // namespace

TEST_CASE("shapes follow the declaration") {
  const OperatorInfo info = describe(gated(), {});
  const Problem p = make_problem(info, small(), {}, {5, 5, 5}, ElementType::bf16, 1, false);
  CHECK(p.find("q")->tensor.shape == std::vector<std::int64_t>{3, 5, 2, 8});
  CHECK(p.find("v")->tensor.shape == std::vector<std::int64_t>{3, 5, 4, 24});
  CHECK(p.find("g")->tensor.type == ElementType::f32);
  CHECK(p.find("q")->tensor.type == ElementType::bf16);
  CHECK(p.find("S.initial")->tensor.shape == std::vector<std::int64_t>{3, 4, 8, 24});
  CHECK(std::isnan(p.find("o")->tensor.get(0)));
  CHECK(std::isnan(p.find("S.final")->tensor.get(0)));
  CHECK(p.fine_heads == 4);
  CHECK(p.scalars == std::vector<double>{1 / std::sqrt(8.0)});
}

TEST_CASE("a ragged batch is one row of tokens with borders") {
  Case c = small();
  c.ragged_bits = 64;
  const Problem p = make_problem(describe(gated(), {}), c, {}, {0, 3, 1}, ElementType::f32, 1, false);
  const HostTensor& borders = p.find("cu_seqlens")->tensor;
  CHECK(borders.type == ElementType::i64);
  CHECK(borders.get(3) == 4);
  CHECK(borders.get(1) == 0);
  CHECK(p.find("q")->tensor.shape[1] == 4);
}

TEST_CASE("keys have unit length and the correlation asked for") {
  Case c = small();
  c.extents = {256, 24};
  c.heads = 1, c.ratio = 1;
  for (double correlation : {0.0, 0.9, 1.0}) {
    Data data;
    data.correlation = correlation;
    const Problem p = make_problem(describe(gated(), {}), c, data, {40}, ElementType::f32, 1, false);
    const HostTensor& k = p.find("k")->tensor;
    double mean = 0;
    for (int i = 1; i < 40; ++i) mean += product(k, i - 1, i, 256) / 39;
    CHECK(mean == doctest::Approx(correlation).epsilon(0.05).scale(1));
    CHECK(product(k, 3, 3, 256) == doctest::Approx(1).epsilon(1e-4));
  }
}

TEST_CASE("mixed gates hold every extreme; the same seed gives the same numbers") {
  Data data;
  data.gates = Gates::mixed;
  const OperatorInfo info = describe(gated(), {});
  const Problem p = make_problem(info, small(), data, {64}, ElementType::f32, 7, false);
  std::set<double> seen;
  for (std::int64_t i = 0; i < p.find("g")->tensor.count(); ++i) seen.insert(p.find("g")->tensor.get(i));
  for (double x : {0.0, -50.0, -3000.0, -HUGE_VAL}) CHECK(seen.contains(x));
  CHECK(*seen.rbegin() == 0);
  const Problem again = make_problem(info, small(), data, {64}, ElementType::f32, 7, false);
  const Problem other = make_problem(info, small(), data, {64}, ElementType::f32, 8, false);
  CHECK(p.find("q")->tensor.bytes == again.find("q")->tensor.bytes);
  CHECK(p.find("q")->tensor.bytes != other.find("q")->tensor.bytes);
}

TEST_CASE("a pool has distinct slots, one sequence without a start and one without an end") {
  Case c = small();
  c.states = States::pool;
  const Problem p = make_problem(describe(gated(), {}), c, {}, {2, 2, 2, 2}, ElementType::f32, 1, false);
  const HostTensor &from = p.find("S.initial_index")->tensor, &to = p.find("S.final_index")->tensor;
  CHECK(from.get(1) == -1);
  CHECK(to.get(1) >= 0);
  CHECK(to.get(2) == -1);
  CHECK(std::isfinite(p.find("S.final")->tensor.get(0)));
}

TEST_CASE("the list covers every option, length of a partial chunk and head ratio") {
  for (const char* name : {"linear_attn", "simple_gla", "gated_delta_rule"}) {
    const OperatorRow& row = *find_operator(name);
    std::set<std::string> settings, described;
    std::set<std::int64_t> chunks, ratios, partial;
    for (const OptionInfo& option : describe(row, {}).options) described.insert(option.name);
    for (const Case& c : cases_of(row, false)) {
      for (const auto& [name, value] : c.options) settings.insert(name);
      chunks.insert(c.chunk), ratios.insert(c.ratio);
      for (const Data& data : c.data)
        for (const auto& run : data.lengths)
          if (c.chunk == 64 && c.ragged_bits) partial.insert(run.begin(), run.end());
    }
    CHECK(settings == described);
    CHECK(chunks == std::set<std::int64_t>{0, 16, 32, 64});
    CHECK(ratios == std::set<std::int64_t>{1, 2, 4});
    CHECK(partial.size() == 64);
    CHECK(cases_of(row, true).size() < cases_of(row, false).size());
  }
}

TEST_CASE("tensors are drawn as their declaration says is typical") {
  const auto problem = [](const char* op) {
    return make_problem(describe(*find_operator(op), {}), small(), {}, {30}, ElementType::f32, 1, false);
  };
  const Problem comba = problem("comba"), oja = problem("gated_oja_rule"), preconditioned = problem("precond_kda");
  const HostTensor &k = comba.find("k")->tensor, &p = comba.find("p")->tensor;
  for (std::int64_t i = 0; i < p.count(); ++i) {
    CHECK(p.get(i) / k.get(i) > 0);
    CHECK(p.get(i) / k.get(i) < 1);
  }
  CHECK(product(oja.find("v")->tensor, 7, 7, 24) == doctest::Approx(1));
  const HostTensor& A = preconditioned.find("A.initial")->tensor;
  for (std::int64_t i = 0; i < A.count(); ++i) CHECK(A.get(i) > 0);
}
