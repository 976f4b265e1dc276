// Random programs on emulated GPUs: every schedule against the interpreter.
#include "tests/host/HostRun.h"
#include "tests/random/RandomScan.h"
#include <cstdlib>
#include <doctest/doctest.h>

using namespace latile;
using namespace latile::test;

namespace {

/// LATILE_RANDOM_PROGRAMS: how many programs (default 4); LATILE_RANDOM_SEED: the first one's seed (default 1).
std::uint64_t setting(const char* name, std::uint64_t fallback) {
  const char* text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : fallback;
}

template <class Make> void each_program(bool step, Schedule schedule, Make make) {
  const auto first = setting("LATILE_RANDOM_SEED", 1), count = setting("LATILE_RANDOM_PROGRAMS", 4);
  for (auto seed = first; seed < first + count; ++seed) {
    const auto text = make(seed).text();
    CAPTURE(seed);
    INFO(text);
    const auto module = parse(text);
    BatchShape shape{.lengths = {0, 19, 1, 0, 37}};
    if (text.find("<dense>") != std::string::npos) shape.lengths = {step ? 1 : 19, 1};
    shape.absent = seed % 2 == 0;
    check_emulated(*module, schedule, shape, seed);
  }
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
