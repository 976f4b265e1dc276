// Operators that forget by a decay, and delta_rule, against token loops written here by hand.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include "tests/dsl/Meaning.h"
#include <cmath>
#include <doctest/doctest.h>

using namespace latile;
using namespace latile::meaning;

namespace {

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

/// S = diag(e^g) S diag(e^gv) + k vᵀ for one token, then o = Sᵀ (scale q).
template <class Decay> void linear(const Head& x, const char* query, Decay&& decay) {
  const auto K = x.dim("K"), V = x.dim("V");
  double* S = x.carry("S");
  for (std::int64_t t = 0; t < x.tokens; ++t) {
    const double *q = x.row(query, t), *k = x.row("k", t), *v = x.row("v", t);
    for (std::int64_t j = 0; j < V; ++j) {
      double o = 0;
      for (std::int64_t i = 0; i < K; ++i) {
        double& s = S[i * V + j];
        s = decay(t, i, j) * s + k[i] * v[j];
        o += x.scale * q[i] * s;
      }
      x.row("o", t)[j] = o;
    }
  }
}

}  // namespace

TEST_CASE("gla") {
  compare("gla", [](const Head& x) {
    linear(x, "q", [&](std::int64_t t, std::int64_t i, std::int64_t) { return Head::decay(x.row("g", t)[i]); });
  });
  Setting both;
  both.options = {{"value_gate", "true"}};
  compare(
      "gla",
      [](const Head& x) {
        linear(x, "q", [&](std::int64_t t, std::int64_t i, std::int64_t j) {
          return Head::decay(x.row("g", t)[i]) * Head::decay(x.row("gv", t)[j]);
        });
      },
      both);
}

TEST_CASE("retention and lightning_attn") {
  auto constant = [](double factor) {
    return [=](const Head& x) {
      const double decay = Head::decay(factor * *x.param("g_gamma"));
      linear(x, "q", [&](std::int64_t, std::int64_t, std::int64_t) { return decay; });
    };
  };
  compare("retention", constant(1));
  compare("lightning_attn", constant(1));
  Setting deep;
  deep.options = {{"layer_idx", "6"}, {"num_layers", "8"}};
  compare("lightning_attn", constant(0.25), deep);
  deep.draw["g_gamma"] = [](std::mt19937_64&) { return -4000; };
  compare("lightning_attn", constant(0.25), deep);
}

TEST_CASE("rwkv6") {
  compare("rwkv6", [](const Head& x) {
    const auto K = x.dim("K"), V = x.dim("V");
    double *S = x.carry("S"), *u = x.param("u");
    for (std::int64_t t = 0; t < x.tokens; ++t) {
      const double *r = x.row("r", t), *k = x.row("k", t), *v = x.row("v", t), *w = x.row("w", t);
      for (std::int64_t j = 0; j < V; ++j) {
        double o = 0;
        for (std::int64_t i = 0; i < K; ++i) {
          double& s = S[i * V + j];
          o += x.scale * r[i] * (s + u[i] * k[i] * v[j]);
          s = Head::decay(w[i]) * s + k[i] * v[j];
        }
        x.row("o", t)[j] = o;
      }
    }
  });
}

TEST_CASE("hgrn") {
  compare("hgrn", [](const Head& x) {
    double* h = x.carry("h");
    for (std::int64_t t = 0; t < x.tokens; ++t)
      for (std::int64_t d = 0; d < x.dim("D"); ++d)
        x.row("o", t)[d] = h[d] = Head::decay(x.row("g", t)[d]) * h[d] + x.row("x", t)[d];
  });
}

TEST_CASE("rwkv4") {
  Setting s;
  s.draw["beta"] = [](std::mt19937_64& random) { return std::uniform_real_distribution<double>(0.5, 2)(random); };
  for (double spread : {1.0, 30.0}) {  // of the keys: e^k alone would overflow
    s.draw["k"] = [=](std::mt19937_64& random) { return spread * std::normal_distribution<double>()(random); };
    compare(
        "rwkv4",
        [](const Head& x) {
          double *a = x.carry("alpha"), *b = x.carry("beta"), *e = x.carry("eps");
          for (std::int64_t t = 0; t < x.tokens; ++t)
            for (std::int64_t d = 0; d < x.dim("D"); ++d) {
              const double w = -std::exp(x.param("w")[d]), u = x.param("u")[d], k = x.row("k", t)[d],
                           v = x.row("v", t)[d];
              const double top = std::max(u + k, e[d]), past = std::exp(e[d] - top), own = std::exp(u + k - top);
              x.row("o", t)[d] = (past * a[d] + own * v) / (past * b[d] + own);
              const double next = std::max(w + e[d], k), keep = std::exp(w + e[d] - next), add = std::exp(k - next);
              a[d] = keep * a[d] + add * v, b[d] = keep * b[d] + add, e[d] = next;
            }
        },
        s);
  }
}

namespace {

/// One token of two memories of slots, Hk [K, M] and Hv [M, V].
void slots(const Head& x, std::int64_t t, const Numbers& decay, const Numbers& s) {
  const auto K = x.dim("K"), V = x.dim("V"), M = x.dim("M");
  double *Hk = x.carry("Hk"), *Hv = x.carry("Hv"), sum = 0;
  const double *q = x.row("q", t), *k = x.row("k", t), *v = x.row("v", t);
  Numbers p(M);
  for (std::int64_t m = 0; m < M; ++m) {
    for (std::int64_t i = 0; i < K; ++i) {
      double& h = Hk[i * M + m];
      h = decay[m] * h + k[i] * s[m];
      p[m] += x.scale * q[i] * h;
    }
    p[m] = std::exp(p[m]), sum += p[m];
  }
  for (std::int64_t j = 0; j < V; ++j) {
    double o = 0;
    for (std::int64_t m = 0; m < M; ++m) {
      double& h = Hv[m * V + j];
      h = decay[m] * h + s[m] * v[j];
      o += p[m] / sum * h;
    }
    x.row("o", t)[j] = o;
  }
}

}  // namespace

TEST_CASE("gsa") {
  compare("gsa", [](const Head& x) {
    for (std::int64_t t = 0; t < x.tokens; ++t) {
      Numbers decay, s;
      for (std::int64_t m = 0; m < x.dim("M"); ++m)
        decay.push_back(Head::decay(x.row("g", t)[m])), s.push_back(x.row("s", t)[m]);
      slots(x, t, decay, s);
    }
  });
}

TEST_CASE("abc") {
  auto oracle = [](const Head& x) {
    const auto M = x.dim("M");
    double *z = x.carry("z"), *n = x.carry("n");
    for (std::int64_t t = 0; t < x.tokens; ++t) {
      Numbers decay(M), s(M);
      for (std::int64_t m = 0; m < M; ++m) {
        // The sum of e^s so far, kept relative to the largest.
        const double in = x.row("s", t)[m], top = n[m] > 0 ? std::max(in, z[m]) : in;
        const double past = n[m] * std::exp(z[m] - top), own = std::exp(in - top);
        decay[m] = past / (past + own), s[m] = own / (past + own);
        z[m] = top + std::log(past + own), n[m] = 1;
      }
      slots(x, t, decay, s);
    }
  };
  Setting first, more;
  for (const char* memory : {"Hk", "Hv", "z", "n"}) first.draw[memory] = [](std::mt19937_64&) { return 0.0; };
  compare("abc", oracle, first);
  more.draw["n"] = [](std::mt19937_64&) { return 1.0; };
  compare("abc", oracle, more);
  more.draw["s"] = [](std::mt19937_64& random) { return 30 * std::normal_distribution<double>()(random); };
  compare("abc", oracle, more);
}

TEST_CASE("delta_rule") {
  auto oracle = [](bool l2norm, const std::string& form, bool channels) {
    return [=](const Head& x) {
      const auto K = x.dim("K"), V = x.dim("V");
      double* S = x.carry("S");
      for (std::int64_t t = 0; t < x.tokens; ++t) {
        auto unit = [&](const char* name) {
          Numbers r(x.row(name, t), x.row(name, t) + K);
          double squares = 1e-6;
          for (double e : r) squares += e * e;
          for (double& e : r) e /= l2norm ? std::sqrt(squares) : 1;
          return r;
        };
        const Numbers q = unit("q"), k = unit("k");
        for (std::int64_t j = 0; j < V; ++j) {
          double beta = x.has("beta") ? x.row("beta", t)[channels ? j : 0] : 1, erased = 0, o = 0;
          if (form != "given") beta = (form == "sigmoid" ? 1 : 2) * sigmoid(beta);
          for (std::int64_t i = 0; i < K; ++i) erased += k[i] * S[i * V + j];
          for (std::int64_t i = 0; i < K; ++i) {
            S[i * V + j] += k[i] * beta * (x.row("v", t)[j] - erased);
            o += x.scale * q[i] * S[i * V + j];
          }
          x.row("o", t)[j] = o;
        }
      }
    };
  };
  Setting s;
  compare("delta_rule", oracle(false, "given", false), s);
  s.absent = {"beta"};
  s.options = {{"qk_l2norm", "true"}};
  compare("delta_rule", oracle(true, "given", false), s);
  s.absent = {};
  for (const char* form : {"sigmoid", "twice_sigmoid"}) {
    s.options = {{"qk_l2norm", "true"}, {"beta", form}};
    compare("delta_rule", oracle(true, form, false), s);
  }
  s.options = {{"headwise_beta", "true"}};
  compare("delta_rule", oracle(false, "given", true), s);
}
