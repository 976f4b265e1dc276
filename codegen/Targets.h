// All GPUs that code is made for.
#pragma once
#include "codegen/simt/Target.h"

namespace latile {

/// The target of a name, or null. NVIDIA: sm_80, sm_86, sm_89, sm_90; AMD: gfx90a, gfx942, gfx1200, gfx1201.
const simt::Target* find_target(std::string_view name);

/// All names that `find_target` knows.
std::vector<std::string_view> target_names();

}  // namespace latile
