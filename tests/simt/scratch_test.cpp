#include "codegen/simt/Scratch.h"
#include <algorithm>
#include <doctest/doctest.h>

using namespace latile::simt;

namespace {

/// Emits the same course again with what `fit` chose.
template <class Course> Scratch again(const Scratch& first, std::int64_t limit, Course course) {
  auto in_arena = first.fit(limit);
  REQUIRE(in_arena);
  Scratch second(*in_arena);
  course(second);
  return second;
}

}  // namespace

TEST_CASE("what fits stays in shared memory") {
  Scratch scratch;
  Region a = scratch.allocate(1000, true), b = scratch.allocate(100, true);
  CHECK(a.begin == 0);
  CHECK(a.end == 1024);
  CHECK(b.begin == 1024);
  scratch.release(a);
  scratch.release(b);
  CHECK(scratch.peak() == 1152);
  auto in_arena = scratch.fit(1152);
  REQUIRE(in_arena);
  CHECK(std::count(in_arena->begin(), in_arena->end(), true) == 0);
}

TEST_CASE("what is accessed least goes to the arena, and no more than must") {
  auto course = [](Scratch& s) {
    Region small = s.allocate(128, true), rare = s.allocate(4096, true), busy = s.allocate(4096, true),
           fixed = s.allocate(2048);
    s.note(rare, true);
    s.note(rare, false);
    for (int k = 0; k < 9; ++k) s.note(busy, k == 0);
    s.note(small, true);
    for (const Region& r : {small, rare, busy, fixed}) s.release(r);
    // Later, when the others are gone.
    s.release(s.allocate(6144, true));
  };
  Scratch first;
  course(first);
  CHECK(first.peak() == 128 + 4096 + 4096 + 2048);
  auto in_arena = first.fit(6400);
  REQUIRE(in_arena);
  CHECK(*in_arena == std::vector<bool>{false, true, false, false, false});
  Scratch second = again(first, 6400, course);
  CHECK(second.peak() == 128 + 4096 + 2048);
  CHECK(second.arena_peak() == 4096);
  CHECK(again(first, 2048, course).peak() == 2048);
  CHECK_FALSE(first.fit(2047));
}

TEST_CASE("an arena's regions are told from those of shared memory") {
  Scratch scratch({true, false});
  Region far = scratch.allocate(256, true), near = scratch.allocate(256, true);
  CHECK(far.in_arena());
  CHECK_FALSE(near.in_arena());
  CHECK_FALSE(far.overlaps(near));
  scratch.note(far, true);
  CHECK(scratch.conflicts(far, false));
  CHECK_FALSE(scratch.conflicts(near, true));
  scratch.cleared();
  CHECK_FALSE(scratch.conflicts(far, true));
  // A part of a region: a block of a matrix.
  Region part{far.begin + 64, far.end};
  scratch.note(part, false);
  CHECK(scratch.conflicts(far, true));
  CHECK_FALSE(scratch.conflicts(far, false));
  scratch.release(far);
  scratch.release(near);
  CHECK(scratch.arena_peak() == 256);
  CHECK(scratch.peak() == 256);
}
