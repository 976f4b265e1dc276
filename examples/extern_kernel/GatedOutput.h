// Gated linear attention whose output goes through a gate: the scan in the language, the gate in CUDA C++.
#pragma once
#include "latile/dsl.h"

/// One block for 16 rows of one head.
inline constexpr const char* gate_output = R"(
extern "C" __global__ void gate_output(const latile::Arguments a) {
  const latile::Block at = latile::block(a);
#ifdef LATILE_HAS_cu_seqlens
  const long long rows = a.cu_seqlens[a.sizes.N * a.strides.cu_seqlens[0]];  // there may be memory for more
#else
  const long long rows = a.sizes.T;
#endif
  for (long long t = at.T * 16; t < at.T * 16 + 16 && t < rows; ++t) {
    float* o = a.o + at.B * a.strides.o[0] + t * a.strides.o[1] + at.HV * a.strides.o[2];
    const latile::io* z = a.z + at.B * a.strides.z[0] + t * a.strides.z[1] + at.HV * a.strides.z[2];
    for (long long i = threadIdx.x; i < latile::V; i += blockDim.x) {
      const float x = z[i * a.strides.z[3]];
      o[i * a.strides.o[3]] *= x / (1 + expf(-x));
    }
  }
}
)";

/// S = e^g S + k vᵀ, o = silu(z) ∘ Sᵀ (scale q).
inline void gated_output(latile::Operator& op) {
  using namespace latile;
  auto [H, HV] = op.heads("H", "HV % H");
  auto [K, V] = op.dims("K", "V");
  auto q = op.sequence("q", {H, K}), k = op.sequence("k", {H, K}), v = op.sequence("v", {HV, V});
  auto g = op.gate("g", {HV}).optional();
  auto z = op.sequence("z", {HV, V});
  auto scale = op.scalar("scale");
  auto o = op.output("o", {HV, V}, f32);  // the gate meets it before it is rounded
  auto S = op.carry("S", {HV, K, V});

  // What all kernels compute together.
  op.reference([&](Token) {
    S = exp2(g) * S + outer(k, v);
    o = silu(z) * (scale * dot(q, S));
  });

  op.chunk([&](Chunk) {
    Tile G = cumsum(g), Gl = last(G);
    o = scale * (exp2(G) * dot(q, S) + dot(dot(q, k.T()) * decay(G, G, lower), v));
    S = exp2(Gl) * S + dot((exp2(Gl - G) * k).T(), v);
  });
  op.extern_kernel({.entry = "gate_output",
                    .source = gate_output,
                    .grid = {{"B"}, {"T", 16}, {"HV"}},
                    .threads = 128,
                    .reads = {"z", "cu_seqlens"},
                    .writes = {"o"}});
}
