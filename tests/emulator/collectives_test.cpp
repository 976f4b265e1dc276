// Exchanges between the lanes of a warp, against the formulas of the PTX ISA.
#include "tests/cuda/Maps.h"
#include "tests/emulator/Emulated.h"
#include "tests/emulator/Texts.h"
#include <doctest/doctest.h>

using namespace latile::emulator;

namespace {

// One warp; each lane gives words of `in` to the call and gets words of `out` back.
std::string exchange(const std::string& name, int in, int out, const std::string& arguments, const std::string& result,
                     const std::string& declared) {
  std::string text = declarations + "declare " + result + " @" + name + "(" + declared + ")\n" +
                     "define ptx_kernel void @exchange(ptr addrspace(1) %x, ptr addrspace(1) %o) {\n"
                     "  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()\n"
                     "  %xi = mul i32 %t, " +
                     std::to_string(in) + "\n  %oi = mul i32 %t, " + std::to_string(out) + "\n";
  for (int i = 0; i < in; ++i) {
    std::string n = std::to_string(i);
    text += "  %xa" + n + " = add i32 %xi, " + n + "\n  %xp" + n +
            " = getelementptr i32, ptr addrspace(1) %x, i32 %xa" + n + "\n  %x" + n +
            " = load i32, ptr addrspace(1) %xp" + n + ", align 4\n";
  }
  bool several = result[0] == '{', boolean = result == "i1", pair = result.find("i1}") != std::string::npos;
  text += "  %r = call " + result + " @" + name + "(" + arguments + ") ;@tile.exchange:1\n";
  for (int i = 0; i < out; ++i) {
    std::string n = std::to_string(i), value = "%r";
    if (several) {
      text += "  %e" + n + " = extractvalue " + result + " %r, " + n + "\n";
      value = "%e" + n;
    }
    if (boolean || (pair && i == 1)) {
      text += "  %z" + n + " = zext i1 " + value + " to i32\n";
      value = "%z" + n;
    }
    text += "  %oa" + n + " = add i32 %oi, " + n + "\n  %op" + n +
            " = getelementptr i32, ptr addrspace(1) %o, i32 %oa" + n + "\n  store i32 " + value +
            ", ptr addrspace(1) %op" + n + ", align 4\n";
  }
  return text + "  ret void\n}\n";
}

std::vector<std::uint32_t> run(const std::string& text, const std::vector<std::uint32_t>& words, std::size_t out) {
  Kernel kernel(text);
  Memory memory;
  Tensor<std::uint32_t> x(memory, "x", words.size(), [&](std::size_t i) { return words[i]; });
  Tensor<std::uint32_t> o(memory, "o", 32 * out);
  Result r = kernel.run(memory, {x.address(), o.address()});
  CHECK_MESSAGE(r.reports.empty(), texts(r));
  return o.data;
}

}  // namespace

TEST_CASE("shuffles") {
  std::vector<std::uint32_t> x;
  for (std::uint32_t l = 0; l < 32; ++l) x.push_back(100 + l);
  for (auto [mode, kind] : {std::pair{"up", latile::maps::Shuffle::up},
                            {"down", latile::maps::Shuffle::down},
                            {"bfly", latile::maps::Shuffle::butterfly},
                            {"idx", latile::maps::Shuffle::index}})
    for (int by : {0, 1, 3, 16, 31})
      for (int clamp : {0, 31, 24 << 8, 24 << 8 | 31}) {
        auto o = run(exchange(std::string("llvm.nvvm.shfl.sync.") + mode + ".i32p", 1, 2,
                              "i32 -1, i32 %x0, i32 " + std::to_string(by) + ", i32 " + std::to_string(clamp),
                              "{i32, i1}", "i32, i32, i32, i32"),
                     x, 2);
        for (int l = 0; l < 32; ++l) {
          CAPTURE(mode);
          CAPTURE(by);
          CAPTURE(clamp);
          CAPTURE(l);
          bool inside = true;
          int from = latile::maps::shuffle_source(kind, l, by, clamp, inside);
          CHECK(o[static_cast<std::size_t>(2 * l)] == 100u + static_cast<unsigned>(from));
          CHECK(o[static_cast<std::size_t>(2 * l + 1)] == inside);
        }
      }
  // What the formula means: the neighbour, the one before within a group of eight.
  bool inside = true;
  CHECK(latile::maps::shuffle_source(latile::maps::Shuffle::butterfly, 6, 1, 31, inside) == 7);
  CHECK(latile::maps::shuffle_source(latile::maps::Shuffle::up, 8, 1, 24 << 8, inside) == 8);
  CHECK_FALSE(inside);
  CHECK(latile::maps::shuffle_source(latile::maps::Shuffle::up, 9, 1, 24 << 8, inside) == 8);
}

TEST_CASE("a wave of 64 lanes") {
  Kernel kernel(R"(
target triple = "amdgcn-amd-amdhsa"
@latile_shared = external addrspace(3) global [0 x i8], align 1024
declare i32 @llvm.amdgcn.workitem.id.x()
declare i32 @llvm.amdgcn.mbcnt.lo(i32, i32)
declare i32 @llvm.amdgcn.mbcnt.hi(i32, i32)
declare i32 @llvm.amdgcn.ds.bpermute(i32, i32)
declare i32 @llvm.amdgcn.readfirstlane.i32(i32)
declare void @llvm.amdgcn.s.barrier()
define amdgpu_kernel void @wave(ptr addrspace(1) %o) {
  %t = call i32 @llvm.amdgcn.workitem.id.x()
  %low = call i32 @llvm.amdgcn.mbcnt.lo(i32 -1, i32 0)
  %lane = call i32 @llvm.amdgcn.mbcnt.hi(i32 -1, i32 %low)
  %p = getelementptr i32, ptr addrspace(3) @latile_shared, i32 %t
  store i32 %lane, ptr addrspace(3) %p, align 4 ;@tile.store:1
  fence syncscope("workgroup") release
  call void @llvm.amdgcn.s.barrier() ;@tile.sync:2
  fence syncscope("workgroup") acquire
  %m = sub i32 127, %t
  %q = getelementptr i32, ptr addrspace(3) @latile_shared, i32 %m
  %v = load i32, ptr addrspace(3) %q, align 4 ;@tile.load:3
  %from = xor i32 %lane, 33
  %index = shl i32 %from, 2
  %w = call i32 @llvm.amdgcn.ds.bpermute(i32 %index, i32 %v) ;@tile.exchange:4
  %f = call i32 @llvm.amdgcn.readfirstlane.i32(i32 %t)
  %at = shl i32 %t, 1
  %op = getelementptr i32, ptr addrspace(1) %o, i32 %at
  store i32 %w, ptr addrspace(1) %op, align 4
  %op1 = getelementptr i32, ptr addrspace(1) %op, i32 1
  store i32 %f, ptr addrspace(1) %op1, align 4
  ret void
}
)");
  kernel.threads = 128;
  kernel.shared = 512;
  Memory memory;
  Tensor<int> o(memory, "o", 256);
  Result r = kernel.run(memory, {o.address()});
  CHECK_MESSAGE(r.reports.empty(), texts(r));
  for (int t = 0; t < 128; ++t) {
    CHECK(o.data[static_cast<std::size_t>(2 * t)] == 63 - ((t % 64) ^ 33));
    CHECK(o.data[static_cast<std::size_t>(2 * t + 1)] == t / 64 * 64);
  }
}

TEST_CASE("votes and reductions") {
  std::vector<std::uint32_t> x;
  for (std::uint32_t l = 0; l < 32; ++l) x.push_back(l * 2654435761u);
  auto reduce = [&](const char* how) {
    return run(exchange(std::string("llvm.nvvm.redux.sync.") + how, 1, 1, "i32 %x0, i32 -1", "i32", "i32, i32"), x, 1);
  };
  std::uint32_t sum = 0, least = ~0u, all_xor = 0;
  std::int32_t most = INT32_MIN;
  for (std::uint32_t w : x) {
    sum += w;
    least = std::min(least, w);
    all_xor ^= w;
    most = std::max(most, static_cast<std::int32_t>(w));
  }
  CHECK(reduce("add") == std::vector<std::uint32_t>(32, sum));
  CHECK(reduce("umin") == std::vector<std::uint32_t>(32, least));
  CHECK(reduce("xor") == std::vector<std::uint32_t>(32, all_xor));
  CHECK(reduce("max") == std::vector<std::uint32_t>(32, static_cast<std::uint32_t>(most)));
  for (std::uint32_t l = 0; l < 32; ++l) x[l] = l % 3 == 0;
  std::string text = changed(exchange("llvm.nvvm.vote.ballot.sync", 1, 1, "i32 -1, i1 %yes", "i32", "i32, i1"),
                             "  %r = call", "  %yes = trunc i32 %x0 to i1\n  %r = call");
  CHECK(run(text, x, 1) == std::vector<std::uint32_t>(32, 0x49249249u));
  text = changed(exchange("llvm.nvvm.vote.any.sync", 1, 1, "i32 -1, i1 %yes", "i1", "i32, i1"), "  %r = call",
                 "  %yes = trunc i32 %x0 to i1\n  %r = call");
  CHECK(run(text, x, 1) == std::vector<std::uint32_t>(32, 1));
}

TEST_CASE("movmatrix transposes 8 x 8 elements") {
  std::vector<std::uint32_t> x;
  for (std::uint32_t l = 0; l < 32; ++l) x.push_back((2 * l + 1) << 16 | 2 * l);  // element (r, c) is 8 r + c
  auto o = run(exchange("latile.nvptx.movmatrix.trans", 1, 1, "i32 %x0", "i32", "i32"), x, 1);
  for (std::uint32_t l = 0; l < 32; ++l)
    for (std::uint32_t h = 0; h < 2; ++h) CHECK((o[l] >> 16 * h & 0xffff) == (2 * (l % 4) + h) * 8 + l / 4);
}

TEST_CASE("ldmatrix and stmatrix") {
  // A tile of 32 rows of 8 elements, element number 8 r + c; lane l gives the address of row l.
  for (int count : {1, 2, 4})
    for (bool transposed : {false, true}) {
      std::string end = "matrix.sync.aligned.m8n8.x" + std::to_string(count) + (transposed ? ".trans" : "") + ".b16.p3";
      std::string words = "i32", list;
      for (int i = 1; i < count; ++i) words += ", i32";
      std::string result = count == 1 ? "i32" : "{" + words + "}";
      std::string fill = R"(  %row = getelementptr <4 x i32>, ptr addrspace(3) @latile_shared, i32 %t
)";
      std::string load =
          changed(exchange("llvm.nvvm.ld" + end, 4, count, "ptr addrspace(3) %row", result, "ptr addrspace(3)"),
                  "  %r = call", fill + R"(
  %q = getelementptr i32, ptr addrspace(3) %row, i32 1
  %q2 = getelementptr i32, ptr addrspace(3) %row, i32 2
  %q3 = getelementptr i32, ptr addrspace(3) %row, i32 3
  store i32 %x0, ptr addrspace(3) %row, align 4
  store i32 %x1, ptr addrspace(3) %q, align 4
  store i32 %x2, ptr addrspace(3) %q2, align 4
  store i32 %x3, ptr addrspace(3) %q3, align 4
  call void @llvm.nvvm.bar.warp.sync(i32 -1)
  %r = call)");
      Kernel kernel(load);
      kernel.shared = 512;
      Memory memory;
      Tensor<std::uint32_t> x(memory, "x", 128, [](std::size_t i) { return (2 * i + 1) << 16 | 2 * i; });
      auto n = static_cast<std::size_t>(count);
      Tensor<std::uint32_t> o(memory, "o", 32 * n);
      Result r = kernel.run(memory, {x.address(), o.address()});
      CHECK_MESSAGE(r.reports.empty(), texts(r));
      for (std::size_t l = 0; l < 32; ++l)
        for (std::size_t i = 0; i < n; ++i)
          for (std::size_t h = 0; h < 2; ++h) {
            std::size_t row = l / 4, column = 2 * (l % 4) + h;
            if (transposed) std::swap(row, column);
            CHECK((o.data[l * n + i] >> 16 * h & 0xffff) == 64 * i + 8 * row + column);
          }

      // The way back: what was loaded is stored and read as rows.
      std::string arguments = "ptr addrspace(3) %row";
      for (int i = 0; i < count; ++i) arguments += ", i32 %x" + std::to_string(i);
      std::string store =
          changed(exchange("llvm.nvvm.st" + end, count, 0, arguments, "void", "ptr addrspace(3), " + words),
                  "  %r = call", fill + "  call");
      store = changed(store, "  ret void",
                      R"(
  call void @llvm.nvvm.bar.warp.sync(i32 -1)
  %o4 = getelementptr <4 x i32>, ptr addrspace(1) %o, i32 %t
  %mine = icmp ult i32 %t, )" +
                          std::to_string(8 * count) + R"(
  br i1 %mine, label %out, label %done
out:
  %v = load <4 x i32>, ptr addrspace(3) %row, align 16
  store <4 x i32> %v, ptr addrspace(1) %o4, align 16
  br label %done
done:
  ret void)");
      Kernel back(store);
      back.shared = 512;
      Tensor<std::uint32_t> rows(memory, "rows", 32 * n);
      memory.mark_written(o.data.data(), o.data.size() * 4);
      Result s = back.run(memory, {o.address(), rows.address()});
      CHECK_MESSAGE(s.reports.empty(), texts(s));
      CHECK(rows.data == std::vector<std::uint32_t>(x.data.begin(), x.data.begin() + static_cast<long>(32 * n)));
    }
}
