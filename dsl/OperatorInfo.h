// What is known of one specialisation of an operator without compiling it: the source of validation, `list`, docs.
#pragma once
#include "latile/types.h"
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace latile {

/// Element type of memory. float64 is the interpreter's; no plan takes it.
enum class ElementType : std::uint8_t { f32, f16, bf16, i32, i64, f64 };
const char* name(ElementType);
std::size_t size(ElementType);

struct DimInfo {
  std::string name;
  bool head = false;
  std::string group;      ///< for a head axis "HV % H": "H"; else empty
  std::int64_t most = 0;  ///< the operator's own limit of an inner extent; 0: none
  std::string limit_why{};
};

struct TensorInfo {
  enum class Kind : std::uint8_t { sequence, param, carry, output };
  Kind kind = Kind::sequence;
  std::string name;
  std::vector<std::string> dims;  ///< heads and inner extents as declared, without batch and rows: {"HV", "V"}
  std::string head;               ///< its head axis or empty
  Type type = Type::io;
  bool gate = false;
  bool optional = false;
  bool given = true;  ///< bound in this specialisation
  int rate = 1;       ///< rows per token (sequences)
  double neutral = 0;
  std::optional<std::pair<double, double>> typical{};  ///< range that checks draw from
  bool typical_key = false;                            ///< checks draw rows of unit length
  std::string typical_of{};                            ///< checks multiply this sequence by numbers of that range
};

struct ScalarInfo {
  std::string name;
  std::optional<double> fallback;  ///< none: K^-1/2
};

struct OptionInfo {
  enum class Kind : std::uint8_t { flag, integer, number, choice };
  Kind kind = Kind::flag;
  std::string name;
  std::string fallback;
  std::int64_t lo = 0, hi = 0;
  std::vector<std::string> values;
  std::optional<std::pair<double, double>> range{};  ///< of a number
};

struct OperatorInfo {
  std::string name;
  std::vector<DimInfo> dims;
  std::vector<TensorInfo> tensors;
  std::vector<ScalarInfo> scalars;
  std::vector<OptionInfo> options;
  std::string no_segment;    ///< why it has no segmented form, or empty
  std::string no_prefill{};  ///< why it has no chunk body, or empty
  std::string no_step;       ///< why it has neither recurrent nor step though there is a reference, or empty
  int mini_batch = 0;        ///< tokens of a chunk where that is part of the meaning; 0: the target's choice
  bool has_reference = false, has_chunk = false, has_kernel = false;
  std::string extern_kernel{};  ///< the first of a prefill's kernels that are not written in the language; empty: none

  bool has_prefill() const { return has_chunk || has_kernel; }

  const TensorInfo* tensor(const std::string& name) const;
  const DimInfo* dim(const std::string& name) const;
};

}  // namespace latile
