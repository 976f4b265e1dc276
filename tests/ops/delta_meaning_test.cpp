// Operators of the delta rule against token loops written here by hand from their definitions.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include "compiler/Emit.h"
#include "mlir/IR/MLIRContext.h"
#include "tests/dsl/Meaning.h"
#include <cmath>
#include <doctest/doctest.h>

using namespace latile;
using namespace latile::meaning;

namespace {

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double softplus(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }
bool set(const Setting& s, const char* option, const char* value = "true") {
  for (auto& [k, v] : s.options)
    if (k == option) return v == value;
  return false;
}

/// A row of a sequence, of unit length if asked for.
Numbers row(const Head& x, const char* name, std::int64_t at, std::int64_t width, bool unit = false) {
  const double* from = x.row(name, at);
  Numbers out(from, from + width);
  double squares = 1e-6;
  for (double v : out) squares += v * v;
  if (unit)
    for (double& v : out) v /= std::sqrt(squares);
  return out;
}

double factor(const Setting& s, double raw) {
  if (set(s, "beta", "sigmoid")) return sigmoid(raw);
  return set(s, "beta", "twice_sigmoid") ? 2 * sigmoid(raw) : raw;
}

/// Decays of the key channels, as kda computes them from what is given.
Numbers channel_decays(const Head& x, const Setting& s, const char* gate, std::int64_t t, double bound = 0) {
  const auto K = x.dim("K");
  Numbers out(static_cast<std::size_t>(K));
  for (std::int64_t i = 0; i < K; ++i) {
    double g = x.row(gate, t)[i];
    if (set(s, "gate_in_kernel")) {
      if (x.has("dt_bias")) g += x.param("dt_bias")[i];
      const double rate = x.has("A_log") ? std::exp(x.param("A_log")[0]) : 1;
      g = bound < 0 ? bound * sigmoid(rate * g) : -rate * softplus(g);
    }
    out[static_cast<std::size_t>(i)] = Head::decay(g);
  }
  return out;
}

/// Sᵀ k of a state [K, V].
Numbers read(const double* S, const Numbers& k, std::int64_t V) {
  Numbers out(static_cast<std::size_t>(V));
  for (std::size_t i = 0; i < k.size(); ++i)
    for (std::int64_t j = 0; j < V; ++j)
      out[static_cast<std::size_t>(j)] += k[i] * S[static_cast<std::int64_t>(i) * V + j];
  return out;
}
void write(double* S, const Numbers& k, const Numbers& v) {
  for (std::size_t i = 0; i < k.size(); ++i)
    for (std::size_t j = 0; j < v.size(); ++j) S[i * v.size() + j] += k[i] * v[j];
}
void decay_rows(double* S, const Numbers& by, std::int64_t V) {
  for (std::size_t i = 0; i < by.size(); ++i)
    for (std::int64_t j = 0; j < V; ++j) S[static_cast<std::int64_t>(i) * V + j] *= by[i];
}
Numbers same(double x, std::int64_t n) { return Numbers(static_cast<std::size_t>(n), x); }
void output(const Head& x, const Numbers& q, std::int64_t t) {
  const Numbers o = read(x.carry("S"), q, x.dim("V"));
  for (std::size_t j = 0; j < o.size(); ++j) x.row("o", t)[j] = x.scale * o[j];
}

/// The preconditioned key of token t, after the update of A.
Numbers preconditioned(const Head& x, const Numbers& k, std::int64_t t) {
  Numbers out = k;
  for (std::size_t i = 0; i < k.size(); ++i) {
    double& A = x.carry("A")[i];
    A = Head::decay(x.row("g_atk", t)[0]) * A + x.row("beta_atk", t)[0] * k[i] * k[i];
    const double r = std::log(A + 1e-6) - (x.has("log_atk_scale") ? x.param("log_atk_scale")[0] : -0.2);
    out[i] *= std::pow(1.5, -r / (1 + std::abs(r)));
  }
  return out;
}

/// S = diag(e^g) S, S += write_key (beta (v − Sᵀ k))ᵀ.
template <class Decays, class Key> Oracle delta(const Setting& s, bool unit, Decays&& decays, Key&& write_key) {
  return [=](const Head& x) {
    const auto K = x.dim("K"), V = x.dim("V");
    for (std::int64_t t = 0; t < x.tokens; ++t) {
      const Numbers q = row(x, "q", t, K, unit), k = row(x, "k", t, K, unit), to = write_key(x, k, t);
      double* S = x.carry("S");
      decay_rows(S, decays(x, t), V);
      Numbers v = row(x, "v", t, V), seen = read(S, k, V);
      for (std::size_t j = 0; j < v.size(); ++j) v[j] = factor(s, x.row("beta", t)[0]) * (v[j] - seen[j]);
      write(S, to, v);
      output(x, q, t);
    }
  };
}
Numbers head_decays(const Head& x, std::int64_t t) {
  return same(x.has("g") ? Head::decay(x.row("g", t)[0]) : 1, x.dim("K"));
}

double small(std::mt19937_64& random) { return 0.3 * std::normal_distribution<double>()(random); }
double unit_interval(std::mt19937_64& random) { return std::uniform_real_distribution<double>()(random); }

Setting with(Options options, std::vector<std::string> absent = {}) {
  Setting s;
  s.options = std::move(options);
  s.absent = std::move(absent);
  for (const char* name : {"p", "a", "b", "kk"}) s.draw[name] = small;
  s.draw["A"] = unit_interval;
  return s;
}

}  // namespace

TEST_CASE("comba") {
  const auto run = [](const Setting& s) {
    compare(
        "comba",
        [&](const Head& x) {
          const auto K = x.dim("K"), V = x.dim("V");
          const bool unit = set(s, "qk_l2norm"), columns = set(s, "headwise_beta");
          for (std::int64_t t = 0; t < x.tokens; ++t) {
            const Numbers q = row(x, "q", t, K, unit), k = row(x, "k", t, K, unit),
                          p = x.has("p") ? row(x, "p", t, K, unit) : k;
            double* S = x.carry("S");
            const Numbers erased = read(S, p, V);
            Numbers v = row(x, "v", t, V);
            for (std::int64_t j = 0; j < V; ++j)
              v[static_cast<std::size_t>(j)] = x.row("beta", t)[columns ? j : 0] *
                                               (v[static_cast<std::size_t>(j)] - erased[static_cast<std::size_t>(j)]);
            decay_rows(S, head_decays(x, t), V);
            write(S, k, v);
            output(x, q, t);
          }
        },
        s);
  };
  run(with({}));
  run(with({{"qk_l2norm", "true"}}));
  run(with({}, {"p"}));
  run(with({}, {"g"}));
  Setting columns = with({{"headwise_beta", "true"}});
  columns.draw["beta"] = unit_interval;
  run(columns);
}

TEST_CASE("what is refused says why") {
  const auto first = [](const char* op, Options options) {
    std::vector<Diagnostic> mistakes;
    Specialisation s;
    s.op = op, s.options = options;
    mlir::MLIRContext context;
    CHECK_FALSE(emit_program(*find_operator(op), s, context, mistakes));
    return mistakes.empty() ? "" : mistakes.front().text;
  };
  CHECK(first("comba", {{"headwise_beta", "true"}}) ==
        "comba: mode prefill is not offered with these options: each column of the state has a triangular "
        "system of its own, and a body solves one for all columns; use mode recurrent");
  CHECK(first("kda", {{"gate_in_kernel", "true"}, {"safe_gate", "true"}}) ==
        "kda: safe_gate together with gate_in_kernel needs lower_bound, from -5 to 0");
  CHECK(first("rwkv7", {{"lower_bound", "1"}}) == "rwkv7: option 'lower_bound' is '1'; it is a number from -5 to 0");
}

TEST_CASE("gated_delta_product") {
  const auto run = [](const Setting& s, int n) {
    compare(
        "gated_delta_product",
        [&](const Head& x) {
          const auto K = x.dim("K"), V = x.dim("V");
          const bool unit = set(s, "qk_l2norm");
          for (std::int64_t t = 0; t < x.tokens; ++t) {
            double* S = x.carry("S");
            decay_rows(S, head_decays(x, t), V);
            for (std::int64_t at = t * n; at < (t + 1) * n; ++at) {
              const Numbers k = row(x, "k", at, K, unit), seen = read(S, k, V);
              Numbers v = row(x, "v", at, V);
              for (std::size_t j = 0; j < v.size(); ++j) v[j] = factor(s, x.row("beta", at)[0]) * (v[j] - seen[j]);
              write(S, k, v);
            }
            output(x, row(x, "q", t, K, unit), t);
          }
        },
        s);
  };
  run(with({}), 2);
  run(with({{"num_householder", "1"}}), 1);
  run(with({{"num_householder", "3"}, {"qk_l2norm", "true"}, {"beta", "twice_sigmoid"}}), 3);
  run(with({{"num_householder", "4"}, {"beta", "sigmoid"}}, {"g"}), 4);
}

TEST_CASE("kda and precond_kda") {
  for (const char* name : {"kda", "precond_kda"}) {
    const bool second = std::string(name) == "precond_kda";
    const auto run = [&](const Setting& s, double bound = 0) {
      const bool unit = set(s, "qk_l2norm") || (second && !set(s, "qk_l2norm", "false"));
      const Oracle oracle = delta(
          s, unit, [s, bound](const Head& x, std::int64_t t) { return channel_decays(x, s, "g", t, bound); },
          [second](const Head& x, const Numbers& k, std::int64_t t) { return second ? preconditioned(x, k, t) : k; });
      compare(name, oracle, s);
    };
    run(with({}));
    run(with({{"qk_l2norm", "true"}, {"beta", "twice_sigmoid"}}));
    run(with({{"qk_l2norm", "false"}, {"beta", "sigmoid"}}));
    run(with({{"gate_in_kernel", "true"}}));
    run(with({{"gate_in_kernel", "true"}}, {"dt_bias"}));
    run(with({{"gate_in_kernel", "true"}, {"safe_gate", "true"}, {"lower_bound", "-5"}}), -5);
    run(with({{"gate_in_kernel", "true"}, {"lower_bound", "-2.5"}}, {"A_log", "dt_bias"}), -2.5);
    Setting bounded = with({{"safe_gate", "true"}});
    bounded.draw["g"] = [](std::mt19937_64& random) { return -5 * unit_interval(random); };
    run(bounded);
  }
}

TEST_CASE("gdn2") {
  const auto run = [](const Setting& s, double bound = 0) {
    compare(
        "gdn2",
        [&](const Head& x) {
          const auto K = x.dim("K"), V = x.dim("V");
          const bool unit = set(s, "qk_l2norm");
          for (std::int64_t t = 0; t < x.tokens; ++t) {
            const Numbers k = row(x, "k", t, K, unit), b = row(x, "b", t, K), w = row(x, "w", t, V);
            Numbers erase = k, v = row(x, "v", t, V);
            for (std::size_t i = 0; i < k.size(); ++i) erase[i] *= b[i];
            double* S = x.carry("S");
            decay_rows(S, channel_decays(x, s, "g", t, bound), V);
            const Numbers seen = read(S, erase, V);
            for (std::size_t j = 0; j < v.size(); ++j) v[j] = w[j] * v[j] - seen[j];
            write(S, k, v);
            output(x, row(x, "q", t, K, unit), t);
          }
        },
        s);
  };
  run(with({}));
  run(with({{"qk_l2norm", "true"}, {"gate_in_kernel", "true"}}));
  run(with({{"gate_in_kernel", "true"}, {"lower_bound", "-5"}}, {"A_log"}), -5);
}

TEST_CASE("precond_gated_delta_rule") {
  const auto run = [](const Setting& s) {
    compare("precond_gated_delta_rule", delta(s, !set(s, "qk_l2norm", "false"), head_decays, preconditioned), s);
  };
  run(with({}));
  run(with({{"qk_l2norm", "false"}, {"beta", "sigmoid"}}));
  run(with({{"beta", "twice_sigmoid"}}, {"g", "log_atk_scale"}));
}

TEST_CASE("dplr, iplr and rwkv7") {
  const auto run = [](const char* name, const char* query, const char* gate, const Setting& s, bool product) {
    compare(
        name,
        [&](const Head& x) {
          const auto K = x.dim("K"), V = x.dim("V");
          for (std::int64_t t = 0; t < x.tokens; ++t) {
            Numbers a = row(x, product ? "kk" : "a", t, K), b = row(x, product ? "a" : "b", t, K);
            for (std::size_t i = 0; product && i < a.size(); ++i) b[i] *= a[i], a[i] = -a[i];
            double* S = x.carry("S");
            const Numbers seen = read(S, a, V);
            decay_rows(S, *gate ? channel_decays(x, s, gate, t) : same(1, K), V);
            write(S, b, seen);
            write(S, row(x, "k", t, K), row(x, "v", t, V));
            output(x, row(x, query, t, K), t);
          }
        },
        s);
  };
  run("dplr", "q", "gk", with({}), false);
  run("iplr", "q", "", with({}), false);
  run("rwkv7", "r", "w", with({}), true);
  run("rwkv7", "r", "w", with({{"form", "a_b"}}), false);
  Setting bounded = with({{"lower_bound", "-3"}});
  bounded.draw["gk"] = bounded.draw["w"] = [](std::mt19937_64& random) { return -3 * unit_interval(random); };
  run("dplr", "q", "gk", bounded, false);
  run("rwkv7", "r", "w", bounded, true);
}

TEST_CASE("gated_oja_rule") {
  const auto run = [](Setting s) {
    s.draw["v"] = small;
    compare(
        "gated_oja_rule",
        [&](const Head& x) {
          const auto K = x.dim("K"), V = x.dim("V");
          for (std::int64_t t = 0; t < x.tokens; ++t) {
            Numbers k = row(x, "k", t, K, set(s, "k_l2norm"));
            const Numbers v = row(x, "v", t, V);
            double* S = x.carry("S");
            for (std::int64_t i = 0; i < K; ++i) {
              double seen = 0;
              for (std::int64_t j = 0; j < V; ++j) {
                S[i * V + j] *= Head::decay(x.row("gv", t)[j]);
                seen += S[i * V + j] * v[static_cast<std::size_t>(j)];
              }
              double& to = k[static_cast<std::size_t>(i)];
              to = factor(s, x.row("beta", t)[0]) * (to - seen);
            }
            write(S, k, v);
            output(x, row(x, "q", t, K, set(s, "q_l2norm")), t);
          }
        },
        s);
  };
  run(with({}));
  run(with({{"q_l2norm", "true"}, {"beta", "twice_sigmoid"}}));
  run(with({{"k_l2norm", "true"}, {"beta", "sigmoid"}}));
}
