// The part of liblatile that runs when it is loaded: the runtime gets its compiler.
#include "compiler/Compile.h"

namespace {
[[maybe_unused]] const bool installed = (latile::install_compiler(), true);
}
