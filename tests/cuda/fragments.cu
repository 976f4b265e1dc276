// Pins what the compiler and the emulator take for granted of NVIDIA's instructions, on a GPU:
//   nvcc -std=c++17 -arch=sm_80 -I . -o fragments tests/cuda/fragments.cu && ./fragments
// (sm_90 pins stmatrix too.) One line for each pin, the last line is JSON; the status is 0 if all hold.
#include "tests/cuda/Maps.h"
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>
#include <string>
#include <vector>

using namespace latile::maps;

static int held, broken;

static void pin(const std::string& name, long wrong, long of) {
  std::printf("%-40s %s (%ld of %ld differ)\n", name.c_str(), wrong ? "BROKEN" : "holds", wrong, of);
  ++(wrong ? broken : held);
}

static void must(cudaError_t e, const char* what) {
  if (e == cudaSuccess) return;
  std::fprintf(stderr, "fragments: %s: %s\n", what, cudaGetErrorString(e));
  std::exit(2);
}

static std::uint32_t word(float x) {
  std::uint32_t w;
  std::memcpy(&w, &x, 4);
  return w;
}
static float number(std::uint32_t w) {
  float x;
  std::memcpy(&x, &w, 4);
  return x;
}
static std::uint16_t bf16(float x) { return static_cast<std::uint16_t>(word(x) >> 16); }
/// Of integers up to 2048.
static std::uint16_t f16(float x) {
  if (x == 0) return 0;
  int e;
  float m = std::frexp(std::fabs(x), &e);
  return static_cast<std::uint16_t>((x < 0 ? 0x8000 : 0) | (e + 14) << 10 | (static_cast<int>(m * 2048.0f) & 1023));
}

/// Runs one warp: `in` words to each lane, `out` words from each.
template <class K>
static std::vector<std::uint32_t> warp(K kernel, const std::vector<std::uint32_t>& in, std::size_t out) {
  std::uint32_t *x = nullptr, *y = nullptr;
  std::vector<std::uint32_t> result(32 * out);
  must(cudaMalloc(&x, in.size() * 4), "cudaMalloc");
  must(cudaMalloc(&y, result.size() * 4), "cudaMalloc");
  must(cudaMemcpy(x, in.data(), in.size() * 4, cudaMemcpyHostToDevice), "copy in");
  kernel<<<1, 32>>>(x, y);
  must(cudaGetLastError(), "launch");
  must(cudaDeviceSynchronize(), "run");
  must(cudaMemcpy(result.data(), y, result.size() * 4, cudaMemcpyDeviceToHost), "copy out");
  cudaFree(x);
  cudaFree(y);
  return result;
}

// Products. Words of a lane: A, B, C.
#define MMA(NAME, WA, WB, SHAPE, A_LIST, B_LIST, ...)                                                                  \
  __global__ void NAME(const std::uint32_t* x, std::uint32_t* y) {                                                     \
    x += threadIdx.x * (WA + WB + 4);                                                                                  \
    const std::uint32_t* b = x + WA;                                                                                   \
    float d[4];                                                                                                        \
    for (int e = 0; e < 4; ++e) d[e] = __uint_as_float(b[WB + e]);                                                     \
    asm volatile("mma.sync.aligned." SHAPE " {%0,%1,%2,%3}, {" A_LIST "}, {" B_LIST "}, {%0,%1,%2,%3};"                \
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                                                      \
                 : __VA_ARGS__);                                                                                       \
    for (int e = 0; e < 4; ++e) y[threadIdx.x * 4 + e] = __float_as_uint(d[e]);                                        \
  }
#define A4 "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3])
#define A2 "r"(x[0]), "r"(x[1])
#define B2 "r"(b[0]), "r"(b[1])
#define B1 "r"(b[0])
MMA(mma_bf16_k16, 4, 2, "m16n8k16.row.col.f32.bf16.bf16.f32", "%4,%5,%6,%7", "%8,%9", A4, B2)
MMA(mma_f16_k16, 4, 2, "m16n8k16.row.col.f32.f16.f16.f32", "%4,%5,%6,%7", "%8,%9", A4, B2)
MMA(mma_bf16_k8, 2, 1, "m16n8k8.row.col.f32.bf16.bf16.f32", "%4,%5", "%6", A2, B1)
MMA(mma_f16_k8, 2, 1, "m16n8k8.row.col.f32.f16.f16.f32", "%4,%5", "%6", A2, B1)
MMA(mma_tf32_k8, 4, 2, "m16n8k8.row.col.f32.tf32.tf32.f32", "%4,%5,%6,%7", "%8,%9", A4, B2)
MMA(mma_tf32_k4, 2, 1, "m16n8k4.row.col.f32.tf32.tf32.f32", "%4,%5", "%6", A2, B1)

template <class K>
static void product(const char* name, K kernel, int k, int bytes, std::uint16_t (*narrow)(float), At (*map_a)(int, int),
                    At (*map_b)(int, int)) {
  auto A = [](int i, int j) { return static_cast<float>((i * 7 + j * 5) % 17 - 8); };
  auto B = [](int i, int j) { return static_cast<float>((i * 11 + j * 3) % 13 - 6); };
  auto C = [](int i, int j) { return static_cast<float>(i * 8 + j); };
  int ea = 16 * k / 32, eb = 8 * k / 32, wa = ea * bytes / 4, wb = eb * bytes / 4, words = wa + wb + 4;
  std::vector<std::uint32_t> in(static_cast<std::size_t>(32 * words));
  auto put = [&](std::uint32_t* to, int e, float x) {
    if (bytes == 4) {
      to[e] = word(x) | 0x0fff;  // the unit drops what is below a tf32
    } else {
      std::uint16_t h = narrow(x);
      std::memcpy(reinterpret_cast<char*>(to) + 2 * e, &h, 2);
    }
  };
  for (int l = 0; l < 32; ++l) {
    std::uint32_t* lane = in.data() + l * words;
    for (int e = 0; e < ea; ++e) put(lane, e, A(map_a(l, e).row, map_a(l, e).column));
    for (int e = 0; e < eb; ++e) put(lane + wa, e, B(map_b(l, e).row, map_b(l, e).column));
    for (int e = 0; e < 4; ++e) lane[wa + wb + e] = word(C(accumulator(l, e).row, accumulator(l, e).column));
  }
  std::vector<std::uint32_t> out = warp(kernel, in, 4);
  long wrong = 0;
  for (int l = 0; l < 32; ++l)
    for (int e = 0; e < 4; ++e) {
      At at = accumulator(l, e);
      float sum = C(at.row, at.column);
      for (int i = 0; i < k; ++i) sum += A(at.row, i) * B(i, at.column);
      wrong += number(out[static_cast<std::size_t>(4 * l + e)]) != sum;
    }
  pin(name, wrong, 128);
}

// Matrices of 8 x 8 elements between shared memory and registers. Lane l's 4 words are row l of the tile.
template <int Count, bool Transposed> __global__ void load_matrices(const std::uint32_t* x, std::uint32_t* y) {
  __shared__ __align__(16) std::uint32_t tile[128];
  for (int i = 0; i < 4; ++i) tile[threadIdx.x * 4 + i] = x[threadIdx.x * 4 + i];
  __syncwarp();
  auto at = static_cast<std::uint32_t>(__cvta_generic_to_shared(tile + threadIdx.x * 4));
  std::uint32_t r[4] = {};
#define LOAD(X, T, REGS, ...) asm volatile("ldmatrix.sync.aligned.m8n8." X T ".shared.b16 {" REGS "}, [%" __VA_ARGS__)
  if constexpr (Count == 1 && !Transposed) LOAD("x1", "", "%0", "1];" : "=r"(r[0]) : "r"(at));
  if constexpr (Count == 1 && Transposed) LOAD("x1", ".trans", "%0", "1];" : "=r"(r[0]) : "r"(at));
  if constexpr (Count == 2 && !Transposed) LOAD("x2", "", "%0,%1", "2];" : "=r"(r[0]), "=r"(r[1]) : "r"(at));
  if constexpr (Count == 2 && Transposed) LOAD("x2", ".trans", "%0,%1", "2];" : "=r"(r[0]), "=r"(r[1]) : "r"(at));
  if constexpr (Count == 4 && !Transposed)
    LOAD("x4", "", "%0,%1,%2,%3", "4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at));
  if constexpr (Count == 4 && Transposed)
    LOAD("x4", ".trans", "%0,%1,%2,%3", "4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at));
  for (int i = 0; i < Count; ++i) y[threadIdx.x * Count + i] = r[i];
}

template <bool Transposed> __global__ void store_matrices(const std::uint32_t* x, std::uint32_t* y) {
#if __CUDA_ARCH__ >= 900
  __shared__ __align__(16) std::uint32_t tile[128];
  auto at = static_cast<std::uint32_t>(__cvta_generic_to_shared(tile + threadIdx.x * 4));
  const std::uint32_t* r = x + threadIdx.x * 4;
  if constexpr (Transposed)
    asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1,%2,%3,%4};" ::"r"(at), "r"(r[0]), "r"(r[1]),
                 "r"(r[2]), "r"(r[3])
                 : "memory");
  else
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1,%2,%3,%4};" ::"r"(at), "r"(r[0]), "r"(r[1]),
                 "r"(r[2]), "r"(r[3])
                 : "memory");
  __syncwarp();
  for (int i = 0; i < 4; ++i) y[threadIdx.x * 4 + i] = tile[threadIdx.x * 4 + i];
#endif
}

__global__ void transpose_matrix(const std::uint32_t* x, std::uint32_t* y) {
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(y[threadIdx.x]) : "r"(x[threadIdx.x]));
}

static std::vector<std::uint32_t> numbered_rows() {
  std::vector<std::uint32_t> x;
  for (std::uint32_t i = 0; i < 128; ++i) x.push_back((2 * i + 1) << 16 | 2 * i);  // element number in the tile
  return x;
}

template <int Count, bool Transposed> static void load_pin() {
  std::vector<std::uint32_t> o = warp(load_matrices<Count, Transposed>, numbered_rows(), Count);
  long wrong = 0;
  for (int l = 0; l < 32; ++l)
    for (int i = 0; i < Count; ++i)
      for (int h = 0; h < 2; ++h) {
        At at = matrix(l, h, Transposed);
        wrong += static_cast<int>(o[static_cast<std::size_t>(l * Count + i)] >> 16 * h & 0xffff) !=
                 64 * i + 8 * at.row + at.column;
      }
  pin("ldmatrix.x" + std::to_string(Count) + (Transposed ? ".trans" : ""), wrong, 64 * Count);
}

template <bool Transposed> static void store_pin() {
  std::vector<std::uint32_t> x(128);
  for (int l = 0; l < 32; ++l)
    for (int i = 0; i < 4; ++i)
      for (int h = 0; h < 2; ++h) {
        At at = matrix(l, h, Transposed);
        x[static_cast<std::size_t>(4 * l + i)] |= static_cast<std::uint32_t>(64 * i + 8 * at.row + at.column) << 16 * h;
      }
  std::vector<std::uint32_t> o = warp(store_matrices<Transposed>, x, 4), rows = numbered_rows();
  long wrong = 0;
  for (std::size_t i = 0; i < 128; ++i) wrong += o[i] != rows[i];
  pin(std::string("stmatrix.x4") + (Transposed ? ".trans" : ""), wrong, 128);
}

template <int Kind> __global__ void shuffle(const std::uint32_t* x, std::uint32_t* y) {
  // Words: value, distance, clamp.
  const std::uint32_t* in = x + threadIdx.x * 3;
  std::uint32_t v, p;
#define SHFL(MODE)                                                                                                     \
  asm volatile("{ .reg .pred q; shfl.sync." MODE ".b32 %0|q, %2, %3, %4, 0xffffffff; selp.u32 %1, 1, 0, q; }"          \
               : "=r"(v), "=r"(p)                                                                                      \
               : "r"(in[0]), "r"(in[1]), "r"(in[2]))
  if constexpr (Kind == 0) SHFL("up");
  if constexpr (Kind == 1) SHFL("down");
  if constexpr (Kind == 2) SHFL("bfly");
  if constexpr (Kind == 3) SHFL("idx");
  y[threadIdx.x * 2] = v;
  y[threadIdx.x * 2 + 1] = p;
}

template <int Kind> static void shuffle_pin(const char* name) {
  long wrong = 0, of = 0;
  for (int by : {0, 1, 3, 7, 16, 31})
    for (int clamp : {0, 31, 24 << 8, 24 << 8 | 31, 16 << 8 | 31}) {
      std::vector<std::uint32_t> x;
      for (std::uint32_t l = 0; l < 32; ++l) {
        x.push_back(100 + l);
        x.push_back(static_cast<std::uint32_t>(by));
        x.push_back(static_cast<std::uint32_t>(clamp));
      }
      std::vector<std::uint32_t> o = warp(shuffle<Kind>, x, 2);
      for (int l = 0; l < 32; ++l) {
        bool inside = true;
        int from = shuffle_source(static_cast<Shuffle>(Kind), l, by, clamp, inside);
        wrong += o[static_cast<std::size_t>(2 * l)] != 100u + static_cast<unsigned>(from) ||
                 (o[static_cast<std::size_t>(2 * l + 1)] != 0) != inside;
        ++of;
      }
    }
  pin(name, wrong, of);
}

__global__ void conversions(const std::uint32_t* x, std::uint32_t* y) {
  float v = __uint_as_float(x[threadIdx.x]);
  std::uint32_t tf, pair;
  asm volatile("cvt.rna.tf32.f32 %0, %1;" : "=r"(tf) : "f"(v));
  asm volatile("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(-v), "f"(v));
  y[threadIdx.x * 2] = tf;
  y[threadIdx.x * 2 + 1] = pair;
}

static void conversions_pin() {
  std::vector<std::uint32_t> x;
  for (std::uint32_t l = 0; l < 32; ++l) x.push_back(word(1.0f) + l * 0x0800 + (l & 1) * 0x7fff + (l & 2) * 0x1000000);
  std::vector<std::uint32_t> o = warp(conversions, x, 2);
  long wrong = 0;
  for (std::size_t l = 0; l < 32; ++l) {
    std::uint32_t nearest = x[l] + 0x7fff + (x[l] >> 16 & 1), half = nearest >> 16;
    wrong += o[2 * l] != ((x[l] + 0x1000) & ~0x1fffu);
    wrong += o[2 * l + 1] != ((half ^ 0x8000u) << 16 | half);
  }
  pin("cvt.rna.tf32, cvt.rn.bf16x2", wrong, 64);
}

__global__ void powers(const std::uint32_t* x, std::uint32_t* y) {
  float v = __uint_as_float(x[threadIdx.x]), e;
  asm volatile("ex2.approx.ftz.f32 %0, %1;" : "=f"(e) : "f"(v));
  y[threadIdx.x] = __float_as_uint(e);
}

static void powers_pin() {
  long wrong = 0, of = 0;
  double worst = 0;
  for (int i = 0; i < 256; ++i) {
    std::vector<std::uint32_t> x;
    for (int l = 0; l < 32; ++l) x.push_back(word(-126.0f + static_cast<float>(i * 32 + l) * 0.0154f));
    std::vector<std::uint32_t> o = warp(powers, x, 1);
    for (std::size_t l = 0; l < 32; ++l, ++of) {
      double exact = std::exp2(static_cast<double>(number(x[l])));
      worst = std::max(worst, std::fabs(number(o[l]) - exact) / exact);
    }
  }
  wrong += worst > 2.5e-7;
  std::vector<std::uint32_t> edge(32, word(-INFINITY));
  edge[1] = word(-127.5f);  // subnormal: flushed
  edge[2] = word(NAN);
  edge[3] = word(200.0f);
  std::vector<std::uint32_t> o = warp(powers, edge, 1);
  wrong += o[0] != 0 || o[1] != 0 || !std::isnan(number(o[2])) || !std::isinf(number(o[3]));
  std::printf("ex2.approx.ftz: worst relative error %.3g\n", worst);
  pin("ex2.approx.ftz", wrong, of + 4);
}

__global__ void copies(const std::uint32_t* x, std::uint32_t* y) {
  __shared__ __align__(16) std::uint32_t tile[128];
  for (int i = 0; i < 4; ++i) tile[threadIdx.x * 4 + i] = 0xdeadbeef;
  __syncwarp();
  auto at = static_cast<std::uint32_t>(__cvta_generic_to_shared(tile + threadIdx.x * 4));
  std::uint32_t read = (threadIdx.x % 5) * 4;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(x + threadIdx.x * 4), "r"(read)
               : "memory");
  asm volatile("cp.async.commit_group;" ::: "memory");
  asm volatile("cp.async.wait_group 0;" ::: "memory");
  for (int i = 0; i < 4; ++i) y[threadIdx.x * 4 + i] = tile[threadIdx.x * 4 + i];
}

static void copies_pin() {
  std::vector<std::uint32_t> x;
  for (std::uint32_t i = 0; i < 128; ++i) x.push_back(i + 1);
  std::vector<std::uint32_t> o = warp(copies, x, 4);
  long wrong = 0;
  for (std::uint32_t l = 0; l < 32; ++l)
    for (std::uint32_t i = 0; i < 4; ++i) wrong += o[4 * l + i] != (i < l % 5 ? x[4 * l + i] : 0);
  pin("cp.async, rest filled with zero", wrong, 128);
}

int main() {
  cudaDeviceProp device{};
  must(cudaGetDeviceProperties(&device, 0), "cudaGetDeviceProperties");
  product("mma m16n8k16 bf16", mma_bf16_k16, 16, 2, bf16, a_16, b_16);
  product("mma m16n8k16 f16", mma_f16_k16, 16, 2, f16, a_16, b_16);
  product("mma m16n8k8 bf16", mma_bf16_k8, 8, 2, bf16, a_16, b_16);
  product("mma m16n8k8 f16", mma_f16_k8, 8, 2, f16, a_16, b_16);
  product("mma m16n8k8 tf32", mma_tf32_k8, 8, 4, nullptr, a_tf32, b_tf32);
  product("mma m16n8k4 tf32", mma_tf32_k4, 4, 4, nullptr, a_tf32, b_tf32);
  load_pin<1, false>();
  load_pin<1, true>();
  load_pin<2, false>();
  load_pin<2, true>();
  load_pin<4, false>();
  load_pin<4, true>();
  cudaFuncAttributes code{};
  must(cudaFuncGetAttributes(&code, store_matrices<false>), "cudaFuncGetAttributes");
  if (code.binaryVersion >= 90) {
    store_pin<false>();
    store_pin<true>();
  } else {
    std::printf("%-40s skipped: compile for sm_90\n", "stmatrix.x4");
  }
  std::vector<std::uint32_t> tile = numbered_rows();
  std::vector<std::uint32_t> o = warp(transpose_matrix, std::vector<std::uint32_t>(tile.begin(), tile.begin() + 32), 1);
  long wrong = 0;
  for (int l = 0; l < 32; ++l)
    for (int h = 0; h < 2; ++h) {
      At at = matrix(l, h, true);
      wrong += static_cast<int>(o[static_cast<std::size_t>(l)] >> 16 * h & 0xffff) != 8 * at.row + at.column;
    }
  pin("movmatrix.trans", wrong, 64);
  shuffle_pin<0>("shfl.sync.up");
  shuffle_pin<1>("shfl.sync.down");
  shuffle_pin<2>("shfl.sync.bfly");
  shuffle_pin<3>("shfl.sync.idx");
  conversions_pin();
  powers_pin();
  copies_pin();
  std::printf("{\"test\": \"fragments\", \"device\": \"%s\", \"compiled_for\": %d, \"hold\": %d, \"broken\": %d}\n",
              device.name, code.binaryVersion, held, broken);
  return broken != 0;
}
