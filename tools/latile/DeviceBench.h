// `latile bench` on a GPU.
#pragma once
#include "tools/latile/Place.h"
#include <cstdint>
#include <string>
#include <vector>

namespace latile {

struct BenchShape {
  std::int64_t batch = 1, tokens = 1, heads = 1, K = 128, V = 128;
};
/// "4x2048x16x128" or "4x2048x16x128x64"; throws UserError.
BenchShape bench_shape(const std::string&);

struct DeviceBenchOptions {
  std::string op;
  Place place;
  std::vector<std::string> modes, types, options;
  std::vector<std::string> shapes;  ///< empty: those of the published figures
  std::int64_t chunk = 0;           ///< 0: the target's choice
  double seconds = 1;               ///< of each measurement
  std::string commit;               ///< for the rows
  bool json = false;
};

/// Prints a row for each mode, type and shape. Throws UserError.
void bench_device(const DeviceBenchOptions&);

}  // namespace latile
