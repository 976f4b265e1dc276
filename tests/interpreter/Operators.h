// The operators of the tests, as tile text and as plain loops over tokens.
#pragma once
#include "tests/interpreter/Body.h"
#include "tests/interpreter/Fixture.h"

namespace latile::test {

struct DeltaShape {
  std::int64_t K = 8, V = 8, chunk = 1;
  std::int64_t ratio = 1;  ///< value heads of a key head
  bool tiled = false;
  std::string sequences = "dense", io = "f32";
};

/// Gated delta rule with gates in log2 units; chunk 1 is the token form.
ScanText gated_delta_rule(const DeltaShape& shape);
/// Scalar decay without the delta rule, chunk form (also right at chunk 1).
ScanText simple_gla(const DeltaShape& shape);
/// S += k v, z += k; o = q S / max(q z, 1).
ScanText linear_attention(const DeltaShape& shape);

struct Range {
  std::int64_t batch, begin, end;
};
/// The row ranges of a run.
std::vector<Range> ranges(const Data& data);
/// Fills "o" and "S.final" (and for linear attention "z.final") of `data` by loops over tokens; states are read at
/// S.initial_index and written at S.final_index where there are such, negative slots as the scan treats them.
void gated_delta_rule(const DeltaShape& shape, Data& data, bool delta = true);
void linear_attention(const DeltaShape& shape, Data& data);

/// Inputs for B sequences of T rows, or for a ragged batch of the lengths given.
Data delta_data(const DeltaShape& shape, std::int64_t heads, const std::vector<std::int64_t>& lengths,
                std::uint64_t seed);

}  // namespace latile::test
