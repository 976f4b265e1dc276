// `latile check --large`: sizes at which 32-bit offsets and counts would wrap, on a device.
#pragma once
#include "tools/latile/CaseRun.h"

namespace latile {

/// Two results: a batch whose q has more than 2^31 elements, and a ragged batch of 70000 sequences. The last sequences
/// must have the bits that a run of them alone gives. Throws nothing.
std::vector<CaseResult> run_large(latile_context*, const OperatorRow&, ElementType io, const CheckSettings&);

}  // namespace latile
