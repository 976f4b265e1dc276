#include "runtime/HostIsa.h"
#include <algorithm>
#include <array>
#include <cpuid.h>
#include <cstdlib>
#include <cstring>
#include <sys/syscall.h>
#include <unistd.h>

namespace latile {
namespace {

constexpr std::array<const char*, 5> kLevels = {"none", "x86-64-v3", "avx512", "avx512bf16", "amx"};

std::size_t rank(const std::string& level) {
  return static_cast<std::size_t>(std::find(kLevels.begin(), kLevels.end(), level) - kLevels.begin());
}

struct Registers {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
};

Registers cpuid(unsigned leaf, unsigned sub = 0) {
  Registers r;
  if (!__get_cpuid_count(leaf, sub, &r.eax, &r.ebx, &r.ecx, &r.edx)) return {};
  return r;
}

bool has(unsigned word, std::initializer_list<int> bits) {
  return std::all_of(bits.begin(), bits.end(), [&](int bit) { return (word >> bit) & 1u; });
}

/// Linux gives the tile registers only to a process that has asked for them.
bool request_tiles() {
  constexpr long kRequestPermission = 0x1023, kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

std::string detect() {
  const Registers first = cpuid(1), extended = cpuid(0x80000001), seven = cpuid(7), seven1 = cpuid(7, 1);
  const bool xsave = has(first.ecx, {27});
  std::uint64_t enabled = 0;
  if (xsave) {
    unsigned low = 0, high = 0;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    enabled = (static_cast<std::uint64_t>(high) << 32) | low;
  }
  const auto saves = [&](std::uint64_t mask) { return (enabled & mask) == mask; };
  // FMA, MOVBE, AVX, F16C; LZCNT; BMI1, AVX2, BMI2; xmm and ymm saved by the system.
  if (!has(first.ecx, {12, 22, 28, 29}) || !has(extended.ecx, {5}) || !has(seven.ebx, {3, 5, 8}) || !saves(0x6))
    return "none";
  // AVX512 F, DQ, CD, BW, VL; zmm and mask registers saved.
  if (!has(seven.ebx, {16, 17, 28, 30, 31}) || !saves(0xe6)) return "x86-64-v3";
  const Registers vendor = cpuid(0);
  const bool amd = vendor.ebx == 0x68747541u /* "Auth" of AuthenticAMD */;
  const bool bf16 = has(seven1.eax, {5});
  // Intel's vdpbf16ps is slower than a float32 FMA (measured on Sapphire Rapids), so the level is AMD's alone.
  if (amd) return bf16 ? "avx512bf16" : "avx512";
  // AMX-BF16, AMX-TILE; tile configuration and data saved.
  if (bf16 && has(seven.edx, {22, 24}) && saves(0x60000) && request_tiles()) return "amx";
  return "avx512";
}

bool includes(const std::string& have, const std::string& want) { return rank(want) <= rank(have) && want != "none"; }

const std::string& detected() {
  static const std::string level = detect();
  return level;
}

}  // namespace

HostIsa HostIsa::native() {
  HostIsa isa;
  isa.level = detected();
  const char* wanted = std::getenv("LATILE_HOST_ISA");
  if (wanted != nullptr && includes(isa.level, wanted)) isa.level = wanted;
  return isa;
}

bool HostIsa::named(const std::string& wanted, HostIsa& isa) {
  if (wanted == "native") {
    isa = native();
    return true;
  }
  if (wanted == "none" || rank(wanted) == kLevels.size()) return false;
  isa.level = wanted;
  return true;
}

bool host_includes(const HostIsa& higher, const HostIsa& lower) { return includes(higher.level, lower.level); }

bool host_supports(const HostIsa& isa) { return includes(detected(), isa.level); }

std::string host_isa_complaint() {
  const char* wanted = std::getenv("LATILE_HOST_ISA");
  if (wanted == nullptr || *wanted == 0 || std::strcmp(wanted, "native") == 0) return {};
  HostIsa isa;
  if (!HostIsa::named(wanted, isa))
    return std::string("LATILE_HOST_ISA is '") + wanted +
           "', which is no level; use x86-64-v3, avx512, avx512bf16 or amx; ignored";
  if (!host_supports(isa))
    return std::string("LATILE_HOST_ISA is '") + wanted + "', which this CPU does not have (it has " + detected() +
           "); ignored";
  return {};
}

}  // namespace latile
