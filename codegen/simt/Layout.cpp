#include "codegen/simt/Layout.h"
#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>

namespace latile::simt {

namespace {

int& along(Place& place, Axis axis) { return axis == Axis::rows ? place.row : place.column; }

Place exclusive_or(Place a, Place b) { return {a.row ^ b.row, a.column ^ b.column}; }

bool is_zero(Place p) { return p.row == 0 && p.column == 0; }

/// Whether the order of two repetitions matters.
bool ordered(const Repetition& a, const Repetition& b) {
  return a.carrier == b.carrier || (a.axis == b.axis && a.axis != Axis::none);
}

/// Joins repetitions that are one: same axis and carrier, nothing between them that either depends on.
bool merge_one(std::vector<Repetition>& list) {
  for (std::size_t i = 0; i < list.size(); ++i) {
    for (std::size_t j = i + 1; j < list.size(); ++j) {
      if (!ordered(list[i], list[j])) continue;
      if (list[i].axis == list[j].axis && list[i].carrier == list[j].carrier) {
        // What lies between shares nothing with i, so nothing with j.
        list[i].count *= list[j].count;
        list.erase(list.begin() + static_cast<std::ptrdiff_t>(j));
        return true;
      }
      break;
    }
  }
  return false;
}

/// Of all orders with the same meaning, the first by (carrier, axis).
std::vector<Repetition> sorted(std::vector<Repetition> list) {
  std::vector<Repetition> out;
  while (!list.empty()) {
    std::size_t best = list.size();
    for (std::size_t i = 0; i < list.size(); ++i) {
      bool free = std::none_of(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(i),
                               [&](const Repetition& before) { return ordered(before, list[i]); });
      auto key = [&](std::size_t k) { return std::pair(list[k].carrier, list[k].axis); };
      if (free && (best == list.size() || key(i) < key(best))) best = i;
    }
    out.push_back(list[best]);
    list.erase(list.begin() + static_cast<std::ptrdiff_t>(best));
  }
  return out;
}

}  // namespace

std::string Layout::invert() {
  std::uint32_t rows = 0, columns = 0;
  std::size_t count = 0;
  for (const Bases& bases : bases_) {
    for (Place base : bases) {
      if (base.row < 0 || base.column < 0) return "a base is negative";
      rows |= static_cast<std::uint32_t>(base.row);
      columns |= static_cast<std::uint32_t>(base.column);
      ++count;
    }
  }
  if (count > 30) return "more than 30 bits";
  int row_bits = static_cast<int>(std::bit_width(rows)), column_bits = static_cast<int>(std::bit_width(columns));
  if (row_bits + column_bits > 30) return "the atom is larger than 2^30 elements";
  side_ = {1 << row_bits, 1 << column_bits};

  // Gauss-Jordan: for each bit of (column, row) one combination of bases that reaches it alone.
  struct Line {
    std::uint32_t place = 0, bases = 0;
  };
  std::vector<Line> lines;
  std::uint32_t number = 0;
  for (const Bases& bases : bases_) {
    for (Place base : bases) {
      std::uint32_t bit = 1U << number++;
      if (is_zero(base)) continue;
      Line line{static_cast<std::uint32_t>(base.row) | static_cast<std::uint32_t>(base.column) << row_bits, bit};
      for (const Line& other : lines) {
        if (line.place & std::bit_floor(other.place)) line = {line.place ^ other.place, line.bases ^ other.bases};
      }
      if (line.place == 0) return "its bases depend on each other: an element would be held twice";
      std::uint32_t lead = std::bit_floor(line.place);
      for (Line& other : lines) {
        if (other.place & lead) other = {other.place ^ line.place, other.bases ^ line.bases};
      }
      lines.push_back(line);
    }
  }
  if (static_cast<int>(lines.size()) != row_bits + column_bits) return "its bases leave out elements of the atom";
  rows_inverse_.assign(static_cast<std::size_t>(row_bits), 0);
  columns_inverse_.assign(static_cast<std::size_t>(column_bits), 0);
  for (const Line& line : lines) {
    int bit = std::countr_zero(line.place);
    (bit < row_bits ? rows_inverse_[static_cast<std::size_t>(bit)]
                    : columns_inverse_[static_cast<std::size_t>(bit - row_bits)]) = line.bases;
  }
  return "";
}

void Layout::canonicalise() {
  std::erase_if(repetitions_, [](const Repetition& r) { return r.count == 1; });
  while (merge_one(repetitions_)) {}
  for (std::size_t i = 0; i < repetitions_.size();) {
    Repetition& r = repetitions_[i];
    bool first = std::none_of(repetitions_.begin(), repetitions_.begin() + static_cast<std::ptrdiff_t>(i),
                              [&](const Repetition& before) { return ordered(before, r); });
    if (!first || r.count % 2) {
      ++i;
      continue;
    }
    Place base;
    if (r.axis != Axis::none) {
      along(base, r.axis) = along(side_, r.axis);
      along(side_, r.axis) *= 2;
    }
    bases_[static_cast<std::size_t>(r.carrier)].push_back(base);
    r.count /= 2;
    if (r.count == 1) {
      repetitions_.erase(repetitions_.begin() + static_cast<std::ptrdiff_t>(i));
      i = 0;  // what came after it may be first now
    }
  }
  repetitions_ = sorted(std::move(repetitions_));
}

std::optional<Layout> Layout::make(Bases registers, Bases lanes, Bases warps, std::vector<Repetition> repetitions,
                                   std::string* why) {
  auto refuse = [&](std::string text) {
    if (why) *why = std::move(text);
    return std::nullopt;
  };
  Layout layout;
  if (std::any_of(registers.begin(), registers.end(), is_zero)) return refuse("registers hold no replicas");
  for (const Repetition& r : repetitions) {
    if (r.count < 1) return refuse("a repetition has a positive count, not " + std::to_string(r.count));
    if (r.carrier == Carrier::lanes) return refuse("lanes are bits of the atom and carry no repetition");
    if (r.carrier == Carrier::registers && r.axis == Axis::none) return refuse("registers hold no replicas");
  }
  layout.bases_ = {std::move(registers), std::move(lanes), std::move(warps)};
  layout.repetitions_ = std::move(repetitions);
  std::string fault = layout.invert();
  if (!fault.empty()) return refuse(fault);
  layout.canonicalise();
  fault = layout.invert();
  if (!fault.empty()) return refuse(fault);
  layout.shape_ = layout.side_;
  for (const Repetition& r : layout.repetitions_) {
    if (r.axis != Axis::none) along(layout.shape_, r.axis) *= r.count;
  }
  return layout;
}

Layout Layout::of(Bases registers, Bases lanes, Bases warps, std::vector<Repetition> repetitions) {
  std::string why;
  auto layout = make(std::move(registers), std::move(lanes), std::move(warps), std::move(repetitions), &why);
  if (!layout) {
    std::fprintf(stderr, "latile: no layout: %s\n", why.c_str());
    std::abort();
  }
  return *layout;
}

Layout Layout::repeated(std::vector<Repetition> more) const {
  std::vector<Repetition> all = repetitions_;
  all.insert(all.end(), more.begin(), more.end());
  return of(bases_[0], bases_[1], bases_[2], std::move(all));
}

int Layout::size(Carrier carrier) const {
  int n = 1 << bases(carrier).size();
  for (const Repetition& r : repetitions_) {
    if (r.carrier == carrier) n *= r.count;
  }
  return n;
}

bool Layout::separable() const {
  for (const Bases& bases : bases_) {
    for (Place base : bases) {
      if (std::popcount(static_cast<unsigned>(base.row)) + std::popcount(static_cast<unsigned>(base.column)) > 1)
        return false;
    }
  }
  return true;
}

std::vector<Digit> Layout::digits(Carrier carrier) const {
  std::vector<Digit> out;
  int divisor = 1;
  for (Place base : bases(carrier)) {
    out.push_back({divisor, 2, base, true});
    divisor *= 2;
  }
  Place step = side_;
  for (const Repetition& r : repetitions_) {
    Place move;
    if (r.axis != Axis::none) {
      along(move, r.axis) = along(step, r.axis);
      along(step, r.axis) *= r.count;
    }
    if (r.carrier != carrier) continue;
    out.push_back({divisor, r.count, move, false});
    divisor *= r.count;
  }
  return out;
}

Place Layout::at(int reg, int lane, int warp) const {
  std::array<int, 3> index{reg, lane, warp};
  Place place;
  for (std::size_t c = 0; c < 3; ++c) {
    for (Place base : bases_[c]) {
      if (index[c] & 1) place = exclusive_or(place, base);
      index[c] >>= 1;
    }
  }
  Place step = side_;
  for (const Repetition& r : repetitions_) {
    int& rest = index[static_cast<std::size_t>(r.carrier)];
    int digit = rest % r.count;
    rest /= r.count;
    if (r.axis == Axis::none) continue;
    along(place, r.axis) += digit * along(step, r.axis);
    along(step, r.axis) *= r.count;
  }
  return place;
}

Holder Layout::locate(Place place) const {
  std::uint32_t mask = 0;
  for (std::size_t i = 0; i < rows_inverse_.size(); ++i) {
    if (place.row >> i & 1) mask ^= rows_inverse_[i];
  }
  for (std::size_t i = 0; i < columns_inverse_.size(); ++i) {
    if (place.column >> i & 1) mask ^= columns_inverse_[i];
  }
  std::array<int, 3> index{}, worth{};
  for (std::size_t c = 0, bit = 0; c < 3; bit += bases_[c].size(), ++c) {
    worth[c] = 1 << bases_[c].size();
    index[c] = static_cast<int>(mask >> bit) & (worth[c] - 1);
  }
  Place rest{place.row / side_.row, place.column / side_.column};
  for (const Repetition& r : repetitions_) {
    auto c = static_cast<std::size_t>(r.carrier);
    if (r.axis != Axis::none) {
      index[c] += along(rest, r.axis) % r.count * worth[c];
      along(rest, r.axis) /= r.count;
    }
    worth[c] *= r.count;
  }
  return {index[0], index[1], index[2]};
}

std::vector<Digit> Layout::replicas(Carrier carrier) const {
  std::vector<Digit> out = digits(carrier);
  std::erase_if(out, [](const Digit& digit) { return !is_zero(digit.step); });
  return out;
}

std::vector<Holder> Layout::holders(Place place) const {
  std::vector<Holder> out{locate(place)};
  for (Carrier carrier : {Carrier::lanes, Carrier::warps}) {
    for (const Digit& digit : replicas(carrier)) {
      std::size_t had = out.size();
      for (int value = 1; value < digit.modulus; ++value) {
        for (std::size_t i = 0; i < had; ++i) {
          Holder holder = out[i];
          (carrier == Carrier::lanes ? holder.lane : holder.warp) += value * digit.divisor;
          out.push_back(holder);
        }
      }
    }
  }
  return out;
}

bool Layout::is_first_replica(int lane, int warp) const {
  auto zero = [&](Carrier carrier, int index) {
    std::vector<Digit> digits = replicas(carrier);
    return std::all_of(digits.begin(), digits.end(),
                       [&](const Digit& digit) { return index / digit.divisor % digit.modulus == 0; });
  };
  return zero(Carrier::lanes, lane) && zero(Carrier::warps, warp);
}

Layout Layout::transposed() const {
  auto exchange = [](Bases bases) {
    for (Place& base : bases) std::swap(base.row, base.column);
    return bases;
  };
  std::vector<Repetition> repetitions = repetitions_;
  for (Repetition& r : repetitions) {
    if (r.axis != Axis::none) r.axis = r.axis == Axis::rows ? Axis::columns : Axis::rows;
  }
  return of(exchange(bases_[0]), exchange(bases_[1]), exchange(bases_[2]), std::move(repetitions));
}

Layout Layout::slice(Axis axis) const {
  auto cut = [&](Bases bases) {
    for (Place& base : bases) along(base, axis) = 0;
    return bases;
  };
  Bases registers = cut(bases_[0]);
  std::erase_if(registers, is_zero);
  std::vector<Repetition> repetitions;
  for (Repetition r : repetitions_) {
    if (r.axis == axis) {
      if (r.carrier == Carrier::registers) continue;
      r.axis = Axis::none;
    }
    repetitions.push_back(r);
  }
  return of(std::move(registers), cut(bases_[1]), cut(bases_[2]), std::move(repetitions));
}

int Layout::slice_register(Axis axis, int reg) const {
  Place place = at(reg, 0, 0);
  along(place, axis) = 0;
  return slice(axis).locate(place).reg;
}

Pack pack_of(const Layout& layout) {
  const Layout::Bases& registers = layout.bases(Carrier::registers);
  if (registers.empty()) return Pack::none;
  if (registers[0] == Place{1, 0}) return Pack::rows;
  if (registers[0] == Place{0, 1}) return Pack::columns;
  return Pack::none;
}

}  // namespace latile::simt
