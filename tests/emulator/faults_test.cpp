// Faults planted into right kernels: each is reported with the op it comes from, or gives wrong numbers where nothing
// but the numbers can tell.
#include "tests/emulator/Emulated.h"
#include "tests/emulator/Texts.h"
#include <algorithm>
#include <doctest/doctest.h>

using namespace latile::emulator;
using Kind = Report::Kind;

namespace {

bool reported(const Result& r, Kind kind, const std::string& op, const std::string& other = "") {
  return std::any_of(r.reports.begin(), r.reports.end(), [&](const Report& x) {
    return x.kind == kind && x.op == op && (other.empty() || x.other == other);
  });
}

Result transpose(const std::string& text, std::uint64_t seed = 1) {
  Kernel kernel(text);
  kernel.threads = 256;
  kernel.shared = 4096;
  kernel.options.seed = seed;
  Memory memory;
  Tensor<float> x(memory, "x", 1024, [](std::size_t i) { return i; }), o(memory, "o", 1024);
  return kernel.run(memory, {x.address(), o.address()});
}

Result stages(const std::string& text, std::uint64_t seed = 1) {
  Kernel kernel(text);
  kernel.threads = 128;
  kernel.shared = 4096;
  kernel.options.seed = seed;
  Memory memory;
  Tensor<int> x(memory, "x", 5 * 512, [](std::size_t i) { return i; }), o(memory, "o", 5 * 512);
  return kernel.run(memory, {x.address(), o.address(), 5});
}

}  // namespace

TEST_CASE("a dropped barrier") {
  std::string text =
      changed(transpose_text, "  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0) ;@tile.transpose:2\n", "");
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    Result r = transpose(text, seed);
    bool race = reported(r, Kind::race, "tile.convert_layout:3", "tile.transpose:2") ||
                reported(r, Kind::race, "tile.transpose:2", "tile.convert_layout:3");
    CHECK_MESSAGE(race, texts(r));
  }
}

TEST_CASE("a wrong swizzle") {
  Kernel kernel(changed(swizzle_text, "%phase2 = and i32 %piece, 7", "%phase2 = and i32 %piece, 3"));
  kernel.threads = 64;
  kernel.shared = 1024;
  Memory memory;
  Tensor<float> x(memory, "x", 256, [](std::size_t i) { return i; }), o(memory, "o", 256);
  Result r = kernel.run(memory, {x.address(), o.address()});
  CHECK(r.completed);
  std::size_t wrong = 0;
  for (std::size_t t = 0; t < 64; ++t) wrong += o.data[t * 4] != x.data[(t % 8 * 8 + t / 8) * 4];
  CHECK(wrong == 32);
}

TEST_CASE("a missing wait, a wait for the wrong group") {
  std::string wait = "  call void @llvm.nvvm.cp.async.wait.group(i32 1) ;@tile.copy_wait:3\n";
  for (const std::string& instead : {std::string(), changed(wait, "i32 1", "i32 2")}) {
    Result r = stages(changed(stages_text, wait, instead));
    CHECK_MESSAGE(reported(r, Kind::in_flight, "tile.dot:4", "tile.copy_start:1"), texts(r));
    CHECK_MESSAGE(reported(r, Kind::in_flight, "tile.dot:4", "tile.copy_start:2"), texts(r));
  }
}

TEST_CASE("a stage that is filled again while others still read it") {
  std::string text =
      changed(stages_text, "  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0) ;@tile.release:6\n", "");
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    Result r = stages(text, seed);
    bool seen = reported(r, Kind::race, "tile.copy_start:2", "tile.dot:4") ||
                reported(r, Kind::in_flight, "tile.dot:4", "tile.copy_start:2");
    CHECK_MESSAGE(seen, texts(r));
  }
}

TEST_CASE("a store into a stage in flight") {
  std::string text = changed(stages_text, "  call void @llvm.nvvm.cp.async.wait.group(i32 1) ;@tile.copy_wait:3\n",
                             "  store i32 0, ptr addrspace(3) %first, align 4 ;@tile.neutral:9\n"
                             "  call void @llvm.nvvm.cp.async.wait.group(i32 1) ;@tile.copy_wait:3\n");
  CHECK(reported(stages(text), Kind::in_flight, "tile.neutral:9", "tile.copy_start:1"));
}

TEST_CASE("a wait without the barrier that tells the others") {
  std::string text =
      changed(stages_text, "  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0) ;@tile.copy_wait:3\n", "");
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    Result r = stages(text, seed);
    bool seen = reported(r, Kind::race, "tile.dot:4") || reported(r, Kind::in_flight, "tile.dot:4") ||
                reported(r, Kind::race, "tile.copy_start:2");
    CHECK_MESSAGE(seen, texts(r));
  }
}

TEST_CASE("a mask that is off by one") {
  Kernel kernel(changed(copy_text, "icmp ult i64 %i, %n", "icmp ule i64 %i, %n"));
  kernel.threads = 64;
  Memory memory;
  Tensor<float> x(memory, "x", 50, [](std::size_t i) { return i; }), o(memory, "o", 50);
  Result r = kernel.run(memory, {x.address(), o.address(), 50});
  CHECK_FALSE(r.completed);
  CHECK(reported(r, Kind::out_of_bounds, "tile.load:1"));
  CHECK(texts(r) ==
        "access out of bounds in kernel copy: tile.load:1 (thread 50 of block 0) reads 4 bytes of global memory 0 "
        "bytes past the end of x (200 bytes)\n");
}

TEST_CASE("a parameter that points elsewhere than the access") {
  // Within an allocation, but in one that the kernel was not given.
  Kernel kernel(copy_text);
  Memory memory;
  std::vector<float> data(64);
  memory.add("x", data.data(), 64, 4);
  memory.add("other", data.data() + 16, 64, 4);
  memory.mark_written(data.data(), 128);
  memory.mark_written(data.data() + 16, 64);
  Tensor<float> o(memory, "o", 32);
  Result r = kernel.run(memory, {reinterpret_cast<std::uint64_t>(data.data()), o.address(), 32});
  CHECK_MESSAGE(reported(r, Kind::out_of_bounds, "tile.load:1"), texts(r));
}

TEST_CASE("halves of a fragment that change places") {
  auto run = [](const std::string& text) {
    Memory memory;
    auto element = [](std::size_t i) { return to_bf16(static_cast<float>(i * 37 % 19) - 9); };
    Tensor<std::uint16_t> a(memory, "a", 256, element), b(memory, "b", 128, element);
    Tensor<float> d(memory, "d", 128);
    Result r = Kernel(text).run(memory, {a.address(), b.address(), d.address()});
    CHECK_MESSAGE(r.reports.empty(), texts(r));
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < 16; ++i)
      for (std::size_t j = 0; j < 8; ++j) {
        float sum = 0;
        for (std::size_t k = 0; k < 16; ++k) sum += from_bf16(a.data[i * 16 + k]) * from_bf16(b.data[j * 16 + k]);
        wrong += d.data[i * 8 + j] != sum;
      }
    return wrong;
  };
  CHECK(run(product_text) == 0);
  CHECK(run(changed(product_text, "i32 %a0, i32 %a1, i32 %a2", "i32 %a0, i32 %a2, i32 %a1")) > 100);
}

TEST_CASE("two threads that write one element") {
  Kernel kernel(changed(copy_text, "%op = getelementptr float, ptr addrspace(1) %o, i64 %i",
                        "%half = lshr i64 %i, 1\n  %op = getelementptr float, ptr addrspace(1) %o, i64 %half"));
  Memory memory;
  Tensor<float> x(memory, "x", 32, [](std::size_t i) { return i; }), o(memory, "o", 32);
  Result r = kernel.run(memory, {x.address(), o.address(), 32});
  CHECK_MESSAGE(reported(r, Kind::race, "tile.store:2", "tile.store:2"), texts(r));
  // And two blocks.
  Kernel blocks(changed(copy_text, "%op = getelementptr float, ptr addrspace(1) %o, i64 %i",
                        "%low = and i64 %i, 31\n  %op = getelementptr float, ptr addrspace(1) %o, i64 %low"));
  blocks.blocks = 2;
  Tensor<float> y(memory, "y", 64, [](std::size_t i) { return i; }), p(memory, "p", 64);
  r = blocks.run(memory, {y.address(), p.address(), 64});
  CHECK_MESSAGE(reported(r, Kind::race, "tile.store:2", "tile.store:2"), texts(r));
  CHECK(texts(r).find("in the same launch") != std::string::npos);
}

TEST_CASE("a block that reads what another one of the launch writes") {
  // In place, shifted by a block.
  Kernel kernel(changed(copy_text, "%op = getelementptr float, ptr addrspace(1) %o, i64 %i",
                        "%back = sub i64 %i, 32\n  %op = getelementptr float, ptr addrspace(1) %o, i64 %back"));
  for (std::uint64_t seed : {1, 2, 3, 4}) {
    kernel.blocks = 3;
    kernel.options.seed = seed;
    Memory memory;
    Tensor<float> x(memory, "x", 128, [](std::size_t i) { return i; });
    std::uint64_t second = x.address() + 128;
    Result r = kernel.run(memory, {second, second, 96});
    bool race = reported(r, Kind::race, "tile.load:1", "tile.store:2") ||
                reported(r, Kind::race, "tile.store:2", "tile.load:1");
    CHECK_MESSAGE(race, texts(r));
  }
}

TEST_CASE("shared memory that nobody wrote") {
  Result r = transpose(changed(transpose_text, "%more = icmp ult i32 %e2, 1024", "%more = icmp ult i32 %e2, 768"));
  CHECK_MESSAGE(reported(r, Kind::unwritten, "tile.convert_layout:3"), texts(r));
  CHECK(texts(r).find("shared memory at byte 3") != std::string::npos);
}

TEST_CASE("what an earlier block left in shared memory") {
  // The second block writes nothing and reads.
  Kernel kernel(declarations + R"(
define ptx_kernel void @left(ptr addrspace(1) %o) {
  %b = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %first = icmp eq i32 %b, 0
  br i1 %first, label %write, label %read
write:
  store i32 5, ptr addrspace(3) @latile_shared, align 4 ;@tile.write:1
  br label %read
read:
  %v = load i32, ptr addrspace(3) @latile_shared, align 4 ;@tile.read:2
  %op = getelementptr i32, ptr addrspace(1) %o, i32 %b
  store i32 %v, ptr addrspace(1) %op, align 4
  ret void
}
)");
  kernel.threads = 1;
  kernel.blocks = 2;
  kernel.shared = 4;
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    kernel.options.seed = seed;
    Memory memory;
    Tensor<int> o(memory, "o", 2);
    Result r = kernel.run(memory, {o.address()});
    CHECK_MESSAGE(reported(r, Kind::unwritten, "tile.read:2"), texts(r));
    CHECK(o.data[0] == 5);
    CHECK(o.data[1] == -1);
  }
}

TEST_CASE("a tensor that nobody wrote") {
  Kernel kernel(copy_text);
  Memory memory;
  Tensor<float> x(memory, "x", 32), o(memory, "o", 32);
  Result r = kernel.run(memory, {x.address(), o.address(), 32});
  CHECK_MESSAGE(reported(r, Kind::unwritten, "tile.load:1"), texts(r));
}

TEST_CASE("a barrier in a branch") {
  std::string text = changed(
      transpose_text, "mid:\n  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0) ;@tile.transpose:2\n",
      "mid:\n  %low = icmp ult i32 %t, 100\n  br i1 %low, label %sync, label %after\nsync:\n"
      "  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0) ;@tile.transpose:2\n  br label %after\nafter:\n");
  text = changed(text, "[ %t, %mid ]", "[ %t, %after ]");
  Result r = transpose(text);
  CHECK_FALSE(r.completed);
  CHECK_MESSAGE(reported(r, Kind::divergence, "tile.transpose:2"), texts(r));
  CHECK(texts(r).find("threads 0 to 99 wait at the barrier of tile.transpose:2; threads 100 to 255 have returned") !=
        std::string::npos);
}

TEST_CASE("two barriers in the branches of one warp") {
  // All threads reach a barrier, but not the same one; warps may differ, lanes of a warp may not.
  std::string barrier = "  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0) ;@tile.transpose:2\n";
  for (int edge : {100, 128}) {
    std::string text =
        changed(transpose_text, "mid:\n" + barrier,
                "mid:\n  %low = icmp ult i32 %t, " + std::to_string(edge) + "\n  br i1 %low, label %a, label %b\na:\n" +
                    changed(barrier, ":2", ":7") + "  br label %after\nb:\n" + changed(barrier, ":2", ":8") +
                    "  br label %after\nafter:\n");
    Result r = transpose(changed(text, "[ %t, %mid ]", "[ %t, %after ]"));
    CHECK(r.completed);
    CHECK_MESSAGE(reported(r, Kind::divergence, "tile.transpose:8", "tile.transpose:7") == (edge == 100), texts(r));
  }
}

TEST_CASE("a shuffle that some lanes do not reach, and one from a lane outside its mask") {
  std::string shuffle = R"(
  %v2 = call i32 @llvm.nvvm.shfl.sync.bfly.i32(i32 -1, i32 %t, i32 1, i32 31) ;@tile.reduce:5
  br label %done
)";
  std::string text = changed(copy_text, "  br label %done\ndone:", shuffle + "done:");
  Kernel kernel(text);
  Memory memory;
  Tensor<float> x(memory, "x", 32, [](std::size_t i) { return i; }), o(memory, "o", 32);
  CHECK(kernel.run(memory, {x.address(), o.address(), 32}).completed);
  Result r = kernel.run(memory, {x.address(), o.address(), 20});
  CHECK_FALSE(r.completed);
  CHECK_MESSAGE(reported(r, Kind::divergence, "tile.reduce:5"), texts(r));
  Kernel part(changed(text, "i32 -1, i32 %t, i32 1", "i32 1048575, i32 %t, i32 16"));
  r = part.run(memory, {x.address(), o.address(), 20});
  CHECK_FALSE(r.completed);
  CHECK_MESSAGE(reported(r, Kind::divergence, "tile.reduce:5"), texts(r));
}

TEST_CASE("a vector access that is not aligned") {
  std::string text = changed(swizzle_text, "%xp = getelementptr <4 x float>, ptr addrspace(1) %x, i32 %t",
                             "%x1 = getelementptr float, ptr addrspace(1) %x, i32 1\n"
                             "  %xp = getelementptr <4 x float>, ptr addrspace(1) %x1, i32 %t");
  Kernel kernel(text);
  kernel.threads = 64;
  kernel.shared = 1024;
  Memory memory;
  Tensor<float> x(memory, "x", 260, [](std::size_t i) { return i; }), o(memory, "o", 256);
  Result r = kernel.run(memory, {x.address(), o.address()});
  CHECK_FALSE(r.completed);
  CHECK_MESSAGE(reported(r, Kind::misaligned, "tile.load:1"), texts(r));
}

TEST_CASE("shared memory past the block's own") {
  Kernel kernel(transpose_text);
  kernel.threads = 256;
  kernel.shared = 4092;
  Memory memory;
  Tensor<float> x(memory, "x", 1024, [](std::size_t i) { return i; }), o(memory, "o", 1024);
  Result r = kernel.run(memory, {x.address(), o.address()});
  CHECK_MESSAGE(reported(r, Kind::out_of_bounds, "tile.transpose:2"), texts(r));
}

TEST_CASE("lanes of one warp are not in step") {
  // Written by one lane, read by its neighbour: a warp barrier must lie between, and one before the next write.
  std::string text = declarations + R"(
define ptx_kernel void @neighbours(ptr addrspace(1) %o) {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %p = getelementptr i32, ptr addrspace(3) @latile_shared, i32 %t
  store i32 %t, ptr addrspace(3) %p, align 4 ;@tile.write:1
  call void @llvm.nvvm.bar.warp.sync(i32 -1) ;@tile.sync:2
  %n = xor i32 %t, 1
  %q = getelementptr i32, ptr addrspace(3) @latile_shared, i32 %n
  %v = load i32, ptr addrspace(3) %q, align 4 ;@tile.read:3
  call void @llvm.nvvm.bar.warp.sync(i32 -1) ;@tile.sync:4
  store i32 %v, ptr addrspace(3) %p, align 4 ;@tile.write:5
  %op = getelementptr i32, ptr addrspace(1) %o, i32 %t
  store i32 %v, ptr addrspace(1) %op, align 4 ;@tile.store:6
  ret void
}
)";
  auto run = [](const std::string& t) {
    Kernel kernel(t);
    kernel.threads = 64;
    kernel.shared = 256;
    Memory memory;
    Tensor<int> o(memory, "o", 64);
    return kernel.run(memory, {o.address()});
  };
  CHECK_MESSAGE(run(text).reports.empty(), texts(run(text)));
  Result r = run(changed(text, "  call void @llvm.nvvm.bar.warp.sync(i32 -1) ;@tile.sync:2\n", ""));
  CHECK_MESSAGE((reported(r, Kind::race, "tile.read:3") || reported(r, Kind::unwritten, "tile.read:3")), texts(r));
  r = run(changed(text, "  call void @llvm.nvvm.bar.warp.sync(i32 -1) ;@tile.sync:4\n", ""));
  CHECK_MESSAGE((reported(r, Kind::race, "tile.write:5", "tile.read:3") ||
                 reported(r, Kind::race, "tile.read:3", "tile.write:5")),
                texts(r));
}

TEST_CASE("a value that all lanes read before one of them writes it") {
  std::string text = declarations + R"(
define ptx_kernel void @broadcast(ptr addrspace(1) %o) {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %first = icmp eq i32 %t, 0
  br i1 %first, label %write, label %all
write:
  store i32 5, ptr addrspace(3) @latile_shared, align 4 ;@tile.write:1
  br label %all
all:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0) ;@tile.sync:2
  %v = load i32, ptr addrspace(3) @latile_shared, align 4 ;@tile.read:3
  %op = getelementptr i32, ptr addrspace(1) %o, i32 %t
  store i32 %v, ptr addrspace(1) %op, align 4 ;@tile.store:4
  br i1 %first, label %again, label %done
again:
  store i32 6, ptr addrspace(3) @latile_shared, align 4 ;@tile.write:5
  br label %done
done:
  ret void
}
)";
  for (int threads : {32, 128})
    for (std::uint64_t seed = 1; seed <= 8; ++seed) {
      Kernel kernel(text);
      kernel.threads = threads;
      kernel.shared = 4;
      kernel.options.seed = seed;
      Memory memory;
      Tensor<int> o(memory, "o", 128);
      Result r = kernel.run(memory, {o.address()});
      bool race = reported(r, Kind::race, "tile.write:5", "tile.read:3") ||
                  reported(r, Kind::race, "tile.read:3", "tile.write:5");
      CHECK_MESSAGE(race, texts(r));
    }
}

TEST_CASE("reports are bounded, and equal ones are one") {
  Kernel kernel(copy_text);
  kernel.blocks = 10;
  Memory memory;
  Tensor<float> x(memory, "x", 320), o(memory, "o", 320);
  Result r = kernel.run(memory, {x.address(), o.address(), 320});
  CHECK(r.reports.size() == 1);
  CHECK(r.suppressed == 319);
}
