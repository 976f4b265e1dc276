// Text form of layouts, and the families that are not fragments.
#include "codegen/simt/Layout.h"
#include <algorithm>
#include <bit>
#include <charconv>

namespace latile::simt {

static std::string text(Place base) {
  std::string out;
  if (base.row) out += "R" + std::to_string(base.row);
  if (base.column) out += "C" + std::to_string(base.column);
  return out.empty() ? "0" : out;
}

static constexpr std::string_view carrier_letters = "rlw", axis_letters = "RCN";

std::string Layout::text() const {
  std::string out;
  auto word = [&](const std::string& w) { out += (out.empty() ? "" : " ") + w; };
  for (std::size_t c = 0; c < 3; ++c) {
    std::string head = std::string(1, carrier_letters[c]) + ":";
    for (Place base : bases_[c]) {
      word(head + simt::text(base));
      head.clear();
    }
  }
  for (const Repetition& r : repetitions_) {
    word(std::string(1, axis_letters[static_cast<std::size_t>(r.axis)]) + "*" + std::to_string(r.count) + ":" +
         carrier_letters[static_cast<std::size_t>(r.carrier)]);
  }
  return out;
}

namespace {

/// Reads one layout, word by word.
struct Reader {
  std::string_view rest;

  std::optional<int> number() {
    int value = 0;
    auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
    if (error != std::errc() || value < 0) return std::nullopt;
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
    return value;
  }
  bool take(char c) {
    if (rest.empty() || rest.front() != c) return false;
    rest.remove_prefix(1);
    return true;
  }
  std::optional<Place> base() {
    Place place;
    if (take('0')) return place;
    for (auto [letter, part] : {std::pair('R', &place.row), std::pair('C', &place.column)}) {
      if (!take(letter)) continue;
      auto value = number();
      if (!value || *value == 0) return std::nullopt;
      *part = *value;
    }
    if (place == Place{}) return std::nullopt;
    return place;
  }
  std::optional<Repetition> repetition() {
    std::size_t axis = rest.empty() ? std::string_view::npos : axis_letters.find(rest.front());
    if (axis == std::string_view::npos) return std::nullopt;
    rest.remove_prefix(1);
    if (!take('*')) return std::nullopt;
    auto count = number();
    if (!count || !take(':')) return std::nullopt;
    std::size_t carrier = rest.empty() ? std::string_view::npos : carrier_letters.find(rest.front());
    if (carrier == std::string_view::npos) return std::nullopt;
    rest.remove_prefix(1);
    return Repetition{static_cast<Axis>(axis), *count, static_cast<Carrier>(carrier)};
  }
};

}  // namespace

std::optional<Layout> Layout::parse(std::string_view input, std::string* why) {
  std::array<Bases, 3> bases;
  std::vector<Repetition> repetitions;
  std::size_t carrier = 3;
  auto refuse = [&](std::string_view word) {
    if (why)
      *why = "\"" + std::string(word) +
             "\" is neither a base (R4, C2, R1C2, 0) of registers, lanes or warps nor a repetition (C*3:r)";
    return std::nullopt;
  };
  while (!input.empty()) {
    std::size_t end = std::min(input.find(' '), input.size());
    std::string_view word = input.substr(0, end);
    input.remove_prefix(std::min(end + 1, input.size()));
    if (word.empty()) continue;
    Reader reader{word};
    if (word.find('*') != std::string_view::npos) {
      auto r = reader.repetition();
      if (!r || !reader.rest.empty()) return refuse(word);
      repetitions.push_back(*r);
      continue;
    }
    if (word.size() > 1 && word[1] == ':') {
      carrier = carrier_letters.find(word[0]);
      if (carrier == std::string_view::npos) return refuse(word);
      reader.rest.remove_prefix(2);
    }
    if (carrier >= 3 || !repetitions.empty()) return refuse(word);
    auto base = reader.base();
    if (!base || !reader.rest.empty()) return refuse(word);
    bases[carrier].push_back(*base);
  }
  return make(bases[0], bases[1], bases[2], std::move(repetitions), why);
}

Layout blocked(int rows, int columns, int vector, int lanes, int warps) {
  auto pow2 = [](int n) { return static_cast<int>(std::bit_ceil(static_cast<unsigned>(n))); };
  Layout::Bases registers, lane_bases, warp_bases;
  int wide = 1;  // columns covered so far
  for (; wide < vector && wide < columns; wide *= 2) registers.push_back({0, wide});
  // As many lanes side by side as leave no column unused; where that is few, rather some unused.
  int pieces = (columns + wide - 1) / wide;
  int even = pieces & -pieces;
  int across = std::min(lanes, pieces == even || even >= 4 ? even : pow2(pieces));
  int used = 1;
  for (; used < across; used *= 2, wide *= 2) lane_bases.push_back({0, wide});
  int high = 1;
  for (; used < lanes; used *= 2) {
    bool row = high < rows;
    lane_bases.push_back(row ? Place{high, 0} : Place{});
    if (row) high *= 2;
  }
  int left = warps;
  for (; left % 2 == 0; left /= 2) {
    bool row = high < rows, column = !row && wide < columns;
    warp_bases.push_back(row ? Place{high, 0} : column ? Place{0, wide} : Place{});
    if (row) high *= 2;
    if (column) wide *= 2;
  }
  std::vector<Repetition> repetitions{{Axis::columns, (columns + wide - 1) / wide, Carrier::registers}};
  if (left > 1 && (rows + high - 1) / high % left == 0) {
    repetitions.push_back({Axis::rows, left, Carrier::warps});
    high *= left;
  } else {
    repetitions.push_back({Axis::none, left, Carrier::warps});
  }
  repetitions.push_back({Axis::rows, (rows + high - 1) / high, Carrier::registers});
  return Layout::of(std::move(registers), std::move(lane_bases), std::move(warp_bases), std::move(repetitions));
}

Layout replicated(int rows, int columns, int lanes, int warps) {
  auto bits = [](int n) { return static_cast<std::size_t>(std::bit_width(static_cast<unsigned>(n)) - 1); };
  return Layout::of({}, Layout::Bases(bits(lanes)), {},
                    {{Axis::columns, columns, Carrier::registers},
                     {Axis::rows, rows, Carrier::registers},
                     {Axis::none, warps, Carrier::warps}});
}

}  // namespace latile::simt
