// Random scans: every pure op of the tile dialect on small tiles, values kept small enough to compare to 1e-12.
#pragma once
#include "tests/interpreter/Fixture.h"

namespace latile::test {

/// A program with one scan, the same for the same seed: one to three sequences tensors (one with two rows a token, one
/// a gate), a parameter, a scalar, one or two carries with or without tensors and slots, one or two outputs; dense or
/// ragged, forward or reversed, with or without grouped heads, histories and accepted counts; its body twelve to forty
/// random ops. Patterns that passes look for come more often than chance has them. `step` makes a step.
ScanText random_scan(std::uint64_t seed, bool step);

/// The same for code that works on vectors: extents of 8 to 200 that are rarely whole vectors, chunks of up to 32 rows,
/// up to three carries of any shape, layouts with a known stride of 1, selections, loops and Kronecker products.
/// Without `narrow` there is no type but float32.
ScanText random_wide_scan(std::uint64_t seed, bool step, bool narrow);

}  // namespace latile::test
