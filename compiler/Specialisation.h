// One specialisation: everything that shapes a plan's code. Its JSON text is part of the cache key.
#pragma once
#include "dsl/OperatorInfo.h"
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace latile {

/// prefill: the chunk body over chunks; recurrent: the reference over tokens; step: the reference at one token.
enum class Mode : std::uint8_t { prefill, recurrent, step };
const char* name(Mode);

struct BoundTensor {
  /// "q", "S.initial", "S.initial_index", "S.final", "S.final_index", "S.history", "S.history_index", "accepted",
  /// "cu_seqlens".
  std::string name;
  ElementType type = ElementType::f32;
  /// Which of the tensor's own axes (declared order, outermost first, batch and rows or slot counted) has stride 1;
  /// -1: none is known to.
  int unit = -1;
};

/// What the host code may use. Levels, each with all before it: "x86-64-v3" (AVX2, FMA, F16C), "avx512" (x86-64-v4),
/// "avx512bf16" (dot of bfloat16 pairs at full rate: AMD Zen 4), "amx" (bfloat16 tile products: Intel Sapphire Rapids).
struct HostIsa {
  std::string level = "x86-64-v3";
  int vector_floats() const { return level == "x86-64-v3" ? 8 : 16; }
  /// The best level of the CPU this process runs on, decided by cpuid and the kernel's consent to tile state.
  static HostIsa native();
  /// "native" or a level; false when there is no such level.
  static bool named(const std::string&, HostIsa&);
};

struct Specialisation {
  std::string op;
  Mode mode = Mode::prefill;
  std::vector<std::pair<std::string, std::string>> options;
  std::map<std::string, std::int64_t> extents;  ///< inner dims: {"K", 128}, {"V", 128}
  std::int64_t head_ratio = 1;                  ///< heads of the finest axis per head of the coarser one
  bool tiled_heads = false;                     ///< head map: h mod H (ggml) and not h div ratio (FLA)
  bool reversed = false;                        ///< from the last row of each sequence to the first
  std::map<std::string, std::int64_t> every;    ///< of each carry with a history, the tokens between its states
  ElementType io = ElementType::f32;
  std::vector<BoundTensor> tensors;  ///< in the caller's order; those not listed are absent
  std::int64_t chunk = 0;            ///< rows of a chunk; 0: the target's choice
  HostIsa isa;                       ///< of host code
  std::string device = "host";       ///< or a device's target: "cuda:sm_90", "hip:gfx90a", "emulated:sm_80"

  const BoundTensor* tensor(const std::string& name) const;
  bool ragged() const { return tensor("cu_seqlens") != nullptr; }
  std::string json() const;  ///< canonical: equal specialisations give equal text
};

}  // namespace latile
