#include "runtime/Overlap.h"
#include <algorithm>

namespace latile::runtime {

void Footprint::add(std::int64_t extent, std::int64_t stride, std::int64_t bytes) {
  if (extent <= 1) return;
  std::int64_t in_bytes = 0, length = 0;
  too_large |= __builtin_mul_overflow(stride, bytes, &in_bytes);
  too_large |= __builtin_mul_overflow(in_bytes, extent - 1, &length);
  too_large |= __builtin_add_overflow(span, length, &span);
  too_large |= span > INT64_MAX - bytes;
  int place = rank++;
  for (; place > 0 && axes[static_cast<std::size_t>(place - 1)].stride > in_bytes; --place)
    axes[static_cast<std::size_t>(place)] = axes[static_cast<std::size_t>(place - 1)];
  axes[static_cast<std::size_t>(place)] = {extent, in_bytes};
}

bool Footprint::overlaps_itself() const {
  if (empty) return false;
  std::int64_t covered = element;
  for (int i = 0; i < rank; ++i) {
    const Axis& axis = axes[static_cast<std::size_t>(i)];
    if (axis.stride < covered) return true;
    covered += axis.stride * (axis.extent - 1);
  }
  return false;
}

Footprint Footprint::bytes(const void* begin, std::int64_t size) {
  Footprint print;
  print.begin = static_cast<const char*>(begin);
  print.element = size;
  print.empty = size == 0;
  return print;
}

namespace {

/// Length of the part below `period`, when all larger strides are multiples of it; -1 otherwise.
std::int64_t within(const Footprint& print, std::int64_t period) {
  std::int64_t length = print.element;
  for (int i = 0; i < print.rank; ++i) {
    const Footprint::Axis& axis = print.axes[static_cast<std::size_t>(i)];
    if (axis.stride < period)
      length += axis.stride * (axis.extent - 1);
    else if (axis.stride % period != 0)
      return -1;
  }
  return length;
}

/// Interleaved, as q, k and v within the rows of one matrix: modulo the period the two cover different residues.
bool apart(const Footprint& a, const Footprint& b, std::int64_t period) {
  if (period <= 0) return false;
  const std::int64_t of_a = within(a, period), of_b = within(b, period);
  if (of_a < 0 || of_b < 0 || of_a + of_b > period) return false;
  const auto unsigned_period = static_cast<std::uintptr_t>(period);
  const std::uintptr_t first = reinterpret_cast<std::uintptr_t>(a.begin) % unsigned_period;
  const std::uintptr_t second = reinterpret_cast<std::uintptr_t>(b.begin) % unsigned_period;
  const auto distance = static_cast<std::int64_t>((second + unsigned_period - first) % unsigned_period);
  return distance >= of_a && period - distance >= of_b;
}

}  // namespace

bool disjoint(const Footprint& a, const Footprint& b) {
  if (a.empty || b.empty) return true;
  const auto first = reinterpret_cast<std::uintptr_t>(a.begin), second = reinterpret_cast<std::uintptr_t>(b.begin);
  if (first + static_cast<std::uintptr_t>(a.span + a.element) <= second ||
      second + static_cast<std::uintptr_t>(b.span + b.element) <= first)
    return true;
  for (const Footprint* print : {&a, &b})
    for (int i = 0; i < print->rank; ++i)
      if (apart(a, b, print->axes[static_cast<std::size_t>(i)].stride)) return true;
  return false;
}

}  // namespace latile::runtime
