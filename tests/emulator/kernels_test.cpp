// Kernels that are right: their results, whatever the order of blocks and lanes.
#include "tests/emulator/Emulated.h"
#include "tests/emulator/Texts.h"
#include <doctest/doctest.h>

using namespace latile::emulator;

TEST_CASE("a masked copy over several blocks") {
  Kernel kernel(copy_text);
  kernel.threads = 64;
  kernel.blocks = 4;
  for (int workers : {1, 3}) {
    Memory memory;
    Tensor<float> x(memory, "x", 200, [](std::size_t i) { return i; }), o(memory, "o", 200);
    kernel.options.workers = workers;
    Result r = kernel.run(memory, {x.address(), o.address(), 200});
    CHECK_MESSAGE(r.reports.empty(), texts(r));
    CHECK(r.completed);
    CHECK(o.data == x.data);
  }
}

TEST_CASE("shared memory between the threads of a block") {
  Kernel kernel(transpose_text);
  kernel.threads = 256;
  kernel.shared = 4096;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Memory memory;
    Tensor<float> x(memory, "x", 1024, [](std::size_t i) { return i; }), o(memory, "o", 1024);
    kernel.options.seed = seed;
    Result r = kernel.run(memory, {x.address(), o.address()});
    CHECK_MESSAGE(r.reports.empty(), texts(r));
    for (std::size_t i = 0; i < 32; ++i)
      for (std::size_t j = 0; j < 32; ++j) REQUIRE(o.data[i * 32 + j] == x.data[j * 32 + i]);
  }
}

TEST_CASE("a swizzled tile") {
  Kernel kernel(swizzle_text);
  kernel.threads = 64;
  kernel.shared = 1024;
  Memory memory;
  Tensor<float> x(memory, "x", 256, [](std::size_t i) { return i; }), o(memory, "o", 256);
  Result r = kernel.run(memory, {x.address(), o.address()});
  CHECK_MESSAGE(r.reports.empty(), texts(r));
  for (std::size_t t = 0; t < 64; ++t)
    for (std::size_t e = 0; e < 4; ++e) CHECK(o.data[t * 4 + e] == x.data[(t % 8 * 8 + t / 8) * 4 + e]);
}

TEST_CASE("stages filled by asynchronous copies") {
  Kernel kernel(stages_text);
  kernel.threads = 128;
  kernel.shared = 4096;
  for (std::size_t steps : {1, 2, 3, 7})
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
      Memory memory;
      Tensor<int> x(memory, "x", steps * 512, [](std::size_t i) { return i; }), o(memory, "o", steps * 512);
      kernel.options.seed = seed;
      Result r = kernel.run(memory, {x.address(), o.address(), steps});
      CHECK_MESSAGE(r.reports.empty(), texts(r));
      for (std::size_t i = 0; i < steps; ++i)
        for (std::size_t t = 0; t < 128; ++t)
          for (std::size_t e = 0; e < 4; ++e)
            REQUIRE(o.data[(i * 128 + t) * 4 + e] == x.data[(i * 128 + 127 - t) * 4 + e]);
    }
}

TEST_CASE("a launch may read what an earlier one wrote") {
  Kernel kernel(copy_text);
  Memory memory;
  Tensor<float> x(memory, "x", 32, [](std::size_t i) { return i; }), y(memory, "y", 32), o(memory, "o", 32);
  CHECK(kernel.run(memory, {x.address(), y.address(), 32}).reports.empty());
  CHECK(kernel.run(memory, {y.address(), o.address(), 32}).reports.empty());
  CHECK(kernel.run(memory, {x.address(), o.address(), 32}).reports.empty());
  CHECK(o.data == x.data);
  memory.mark_unwritten(y.data.data(), 32 * sizeof(float));
  CHECK(kernel.run(memory, {y.address(), o.address(), 32}).reports.size() == 1);
}

TEST_CASE("more barriers than a clock counts") {
  // Each thread hands a value to its neighbour n times; the clocks of the shadow start again between blocks.
  Kernel kernel(declarations + R"(
define ptx_kernel void @handing(ptr addrspace(1) %o, i64 %n) {
entry:
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %b = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %p = getelementptr i32, ptr addrspace(3) @latile_shared, i32 %t
  %other = xor i32 %t, 1
  %q = getelementptr i32, ptr addrspace(3) @latile_shared, i32 %other
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %v = phi i32 [ %t, %entry ], [ %w, %loop ]
  store i32 %v, ptr addrspace(3) %p, align 4 ;@tile.store:1
  call void @llvm.nvvm.bar.warp.sync(i32 3)
  %w = load i32, ptr addrspace(3) %q, align 4 ;@tile.load:2
  call void @llvm.nvvm.bar.warp.sync(i32 3)
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  %b2 = shl i32 %b, 1
  %at = add i32 %b2, %t
  %op = getelementptr i32, ptr addrspace(1) %o, i32 %at
  store i32 %w, ptr addrspace(1) %op, align 4 ;@tile.store:3
  ret void
}
)");
  kernel.threads = 2;
  kernel.blocks = 30;
  kernel.shared = 8;
  Memory memory;
  Tensor<int> o(memory, "o", 60);
  Result r = kernel.run(memory, {o.address(), 50001});
  CHECK_MESSAGE(r.reports.empty(), texts(r));
  for (int i = 0; i < 60; ++i) REQUIRE(o.data[static_cast<std::size_t>(i)] == (i + 1) % 2);
  // A single block has its limit, and says so.
  kernel.blocks = 1;
  r = kernel.run(memory, {o.address(), 1100000});
  CHECK_FALSE(r.completed);
  CHECK(texts(r).find("is past the 2^20 barriers that a block may have") != std::string::npos);
}

TEST_CASE("allocations are told apart") {
  Memory memory;
  float block[64];
  CHECK(memory.add("all", block, sizeof block, 4));
  CHECK_FALSE(memory.add("part", block + 8, 4, 4));
  CHECK(memory.add("before", block - 16, 64, 4));
  CHECK(memory.allocations() == 2);
  CHECK_FALSE(memory.remove(block + 8));
  CHECK(memory.remove(block));
  CHECK(memory.allocations() == 1);
}

TEST_CASE("an empty grid runs nothing, an impossible launch is refused") {
  Kernel kernel(copy_text);
  Memory memory;
  kernel.blocks = 0;
  CHECK(kernel.run(memory, {0, 0, 1}).completed);
  kernel.blocks = 1;
  kernel.threads = 1025;
  Result r = kernel.run(memory, {0, 0, 0});
  CHECK_FALSE(r.completed);
  CHECK(texts(r) == "kernel copy has blocks of 1025 threads; 1 to 1024 are possible\n");
}

TEST_CASE("rounding to narrow types, and functions without an instruction on a CPU") {
  Kernel kernel(declarations + R"(
declare <2 x bfloat> @llvm.nvvm.ff2bf16x2.rn(float, float)
declare i32 @llvm.nvvm.f2tf32.rna(float)
declare float @llvm.nvvm.ex2.approx.ftz.f32(float)
declare float @llvm.nvvm.rcp.approx.ftz.f(float)
define ptx_kernel void @functions(ptr addrspace(1) %x, ptr addrspace(1) %o) {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %xp = getelementptr float, ptr addrspace(1) %x, i32 %t
  %v = load float, ptr addrspace(1) %xp, align 4
  %neg = fneg float %v
  %pair = call <2 x bfloat> @llvm.nvvm.ff2bf16x2.rn(float %neg, float %v)
  %both = bitcast <2 x bfloat> %pair to i32
  %one = fptrunc float %v to bfloat
  %twice = fadd bfloat %one, %one
  %wide = fpext bfloat %twice to float
  %twicei = bitcast float %wide to i32
  %tf = call i32 @llvm.nvvm.f2tf32.rna(float %v)
  %e = call float @llvm.nvvm.ex2.approx.ftz.f32(float %v)
  %ei = bitcast float %e to i32
  %q = call float @llvm.nvvm.rcp.approx.ftz.f(float %v)
  %qi = bitcast float %q to i32
  %h = fptrunc float %v to half
  %hi = bitcast half %h to i16
  %hw = zext i16 %hi to i32
  %at = mul i32 %t, 6
  %op = getelementptr i32, ptr addrspace(1) %o, i32 %at
  store i32 %both, ptr addrspace(1) %op, align 4
  %op1 = getelementptr i32, ptr addrspace(1) %op, i32 1
  store i32 %twicei, ptr addrspace(1) %op1, align 4
  %op2 = getelementptr i32, ptr addrspace(1) %op, i32 2
  store i32 %tf, ptr addrspace(1) %op2, align 4
  %op3 = getelementptr i32, ptr addrspace(1) %op, i32 3
  store i32 %ei, ptr addrspace(1) %op3, align 4
  %op4 = getelementptr i32, ptr addrspace(1) %op, i32 4
  store i32 %qi, ptr addrspace(1) %op4, align 4
  %op5 = getelementptr i32, ptr addrspace(1) %op, i32 5
  store i32 %hw, ptr addrspace(1) %op5, align 4
  ret void
}
)");
  kernel.threads = 6;
  const float inf = std::numeric_limits<float>::infinity();
  const float values[6] = {1.0f, 1.00390625f, 1.01171875f, -inf, 0x1.002p0f, -127.5f};
  // Upper and lower half of the pair, bfloat16 doubled, tf32, 2^x, 1/x, float16
  const std::uint32_t expected[6][6] = {{0xbf803f80, 0x40000000, 0x3f800000, 0x40000000, 0x3f800000, 0x3c00},
                                        {0xbf803f80, 0x40000000, 0x3f808000, 0, 0, 0x3c04},
                                        {0xbf823f82, 0x40020000, 0x3f818000, 0, 0, 0x3c0c},
                                        {0x7f80ff80, 0xff800000, 0xff800000, 0, 0x80000000, 0xfc00},
                                        {0xbf803f80, 0x40000000, 0x3f802000, 0, 0, 0x3c00},
                                        {0x42ffc2ff, 0xc37f0000, 0xc2ff0000, 0, 0, 0xd7f8}};
  Memory memory;
  Tensor<float> x(memory, "x", 6, [&](std::size_t i) { return values[i]; });
  Tensor<std::uint32_t> o(memory, "o", 36);
  Result r = kernel.run(memory, {x.address(), o.address()});
  CHECK_MESSAGE(r.reports.empty(), texts(r));
  for (std::size_t i = 0; i < 6; ++i) {
    CAPTURE(i);
    for (std::size_t e : {0, 1, 2, 5}) CHECK(o.data[i * 6 + e] == expected[i][e]);
  }
  CHECK(o.data[3] == 0x40000000);   // 2^1
  CHECK(o.data[21] == 0);           // 2^-inf
  CHECK(o.data[33] == 0);           // 2^-127.5 is subnormal
  CHECK(o.data[22] == 0x80000000);  // 1 / -inf
}

TEST_CASE("what has no meaning is refused by name") {
  std::string failure;
  CHECK(compile_text(declarations + R"(
declare i32 @latile.nvptx.unheard_of(i32)
define ptx_kernel void @k(ptr addrspace(1) %x) {
  %y = call i32 @latile.nvptx.unheard_of(i32 1) ;@tile.dot:7
  store i32 %y, ptr addrspace(1) %x
  ret void
}
)",
                     failure)
            .empty());
  CHECK(failure == "emulator: k: tile.dot:7: the emulator gives latile.nvptx.unheard_of no meaning");
  failure.clear();
  CHECK(compile_text(declarations + R"(
define ptx_kernel void @k(ptr addrspace(1) %x) {
  call void asm sideeffect "nanosleep.u32 1;", ""()
  ret void
}
)",
                     failure)
            .empty());
  CHECK(failure.find("assembly has no meaning here: nanosleep.u32 1;") != std::string::npos);
  failure.clear();
  CHECK(compile_text(declarations + R"(
define ptx_kernel void @k(ptr addrspace(1) %x) {
  %y = atomicrmw add ptr addrspace(1) %x, i32 1 seq_cst
  ret void
}
)",
                     failure)
            .empty());
  CHECK(failure.find("atomic operations are not emulated") != std::string::npos);
}
