// The elementary functions of host code, against double, for each instruction set that this CPU runs.
#include "codegen/host/Host.h"
#include "codegen/host/Lanes.h"
#include "Loaded.h"
#include "runtime/HostIsa.h"
#include <bit>
#include <cmath>
#include <doctest/doctest.h>
#include <functional>
#include <limits>

using namespace latile;
using namespace latile::host;

namespace {

using Function = std::function<Ir(const Lanes&, Ir)>;

/// y[i] = f(x[i]) for i below n, a multiple of 16.
std::vector<float> apply(const HostIsa& isa, const Function& f, const std::vector<float>& x) {
  llvm::LLVMContext context;
  llvm::Module module("lanes", context);
  llvm::IRBuilder<> builder(context);
  auto* type = llvm::FunctionType::get(builder.getVoidTy(),
                                       {builder.getPtrTy(), builder.getPtrTy(), builder.getInt64Ty()}, false);
  auto* function = llvm::Function::Create(type, llvm::Function::ExternalLinkage, "apply", module);
  builder.SetInsertPoint(llvm::BasicBlock::Create(context, "entry", function));
  Lanes l(builder, isa);
  l.loop(l.index(0), function->getArg(2), l.width, [&](Ir i) {
    Ir in = l.load(l.at(function->getArg(0), l.mul(i, 4)), ElementType::f32, nullptr);
    l.store(f(l, in), l.at(function->getArg(1), l.mul(i, 4)), ElementType::f32, nullptr);
  });
  builder.CreateRetVoid();
  std::string shared, failure;
  REQUIRE_MESSAGE(compile_module(module, isa, shared, failure), failure);
  Loaded loaded(shared);
  auto* run = loaded.get<void (*)(const float*, float*, std::int64_t)>("apply");
  REQUIRE(static_cast<bool>(run));
  std::vector<float> padded = x, y;
  padded.resize((x.size() + 15) / 16 * 16, 0.0f);
  y.resize(padded.size());
  run(padded.data(), y.data(), static_cast<std::int64_t>(padded.size()));
  y.resize(x.size());
  return y;
}

std::vector<HostIsa> levels() {
  std::vector<HostIsa> out;
  for (const char* name : {"x86-64-v3", "avx512", "avx512bf16", "amx"}) {
    HostIsa isa;
    REQUIRE(HostIsa::named(name, isa));
    if (host_supports(isa)) out.push_back(isa);
  }
  return out;
}

/// Every `step`-th float of [lo, hi], in order of their bits.
std::vector<float> floats(float lo, float hi, std::uint32_t step) {
  std::vector<float> out;
  auto walk = [&](float from, float to) {
    for (std::uint32_t bits = std::bit_cast<std::uint32_t>(from); bits <= std::bit_cast<std::uint32_t>(to);
         bits += step)
      out.push_back(std::bit_cast<float>(bits));
  };
  if (lo < 0) walk(hi < 0 ? hi : -0.0f, lo);
  if (hi > 0) walk(lo > 0 ? lo : 0.0f, hi);
  return out;
}

double worst_relative(const std::vector<float>& x, const std::vector<float>& y, double (*exact)(double)) {
  double worst = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    double e = exact(x[i]);
    if (std::fabs(e) < std::numeric_limits<float>::min()) continue;  // subnormal results have fewer bits
    worst = std::max(worst, std::fabs(y[i] - e) / std::fabs(e));
  }
  return worst;
}

constexpr float inf = std::numeric_limits<float>::infinity(), not_a_number = std::numeric_limits<float>::quiet_NaN();

}  // namespace

TEST_CASE("exp2 is exact to 1e-7 over the range of gates, 0 at -inf, and keeps NaN") {
  for (const HostIsa& isa : levels()) {
    CAPTURE(isa.level);
    auto exp2 = [](const Lanes& l, Ir x) { return l.exp2(x); };
    auto x = floats(-126.0f, 127.0f, 7 * 31);
    CHECK(worst_relative(x, apply(isa, exp2, x), [](double v) { return std::exp2(v); }) < 1e-7);
    auto edge = apply(isa, exp2, {-inf, -3000.0f, -127.0f, 0.0f, 1.0f, 128.0f, 3000.0f, inf, not_a_number});
    CHECK(edge[0] == 0.0f);
    CHECK(edge[1] == 0.0f);
    CHECK(edge[2] == 0.0f);
    CHECK(edge[3] == 1.0f);
    CHECK(edge[4] == 2.0f);
    CHECK(edge[5] == inf);
    CHECK(edge[6] == inf);
    CHECK(edge[7] == inf);
    CHECK(std::isnan(edge[8]));
  }
}

TEST_CASE("log2, sigmoid, softplus and tanh keep their relative accuracy at both ends") {
  for (const HostIsa& isa : levels()) {
    CAPTURE(isa.level);
    auto log2 = [](const Lanes& l, Ir x) { return l.log2(x); };
    auto x = floats(std::numeric_limits<float>::min(), 1e30f, 7919);
    CHECK(worst_relative(x, apply(isa, log2, x), [](double v) { return std::log2(v); }) < 5e-7);
    auto edge = apply(isa, log2, {0.0f, 1.0f, inf, -1.0f, not_a_number});
    CHECK(edge[0] == -inf);
    CHECK(edge[1] == 0.0f);
    CHECK(edge[2] == inf);
    CHECK(std::isnan(edge[3]));
    CHECK(std::isnan(edge[4]));

    auto wide = floats(-80.0f, 80.0f, 7919);
    auto sigmoid = apply(isa, [](const Lanes& l, Ir v) { return l.sigmoid(v); }, wide);
    CHECK(worst_relative(wide, sigmoid, [](double v) { return 1 / (1 + std::exp(-v)); }) < 1e-5);
    auto softplus = apply(isa, [](const Lanes& l, Ir v) { return l.softplus(v); }, wide);
    CHECK(worst_relative(wide, softplus, [](double v) { return std::log1p(std::exp(v)); }) < 1e-5);
    auto tanh = apply(isa, [](const Lanes& l, Ir v) { return l.tanh(v); }, wide);
    CHECK(worst_relative(wide, tanh, [](double v) { return std::tanh(v); }) < 2e-6);
  }
}

TEST_CASE("bfloat16 stores round to nearest even and keep NaN") {
  for (const HostIsa& isa : levels()) {
    CAPTURE(isa.level);
    auto through = [](const Lanes& l, Ir x) {
      Ir slot = l.b.CreateAlloca(l.ivec);
      l.store(x, slot, ElementType::bf16, nullptr);
      return l.load(slot, ElementType::bf16, nullptr);
    };
    std::vector<float> x{1.0f, 1.00390625f, 1.01171875f, 3.4e38f, -1.0f, inf, -inf, not_a_number, 1e-40f, 0.1f};
    auto y = apply(isa, through, x);
    CHECK(y[0] == 1.0f);
    CHECK(y[1] == 1.0f);       // halfway, to even
    CHECK(y[2] == 1.015625f);  // halfway, to even
    CHECK(y[3] == inf);
    CHECK(y[4] == -1.0f);
    CHECK(y[5] == inf);
    CHECK(y[6] == -inf);
    CHECK(std::isnan(y[7]));
    CHECK(y[9] == 0.10009765625f);
  }
}

TEST_CASE("a masked store writes the lanes of its mask and nothing behind them") {
  for (const HostIsa& isa : levels())
    for (ElementType type : {ElementType::f32, ElementType::f16, ElementType::bf16})
      for (int count : {0, 1, 2, 7}) {
        CAPTURE(isa.level);
        CAPTURE(name(type));
        CAPTURE(count);
        auto over_twos = [&](const Lanes& l, Ir x) {
          Ir slot = l.b.CreateAlloca(l.ivec);
          l.store(l.splat(2.0), slot, type, nullptr);
          l.store(x, slot, type, l.mask(l.index(count)));
          return l.load(slot, type, nullptr);
        };
        auto y = apply(isa, over_twos, std::vector<float>(16, 1.0f));
        for (int k = 0; k < (isa.level == "x86-64-v3" ? 8 : 16); ++k)
          CHECK(y[static_cast<std::size_t>(k)] == (k < count ? 1.0f : 2.0f));
      }
}
