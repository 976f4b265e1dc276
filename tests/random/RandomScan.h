// Random scans: every pure op of the tile dialect on small tiles, values kept small enough to compare to 1e-12.
#pragma once
#include "tests/interpreter/Fixture.h"

namespace latile::test {

/// A program with one scan, the same for the same seed: one to three sequences tensors (one with two rows a token, one
/// a gate), a parameter, a scalar, one or two carries with or without tensors and slots, one or two outputs; dense or
/// ragged, with or without grouped heads; its body twelve to forty random ops. Patterns that passes look for come more
/// often than chance has them. `step` makes a step.
ScanText random_scan(std::uint64_t seed, bool step);

}  // namespace latile::test
