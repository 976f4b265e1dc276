#include "codegen/simt/Scratch.h"
#include <algorithm>

namespace latile::simt {

Region Scratch::allocate(std::int64_t bytes) {
  bytes = (bytes + 127) / 128 * 128;
  std::int64_t begin = 0;
  auto at = live_.begin();
  for (; at != live_.end() && at->begin < begin + bytes; ++at) begin = at->end;
  Region region{begin, begin + bytes};
  live_.insert(at, region);
  peak_ = std::max(peak_, region.end);
  return region;
}

void Scratch::release(const Region& region) {
  std::erase_if(live_, [&](const Region& r) { return r.begin == region.begin && r.end == region.end; });
}

bool Scratch::conflicts(const Region& region, bool write) const {
  return std::any_of(accesses_.begin(), accesses_.end(),
                     [&](const Access& a) { return (write || a.write) && a.region.overlaps(region); });
}

void Scratch::note(const Region& region, bool write) {
  for (const Access& a : accesses_)
    if (a.write == write && a.region.begin == region.begin && a.region.end == region.end) return;
  accesses_.push_back({region, write});
}

}  // namespace latile::simt
