// How many random programs a test runs, and from which seed.
#pragma once
#include "tests/passes/ScanData.h"
#include "tests/random/RandomScan.h"
#include <cstdlib>
#include <doctest/doctest.h>

namespace latile::test {

/// An environment variable's number: LATILE_RANDOM_PROGRAMS, how many programs; LATILE_RANDOM_SEED, the first one's
/// seed.
inline std::uint64_t setting(const char* name, std::uint64_t fallback) {
  const char* text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : fallback;
}

/// check(module, batch, seed) for each program that make(seed) gives: four unless the environment says otherwise.
template <class Make, class Check> void each_program(bool step, Make make, Check check) {
  const auto first = setting("LATILE_RANDOM_SEED", 1), count = setting("LATILE_RANDOM_PROGRAMS", 4);
  for (auto seed = first; seed < first + count; ++seed) {
    const auto text = make(seed).text();
    CAPTURE(seed);
    INFO(text);
    const auto module = parse(text);
    BatchShape shape{.lengths = {0, 19, 1, 0, 37}};
    if (text.find("<dense>") != std::string::npos) shape.lengths = {step ? 1 : 19, 1};
    shape.absent = seed % 2 == 0;
    check(*module, shape, seed);
  }
}

}  // namespace latile::test
