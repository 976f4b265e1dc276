// The scratch memory of a block while a kernel is emitted: what is alive where, and which accesses a barrier must part.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

namespace latile::simt {

/// Bytes [begin, end) of the block's shared memory or, from `arena_begin` on, of its arena in global memory.
struct Region {
  /// More than any shared memory has.
  static constexpr std::int64_t arena_begin = std::int64_t{1} << 40;
  std::int64_t begin = 0, end = 0;
  bool overlaps(const Region& other) const { return begin < other.end && other.begin < end; }
  bool in_arena() const { return begin >= arena_begin; }
  /// From the beginning of its memory.
  std::int64_t offset() const { return in_arena() ? begin - arena_begin : begin; }
};

/// Regions live from `allocate` to `release`; the first gap that fits is taken. Emission follows the order of
/// execution, so the accesses since the last barrier are a list, and an access needs a barrier before it exactly when
/// that list holds one that it must not overtake.
class Scratch {
public:
  /// `in_arena[i]`: the i-th allocation lies in the arena; those past its end do not.
  explicit Scratch(std::vector<bool> in_arena = {}) : in_arena_(std::move(in_arena)) {}

  /// `movable`: whoever accesses the region may do so in global memory.
  Region allocate(std::int64_t bytes, bool movable = false);
  /// In the arena, to the end.
  Region allocate_in_arena(std::int64_t bytes);
  void release(const Region&);
  std::int64_t peak() const { return shared_.peak; }
  std::int64_t arena_peak() const { return arena_.peak; }

  /// True when a barrier must come before an access: a write meets an earlier access, a read an earlier write.
  bool conflicts(const Region&, bool write) const;
  void note(const Region&, bool write);
  /// A barrier was emitted.
  void cleared() { accesses_.clear(); }

  /// Which allocations must lie in the arena for the same course of allocations to fit in `limit` bytes of shared
  /// memory: those whose bytes times accesses are the least. Nothing where what is left does not fit.
  std::optional<std::vector<bool>> fit(std::int64_t limit) const;

private:
  struct Access {
    Region region;
    bool write;
  };
  /// One memory: its regions by begin.
  struct Space {
    struct Live {
      Region region;
      std::size_t number;
    };
    std::vector<Live> live;
    std::int64_t peak = 0;
    Region take(std::int64_t bytes, std::size_t number);
    std::optional<std::size_t> give(const Region&);
  };
  struct Allocation {
    std::int64_t bytes = 0;
    bool movable = false;
    std::int64_t accesses = 0;
  };
  /// An allocation, or its release.
  struct Event {
    std::size_t number;
    bool release;
  };
  /// The allocations alive where the shared memory of the course is at its highest above `limit`; none: it fits.
  std::vector<std::size_t> alive_above(std::int64_t limit, const std::vector<bool>& in_arena) const;

  Space shared_, arena_;
  std::vector<bool> in_arena_;
  std::vector<Allocation> allocations_;
  std::vector<Event> course_;
  std::vector<Access> accesses_;
};

}  // namespace latile::simt
