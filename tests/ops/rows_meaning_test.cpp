// Operators written as kernels, and attention by levels, against loops written here by hand from their definitions.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include "compiler/Emit.h"
#include "mlir/IR/MLIRContext.h"
#include "tests/dsl/Meaning.h"
#include <bit>
#include <cmath>
#include <doctest/doctest.h>

using namespace latile;
using namespace latile::meaning;

namespace {

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

TEST_CASE("l2norm") {
  compare("l2norm", [](const Head& x) {
    for (std::int64_t t = 0; t < x.tokens; ++t) {
      double squares = 1e-6;
      for (std::int64_t d = 0; d < x.dim("D"); ++d) squares += x.row("x", t)[d] * x.row("x", t)[d];
      for (std::int64_t d = 0; d < x.dim("D"); ++d) x.row("y", t)[d] = x.row("x", t)[d] / std::sqrt(squares);
    }
  });
}

Oracle rms_norm(bool gate_first, bool swish) {
  return [=](const Head& x) {
    const auto D = x.dim("D");
    for (std::int64_t t = 0; t < x.tokens; ++t) {
      auto act = [&](std::int64_t d) {
        const double g = x.row("gate", t)[d];
        return swish ? g * sigmoid(g) : sigmoid(g);
      };
      Numbers r(x.row("x", t), x.row("x", t) + D);
      double mean = 0;
      for (std::int64_t d = 0; d < D; ++d) {
        double& one = r[static_cast<std::size_t>(d)];
        if (x.has("residual")) one += x.row("residual", t)[d];
        if (x.has("sum")) x.row("sum", t)[d] = one;
        if (x.has("gate") && gate_first) one *= act(d);
        mean += one * one / static_cast<double>(D);
      }
      for (std::int64_t d = 0; d < D; ++d) {
        double y = r[static_cast<std::size_t>(d)] / std::sqrt(mean + 1e-5);
        if (x.has("weight")) y *= x.param("weight")[d];
        if (x.has("bias")) y += x.param("bias")[d];
        x.row("y", t)[d] = x.has("gate") && !gate_first ? y * act(d) : y;
      }
    }
  };
}
TEST_CASE("rms_norm") {
  compare("rms_norm", rms_norm(false, true));
  Setting first;
  first.options = {{"gate_first", "true"}, {"weight_per_head", "true"}};
  compare("rms_norm", rms_norm(true, true), first);
  Setting bare;
  bare.options = {{"activation", "sigmoid"}};
  bare.absent = {"bias", "sum"};
  compare("rms_norm", rms_norm(false, false), bare);
  Setting wide;  // than what a program takes at a time
  wide.absent = {"gate", "residual", "weight"};
  wide.dims["D"] = 1100;
  compare("rms_norm", rms_norm(false, true), wide);
}

Oracle causal_conv1d(bool silu) {
  return [=](const Head& x) {
    const auto D = x.dim("D"), W = x.dim("W");
    for (std::int64_t d = 0; d < D; ++d) {
      Numbers all;
      for (std::int64_t w = 0; w < W; ++w) all.push_back(x.carry("state")[w * D + d]);
      for (std::int64_t t = 0; t < x.tokens; ++t) {
        all.push_back(x.row("x", t)[d]);
        double z = x.has("bias") ? x.param("bias")[d] : 0;
        for (std::int64_t w = 0; w < W; ++w)
          z += x.param("weight")[w * D + d] * all[static_cast<std::size_t>(t + 1 + w)];
        x.row("y", t)[d] = (silu ? z * sigmoid(z) : z) + (x.has("residual") ? x.row("residual", t)[d] : 0);
      }
      for (std::int64_t w = 0; w < W; ++w) x.carry("state")[w * D + d] = all[static_cast<std::size_t>(x.tokens + w)];
    }
  };
}
TEST_CASE("causal_conv1d") {
  Setting s;
  s.dims["W"] = 4;
  compare("causal_conv1d", causal_conv1d(true), s);
  s.dims["W"] = 20;  // reaches over more than a block of rows
  s.options = {{"activation", "none"}};
  s.absent = {"bias", "residual"};
  compare("causal_conv1d", causal_conv1d(false), s);
  s.dims["W"] = 2, s.dims["D"] = 530;
  compare("causal_conv1d", causal_conv1d(false), s);
}

TEST_CASE("token_shift") {
  compare("token_shift", [](const Head& x) {
    for (std::int64_t d = 0; d < x.dim("D"); ++d) {
      double& before = x.carry("state")[d];
      for (std::int64_t t = 0; t < x.tokens; ++t) {
        x.row("y", t)[d] = before - x.row("x", t)[d];
        before = x.row("x", t)[d];
      }
    }
  });
}

int level(std::int64_t i, std::int64_t j) {
  return static_cast<int>(std::bit_width(static_cast<std::uint64_t>(i ^ j)));
}

TEST_CASE("log_linear_attn") {
  const Oracle dense = [](const Head& x) {
    const auto K = x.dim("K"), V = x.dim("V"), L = x.dim("L");
    const auto from = static_cast<std::int64_t>(x.carry("position")[0]);
    double* S = x.carry("S");
    const Numbers before(S, S + L * K * V);
    auto weight = [&](std::int64_t t, std::int64_t l) { return l < L ? x.row("level_scales", t)[l] : 0.0; };
    double since = 1;  // decay since the start
    for (std::int64_t t = 0; t < x.tokens; ++t) {
      const double* q = x.row("q", t);
      double* o = x.row("o", t);
      std::fill_n(o, V, 0.0);
      since *= Head::decay(x.row("g", t)[0]);
      // What came before the run is kept by blocks; those of level l are in block l and not in block l − 1.
      for (std::int64_t l = 0; l < L; ++l)
        for (std::int64_t k = 0; k < K; ++k)
          for (std::int64_t v = 0; v < V; ++v) {
            const std::int64_t at = (l * K + k) * V + v;
            const double tokens =
                before[static_cast<std::size_t>(at)] - (l ? before[static_cast<std::size_t>(at - K * V)] : 0);
            o[v] += since * weight(t, std::max<std::int64_t>(l, level(from + t, from))) * q[k] * tokens;
          }
      double decay = 1;
      for (std::int64_t j = t; j >= 0; --j) {
        double score = 0;
        for (std::int64_t k = 0; k < K; ++k) score += q[k] * x.row("k", j)[k];
        for (std::int64_t v = 0; v < V; ++v)
          o[v] += decay * weight(t, level(from + t, from + j)) * score * x.row("v", j)[v];
        decay *= Head::decay(x.row("g", j)[0]);
      }
    }
    const std::int64_t end = from + x.tokens;
    for (std::int64_t b = 0; b < L; ++b)
      for (std::int64_t k = 0; k < K; ++k)
        for (std::int64_t v = 0; v < V; ++v) {
          double sum = 0, decay = 1;
          for (std::int64_t j = x.tokens - 1; j >= 0; --j) {
            if (level(end, from + j) <= b) sum += decay * x.row("k", j)[k] * x.row("v", j)[v];
            decay *= Head::decay(x.row("g", j)[0]);
          }
          double& s = S[(b * K + k) * V + v];
          s = sum + (level(end, from) <= b ? decay * s : 0);
        }
    x.carry("position")[0] = static_cast<double>(end);
  };
  Setting s;
  s.dims["L"] = 9;
  s.draw["position"] = [](std::mt19937_64& random) { return static_cast<double>(random() % 300); };
  compare("log_linear_attn", dense, s);
  s.dims["L"] = 3;  // older tokens than the levels reach count nothing
  compare("log_linear_attn", dense, s);
}

}  // namespace
