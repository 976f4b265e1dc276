// What this CPU can run, beside HostIsa::native and HostIsa::named.
#pragma once
#include "compiler/Specialisation.h"

namespace latile {

/// Whether code of this level runs on this CPU. LATILE_HOST_ISA plays no part.
bool host_supports(const HostIsa&);

/// Whether code of level `lower` runs wherever code of level `higher` does.
bool host_includes(const HostIsa& higher, const HostIsa& lower);

/// Why the value of LATILE_HOST_ISA is ignored, as one sentence; empty when it is fine or not set.
std::string host_isa_complaint();

}  // namespace latile
