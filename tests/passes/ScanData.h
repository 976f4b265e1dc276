// Data for any program that holds one scan, and the comparison of a program with what a pass makes of it.
#pragma once
#include "compiler/Pipeline.h"
#include "tests/interpreter/Fixture.h"

namespace latile::test {

struct BatchShape {
  std::vector<std::int64_t> lengths{37, 16, 1};  ///< rows of each sequence; a dense batch takes the first for all
  std::int64_t coarse_heads = 2;
  bool absent = false;  ///< the first sequence has negative slots where a carry has them
};

/// Random values for every argument of the module's program. Sequences named "g" are gates: negative, now and then
/// −50, −3000 or −∞. Outputs hold 777.
Data data_for(mlir::ModuleOp module, const BatchShape& shape, std::uint64_t seed);

/// Interprets `before` and `after` in float64 on equal data with the sanitizer and checks that every array is equal
/// to `tolerance`, relative to 1 or the value.
void check_same_meaning(mlir::ModuleOp before, mlir::ModuleOp after, const BatchShape& shape, std::uint64_t seed,
                        double tolerance = 1e-12);

/// Checks every module that the pipeline leaves after a pass against the module before the first.
void check_pipeline(mlir::ModuleOp module, Schedule schedule, const BatchShape& shape, std::uint64_t seed);

}  // namespace latile::test
