#include "codegen/emulator/Meanings.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSwitch.h"

namespace latile::emulator {
namespace {

using Kind = Meaning::Kind;

Meaning collective(Collective op, unsigned variant = 0, unsigned operands = 0) {
  Meaning m;
  m.kind = Kind::collective;
  m.op = op;
  m.variant = static_cast<std::uint16_t>(variant);
  m.operands = operands;
  return m;
}
Meaning simple(Kind kind, unsigned variant = 0, bool flush = false) {
  Meaning m;
  m.kind = kind;
  m.variant = static_cast<std::uint16_t>(variant);
  m.flush = flush;
  return m;
}
Meaning math(Hook hook) {
  Meaning m;
  m.kind = Kind::math;
  m.hook = hook;
  return m;
}
template <class E> unsigned number(E e) { return static_cast<unsigned>(e); }

void nvidia(llvm::StringMap<Meaning>& all) {
  auto add = [&](const std::string& name, const Meaning& m) { all["llvm.nvvm." + name] = m; };
  for (auto [axis, first] : {std::pair{"x", true}, {"y", false}, {"z", false}}) {
    std::string a = axis;
    add("read.ptx.sreg.tid." + a, first ? simple(Kind::thread) : simple(Kind::constant, 0));
    add("read.ptx.sreg.ntid." + a, first ? simple(Kind::threads) : simple(Kind::constant, 1));
    add("read.ptx.sreg.ctaid." + a, first ? simple(Kind::block) : simple(Kind::constant, 0));
    add("read.ptx.sreg.nctaid." + a, first ? simple(Kind::blocks) : simple(Kind::constant, 1));
  }
  add("read.ptx.sreg.laneid", simple(Kind::lane));
  add("read.ptx.sreg.warpid", simple(Kind::warp));
  add("read.ptx.sreg.warpsize", simple(Kind::constant, 32));

  add("barrier0", simple(Kind::barrier));
  add("barrier.cta.sync.aligned.all", simple(Kind::barrier));
  add("bar.warp.sync", collective(Collective::warp_barrier));
  for (const char* fence : {"membar.cta", "membar.gl", "membar.sys", "fence.sc.cluster"})
    add(fence, simple(Kind::nothing));

  for (auto [name, kind] :
       {std::pair{"idx", Shuffle::index}, {"up", Shuffle::up}, {"down", Shuffle::down}, {"bfly", Shuffle::butterfly}})
    for (const char* type : {"i32", "f32", "i32p", "f32p"})
      add(std::string("shfl.sync.") + name + "." + type, collective(Collective::shuffle, number(kind)));
  for (auto [name, kind] :
       {std::pair{"all", Vote::all}, {"any", Vote::any}, {"uni", Vote::uniform}, {"ballot", Vote::ballot}})
    add(std::string("vote.") + name + ".sync", collective(Collective::vote, number(kind)));
  for (auto [name, kind] : {std::pair{"add", Reduce::add},
                            {"min", Reduce::min_signed},
                            {"max", Reduce::max_signed},
                            {"umin", Reduce::min_unsigned},
                            {"umax", Reduce::max_unsigned},
                            {"and", Reduce::bit_and},
                            {"or", Reduce::bit_or},
                            {"xor", Reduce::bit_xor}})
    add(std::string("redux.sync.") + name, collective(Collective::reduce, number(kind)));
  add("activemask", collective(Collective::active_mask));

  for (unsigned count : {1u, 2u, 4u})
    for (bool transposed : {false, true}) {
      std::string end = "matrix.sync.aligned.m8n8.x" + std::to_string(count) + (transposed ? ".trans" : "") + ".b16";
      add("ld" + end, collective(Collective::load_matrices, count + (transposed ? 8 : 0)));
      add("st" + end, collective(Collective::store_matrices, count + (transposed ? 8 : 0)));
    }
  all["latile.nvptx.movmatrix.trans"] = collective(Collective::transpose_matrix);
  all["latile.nvptx.movmatrix"] = collective(Collective::transpose_matrix);
  add("mma.m16n8k16.row.col.bf16", collective(Collective::mma_bf16_k16));
  add("mma.m16n8k16.row.col.f32.f32", collective(Collective::mma_f16_k16));
  add("mma.m16n8k8.row.col.bf16", collective(Collective::mma_bf16_k8));
  add("mma.m16n8k8.row.col.f32.f32", collective(Collective::mma_f16_k8));
  add("mma.m16n8k8.row.col.tf32", collective(Collective::mma_tf32_k8));
  add("mma.m16n8k4.row.col.tf32", collective(Collective::mma_tf32_k4));

  for (unsigned bytes : {4u, 8u, 16u})
    for (const char* end : {"", ".s"}) {
      add("cp.async.ca.shared.global." + std::to_string(bytes) + end, simple(Kind::start_copy, bytes));
      if (bytes == 16) add(std::string("cp.async.cg.shared.global.16") + end, simple(Kind::start_copy, bytes));
    }
  add("cp.async.commit.group", simple(Kind::commit));
  add("cp.async.wait.group", simple(Kind::wait));
  add("cp.async.wait.all", simple(Kind::wait_all));

  add("ff2bf16x2.rn", simple(Kind::pack_bf16));
  add("ff2f16x2.rn", simple(Kind::pack_f16));
  add("f2bf16.rn", simple(Kind::to_bf16));
  add("f2f16.rn", simple(Kind::to_f16));
  add("f2tf32.rna", simple(Kind::to_tf32));
  for (const char* ftz : {"", ".ftz"}) {
    bool flush = *ftz;
    std::string z = ftz;
    add("ex2.approx" + z, math(flush ? Hook::exp2_ftz_32 : Hook::exp2_32));
    add("lg2.approx" + z + ".f", math(flush ? Hook::log2_ftz_32 : Hook::log2_32));
    add("sin.approx" + z + ".f", math(Hook::sin_32));
    add("cos.approx" + z + ".f", math(Hook::cos_32));
    for (const char* how : {"approx", "rn"}) {
      add("rcp." + std::string(how) + z + ".f", simple(Kind::reciprocal, 0, flush));
      add("sqrt." + std::string(how) + z + ".f", simple(Kind::root, 0, flush));
      add("div." + std::string(how) + z + ".f", simple(Kind::quotient, 0, flush));
    }
    add("div.full" + z, simple(Kind::quotient, 0, flush));
    add("rsqrt.approx" + z + ".f", simple(Kind::inverse_root, 0, flush));
    add("fma.rn" + z + ".f", simple(Kind::fused, 0, flush));
    add("fmax" + z + ".f", simple(Kind::maximum, 0, flush));
    add("fmin" + z + ".f", simple(Kind::minimum, 0, flush));
  }
  all["latile.nvptx.tanh.approx.f32"] = math(Hook::tanh_32);
}

void amd(llvm::StringMap<Meaning>& all) {
  auto add = [&](const std::string& name, const Meaning& m) { all["llvm.amdgcn." + name] = m; };
  add("workitem.id.x", simple(Kind::thread));
  add("workgroup.id.x", simple(Kind::block));
  for (const char* other : {"workitem.id.y", "workitem.id.z", "workgroup.id.y", "workgroup.id.z"})
    add(other, simple(Kind::constant, 0));
  add("mbcnt.lo", simple(Kind::lanes_below, 0));
  add("mbcnt.hi", simple(Kind::lanes_below, 32));
  add("s.barrier", simple(Kind::barrier));
  add("wave.barrier", simple(Kind::nothing));
  add("s.waitcnt", simple(Kind::nothing));
  add("sched.barrier", simple(Kind::nothing));
  add("ds.bpermute", collective(Collective::permute));
  add("readfirstlane", collective(Collective::first_lane));
  add("exp2.f32", math(Hook::exp2_ftz_32));
  add("log.f32", math(Hook::log2_ftz_32));
  add("rcp.f32", simple(Kind::reciprocal));
  add("rsq.f32", simple(Kind::inverse_root));
  add("sqrt.f32", simple(Kind::root));
  add("mfma.f32.16x16x16bf16.1k", collective(Collective::mfma_bf16_16x16x16, 0, 3));
  add("mfma.f32.16x16x16f16", collective(Collective::mfma_f16_16x16x16, 0, 3));
  add("mfma.f32.32x32x8bf16.1k", collective(Collective::mfma_bf16_32x32x8, 0, 3));
  add("mfma.f32.32x32x8f16", collective(Collective::mfma_f16_32x32x8, 0, 3));
  add("mfma.f32.16x16x4f32", collective(Collective::mfma_f32_16x16x4, 0, 3));
  add("mfma.f32.32x32x2f32", collective(Collective::mfma_f32_32x32x2, 0, 3));
  add("wmma.f32.16x16x16.bf16.v8f32.v8i16", collective(Collective::wmma12_bf16_16x16x16));
  add("wmma.f32.16x16x16.f16.v8f32.v8f16", collective(Collective::wmma12_f16_16x16x16));
}

void library(llvm::StringMap<Meaning>& all) {
  struct Entry {
    const char* name;
    Hook f, d;
  };
  for (const Entry& e : {Entry{"exp2", Hook::exp2_32, Hook::exp2_64}, Entry{"log2", Hook::log2_32, Hook::log2_64},
                         Entry{"exp", Hook::exp_32, Hook::exp_64}, Entry{"log", Hook::log_32, Hook::log_64},
                         Entry{"sin", Hook::sin_32, Hook::sin_64}, Entry{"cos", Hook::cos_32, Hook::cos_64},
                         Entry{"tanh", Hook::tanh_32, Hook::tanh_64}, Entry{"pow", Hook::pow_32, Hook::pow_64}}) {
    all[std::string("llvm.") + e.name + ".f32"] = math(e.f);
    all[std::string("llvm.") + e.name + ".f64"] = math(e.d);
  }
}

}  // namespace

std::optional<Meaning> meaning(llvm::StringRef name) {
  static const llvm::StringMap<Meaning> all = [] {
    llvm::StringMap<Meaning> m;
    nvidia(m);
    amd(m);
    library(m);
    return m;
  }();
  // Overloaded names end in the types of their operands: pointers by address space, widths of words.
  for (llvm::StringRef n = name;;) {
    if (auto it = all.find(n); it != all.end()) return it->second;
    auto [front, last] = n.rsplit('.');
    if (last.empty() || front.size() == n.size()) return std::nullopt;
    bool type = last == "p0" || last == "p1" || last == "p3" || last == "i32" || last == "f32" || last == "f";
    if (!type) return std::nullopt;
    n = front;
  }
}

}  // namespace latile::emulator
