// The part of liblatile that runs when it is loaded: the runtime gets its compiler and emulated devices.
#include "compiler/Compile.h"
#include "runtime/EmulatedDevice.h"

namespace {
[[maybe_unused]] const bool installed = (latile::install_compiler(), latile::runtime::install_emulated_devices(), true);
}
