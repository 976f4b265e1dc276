// GPUs emulated on the CPU, as devices of kind LATILE_EMULATED: code of the target emulated:sm_80 is a shared object
// that runtime/emulator runs lane by lane, in host memory.
#pragma once
#include "runtime/Device.h"

namespace latile::runtime {

/// Offers LATILE_EMULATED in this process. The ids: 80 and 90 for sm_80 and sm_90, 0x90a and 0x1201 for gfx90a and
/// gfx1201. Idempotent.
void install_emulated_devices();

/// "sm_80" to 80; false: there is no such chip.
bool emulated_chip(const std::string& name, std::int32_t& id);
/// Names of the chips, for messages.
std::vector<std::string> emulated_chips();

}  // namespace latile::runtime
