// The parts of describe(): options, dimensions, tensors. Each throws Failure.
#pragma once
#include "runtime/Describe.h"
#include <string>
#include <utility>
#include <vector>

namespace latile::runtime {

using Options = std::vector<std::pair<std::string, std::string>>;

/// Takes out the options that every operator has and puts them into the specialisation; returns the operator's own.
Options split_options(const latile_plan_desc& desc, const HostIsa& native, Specialisation& specialisation);
/// Each option is known to `info` and its value is one it takes.
void check_options(const OperatorInfo& info, const Options& options);
/// Sorted, one spelling a value, without those at their default: equal settings give equal options.
Options canonical_options(const OperatorInfo& info, Options options);

/// Fills the signature's dims, head ratios, batch, rows, sequences; the specialisation's extents and head ratio.
void read_dims(const latile_plan_desc& desc, const OperatorInfo& info, Mode mode, Described& described);
/// Fills the signature's tensors and carries; the specialisation's tensors, in declared order, and its io type.
void read_tensors(const latile_plan_desc& desc, const OperatorInfo& info, Described& described);

}  // namespace latile::runtime
