#include "tools/latile/Machine.h"
#include "runtime/HostIsa.h"
#include <algorithm>
#include <chrono>
#include <cstring>
#include <fstream>
#include <functional>
#include <immintrin.h>
#include <sched.h>
#include <thread>
#include <vector>

namespace latile {
namespace {

double now_ms() {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void on_threads(int threads, const std::function<void(int)>& work) {
  std::vector<std::jthread> others;
  for (int t = 1; t < threads; ++t) others.emplace_back(work, t);
  work(0);
}

/// Twelve independent chains fill the pipelines of every x86-64 of today (latency 4, two units).
constexpr int chains = 12;
volatile float sink;

__attribute__((target("avx2,fma"))) void fma_256(std::int64_t rounds) {
  __m256 sum[chains], a = _mm256_set1_ps(0.999999f), b = _mm256_set1_ps(1e-6f);
  for (int i = 0; i < chains; ++i) sum[i] = _mm256_set1_ps(static_cast<float>(i));  // else the chains would be one
  for (std::int64_t i = 0; i < rounds; ++i)
    for (auto& s : sum) s = _mm256_fmadd_ps(s, a, b);
  for (auto& s : sum) sink = _mm256_cvtss_f32(s);
}
__attribute__((target("avx512f"))) void fma_512(std::int64_t rounds) {
  __m512 sum[chains], a = _mm512_set1_ps(0.999999f), b = _mm512_set1_ps(1e-6f);
  for (int i = 0; i < chains; ++i) sum[i] = _mm512_set1_ps(static_cast<float>(i));  // else the chains would be one
  for (std::int64_t i = 0; i < rounds; ++i)
    for (auto& s : sum) s = _mm512_fmadd_ps(s, a, b);
  for (auto& s : sum) sink = _mm512_cvtss_f32(s);
}
__attribute__((target("avx512f,avx512bf16,avx512vl"))) void dot_bf16(std::int64_t rounds) {
  const __m512bh a = _mm512_cvtne2ps_pbh(_mm512_set1_ps(1e-3f), _mm512_set1_ps(1e-3f));
  __m512 sum[chains];
  for (int i = 0; i < chains; ++i) sum[i] = _mm512_set1_ps(static_cast<float>(i));
  for (std::int64_t i = 0; i < rounds; ++i)
    for (auto& s : sum) s = _mm512_dpbf16_ps(s, a, a);
  for (auto& s : sum) sink = _mm512_cvtss_f32(s);
}

/// Four accumulators of 16 x 16, so that each product waits for none.
__attribute__((target("amx-tile,amx-bf16"))) void amx_bf16(std::int64_t rounds) {
  struct alignas(64) Config {
    std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
    std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64};
    std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16};
  } config;
  _tile_loadconfig(&config);
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  _tile_zero(4);
  _tile_zero(5);
  for (std::int64_t i = 0; i < rounds; ++i) {
    _tile_dpbf16ps(0, 4, 5);
    _tile_dpbf16ps(1, 4, 5);
    _tile_dpbf16ps(2, 4, 5);
    _tile_dpbf16ps(3, 4, 5);
  }
  _tile_release();
}

/// Best of several, so that a neighbour's noise does not lower the bound.
double gflops(int threads, double flops_a_round, void (*work)(std::int64_t)) {
  constexpr std::int64_t rounds = 1'000'000;
  double best = 1e300;
  for (int k = 0; k < 5; ++k) {
    const double start = now_ms();
    on_threads(threads, [&](int) { work(rounds); });
    best = std::min(best, now_ms() - start);
  }
  return flops_a_round * rounds * threads / best / 1e6;
}

}  // namespace

std::string cpu_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  return "unknown";
}

int usable_cpus() {
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

double fma_gflops(int threads) {
  if (__builtin_cpu_supports("avx512f")) return gflops(threads, chains * 16 * 2, fma_512);
  return gflops(threads, chains * 8 * 2, fma_256);
}

double bf16_gflops(int threads) {
  HostIsa amx;
  // Asking for the level also asks the kernel for the tile state.
  if (HostIsa::named("amx", amx) && host_supports(amx)) return gflops(threads, 4.0 * 16 * 16 * 32 * 2, amx_bf16);
  return __builtin_cpu_supports("avx512bf16") ? gflops(threads, chains * 32 * 2, dot_bf16) : 0;
}

double copy_gbs(int threads) {
  constexpr std::size_t bytes = std::size_t{256} << 20;
  std::vector<char> from(bytes, 1), to(bytes, 2);
  const std::size_t part = bytes / static_cast<std::size_t>(threads);
  double best = 1e300;
  for (int k = 0; k < 5; ++k) {
    const double start = now_ms();
    on_threads(threads, [&](int t) {
      const std::size_t at = static_cast<std::size_t>(t) * part;
      std::memcpy(to.data() + at, from.data() + at, part);
    });
    best = std::min(best, now_ms() - start);
  }
  return 2.0 * static_cast<double>(bytes) / best / 1e6;
}

double in_place_ms(float* data, std::size_t count, int threads) {
  const std::size_t part = count / static_cast<std::size_t>(threads);
  const double start = now_ms();
  on_threads(threads, [&](int t) {
    float* p = data + static_cast<std::size_t>(t) * part;
    // Vectorised by the compiler for x86-64 alone: the pass is limited by memory, not by the width.
    for (std::size_t i = 0; i < part; ++i) p[i] *= 1.0000001f;
  });
  return now_ms() - start;
}

}  // namespace latile
