// What made the code: part of every cache key.
#pragma once

namespace latile {

/// Version, a digest of all sources that shape compiled code, and LLVM's version. Defined in a generated file of its
/// own, so that a change of a pass recompiles the pass and that file only.
extern const char* const version_text;

}  // namespace latile
