// Random programs: host code along every schedule against the interpreter, for each instruction set of this CPU.
#include "tests/host/HostRun.h"
#include "tests/random/Programs.h"
#include <doctest/doctest.h>

using namespace latile;
using namespace latile::test;

namespace {

template <class Make> void each_program(bool step, Schedule schedule, Make make) {
  test::each_program(step, make, [&](mlir::ModuleOp module, const BatchShape& shape, std::uint64_t seed) {
    check_host(module, schedule, shape, seed, host_levels());
  });
}

}  // namespace

TEST_CASE("random programs in float32, chunks and tokens") {
  each_program(false, Schedule::fused, [](auto seed) { return random_wide_scan(seed, false, false); });
}
TEST_CASE("random programs with bfloat16 and float16, chunks and tokens") {
  each_program(false, Schedule::fused, [](auto seed) { return random_wide_scan(seed, false, true); });
}
TEST_CASE("random programs, steps") {
  each_program(true, Schedule::fused, [](auto seed) { return random_wide_scan(seed, true, false); });
}
TEST_CASE("random programs, small tiles") {
  each_program(false, Schedule::fused, [](auto seed) { return random_scan(seed, false); });
}
TEST_CASE("random programs, prepare and serial kernels") {
  each_program(false, Schedule::prepare, [](auto seed) { return random_wide_scan(seed, false, false); });
}
TEST_CASE("random programs, prepare, serial and finish kernels") {
  each_program(false, Schedule::cut, [](auto seed) { return random_wide_scan(seed, false, false); });
}
