#include "codegen/simt/Scratch.h"
#include <algorithm>

namespace latile::simt {

Region Scratch::Space::take(std::int64_t bytes, std::size_t number) {
  std::int64_t begin = 0;
  auto at = live.begin();
  for (; at != live.end() && at->region.begin < begin + bytes; ++at) begin = at->region.end;
  Region region{begin, begin + bytes};
  live.insert(at, {region, number});
  peak = std::max(peak, region.end);
  return region;
}

std::optional<std::size_t> Scratch::Space::give(const Region& region) {
  auto at = std::find_if(live.begin(), live.end(),
                         [&](const Live& l) { return l.region.begin == region.begin && l.region.end == region.end; });
  if (at == live.end()) return std::nullopt;
  std::size_t number = at->number;
  live.erase(at);
  return number;
}

Region Scratch::allocate(std::int64_t bytes, bool movable) {
  bytes = (bytes + 127) / 128 * 128;
  const std::size_t number = allocations_.size();
  allocations_.push_back({bytes, movable});
  course_.push_back({number, false});
  if (number >= in_arena_.size() || !in_arena_[number]) return shared_.take(bytes, number);
  Region region = arena_.take(bytes, number);
  return {region.begin + Region::arena_begin, region.end + Region::arena_begin};
}

Region Scratch::allocate_in_arena(std::int64_t bytes) {
  const std::size_t number = allocations_.size();
  const Region region = arena_.take((bytes + 127) / 128 * 128, number);
  return {region.begin + Region::arena_begin, region.end + Region::arena_begin};
}

void Scratch::release(const Region& region) {
  const auto number = region.in_arena()
                          ? arena_.give({region.begin - Region::arena_begin, region.end - Region::arena_begin})
                          : shared_.give(region);
  if (number) course_.push_back({*number, true});
}

bool Scratch::conflicts(const Region& region, bool write) const {
  return std::any_of(accesses_.begin(), accesses_.end(),
                     [&](const Access& a) { return (write || a.write) && a.region.overlaps(region); });
}

void Scratch::note(const Region& region, bool write) {
  for (const Space* space : {&shared_, &arena_}) {
    const std::int64_t base = space == &arena_ ? Region::arena_begin : 0;
    for (const Space::Live& l : space->live)
      if (l.region.overlaps({region.begin - base, region.end - base})) ++allocations_[l.number].accesses;
  }
  for (const Access& a : accesses_)
    if (a.write == write && a.region.begin == region.begin && a.region.end == region.end) return;
  accesses_.push_back({region, write});
}

std::vector<std::size_t> Scratch::alive_above(std::int64_t limit, const std::vector<bool>& in_arena) const {
  Space space;
  std::vector<Region> regions(allocations_.size());
  std::vector<std::size_t> alive;
  std::int64_t highest = limit;
  for (const Event& e : course_) {
    if (in_arena[e.number]) continue;
    if (e.release) {
      (void)space.give(regions[e.number]);
      continue;
    }
    regions[e.number] = space.take(allocations_[e.number].bytes, e.number);
    if (regions[e.number].end <= highest) continue;
    highest = regions[e.number].end;
    alive.clear();
    for (const Space::Live& l : space.live) alive.push_back(l.number);
  }
  return alive;
}

std::optional<std::vector<bool>> Scratch::fit(std::int64_t limit) const {
  std::vector<bool> in_arena(allocations_.size(), false);
  auto traffic = [&](std::size_t n) {
    return allocations_[n].bytes * std::max<std::int64_t>(allocations_[n].accesses, 1);
  };
  // What is accessed least often goes first, of those the largest: bytes of traffic for each byte of room.
  auto goes_before = [&](std::size_t a, std::size_t b) {
    const Allocation &x = allocations_[a], &y = allocations_[b];
    return x.accesses != y.accesses ? x.accesses < y.accesses : x.bytes > y.bytes;
  };
  for (auto alive = alive_above(limit, in_arena); !alive.empty(); alive = alive_above(limit, in_arena)) {
    std::erase_if(alive, [&](std::size_t n) { return !allocations_[n].movable; });
    if (alive.empty()) return std::nullopt;
    in_arena[*std::min_element(alive.begin(), alive.end(), goes_before)] = true;
  }
  // Small ones that went may have made no room that the larger ones after them did not.
  std::vector<std::size_t> moved;
  for (std::size_t n = 0; n < in_arena.size(); ++n)
    if (in_arena[n]) moved.push_back(n);
  std::sort(moved.begin(), moved.end(),
            [&](std::size_t a, std::size_t b) { return traffic(a) != traffic(b) ? traffic(a) > traffic(b) : a < b; });
  for (std::size_t n : moved) {
    in_arena[n] = false;
    if (!alive_above(limit, in_arena).empty()) in_arena[n] = true;
  }
  return in_arena;
}

}  // namespace latile::simt
