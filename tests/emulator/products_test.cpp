// Products of matrices on fragments. The maps are written out here once more, as formulas of lane, register and half,
// in the form in which they were read off an H200.
#include "tests/cuda/Maps.h"
#include "tests/emulator/Emulated.h"
#include "tests/emulator/Texts.h"
#include <cmath>
#include <doctest/doctest.h>
#include <functional>

using namespace latile::emulator;

namespace {

namespace maps = latile::maps;
using maps::At;
using Map = std::function<At(int lane, int element)>;

struct Case {
  std::string name;
  int m, n, k;
  int bytes;  ///< of an operand's element
  std::uint16_t (*narrow)(float);
  std::string operand;  ///< LLVM type of one word of an operand
  Map a, b, c;
};

std::vector<Case> cases() {
  return {
      {"mma.m16n8k16.row.col.bf16", 16, 8, 16, 2, to_bf16, "i32", maps::a_16, maps::b_16, maps::accumulator},
      {"mma.m16n8k16.row.col.f32.f32", 16, 8, 16, 2, to_f16, "<2 x half>", maps::a_16, maps::b_16, maps::accumulator},
      {"mma.m16n8k8.row.col.bf16", 16, 8, 8, 2, to_bf16, "i32", maps::a_16, maps::b_16, maps::accumulator},
      {"mma.m16n8k8.row.col.f32.f32", 16, 8, 8, 2, to_f16, "<2 x half>", maps::a_16, maps::b_16, maps::accumulator},
      {"mma.m16n8k8.row.col.tf32", 16, 8, 8, 4, nullptr, "i32", maps::a_tf32, maps::b_tf32, maps::accumulator},
      {"mma.m16n8k4.row.col.tf32", 16, 8, 4, 4, nullptr, "i32", maps::a_tf32, maps::b_tf32, maps::accumulator}};
}

// A kernel that loads words, multiplies and stores the four accumulators.
std::string text_of(const Case& c, int words_a, int words_b) {
  std::string types, arguments, text;
  for (int i = 0; i < words_a + words_b; ++i) {
    std::string n = std::to_string(i);
    types += c.operand + ", ";
    arguments += c.operand + " %w" + n + ", ";
    text += "  %a" + n + " = add i32 %first, " + n + "\n  %p" + n +
            " = getelementptr i32, ptr addrspace(1) %x, i32 %a" + n + "\n  %w" + n + " = load " + c.operand +
            ", ptr addrspace(1) %p" + n + ", align 4\n";
  }
  text += "  %ci = shl i32 %t, 2\n  %cp = getelementptr float, ptr addrspace(1) %c, i32 %ci\n"
          "  %c4 = load <4 x float>, ptr addrspace(1) %cp, align 16\n";
  for (int i = 0; i < 4; ++i) {
    std::string n = std::to_string(i);
    text += "  %c" + n + "x = extractelement <4 x float> %c4, i32 " + n + "\n";
    types += i ? ", float" : "float";
    arguments += (i ? ", float %c" : "float %c") + n + "x";
  }
  text += "  %d = call {float, float, float, float} @llvm.nvvm." + c.name + "(" + arguments + ") ;@tile.dot:1\n";
  for (int i = 0; i < 4; ++i) {
    std::string n = std::to_string(i);
    text += "  %d" + n + " = extractvalue {float, float, float, float} %d, " + n + "\n  %oi" + n + " = add i32 %ci, " +
            n + "\n  %o" + n + " = getelementptr float, ptr addrspace(1) %o, i32 %oi" + n + "\n  store float %d" + n +
            ", ptr addrspace(1) %o" + n + ", align 4\n";
  }
  return declarations + "declare {float, float, float, float} @llvm.nvvm." + c.name + "(" + types + ")\n" +
         "define ptx_kernel void @product(ptr addrspace(1) %x, ptr addrspace(1) %c, ptr addrspace(1) %o) {\n"
         "  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()\n  %first = mul i32 %t, " +
         std::to_string(words_a + words_b) + "\n" + text + "  ret void\n}\n";
}

}  // namespace

TEST_CASE("mma.sync of every type") {
  for (const Case& c : cases()) {
    CAPTURE(c.name);
    int elements_a = c.m * c.k / 32, elements_b = c.k * c.n / 32;
    int words_a = elements_a * c.bytes / 4, words_b = elements_b * c.bytes / 4, words = words_a + words_b;
    // Small integers, so that every order of sums is exact.
    auto A = [&](int i, int k) { return static_cast<float>((i * 7 + k * 5) % 17 - 8); };
    auto B = [&](int k, int j) { return static_cast<float>((k * 11 + j * 3) % 13 - 6); };
    auto C = [&](int i, int j) { return static_cast<float>(i * 8 + j); };
    std::vector<std::uint32_t> in(static_cast<std::size_t>(32 * words));
    auto put = [&](int lane, int first, int e, float x) {
      auto* base = reinterpret_cast<char*>(&in[static_cast<std::size_t>(lane * words + first)]);
      if (c.bytes == 4) {
        // Below the mantissa of tf32: the unit drops it.
        std::uint32_t bits;
        std::memcpy(&bits, &x, 4);
        bits |= 0x0fff;
        std::memcpy(base + 4 * e, &bits, 4);
      } else {
        std::uint16_t h = c.narrow(x);
        std::memcpy(base + 2 * e, &h, 2);
      }
    };
    for (int l = 0; l < 32; ++l) {
      for (int e = 0; e < elements_a; ++e) put(l, 0, e, A(c.a(l, e).row, c.a(l, e).column));
      for (int e = 0; e < elements_b; ++e) put(l, words_a, e, B(c.b(l, e).row, c.b(l, e).column));
    }
    Memory memory;
    Tensor<std::uint32_t> x(memory, "x", in.size(), [&](std::size_t i) { return in[i]; });
    Tensor<float> accumulators(memory, "c", 128, [&](std::size_t i) {
      At at = c.c(static_cast<int>(i / 4), static_cast<int>(i % 4));
      return C(at.row, at.column);
    });
    Tensor<float> o(memory, "o", 128);
    Kernel kernel(text_of(c, words_a, words_b));
    Result r = kernel.run(memory, {x.address(), accumulators.address(), o.address()});
    CHECK_MESSAGE(r.reports.empty(), texts(r));
    for (int l = 0; l < 32; ++l)
      for (int e = 0; e < 4; ++e) {
        At at = c.c(l, e);
        float sum = C(at.row, at.column);
        for (int k = 0; k < c.k; ++k) sum += A(at.row, k) * B(k, at.column);
        REQUIRE(o.data[static_cast<std::size_t>(l * 4 + e)] == sum);
      }
  }
}

namespace {

// AMD, by the tables of its ISA documents: lanes count along one side, groups of lanes along the contraction.
struct Wave {
  std::string name, a, b, d;  ///< the LLVM types of a lane's operands and results
  int lanes, m, n, k, bytes;
  std::uint16_t (*narrow)(float);
  Map ma, mb, md;
  bool modifiers;
};

std::vector<Wave> waves() {
  auto a16x = [](int l, int e) { return At{l % 16, 4 * (l / 16) + e}; };
  auto b16x = [](int l, int e) { return At{4 * (l / 16) + e, l % 16}; };
  auto d16 = [](int l, int e) { return At{4 * (l / 16) + e, l % 16}; };
  auto a32 = [](int l, int e) { return At{l % 32, 4 * (l / 32) + e}; };
  auto b32 = [](int l, int e) { return At{4 * (l / 32) + e, l % 32}; };
  auto d32 = [](int l, int e) { return At{8 * (e / 4) + 4 * (l / 32) + e % 4, l % 32}; };
  auto a12 = [](int l, int e) { return At{l % 16, 8 * (l / 16) + e}; };
  auto b12 = [](int l, int e) { return At{8 * (l / 16) + e, l % 16}; };
  return {{"mfma.f32.16x16x16bf16.1k", "<4 x i16>", "<4 x i16>", "<4 x float>", 64, 16, 16, 16, 2, to_bf16, a16x, b16x,
           d16, true},
          {"mfma.f32.16x16x16f16", "<4 x half>", "<4 x half>", "<4 x float>", 64, 16, 16, 16, 2, to_f16, a16x, b16x,
           d16, true},
          {"mfma.f32.32x32x8bf16.1k", "<4 x i16>", "<4 x i16>", "<16 x float>", 64, 32, 32, 8, 2, to_bf16, a32, b32,
           d32, true},
          {"mfma.f32.32x32x8f16", "<4 x half>", "<4 x half>", "<16 x float>", 64, 32, 32, 8, 2, to_f16, a32, b32, d32,
           true},
          {"mfma.f32.16x16x4f32", "float", "float", "<4 x float>", 64, 16, 16, 4, 4, nullptr,
           [](int l, int) { return At{l % 16, l / 16}; }, [](int l, int) { return At{l / 16, l % 16}; }, d16, true},
          {"mfma.f32.32x32x2f32", "float", "float", "<16 x float>", 64, 32, 32, 2, 4, nullptr,
           [](int l, int) { return At{l % 32, l / 32}; }, [](int l, int) { return At{l / 32, l % 32}; }, d32, true},
          {"wmma.f32.16x16x16.bf16.v8f32.v8i16", "<8 x i16>", "<8 x i16>", "<8 x float>", 32, 16, 16, 16, 2, to_bf16,
           a12, b12, b12, false},
          {"wmma.f32.16x16x16.f16.v8f32.v8f16", "<8 x half>", "<8 x half>", "<8 x float>", 32, 16, 16, 16, 2, to_f16,
           a12, b12, b12, false}};
}

}  // namespace

TEST_CASE("MFMA and WMMA") {
  for (const Wave& w : waves()) {
    CAPTURE(w.name);
    int ea = w.m * w.k / w.lanes, eb = w.k * w.n / w.lanes, ed = w.m * w.n / w.lanes;
    std::string modifiers = w.modifiers ? ", i32 0, i32 0, i32 0" : "", types = w.modifiers ? ", i32, i32, i32" : "";
    std::string text =
        "target triple = \"amdgcn-amd-amdhsa\"\ndeclare i32 @llvm.amdgcn.workitem.id.x()\ndeclare " + w.d +
        " @llvm.amdgcn." + w.name + "(" + w.a + ", " + w.b + ", " + w.d + types + ")\n" +
        "define amdgpu_kernel void @product(ptr addrspace(1) %x, ptr addrspace(1) %y, ptr addrspace(1) %c, "
        "ptr addrspace(1) %o) #0 {\n  %t = call i32 @llvm.amdgcn.workitem.id.x()\n";
    for (auto [name, type] : {std::pair{"x", w.a}, {"y", w.b}, {"c", w.d}})
      text += std::string("  %") + name + "p = getelementptr " + type + ", ptr addrspace(1) %" + name +
              ", i32 %t\n  %" + name + "v = load " + type + ", ptr addrspace(1) %" + name + "p, align 4\n";
    text += "  %d = call " + w.d + " @llvm.amdgcn." + w.name + "(" + w.a + " %xv, " + w.b + " %yv, " + w.d + " %cv" +
            modifiers + ") ;@tile.dot:1\n  %op = getelementptr " + w.d + ", ptr addrspace(1) %o, i32 %t\n  store " +
            w.d + " %d, ptr addrspace(1) %op, align 4\n  ret void\n}\nattributes #0 = { " +
            (w.lanes == 32 ? "\"target-features\"=\"+wavefrontsize32\"" : "nounwind") + " }\n";
    auto A = [&](int i, int k) { return static_cast<float>((i * 7 + k * 5) % 17 - 8); };
    auto B = [&](int k, int j) { return static_cast<float>((k * 11 + j * 3) % 13 - 6); };
    auto C = [&](int i, int j) { return static_cast<float>(i * 32 + j); };
    auto bytes = [&](int elements, const Map& map, auto&& value) {
      std::vector<std::uint8_t> all(static_cast<std::size_t>(w.lanes * elements * w.bytes));
      for (int l = 0; l < w.lanes; ++l)
        for (int e = 0; e < elements; ++e) {
          float x = value(map(l, e).row, map(l, e).column);
          auto* to = all.data() + (l * elements + e) * w.bytes;
          if (w.narrow) {
            std::uint16_t h = w.narrow(x);
            std::memcpy(to, &h, 2);
          } else {
            std::memcpy(to, &x, 4);
          }
        }
      return all;
    };
    auto xs = bytes(ea, w.ma, A), ys = bytes(eb, w.mb, B);
    Memory memory;
    Tensor<std::uint8_t> x(memory, "x", xs.size(), [&](std::size_t i) { return xs[i]; });
    Tensor<std::uint8_t> y(memory, "y", ys.size(), [&](std::size_t i) { return ys[i]; });
    auto count = static_cast<std::size_t>(w.m * w.n);
    Tensor<float> c(memory, "c", count, [&](std::size_t i) {
      At at = w.md(static_cast<int>(i) / ed, static_cast<int>(i) % ed);
      return C(at.row, at.column);
    });
    Tensor<float> o(memory, "o", count);
    Kernel kernel(text);
    kernel.threads = w.lanes;
    Result r = kernel.run(memory, {x.address(), y.address(), c.address(), o.address()});
    CHECK_MESSAGE(r.reports.empty(), texts(r));
    for (std::size_t i = 0; i < count; ++i) {
      At at = w.md(static_cast<int>(i) / ed, static_cast<int>(i) % ed);
      float sum = C(at.row, at.column);
      for (int k = 0; k < w.k; ++k) sum += A(at.row, k) * B(k, at.column);
      REQUIRE(o.data[i] == sum);
    }
  }
}
