// Which bytes a strided tensor covers, and whether two of them can be shown to share none.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

namespace latile::runtime {

struct Footprint {
  struct Axis {
    std::int64_t extent = 1, stride = 0;  ///< stride in bytes
  };
  const char* begin = nullptr;
  std::array<Axis, 8> axes = {};  ///< those of extent above 1, by stride, smallest first
  int rank = 0;
  std::int64_t element = 1;  ///< bytes
  std::int64_t span = 0;     ///< from the first element's first byte to the last one's first byte
  bool empty = false;
  bool too_large = false;  ///< the span does not fit 63 bits

  /// One axis, its stride in elements of `bytes`.
  void add(std::int64_t extent, std::int64_t stride, std::int64_t bytes);
  /// False: no two elements share a byte. True: they do, or it cannot be shown.
  bool overlaps_itself() const;
  /// A plain range of bytes.
  static Footprint bytes(const void* begin, std::int64_t size);
};

/// True: they share no byte. False: they do, or it cannot be shown (interleaved in a way that has no common period).
bool disjoint(const Footprint& a, const Footprint& b);

}  // namespace latile::runtime
