// Checks of the slots that states are read from and written to.
#include "runtime/Preparation.h"
#include <algorithm>

namespace latile::runtime {
namespace {

bool before(const SlotUse& a, const SlotUse& b) { return a.slot != b.slot ? a.slot < b.slot : a.sequence < b.sequence; }

}  // namespace

/// Tokens of sequence n.
struct Preparation::Lengths {
  Integers borders;
  std::int64_t rows = 0;
  std::int64_t operator[](std::int64_t n) const { return borders.data == nullptr ? rows : borders[n + 1] - borders[n]; }
};

/// The slot that sequence n starts from, and the column of the index where that is written.
struct Preparation::Starts {
  Integers slots, accepted;
  std::int64_t column(std::int64_t n) const { return accepted.data == nullptr ? 0 : accepted[n] - 1; }
  std::int64_t operator[](std::int64_t n) const { return slots.data == nullptr ? n : slots.at(n, column(n)); }
};

Preparation::Lengths Preparation::lengths() const {
  if (signature.ragged()) return {integers(signature.borders)};
  return {{}, signature.rows.at(dims)};
}

Preparation::Starts Preparation::starts(const CarryTensors& carry) const {
  if (carry.initial_index < 0) return {};
  if (signature.accepted < 0) return {integers(carry.initial_index), {}};
  return {integers(carry.initial_index), integers(signature.accepted)};
}

void Preparation::check_accepted() const {
  if (signature.accepted < 0) return;
  const Integers accepted = integers(signature.accepted);
  for (const CarryTensors& carry : signature.carries) {
    if (carry.initial_index < 0) continue;
    const std::int64_t states = tensor(carry.initial_index).axes[1].at(dims);
    for (std::int64_t n = 0; n < signature.sequences.at(dims); ++n)
      if (accepted[n] < 1 || accepted[n] > states)
        fail(LATILE_BAD_SHAPE, "{}: accepted[{}] is {}; it is 1 to {}, the columns of {} ({}.states)", op, n,
             accepted[n], states, tensor(carry.initial_index).name, carry.name);
  }
}

std::int64_t Preparation::gather_writes(const CarryTensors& carry, bool finals, bool histories) const {
  std::int64_t count = 0;
  const auto add = [&](std::int64_t slot, std::int64_t n) {
    if (slot >= 0) slot_uses[count++] = {slot, n};
  };
  const std::int64_t sequences = signature.sequences.at(dims);
  if (finals) {
    const Integers slots = carry.final_index < 0 ? Integers() : integers(carry.final_index);
    for (std::int64_t n = 0; n < sequences; ++n) add(carry.final_index < 0 ? n : slots[n], n);
  }
  if (histories) {
    const Integers slots = integers(carry.history_index);
    const Lengths tokens = lengths();
    for (std::int64_t n = 0; n < sequences; ++n)
      for (std::int64_t m = 0; m < tokens[n] / carry.every; ++m) add(slots.at(n, m), n);
  }
  return count;
}

/// No two states go to one slot; in place, no sequence starts from a slot that another writes.
void Preparation::check_writes(const CarryTensors& carry, bool finals, bool histories) const {
  const int written = finals ? carry.final : carry.history;
  const bool in_place = carry.initial >= 0 && !disjoint(footprint(written), footprint(carry.initial));
  const auto conflict = [&](std::int64_t reader, std::int64_t slot, std::int64_t writer) {
    if (reader != writer)
      fail(LATILE_BAD_SHAPE,
           "{}: state {} is updated in place, but sequence {} reads slot {}, which sequence {} "
           "writes; give them slots of their own",
           op, carry.name, reader, slot, writer);
  };
  const std::int64_t sequences = signature.sequences.at(dims);
  const Starts read = starts(carry);
  if (finals && !histories && carry.final_index < 0) {
    // Sequence n writes slot n.
    for (std::int64_t n = 0; in_place && n < sequences; ++n)
      if (const std::int64_t slot = read[n]; slot >= 0 && slot < sequences) conflict(n, slot, slot);
    return;
  }
  SlotUse* uses = slot_uses;
  const std::int64_t count = gather_writes(carry, finals, histories);
  if (!std::is_sorted(uses, uses + count, before)) std::sort(uses, uses + count, before);
  for (std::int64_t i = 1; i < count; ++i)
    if (uses[i].slot == uses[i - 1].slot) {
      const std::string& name = tensor(histories ? carry.history_index : carry.final_index).name;
      if (uses[i].sequence != uses[i - 1].sequence)
        fail(LATILE_BAD_SHAPE, "{}: {} sends sequences {} and {} to one slot, {}", op, name, uses[i - 1].sequence,
             uses[i].sequence, uses[i].slot);
      fail(LATILE_BAD_SHAPE, "{}: {} sends two states of sequence {} to one slot, {}; give each its own, or -1", op,
           name, uses[i].sequence, uses[i].slot);
    }
  if (!in_place) return;
  for (std::int64_t n = 0; n < sequences; ++n) {
    const std::int64_t slot = read[n];
    if (slot < 0) continue;
    const SlotUse* use = std::lower_bound(uses, uses + count, SlotUse{slot, -1}, before);
    if (use != uses + count && use->slot == slot) conflict(n, slot, use->sequence);
  }
}

void Preparation::check_slots(const CarryTensors& carry) const {
  const std::int64_t sequences = signature.sequences.at(dims);
  const auto check_range = [&](int index, std::int64_t n, std::int64_t column, std::int64_t slot) {
    const std::int64_t pool = signature.slots.at(dims);
    if (slot >= -1 && slot < pool) return;
    const std::string at = tensor(index).rank() > 1 ? fmt::format("{}, {}", n, column) : fmt::format("{}", n);
    fail(LATILE_BAD_SHAPE, "{}: {}[{}] is {}; slots are 0 to {}, and -1 stands for none", op, tensor(index).name, at,
         slot, pool - 1);
  };
  if (carry.initial_index >= 0) {
    const Starts read = starts(carry);
    for (std::int64_t n = 0; n < sequences; ++n) check_range(carry.initial_index, n, read.column(n), read[n]);
  }
  if (carry.final_index >= 0) {
    const Integers slots = integers(carry.final_index);
    for (std::int64_t n = 0; n < sequences; ++n) check_range(carry.final_index, n, 0, slots[n]);
  }
  if (carry.history >= 0) {
    const Integers slots = integers(carry.history_index);
    const Lengths tokens = lengths();
    const std::int64_t states = tensor(carry.history_index).axes[1].at(dims);
    for (std::int64_t n = 0; n < sequences; ++n) {
      const std::int64_t kept = tokens[n] / carry.every;
      if (kept > states)
        fail(LATILE_BAD_SHAPE,
             "{}: sequence {} has {} tokens, so {} history states of {} {} tokens apart, but {} has {} columns; make "
             "{}.states at least {}, with -1 where a state is not wanted",
             op, n, tokens[n], kept, carry.name, carry.every, tensor(carry.history_index).name, states, carry.name,
             kept);
      for (std::int64_t m = 0; m < kept; ++m) check_range(carry.history_index, n, m, slots.at(n, m));
    }
  }
  const bool one_memory =
      carry.final >= 0 && carry.history >= 0 && !disjoint(footprint(carry.final), footprint(carry.history));
  if (one_memory) return check_writes(carry, true, true);
  if (carry.final >= 0) check_writes(carry, true, false);
  if (carry.history >= 0) check_writes(carry, false, true);
}

}  // namespace latile::runtime
