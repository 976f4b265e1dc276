// What holds of every operator's scan bit for bit: from either end, in a ragged batch or alone, in one run or in two.
#include "tests/scan/Trial.h"
#include <doctest/doctest.h>

using namespace latile;
using namespace latile::test;

namespace {

template <class Check> void each_operator(Check check) {
  for (const OperatorRow& row : operators()) {
    const Subject subject(row);
    if (!subject.scans()) continue;
    for (Mode mode : subject.modes())
      for (ElementType io : {ElementType::f32, ElementType::bf16}) {
        if (mode == Mode::recurrent && io == ElementType::bf16) continue;  // nothing of a reference is rounded
        const std::string label = std::string(row.name) + ", " + name(mode) + ", " + name(io);
        CAPTURE(label);
        check(subject, mode, io);
      }
  }
}

void check_finite(const Subject& subject, const Trial& t) {
  for (const std::string& output : subject.outputs()) CHECK(finite(t.tensor(output)));
}

/// The second part begins with the states that the first one left.
void hand_over(const Subject& subject, const Trial& from, Trial& to) {
  for (const std::string& carry : subject.carries())
    to.tensor(carry + ".initial").bytes = from.tensor(carry + ".final").bytes;
}

}  // namespace

TEST_CASE("reversed is flipped, run and flipped back") {
  each_operator([](const Subject& subject, Mode mode, ElementType io) {
    Case forward = subject.ragged(mode), reversed = forward;
    reversed.reversed = true;
    const Trial backward = subject.run(subject.make(reversed, {21, 0, 16, 1}, io));
    const Trial other = flipped(subject.run(flipped(subject.make(forward, {21, 0, 16, 1}, io))));
    check_finite(subject, backward);
    for (std::size_t i = 0; i < other.p.entries.size(); ++i) {
      INFO(other.p.entries[i].tensor.name);
      CHECK(same_bits(backward.p.entries[i].tensor, other.p.entries[i].tensor));
    }
    // Otherwise the option might do nothing.
    const Trial plain = subject.run(subject.make(forward, {21, 0, 16, 1}, io));
    CHECK_FALSE(same_bits(plain.tensor(subject.outputs()[0]), backward.tensor(subject.outputs()[0])));
  });
}

TEST_CASE("a ragged batch is each sequence alone") {
  each_operator([](const Subject& subject, Mode mode, ElementType io) {
    const Trial start = subject.make(subject.ragged(mode), {21, 0, 16, 1}, io), all = subject.run(start);
    check_finite(subject, all);
    for (std::int64_t n = 0; n < start.p.sequences; ++n) {
      CAPTURE(n);
      const Trial alone = subject.run(part(start, n, 0, start.lengths[static_cast<std::size_t>(n)]));
      for (const std::string& output : subject.outputs()) CHECK(same_bits_at(all, n, 0, alone, output));
      for (const std::string& carry : subject.carries())
        CHECK(same_slot(all.tensor(carry + ".final"), n, alone.tensor(carry + ".final"), 0));
    }
  });
}

TEST_CASE("a run that is split where a chunk ends and resumed is one run; elsewhere up to rounding") {
  each_operator([](const Subject& subject, Mode mode, ElementType io) {
    const std::int64_t chunk = mode == Mode::prefill ? subject.chunk() : 1,
                       length = mode == Mode::prefill ? 2 * chunk + 7 : 6;
    const Trial start = subject.make(subject.ragged(mode), {length}, io), whole = subject.run(start);
    std::vector<std::int64_t> splits;
    for (std::int64_t at = chunk; at < length; at += chunk) splits.push_back(at);
    // A mini-batch that is not whole when a run ends is ended by that: its tokens count as fewer.
    const bool anywhere = chunk > 1 && !subject.info.mini_batch && io == ElementType::f32;
    if (anywhere) splits.insert(splits.end(), {1, chunk - 1, chunk + 5});
    for (std::int64_t at : splits) {
      CAPTURE(at);
      const Trial first = subject.run(part(start, 0, 0, at));
      Trial second = part(start, 0, at, length);
      hand_over(subject, first, second);
      second = subject.run(second);
      for (const std::string& carry : subject.carries()) {
        const HostTensor &got = second.tensor(carry + ".final"), &want = whole.tensor(carry + ".final");
        CAPTURE(carry);
        if (at % chunk == 0)
          CHECK(same_slot(want, 0, got, 0));
        else
          CHECK(rms_ratio(values(got), values(want)) <= 2 * subject.row->state_tolerance);
      }
      for (const std::string& output : subject.outputs()) {
        CAPTURE(output);
        if (at % chunk == 0) {
          CHECK(same_bits_at(whole, 0, 0, first, output));
          CHECK(same_bits_at(whole, 0, at, second, output));
        } else {
          // Rows of a chunk that is not whole are those of the whole one, so a run may stop anywhere, and go on bit for
          // bit from the state of its last whole chunk.
          CHECK(same_bits_at(whole, 0, 0, first, output));
          const Trial expected = part(whole, 0, at, length);
          CHECK(rms_ratio(values(second.tensor(output)), values(expected.tensor(output))) <=
                2 * subject.row->output_tolerance);
        }
      }
    }
  });
}
