// Operators whose state is a feature map's sum, a pair of Gram matrices or an inner model, against loops written by
// hand: over tokens, and over mini-batches where those are the meaning.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include "compiler/Compile.h"
#include "latile/latile.h"
#include "tests/dsl/Meaning.h"
#include <cmath>
#include <doctest/doctest.h>

using namespace latile;
using meaning::Head;
using meaning::Numbers;
using meaning::Setting;

namespace {

double product(const double* a, const double* b, std::int64_t n, std::int64_t step = 1) {
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += a[i] * b[i * step];
  return sum;
}

double normal(std::mt19937_64& random) { return std::normal_distribution<double>()(random); }
double uniform(std::mt19937_64& random) { return std::uniform_real_distribution<double>()(random); }

/// Weights of all former tokens by their definition, and the states as what they are: sums over tokens.
template <class Weight> void attend(const Head& h, double eps, bool normalised, Weight weight, Numbers base_sums) {
  const std::int64_t K = h.dim("K"), V = h.dim("V");
  for (std::int64_t t = 0; t < h.tokens; ++t) {
    Numbers out(V);
    const double* q = h.row("q", t);
    double sum = base_sums.empty() ? 0 : base_sums[static_cast<std::size_t>(t)];
    for (std::int64_t j = 0; j <= t; ++j) {
      const double w = weight(h.scale * product(q, h.row("k", j), K));
      sum += w;
      for (std::int64_t e = 0; e < V; ++e) out[e] += w * h.row("v", j)[e];
    }
    for (std::int64_t e = 0; e < V; ++e) h.row("o", t)[e] = (h.row("o", t)[e] + out[e]) / (normalised ? sum + eps : 1);
  }
}

/// What the initial states add: to o at once, to the sum of weights as the result.
Numbers from_initial(const Head& h, bool first_orders) {
  const std::int64_t K = h.dim("K"), V = h.dim("V");
  const bool z = h.has(first_orders ? "z0" : "z");
  Numbers sums(h.tokens);
  for (std::int64_t t = 0; t < h.tokens; ++t) {
    Numbers q(h.row("q", t), h.row("q", t) + K);
    for (double& x : q) x *= h.scale;
    for (std::int64_t e = 0; e < V; ++e) {
      double y = first_orders ? h.carry("S0")[e] + product(q.data(), h.carry("S1") + e, K, V) : 0;
      const double* second = h.carry(first_orders ? "S2" : "S");
      for (std::int64_t a = 0; a < K * K; ++a) y += (first_orders ? 0.5 : 1) * q[a / K] * q[a % K] * second[a * V + e];
      h.row("o", t)[e] = y;
    }
    if (!z) continue;
    double& sum = sums[static_cast<std::size_t>(t)];
    if (first_orders) sum = h.carry("z0")[0] + product(q.data(), h.carry("z1"), K);
    const double* second = h.carry(first_orders ? "z2" : "z");
    for (std::int64_t a = 0; a < K * K; ++a) sum += (first_orders ? 0.5 : 1) * q[a / K] * q[a % K] * second[a];
  }
  return sums;
}

void add_tokens(const Head& h, bool first_orders) {
  const std::int64_t K = h.dim("K"), V = h.dim("V");
  const bool z = h.has(first_orders ? "z0" : "z");
  for (std::int64_t t = 0; t < h.tokens; ++t) {
    const double *k = h.row("k", t), *v = h.row("v", t);
    for (std::int64_t a = 0; a < K * K; ++a) {
      const double kk = k[a / K] * k[a % K];
      for (std::int64_t e = 0; e < V; ++e) h.carry(first_orders ? "S2" : "S")[a * V + e] += kk * v[e];
      if (z) h.carry(first_orders ? "z2" : "z")[a] += kk;
    }
    if (!first_orders) continue;
    for (std::int64_t e = 0; e < V; ++e) h.carry("S0")[e] += v[e];
    for (std::int64_t a = 0; a < K; ++a) {
      for (std::int64_t e = 0; e < V; ++e) h.carry("S1")[a * V + e] += k[a] * v[e];
      if (z) h.carry("z1")[a] += k[a];
    }
    if (z) h.carry("z0")[0] += 1;
  }
}

void based_by_hand(const Head& h) {
  Numbers sums = from_initial(h, true);
  attend(h, 1e-6, h.has("z0"), [](double s) { return 1 + s + s * s / 2; }, sums);
  add_tokens(h, true);
}
void rebased_by_hand(const Head& h) {
  Numbers sums = from_initial(h, false);
  attend(h, 1e-5, h.has("z"), [](double s) { return s * s; }, sums);
  add_tokens(h, false);
}

/// M x = rhs by elimination with pivots.
Numbers solved(Numbers m, Numbers rhs) {
  const std::int64_t n = static_cast<std::int64_t>(rhs.size());
  for (std::int64_t c = 0; c < n; ++c) {
    std::int64_t best = c;
    for (std::int64_t r = c; r < n; ++r)
      if (std::abs(m[r * n + c]) > std::abs(m[best * n + c])) best = r;
    for (std::int64_t j = 0; j < n; ++j) std::swap(m[c * n + j], m[best * n + j]);
    std::swap(rhs[c], rhs[best]);
    for (std::int64_t r = 0; r < n; ++r) {
      if (r == c) continue;
      const double f = m[r * n + c] / m[c * n + c];
      for (std::int64_t j = c; j < n; ++j) m[r * n + j] -= f * m[c * n + j];
      rhs[r] -= f * rhs[c];
    }
  }
  for (std::int64_t c = 0; c < n; ++c) rhs[c] /= m[c * n + c];
  return rhs;
}

Numbers unit(const double* x, std::int64_t n, bool on) {
  Numbers y(x, x + n);
  if (on)
    for (double& e : y) e /= std::sqrt(product(x, x, n) + 1e-6);
  return y;
}

void mesa_by_hand(const Head& h, bool l2norm) {
  const std::int64_t K = h.dim("K"), V = h.dim("V");
  double *A = h.carry("A"), *B = h.carry("B");
  for (std::int64_t t = 0; t < h.tokens; ++t) {
    const double decay = h.has("g") ? Head::decay(h.row("g", t)[0]) : 1, beta = h.row("beta", t)[0];
    Numbers q = unit(h.row("q", t), K, l2norm), k = unit(h.row("k", t), K, l2norm);
    Numbers m(K * K);
    for (std::int64_t i = 0; i < K; ++i) {
      for (std::int64_t j = 0; j < K; ++j) {
        double& a = A[i * K + j];
        a = decay * a + beta * k[i] * k[j];
        m[i * K + j] = a + (i == j ? h.param("lamb")[i] : 0);
      }
      for (std::int64_t e = 0; e < V; ++e) B[i * V + e] = decay * B[i * V + e] + beta * k[i] * h.row("v", t)[e];
    }
    Numbers x = solved(m, q);
    for (std::int64_t e = 0; e < V; ++e) h.row("o", t)[e] = product(x.data(), B + e, K, V);
  }
}

constexpr double eps = 1e-6;

Numbers standardised(const Numbers& y, double& deviation) {
  double mean = 0, squares = 0;
  for (double e : y) mean += e / static_cast<double>(y.size());
  for (double e : y) squares += (e - mean) * (e - mean) / static_cast<double>(y.size());
  deviation = std::sqrt(squares + eps);
  Numbers x = y;
  for (double& e : x) e = (e - mean) / deviation;
  return x;
}

/// By the chain rule through the Jacobian of the normalisation, written out.
Numbers gradient(const Head& h, const Numbers& y, std::int64_t t) {
  const std::int64_t n = static_cast<std::int64_t>(y.size());
  double deviation;
  Numbers x = standardised(y, deviation), loss(n), u(n);
  for (std::int64_t i = 0; i < n; ++i)
    loss[i] = h.param("w")[i] * (h.param("w")[i] * x[i] + h.param("b")[i] - (h.row("v", t)[i] - h.row("k", t)[i]));
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < n; ++j)  // ∂x_j/∂y_i
      u[i] += loss[j] * ((i == j) - 1.0 / static_cast<double>(n) - x[i] * x[j] / static_cast<double>(n)) / deviation;
  return u;
}

void write_output(const Head& h, std::int64_t t, const Numbers& y) {
  double deviation;
  Numbers x = standardised(y, deviation);
  for (std::size_t i = 0; i < y.size(); ++i) h.row("o", t)[i] = y[i] + h.param("w")[i] * x[i] + h.param("b")[i];
}

void ttt_by_hand(const Head& h, std::int64_t C) {
  const std::int64_t K = h.dim("K");
  double *W = h.carry("h"), *bias = h.carry("hb");
  auto rate = [&](std::int64_t t) { return h.has("eta") ? h.row("eta", t)[0] : 1; };
  for (std::int64_t begin = 0; begin < h.tokens; begin += C) {
    const std::int64_t end = std::min(begin + C, h.tokens);
    std::vector<Numbers> u;
    for (std::int64_t t = begin; t < end; ++t) {
      Numbers y(bias, bias + K);
      for (std::int64_t e = 0; e < K; ++e) y[e] += product(h.row("k", t), W + e, K, K);
      u.push_back(gradient(h, y, t));
    }
    for (std::int64_t t = begin; t < end; ++t) {
      Numbers y(bias, bias + K);
      for (std::int64_t e = 0; e < K; ++e) {
        y[e] += h.scale * product(h.row("q", t), W + e, K, K);
        for (std::int64_t j = begin; j <= t; ++j)
          y[e] -= rate(t) * (h.scale * product(h.row("q", t), h.row("k", j), K) + 1) * u[j - begin][e];
      }
      write_output(h, t, y);
    }
    for (std::int64_t t = begin; t < end; ++t)
      for (std::int64_t e = 0; e < K; ++e) {
        for (std::int64_t i = 0; i < K; ++i) W[i * K + e] -= rate(end - 1) * h.row("k", t)[i] * u[t - begin][e];
        bias[e] -= rate(end - 1) * u[t - begin][e];
      }
  }
}

void titans_by_hand(const Head& h, std::int64_t C) {
  const std::int64_t K = h.dim("K");
  double *M = h.carry("M"), *S = h.carry("S");
  Numbers start;
  for (std::int64_t t = 0; t < h.tokens; ++t) {
    if (t % C == 0) start.assign(M, M + K * K);
    Numbers y(K);
    for (std::int64_t e = 0; e < K; ++e) y[e] = product(h.row("k", t), start.data() + e, K, K);
    Numbers u = gradient(h, y, t);
    for (std::int64_t a = 0; a < K * K; ++a) {
      S[a] = h.row("eta", t)[0] * S[a] - 2 * h.row("theta", t)[0] * h.row("k", t)[a / K] * u[a % K];
      M[a] = (1 - h.row("alpha", t)[0]) * M[a] + S[a];
    }
    for (std::int64_t e = 0; e < K; ++e) y[e] = h.scale * product(h.row("q", t), M + e, K, K);
    write_output(h, t, y);
  }
}

}  // namespace

TEST_CASE("based") {
  Setting s;
  for (const char* z : {"z0", "z1", "z2"}) s.draw[z] = [](auto& r) { return 3 + 0.1 * normal(r); };
  meaning::compare("based", based_by_hand, s);
  s.options = {{"normalize", "false"}};
  meaning::compare("based", based_by_hand, s);
}

TEST_CASE("rebased") {
  Setting s;
  s.draw["z"] = [turn = 0](auto& r) mutable { return (turn++ % 64 % 9 == 0 ? 2 : 0) + 0.01 * normal(r); };
  meaning::compare("rebased", rebased_by_hand, s);
  s.options = {{"normalize", "false"}};
  meaning::compare("rebased", rebased_by_hand, s);
}

TEST_CASE("mesa_net") {
  Setting s;
  // A symmetric, positive definite matrix for each head: K = 8 divides what is drawn for one.
  s.draw["A"] = [turn = 0](auto&) mutable {
    const int i = turn / 8 % 8, j = turn % 8;
    ++turn;
    return (i == j ? 1.0 : 0.0) + 0.1 * std::cos(3.0 * i + 3.0 * j);
  };
  s.draw["lamb"] = [](auto& r) { return 0.25 + 0.75 * uniform(r); };
  s.draw["beta"] = [](auto& r) { return 2 * uniform(r); };
  s.recurrent_bound = s.chunk_bound = 1e-11;  // of the iterations against an exact solution
  for (const char* l2norm : {"false", "true"}) {
    s.options = {{"qk_l2norm", l2norm}, {"steps", "60"}};
    auto oracle = [&](const Head& h) { mesa_by_hand(h, s.options[0].second == "true"); };
    meaning::compare("mesa_net", oracle, s);
    s.absent = {"g"};
    meaning::compare("mesa_net", oracle, s);
    s.absent = {};
  }
}

TEST_CASE("ttt") {
  for (std::int64_t C : {16, 32}) {
    Setting s;
    s.options = {{"mini_batch", std::to_string(C)}};
    for (double high : {0.05, 0.5}) {
      s.draw["eta"] = [=](auto& r) { return high * uniform(r); };
      meaning::compare("ttt", [=](const Head& h) { ttt_by_hand(h, C); }, s);
    }
    s.absent = {"eta"};
    meaning::compare("ttt", [=](const Head& h) { ttt_by_hand(h, C); }, s);
  }
}

TEST_CASE("titans") {
  for (std::int64_t C : {16, 32})
    for (bool brutal : {false, true}) {
      Setting s;
      s.options = {{"mini_batch", std::to_string(C)}};
      s.draw["theta"] = [=](auto& r) { return (brutal ? 0.5 : 0.05) * uniform(r); };
      // Brutal: nothing is kept, everything is kept, and both side by side in one mini-batch.
      auto factor = [=](double usual) {
        return [=](auto& r) {
          const double x = uniform(r);
          if (brutal && x < 0.1) return 0.0;
          if (brutal && x < 0.2) return 1.0;
          return brutal ? uniform(r) : usual + 0.1 * uniform(r);
        };
      };
      s.draw["alpha"] = factor(0.05), s.draw["eta"] = factor(0.85);
      meaning::compare("titans", [=](const Head& h) { titans_by_hand(h, C); }, s);
    }
}

namespace {

std::string refused(const char* op, const char* mode, std::int64_t K, std::vector<latile_option> options = {}) {
  install_compiler();
  latile_context* context = nullptr;
  latile_context_desc how{};
  how.size = sizeof how;
  latile_error error{};
  error.size = sizeof error;
  REQUIRE(latile_context_create(&how, &context, &error) == LATILE_OK);
  std::vector<latile_dim> dims{{"H", 1, 1}, {"HV", 1, 1}, {"K", K, K}, {"B", 1, 1}, {"T", 1, 1}};
  if (std::string(op) == "based") dims.push_back({"V", 16, 16});
  std::vector<latile_tensor> tensors;
  std::vector<const char*> names{"q", "k", "v", "o"};
  if (std::string(op) == "ttt") names.insert(names.end(), {"w", "b"});
  for (const char* name : names) tensors.push_back({name, LATILE_F32, 0, nullptr, 0, 0});
  latile_plan_desc desc{};
  desc.size = sizeof desc;
  desc.op = op, desc.mode = mode, desc.device = {LATILE_CPU, 0};
  desc.options = options.data(), desc.option_count = options.size();
  desc.dims = dims.data(), desc.dim_count = dims.size();
  desc.tensors = tensors.data(), desc.tensor_count = tensors.size();
  latile_plan* plan = nullptr;
  const latile_status status = latile_plan_create(context, &desc, &plan, &error);
  CHECK(status != LATILE_OK);
  CHECK(status != LATILE_INTERNAL);
  latile_plan_release(plan);
  latile_context_release(context);
  return error.text;
}

}  // namespace

TEST_CASE("what cannot be is refused by name, with the reason") {
  for (const char* mode : {"recurrent", "step"}) {
    const std::string text = refused("ttt", mode, 16);
    CHECK(text.find(std::string("ttt: mode ") + mode + " is not offered: its tokens are taken in mini-batches") == 0);
  }
  CHECK(refused("ttt", "prefill", 16, {{"chunk_size", "32"}}).find("give option mini_batch instead") !=
        std::string::npos);
  CHECK(refused("based", "prefill", 64).find("dimension K is 64, above the limit of 32: the state of second order") !=
        std::string::npos);
}
