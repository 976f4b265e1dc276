// The shared memory of a block while a kernel is emitted: what is alive where, and which accesses a barrier must part.
#pragma once
#include <cstdint>
#include <vector>

namespace latile::simt {

/// Bytes [begin, end) of shared memory.
struct Region {
  std::int64_t begin = 0, end = 0;
  bool overlaps(const Region& other) const { return begin < other.end && other.begin < end; }
};

/// Regions live from `allocate` to `release`; the first gap that fits is taken. Emission follows the order of
/// execution, so the accesses since the last barrier are a list, and an access needs a barrier before it exactly when
/// that list holds one that it must not overtake.
class Scratch {
public:
  Region allocate(std::int64_t bytes);
  void release(const Region&);
  std::int64_t peak() const { return peak_; }

  /// True when a barrier must come before an access: a write meets an earlier access, a read an earlier write.
  bool conflicts(const Region&, bool write) const;
  void note(const Region&, bool write);
  /// A barrier was emitted.
  void cleared() { accesses_.clear(); }

private:
  struct Access {
    Region region;
    bool write;
  };
  std::vector<Region> live_;  ///< by begin
  std::vector<Access> accesses_;
  std::int64_t peak_ = 0;
};

}  // namespace latile::simt
