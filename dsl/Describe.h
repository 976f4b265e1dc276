// What is known of an operator without compiling it.
#pragma once
#include "dsl/OperatorInfo.h"
#include "latile/table.h"

namespace latile {

/// One specialisation. Mistakes of the configuration or of the definition are appended.
OperatorInfo describe(const OperatorRow&, const Config&, std::vector<Diagnostic>& mistakes);
/// Every option and every tensor that any setting can need: found by calling the definition with each value of each
/// option in turn (linear in the values, not their product). Dims, scalars and options of the default come first.
OperatorInfo discover(const OperatorRow&);

}  // namespace latile
