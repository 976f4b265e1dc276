// States on the way, and runs that start from one of them.
#include "tests/scan/Trial.h"
#include <algorithm>
#include <doctest/doctest.h>

using namespace latile;
using namespace latile::test;

namespace {

std::int64_t slot_at(const Trial& t, const std::string& index, std::int64_t n, std::int64_t m = 0) {
  const HostTensor& table = t.tensor(index);
  return static_cast<std::int64_t>(table.get(table.shape.size() > 1 ? n * table.shape[1] + m : n));
}

/// Sequence n of a run with pools, alone and with tensors of its own.
Trial alone(const Subject& subject, const Trial& pooled, std::int64_t n, std::int64_t tokens) {
  Case plain = pooled.c;
  plain.states = States::both, plain.every = 0, plain.accepted = false;
  Trial made = subject.make(plain, pooled.lengths, pooled.tensor(subject.outputs()[0]).type);
  for (Problem::Entry& e : made.p.entries)
    if (e.rate || e.carry.empty()) e.tensor = pooled.tensor(e.tensor.name);
  Trial one = part(made, n, 0, tokens);
  for (const std::string& carry : subject.carries()) {
    HostTensor& initial = one.tensor(carry + ".initial");
    std::int64_t column = 0;
    if (pooled.c.accepted) column = static_cast<std::int64_t>(pooled.tensor("accepted").get(n)) - 1;
    const std::int64_t slot = slot_at(pooled, carry + ".initial_index", n, column);
    if (slot < 0)
      std::fill(initial.bytes.begin(), initial.bytes.end(), std::byte{0});
    else
      copy_slot(initial, 0, pooled.tensor(carry + ".initial"), slot);
  }
  return one;
}

/// Keeping a history changes nothing else: the same run without one gives the same bits.
void check_unchanged(const Subject& subject, const Trial& start, const Trial& after) {
  Trial without = start;
  without.c.every = 0;
  std::erase_if(without.p.entries,
                [](const Problem::Entry& e) { return e.tensor.name.find(".history") != std::string::npos; });
  std::erase_if(without.p.dims, [](const auto& d) { return d.first.ends_with(".every"); });
  without = subject.run(without);
  for (const Problem::Entry& e : without.p.entries) {
    INFO(e.tensor.name);
    CHECK(same_bits(e.tensor, after.tensor(e.tensor.name)));
  }
}

}  // namespace

TEST_CASE("history states are the final states of the tokens before them, and change nothing else") {
  for (const OperatorRow& row : operators()) {
    const Subject subject(row);
    if (!subject.scans()) continue;
    for (Mode mode : subject.modes())
      for (std::int64_t chunks : {1, 2}) {
        const std::int64_t every = chunks * (mode == Mode::prefill ? subject.chunk() : 1);
        const std::string label = std::string(row.name) + ", " + name(mode) + ", every " + std::to_string(every);
        CAPTURE(label);
        Case c = subject.ragged(mode);
        c.states = States::pool;
        c.every = every;
        c.accepted = chunks == 2;
        const Trial start = subject.make(c, {2 * every + every / 2, 0, every, 1}, ElementType::f32);
        const Trial after = subject.run(start);
        if (c.accepted) check_unchanged(subject, start, after);
        for (const std::string& carry : subject.carries()) {
          std::vector<bool> written(static_cast<std::size_t>(after.tensor(carry + ".history").shape[0]), false);
          for (std::int64_t n = 0; n < start.p.sequences; ++n)
            for (std::int64_t m = 0; m < start.lengths[static_cast<std::size_t>(n)] / every; ++m) {
              const std::int64_t slot = slot_at(start, carry + ".history_index", n, m);
              if (slot < 0) continue;
              written[static_cast<std::size_t>(slot)] = true;
              const Trial prefix = subject.run(alone(subject, start, n, (m + 1) * every));
              CAPTURE(n);
              CAPTURE(m);
              CHECK(same_slot(after.tensor(carry + ".history"), slot, prefix.tensor(carry + ".final"), 0));
            }
          for (std::size_t slot = 0; slot < written.size(); ++slot)
            if (!written[slot])
              CHECK(same_slot(after.tensor(carry + ".history"), static_cast<std::int64_t>(slot),
                              start.tensor(carry + ".history"), static_cast<std::int64_t>(slot)));
        }
      }
  }
}

namespace {

constexpr std::int64_t N = 3, drafts = 4, rounds = 4;

std::int64_t accepted(std::int64_t round, std::int64_t n) { return 1 + (n + 2 * round) % drafts; }
/// Where sequence n keeps the state after its draft number m.
std::int64_t slot_of(std::int64_t n, std::int64_t m) { return m * N + n; }

/// The drafts of one round. All states lie in one pool, which comes from the round before.
Trial drafted(const Subject& subject, std::int64_t round, const Trial& before) {
  Case c = subject.ragged(Mode::recurrent);
  c.ragged_bits = 0, c.states = States::pool, c.every = 1, c.accepted = true;
  Trial t = subject.make(c, {drafts, drafts, drafts}, ElementType::f32, static_cast<std::uint64_t>(1 + round));
  for (Problem::Entry& e : t.p.entries)
    if (round && !e.rate && e.carry.empty()) e.tensor = before.tensor(e.tensor.name);
  for (std::int64_t n = 0; n < N; ++n)
    t.tensor("accepted").set(n, static_cast<double>(round ? accepted(round - 1, n) : 1));
  for (const std::string& carry : subject.carries()) {
    if (round) t.tensor(carry + ".initial").bytes = before.tensor(carry + ".initial").bytes;
    HostTensor& table = t.tensor(carry + ".history_index");
    for (std::int64_t n = 0; n < N; ++n) {
      t.tensor(carry + ".final_index").set(n, -1);
      for (std::int64_t m = 0; m < table.shape[1]; ++m)
        table.set(n * table.shape[1] + m, static_cast<double>(slot_of(n, m)));
    }
    t.tensor(carry + ".initial_index").bytes = table.bytes;
  }
  return t;
}

void speculate(const Subject& subject) {
  std::vector<Trial> parts[N];
  Trial last;
  for (std::int64_t round = 0; round < rounds; ++round) {
    const Trial start = drafted(subject, round, last);
    last = subject.run(start, true);
    for (std::int64_t n = 0; n < N; ++n) {
      Trial taken = alone(subject, start, n, accepted(round, n));
      for (const std::string& output : subject.outputs())
        taken.tensor(output).bytes = part(last, n, 0, accepted(round, n)).tensor(output).bytes;
      parts[n].push_back(std::move(taken));
    }
  }
  for (std::int64_t n = 0; n < N; ++n) {
    CAPTURE(n);
    const Trial spoken = joined(parts[n]), straight = subject.run(spoken);
    for (const std::string& output : subject.outputs()) {
      CHECK(finite(straight.tensor(output)));
      CHECK(same_bits(straight.tensor(output), spoken.tensor(output)));
    }
    for (const std::string& carry : subject.carries())
      CHECK(same_slot(last.tensor(carry + ".initial"), slot_of(n, accepted(rounds - 1, n) - 1),
                      straight.tensor(carry + ".final"), 0));
  }
}

}  // namespace

TEST_CASE("speculative decoding in one pool: a state is that of the accepted tokens alone") {
  for (const OperatorRow& row : operators()) {
    const Subject subject(row);
    CAPTURE(std::string(row.name));
    if (subject.scans() && subject.modes().back() == Mode::recurrent) speculate(subject);
  }
}

TEST_CASE("a step starts from the accepted one of several slots") {
  for (const OperatorRow& row : operators()) {
    const Subject subject(row);
    if (!subject.scans() || subject.modes().back() != Mode::recurrent) continue;
    CAPTURE(std::string(row.name));
    Case c = subject.ragged(Mode::step);
    c.ragged_bits = 0, c.states = States::pool, c.accepted = true;
    const Trial start = subject.make(c, {1, 1, 1, 1}, ElementType::f32), got = subject.run(start);
    Case plain = c;
    plain.accepted = false;
    Trial other = subject.make(plain, {1, 1, 1, 1}, ElementType::f32);
    for (Problem::Entry& e : other.p.entries) {
      if (!e.tensor.name.ends_with(".initial_index")) {
        e.tensor = start.tensor(e.tensor.name);
        continue;
      }
      for (std::int64_t n = 0; n < other.p.sequences; ++n) {
        const auto column = static_cast<std::int64_t>(start.tensor("accepted").get(n)) - 1;
        e.tensor.set(n, static_cast<double>(slot_at(start, e.tensor.name, n, column)));
      }
    }
    for (auto& [name, value] : other.p.dims)
      if (name == "slots") value = start.tensor(subject.carries()[0] + ".initial").shape[0];
    const Trial want = subject.run(other);
    for (const std::string& output : subject.outputs()) CHECK(same_bits(got.tensor(output), want.tensor(output)));
    for (const std::string& carry : subject.carries())
      CHECK(same_bits(got.tensor(carry + ".final"), want.tensor(carry + ".final")));
  }
}
