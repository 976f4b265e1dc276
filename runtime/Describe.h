// From the caller's plan description to what is compiled (Specialisation) and what runs are checked by (Signature).
#pragma once
#include "runtime/Compiler.h"
#include "runtime/Signature.h"

namespace latile::runtime {

struct Described {
  Signature signature;
  Specialisation specialisation;
};

/// Limits of inner dimensions, such as K and V.
inline constexpr std::int64_t kMinInner = 8, kMaxInner = 512;
/// Of those that kernels of the lower layer take some columns of at a time.
inline constexpr std::int64_t kMaxColumns = std::int64_t{1} << 20;

/// Checks all of `desc` against the operator; throws Failure. `native` is the level for option host_isa = native;
/// `device_target` what the device's code is compiled for, empty for the host.
Described describe(Compiler& compiler, const latile_plan_desc& desc, const HostIsa& native,
                   const std::string& device_target);

/// The operator's options and tensors under any setting of its options, found by trying each value of each in turn.
struct Row {
  OperatorInfo info;
  std::vector<std::string> needs;  ///< for each tensor, the setting that brings it in ("gate_in_kernel=true") or empty
};
Row operator_row(Compiler& compiler, const std::string& op);

/// The row as JSON, for latile_operator_json.
std::string operator_json(const Row& row);

}  // namespace latile::runtime
