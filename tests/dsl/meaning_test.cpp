// The three operators run by the interpreter in float64: reference, step and chunk body against token loops written
// here by hand, with every option, partial chunks, grouped heads, and gates from 0 to −∞.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include "compiler/Emit.h"
#include "compiler/Interpreter.h"
#include "dsl/Describe.h"
#include "mlir/IR/MLIRContext.h"
#include <cmath>
#include <doctest/doctest.h>
#include <limits>
#include <random>

using namespace latile;

namespace {

constexpr std::int64_t N = 2, T = 37, H = 2, HV = 4, K = 8, V = 5;
using Numbers = std::vector<double>;
using Options = std::vector<std::pair<std::string, std::string>>;

/// Dense row-major tensors by name.
struct Data {
  std::map<std::string, std::vector<std::int64_t>> shape;
  std::map<std::string, Numbers> value;
  bool has(const std::string& n) const { return value.count(n) != 0; }
  double scale = 0.3;
};

Data inputs() {
  Data d;
  std::mt19937_64 random(7);
  std::normal_distribution<double> normal;
  auto fill = [&](const std::string& n, std::vector<std::int64_t> shape, auto&& f) {
    std::size_t count = 1;
    for (auto e : shape) count *= static_cast<std::size_t>(e);
    d.shape[n] = shape;
    auto& v = d.value[n];
    v.resize(count);
    for (auto& x : v) x = f();
  };
  auto gauss = [&] { return normal(random); };
  fill("q", {N, T, H, K}, gauss), fill("k", {N, T, H, K}, [&] { return gauss() * 0.3; }),
      fill("v", {N, T, HV, V}, gauss);
  int turn = 0;
  fill("g", {N, T, HV}, [&] {
    static const double hard[] = {0, -50, -3000, -std::numeric_limits<double>::infinity()};
    return ++turn % 11 == 0 ? hard[(turn / 11) % 4] : -std::abs(gauss()) * 0.2;
  });
  fill("beta", {N, T, HV}, [&] { return std::abs(gauss()) * 0.5; });
  fill("g_gamma", {HV}, [&] { return -std::abs(gauss()) * 0.1; });
  fill("A_log", {HV}, gauss), fill("dt_bias", {HV}, gauss);
  fill("S.initial", {N, HV, K, V}, gauss), fill("z.initial", {N, H, K}, [&] { return 3 + gauss(); });
  return d;
}

struct Result {
  Numbers o, S, z;
};

/// What OPERATORS' definitions say, one token at a time.
struct Oracle {
  std::string op;
  Options options;
  const Data& d;
  std::string option(const std::string& n, const std::string& fallback) const {
    for (auto& [k, v] : options)
      if (k == n) return v;
    return fallback;
  }
  double at(const std::string& n, std::int64_t i) const { return d.value.at(n)[static_cast<std::size_t>(i)]; }

  Result run() const {
    Result r{Numbers(N * T * HV * V), d.value.at("S.initial"), d.value.at("z.initial")};
    for (std::int64_t n = 0; n < N; ++n)
      for (std::int64_t h = 0; h < HV; ++h) {
        // Value heads of one key head share z: each starts from where the first did.
        const auto z = (n * H + h / (HV / H)) * K;
        std::copy_n(d.value.at("z.initial").begin() + z, K, r.z.begin() + z);
        for (std::int64_t t = 0; t < T; ++t) token(r, n, h, t);
      }
    return r;
  }
  Numbers row(const std::string& name, std::int64_t n, std::int64_t t, std::int64_t h) const {
    Numbers x(K);
    double squares = 1e-6;
    for (std::int64_t i = 0; i < K; ++i)
      x[i] = at(name, ((n * T + t) * H + h / (HV / H)) * K + i), squares += x[i] * x[i];
    if (option("qk_l2norm", "false") == "true")
      for (auto& e : x) e /= std::sqrt(squares);
    return x;
  }
  void token(Result& r, std::int64_t n, std::int64_t h, std::int64_t t) const {
    std::int64_t scalar = (n * T + t) * HV + h;
    Numbers q = row("q", n, t, h), k = row("k", n, t, h);
    double g = op != "linear_attn" && d.has("g") ? at("g", scalar) : 0;
    if (op == "simple_gla" && d.has("g_gamma")) g += at("g_gamma", h);
    if (option("gate_in_kernel", "false") == "true") {
      double x = g + (d.has("dt_bias") ? at("dt_bias", h) : 0);
      g = -std::exp(at("A_log", h)) * (std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))));
    }
    double decay = std::exp2(std::max(g * 1.4426950408889634, -126.0)), normaliser = 1e-10;
    double* S = &r.S[static_cast<std::size_t>((n * HV + h) * K * V)];
    double* z = &r.z[static_cast<std::size_t>((n * H + h / (HV / H)) * K)];
    double beta = 1;
    if (op == "gated_delta_rule") {
      beta = at("beta", scalar);
      std::string form = option("beta", "given");
      if (form != "given") beta = (form == "sigmoid" ? 1 : 2) / (1 + std::exp(-beta));
    }
    for (std::int64_t i = 0; i < K; ++i) z[i] += k[i], normaliser += d.scale * q[i] * z[i];
    if (op != "linear_attn" || option("normalize", "true") != "true") normaliser = 1;
    for (std::int64_t j = 0; j < V; ++j) {
      double v = at("v", scalar * V + j), erased = 0, o = 0;
      for (std::int64_t i = 0; i < K; ++i) S[i * V + j] *= decay, erased += k[i] * S[i * V + j];
      if (op == "gated_delta_rule") v = beta * (v - erased);
      for (std::int64_t i = 0; i < K; ++i) S[i * V + j] += k[i] * v, o += d.scale * q[i] * S[i * V + j];
      r.o[static_cast<std::size_t>(scalar * V + j)] = o / normaliser;
    }
  }
};

Result interpreted(const std::string& op, Options options, const Data& d, Mode mode, std::int64_t chunk) {
  bool z = op == "linear_attn" && (options.empty() || options[0].second == "true");
  Data out = d;
  out.shape["o"] = {N, T, HV, V}, out.value["o"].assign(N * T * HV * V, 0);
  out.shape["S.final"] = d.shape.at("S.initial"), out.value["S.final"] = Numbers(N * HV * K * V);
  out.shape["z.final"] = d.shape.at("z.initial"), out.value["z.final"] = Numbers(N * H * K);

  std::vector<Diagnostic> mistakes;
  OperatorInfo info = describe(*find_operator(op), {options, {}}, mistakes);
  Specialisation s;
  s.op = op, s.mode = mode, s.chunk = chunk, s.options = options;
  s.extents = {{"K", K}, {"V", V}};
  s.head_ratio = HV / H;
  InterpreterInputs in;
  for (auto& [name, v] : out.value) {
    std::string base = name.substr(0, name.find('.'));
    if (!info.tensor(base) || (base == "z" && !z)) continue;
    s.tensors.push_back({name, ElementType::f32, -1});
    auto& shape = out.shape[name];
    std::vector<std::int64_t> strides(shape.size(), 1);
    for (std::size_t i = shape.size() - 1; i-- > 0;) strides[i] = strides[i + 1] * shape[i + 1];
    in.tensors[name] = {v.data(), ElementType::f64, shape, strides};
  }
  in.scalars["scale"] = d.scale;
  in.sequences = N, in.rows = T, in.heads = HV;
  mlir::MLIRContext context;
  auto module = emit_program(*find_operator(op), s, context, mistakes);
  for (auto& m : mistakes) FAIL_CHECK(m.message());
  REQUIRE(module);
  auto report = interpret(*module, in);
  for (auto& p : report.problems) FAIL_CHECK(p);
  return {out.value["o"], out.value["S.final"], z ? out.value["z.final"] : Numbers()};
}

double error(const Numbers& want, const Numbers& have) {
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < want.size(); ++i)
    difference += (want[i] - have[i]) * (want[i] - have[i]), size += want[i] * want[i];
  return std::sqrt(difference / size);
}

void compare(const std::string& op, const Options& options, const Data& d) {
  CAPTURE(op);
  std::string settings;
  for (auto& [k, v] : options) settings += k + "=" + v + " ";
  CAPTURE(settings);
  Result want = Oracle{op, options, d}.run();
  auto check = [&](Mode mode, std::int64_t chunk, double bound) {
    CAPTURE(static_cast<int>(mode));
    CAPTURE(chunk);
    Result have = interpreted(op, options, d, mode, chunk);
    CHECK(error(want.o, have.o) < bound);
    CHECK(error(want.S, have.S) < bound);
    if (!have.z.empty()) CHECK(error(want.z, have.z) < bound);
  };
  check(Mode::recurrent, 0, 1e-13);
  // Differences of gates after a step of −126 lose digits that the recurrence keeps.
  for (std::int64_t chunk : {1, 16, 32, 64}) check(Mode::prefill, chunk, 1e-12);
}

}  // namespace

TEST_CASE("linear_attn") {
  Data d = inputs();
  for (auto& x : d.value["q"]) x = std::abs(x);
  for (auto& x : d.value["k"]) x = std::abs(x);
  compare("linear_attn", {}, d);
  compare("linear_attn", {{"normalize", "false"}}, d);
}

TEST_CASE("simple_gla") {
  for (bool g : {true, false})
    for (bool gamma : {true, false}) {
      Data d = inputs();
      if (!g) d.value.erase("g");
      if (!gamma) d.value.erase("g_gamma");
      compare("simple_gla", {}, d);
    }
}

TEST_CASE("gated_delta_rule") {
  Data d = inputs();
  compare("gated_delta_rule", {}, d);
  for (const char* form : {"sigmoid", "twice_sigmoid"}) {
    compare("gated_delta_rule", {{"qk_l2norm", "true"}, {"beta", form}}, d);
    compare("gated_delta_rule", {{"qk_l2norm", "true"}, {"gate_in_kernel", "true"}, {"beta", form}}, d);
  }
  Data plain = inputs();
  plain.value.erase("dt_bias");
  compare("gated_delta_rule", {{"gate_in_kernel", "true"}}, plain);
  plain.value.erase("g");
  compare("gated_delta_rule", {{"qk_l2norm", "true"}}, plain);
}
