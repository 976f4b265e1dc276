// Products of matrices whose elements are spread over the lanes of a warp. The maps are written as the layouts of the
// compiler are: for each bit of the element's number in a lane, then for each bit of the lane, the row or column that
// it adds. NVIDIA's were pinned on an H200 (tests/cuda); AMD's follow its ISA documents.
//
// Products of 16-bit and tf32 operands are exact in float32; sums are taken in order of the contraction, each rounded
// to nearest. Tensor cores align the terms of an instruction to the largest and truncate, so they differ from this by
// up to a unit in the last place of the largest term.
#include "runtime/emulator/Machine.h"
#include <array>
#include <bit>
#include <cstring>

namespace latile::emulator {
namespace {

struct Step {
  int row, column;
};
constexpr Step R(int n) { return {n, 0}; }
constexpr Step C(int n) { return {0, n}; }

/// Offsets into a row-major matrix, by lane and element.
template <int Lanes, int Elements> using Places = std::array<std::array<std::uint16_t, Elements>, Lanes>;

template <int Lanes, int Elements, std::size_t E, std::size_t L>
constexpr Places<Lanes, Elements> places(int columns, const Step (&elements)[E], const Step (&lanes)[L]) {
  static_assert(1 << E == Elements && 1 << L == Lanes);
  Places<Lanes, Elements> all{};
  for (int l = 0; l < Lanes; ++l)
    for (int e = 0; e < Elements; ++e) {
      int row = 0, column = 0;
      auto add = [&](const Step& s) {
        row += s.row;
        column += s.column;
      };
      for (std::size_t i = 0; i < E; ++i)
        if (e >> i & 1) add(elements[i]);
      for (std::size_t i = 0; i < L; ++i)
        if (l >> i & 1) add(lanes[i]);
      all[static_cast<std::size_t>(l)][static_cast<std::size_t>(e)] =
          static_cast<std::uint16_t>(row * columns + column);
    }
  return all;
}

/// Lanes that hold one element each.
template <int Lanes, std::size_t L> constexpr Places<Lanes, 1> one(int columns, const Step (&lanes)[L]) {
  static_assert(1 << L == Lanes);
  Places<Lanes, 1> all{};
  for (std::size_t l = 0; l < Lanes; ++l)
    for (std::size_t i = 0; i < L; ++i)
      if (l >> i & 1) all[l][0] = static_cast<std::uint16_t>(all[l][0] + lanes[i].row * columns + lanes[i].column);
  return all;
}

enum class Element { bf16, f16, tf32, f32 };

float half(std::uint32_t h) {
  std::uint32_t sign = (h & 0x8000) << 16, exponent = h >> 10 & 31, fraction = h & 1023;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | fraction << 13);
  if (exponent) return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
  float small = static_cast<float>(fraction) * 0x1p-24f;
  return sign ? -small : small;
}

template <Element E> float element(const void* words, std::size_t i) {
  if constexpr (E == Element::tf32 || E == Element::f32) {
    std::uint32_t w;
    std::memcpy(&w, static_cast<const char*>(words) + 4 * i, 4);
    return std::bit_cast<float>(E == Element::tf32 ? w & ~0x1fffu : w);  // the unit drops the low 13 bits
  } else {
    std::uint16_t h;
    std::memcpy(&h, static_cast<const char*>(words) + 2 * i, 2);
    return E == Element::bf16 ? std::bit_cast<float>(std::uint32_t{h} << 16) : half(h);
  }
}

/// The maps and sizes of one instruction.
template <Element Type, int M, int N, int K, int Lanes> struct Instruction {
  static constexpr int a_elements = M * K / Lanes, b_elements = K * N / Lanes, c_elements = M * N / Lanes;
  Places<Lanes, a_elements> a;
  Places<Lanes, b_elements> b;
  Places<Lanes, c_elements> c;

  // The lanes' operands follow one another in whole words.
  void run(const void* const* in, void* const* out) const {
    constexpr std::size_t bytes = Type == Element::bf16 || Type == Element::f16 ? 2 : 4;
    constexpr std::size_t b_at = (a_elements * bytes + 3) / 4 * 4, c_at = b_at + (b_elements * bytes + 3) / 4 * 4;
    float A[M * K], B[K * N], D[M * N];
    for (std::size_t l = 0; l < Lanes; ++l) {
      const char* words = static_cast<const char*>(in[l]);
      for (std::size_t e = 0; e < a_elements; ++e) A[a[l][e]] = element<Type>(words, e);
      for (std::size_t e = 0; e < b_elements; ++e) B[b[l][e]] = element<Type>(words + b_at, e);
      for (std::size_t e = 0; e < c_elements; ++e) D[c[l][e]] = element<Element::f32>(words + c_at, e);
    }
    for (int m = 0; m < M; ++m)
      for (int k = 0; k < K; ++k)
        for (int n = 0; n < N; ++n) D[m * N + n] += A[m * K + k] * B[k * N + n];
    for (std::size_t l = 0; l < Lanes; ++l)
      for (std::size_t e = 0; e < c_elements; ++e) std::memcpy(static_cast<char*>(out[l]) + 4 * e, &D[c[l][e]], 4);
  }
};

// mma.sync. Accumulators of all are alike.
constexpr auto mma_c = places<32, 4>(8, {C(1), R(8)}, {C(2), C(4), R(1), R(2), R(4)});

template <Element T>
constexpr Instruction<T, 16, 8, 16, 32> mma_k16{places<32, 8>(16, {C(1), R(8), C(8)}, {C(2), C(4), R(1), R(2), R(4)}),
                                                places<32, 4>(8, {R(1), R(8)}, {R(2), R(4), C(1), C(2), C(4)}), mma_c};
template <Element T>
constexpr Instruction<T, 16, 8, 8, 32> mma_k8{places<32, 4>(8, {C(1), R(8)}, {C(2), C(4), R(1), R(2), R(4)}),
                                              places<32, 2>(8, {R(1)}, {R(2), R(4), C(1), C(2), C(4)}), mma_c};
constexpr Instruction<Element::tf32, 16, 8, 8, 32> mma_tf32_k8{
    places<32, 4>(8, {R(8), C(4)}, {C(1), C(2), R(1), R(2), R(4)}),
    places<32, 2>(8, {R(4)}, {R(1), R(2), C(1), C(2), C(4)}), mma_c};
constexpr Instruction<Element::tf32, 16, 8, 4, 32> mma_tf32_k4{places<32, 2>(4, {R(8)}, {C(1), C(2), R(1), R(2), R(4)}),
                                                               one<32>(8, {R(1), R(2), C(1), C(2), C(4)}), mma_c};

// MFMA of waves of 64.
template <Element T>
constexpr Instruction<T, 16, 16, 16, 64> mfma_16{places<64, 4>(16, {C(1), C(2)}, {R(1), R(2), R(4), R(8), C(4), C(8)}),
                                                 places<64, 4>(16, {R(1), R(2)}, {C(1), C(2), C(4), C(8), R(4), R(8)}),
                                                 places<64, 4>(16, {R(1), R(2)}, {C(1), C(2), C(4), C(8), R(4), R(8)})};
constexpr auto mfma_32_c = places<64, 16>(32, {R(1), R(2), R(8), R(16)}, {C(1), C(2), C(4), C(8), C(16), R(4)});
template <Element T>
constexpr Instruction<T, 32, 32, 8, 64> mfma_32{places<64, 4>(8, {C(1), C(2)}, {R(1), R(2), R(4), R(8), R(16), C(4)}),
                                                places<64, 4>(32, {R(1), R(2)}, {C(1), C(2), C(4), C(8), C(16), R(4)}),
                                                mfma_32_c};

constexpr Instruction<Element::f32, 16, 16, 4, 64> mfma_f32_16{one<64>(4, {R(1), R(2), R(4), R(8), C(1), C(2)}),
                                                               one<64>(16, {C(1), C(2), C(4), C(8), R(1), R(2)}),
                                                               mfma_16<Element::bf16>.c};
constexpr Instruction<Element::f32, 32, 32, 2, 64> mfma_f32_32{
    one<64>(2, {R(1), R(2), R(4), R(8), R(16), C(1)}), one<64>(32, {C(1), C(2), C(4), C(8), C(16), R(1)}), mfma_32_c};

// WMMA of gfx12, waves of 32.
template <Element T>
constexpr Instruction<T, 16, 16, 16, 32> wmma_12{places<32, 8>(16, {C(1), C(2), C(4)}, {R(1), R(2), R(4), R(8), C(8)}),
                                                 places<32, 8>(16, {R(1), R(2), R(4)}, {C(1), C(2), C(4), C(8), R(8)}),
                                                 places<32, 8>(16, {R(1), R(2), R(4)}, {C(1), C(2), C(4), C(8), R(8)})};

}  // namespace

void multiply(Collective op, const void* const* in, void* const* out) {
  switch (op) {
  case Collective::mma_bf16_k16: return mma_k16<Element::bf16>.run(in, out);
  case Collective::mma_f16_k16: return mma_k16<Element::f16>.run(in, out);
  case Collective::mma_bf16_k8: return mma_k8<Element::bf16>.run(in, out);
  case Collective::mma_f16_k8: return mma_k8<Element::f16>.run(in, out);
  case Collective::mma_tf32_k8: return mma_tf32_k8.run(in, out);
  case Collective::mma_tf32_k4: return mma_tf32_k4.run(in, out);
  case Collective::mfma_bf16_16x16x16: return mfma_16<Element::bf16>.run(in, out);
  case Collective::mfma_f16_16x16x16: return mfma_16<Element::f16>.run(in, out);
  case Collective::mfma_bf16_32x32x8: return mfma_32<Element::bf16>.run(in, out);
  case Collective::mfma_f16_32x32x8: return mfma_32<Element::f16>.run(in, out);
  case Collective::mfma_f32_16x16x4: return mfma_f32_16.run(in, out);
  case Collective::mfma_f32_32x32x2: return mfma_f32_32.run(in, out);
  case Collective::wmma12_bf16_16x16x16: return wmma_12<Element::bf16>.run(in, out);
  case Collective::wmma12_f16_16x16x16: return wmma_12<Element::f16>.run(in, out);
  default: return;
  }
}

}  // namespace latile::emulator
