// Layouts by brute force: every statement of the library against the enumeration of (register, lane, warp).
#include "codegen/simt/Conversion.h"
#include "codegen/simt/Layout.h"
#include <algorithm>
#include <doctest/doctest.h>
#include <map>
#include <random>
#include <set>

namespace latile::simt {

namespace {

using Table = std::map<std::pair<int, int>, std::vector<Holder>>;

/// Who holds each element, from the definition: XOR of bases, then repetitions. Independent of the library's canonical
/// form.
struct Definition {
  std::array<Layout::Bases, 3> bases;
  std::vector<Repetition> repetitions;

  Place at(int reg, int lane, int warp) const {
    std::array<int, 3> index{reg, lane, warp};
    Place place;
    int rows = 1, columns = 1;
    for (std::size_t c = 0; c < 3; ++c) {
      for (Place base : bases[c]) {
        while (base.row >= rows) rows *= 2;
        while (base.column >= columns) columns *= 2;
        if (index[c] % 2) place = {place.row ^ base.row, place.column ^ base.column};
        index[c] /= 2;
      }
    }
    for (const Repetition& r : repetitions) {
      int& rest = index[static_cast<std::size_t>(r.carrier)];
      if (r.axis == Axis::rows) place.row += rest % r.count * rows, rows *= r.count;
      if (r.axis == Axis::columns) place.column += rest % r.count * columns, columns *= r.count;
      rest /= r.count;
    }
    return place;
  }
  int size(Carrier c) const {
    int n = 1 << bases[static_cast<std::size_t>(c)].size();
    for (const Repetition& r : repetitions) n *= r.carrier == c ? r.count : 1;
    return n;
  }
};

class Random {
public:
  explicit Random(unsigned seed) : engine_(seed) {}
  int below(int n) { return static_cast<int>(engine_() % static_cast<unsigned>(n)); }

  /// Unit bases of a 2^row_bits × 2^column_bits atom dealt to registers, lanes and warps, some replicas among the
  /// latter; `mixed`: replaced by random independent combinations.
  Definition definition(int row_bits, int column_bits, bool mixed) {
    std::vector<Place> units;
    for (int i = 0; i < row_bits; ++i) units.push_back({1 << i, 0});
    for (int i = 0; i < column_bits; ++i) units.push_back({0, 1 << i});
    std::shuffle(units.begin(), units.end(), engine_);
    if (mixed) {
      for (int i = 0; i < 12 && units.size() > 1; ++i) {
        auto a = static_cast<std::size_t>(below(static_cast<int>(units.size())));
        auto b = static_cast<std::size_t>(below(static_cast<int>(units.size())));
        if (a != b) units[a] = {units[a].row ^ units[b].row, units[a].column ^ units[b].column};
      }
    }
    Definition out;
    std::size_t lanes = 0;
    for (Place unit : units) {
      auto carrier = static_cast<std::size_t>(below(3));
      if (carrier == 1 && ++lanes > 5) carrier = 0;
      out.bases[carrier].push_back(unit);
    }
    while (out.bases[1].size() < 5)
      out.bases[1].insert(out.bases[1].begin() + below(static_cast<int>(out.bases[1].size()) + 1), Place{});
    if (below(2)) out.bases[2].push_back({});
    for (int n = below(4); n > 0; --n) {
      Repetition r{static_cast<Axis>(below(3)), 1 + below(4), below(2) ? Carrier::warps : Carrier::registers};
      if (r.axis == Axis::none) r.carrier = Carrier::warps;
      out.repetitions.push_back(r);
    }
    return out;
  }

private:
  std::mt19937 engine_;
};

Layout layout_of(const Definition& d) { return Layout::of(d.bases[0], d.bases[1], d.bases[2], d.repetitions); }

template <class F> void for_each(const Layout& layout, F f) {
  for (int warp = 0; warp < layout.warps(); ++warp) {
    for (int lane = 0; lane < layout.lanes(); ++lane) {
      for (int reg = 0; reg < layout.registers(); ++reg) f(Holder{reg, lane, warp});
    }
  }
}

Table table_of(const Layout& layout) {
  Table out;
  for_each(layout, [&](Holder h) {
    Place p = layout.at(h.reg, h.lane, h.warp);
    out[{p.row, p.column}].push_back(h);
  });
  return out;
}

std::set<std::tuple<int, int, int>> set_of(const std::vector<Holder>& holders) {
  std::set<std::tuple<int, int, int>> out;
  for (const Holder& h : holders) out.insert({h.reg, h.lane, h.warp});
  return out;
}

}  // namespace

TEST_CASE("the canonical form is the same map, and its inverse is the enumeration") {
  Random random(1);
  for (int round = 0; round < 300; ++round) {
    Definition d = random.definition(random.below(5), random.below(5), round % 2 == 1);
    Layout layout = layout_of(d);
    CAPTURE(layout.text());
    for (Carrier c : {Carrier::registers, Carrier::lanes, Carrier::warps}) REQUIRE(layout.size(c) == d.size(c));
    bool same = true;
    for_each(layout, [&](Holder h) { same = same && layout.at(h.reg, h.lane, h.warp) == d.at(h.reg, h.lane, h.warp); });
    REQUIRE(same);
    auto parsed = Layout::parse(layout.text());
    REQUIRE(parsed);
    REQUIRE(*parsed == layout);

    Table table = table_of(layout);
    REQUIRE(static_cast<int>(table.size()) == layout.shape().row * layout.shape().column);
    for (const auto& [place, holders] : table) {
      Place p{place.first, place.second};
      auto claimed = layout.holders(p);
      REQUIRE(claimed.size() == holders.size());
      REQUIRE(set_of(claimed) == set_of(holders));
      REQUIRE(claimed.front() == layout.locate(p));
      int first = 0;
      for (const Holder& h : holders) first += layout.is_first_replica(h.lane, h.warp);
      REQUIRE(first == 1);
      REQUIRE(layout.is_first_replica(claimed.front().lane, claimed.front().warp));
    }
  }
}

TEST_CASE("equal maps are equal layouts") {
  Random random(2);
  int equal = 0, pairs = 0;
  std::vector<std::pair<Definition, Layout>> all;
  for (int i = 0; i < 400; ++i) {
    Definition d = random.definition(random.below(3), random.below(2), false);
    all.emplace_back(d, layout_of(d));
    // The same map written differently: a repetition of an even count split in two.
    for (std::size_t r = 0; r < d.repetitions.size(); ++r) {
      if (d.repetitions[r].count % 2) continue;
      Definition split = d;
      split.repetitions[r].count /= 2;
      split.repetitions.insert(split.repetitions.begin() + static_cast<std::ptrdiff_t>(r), d.repetitions[r]);
      split.repetitions[r].count = 2;
      REQUIRE(layout_of(split) == layout_of(d));
    }
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const Layout &a = all[i].second, &b = all[j].second;
      if (a.registers() != b.registers() || a.lanes() != b.lanes() || a.warps() != b.warps()) continue;
      ++pairs;
      bool same = true;
      for_each(a, [&](Holder h) { same = same && a.at(h.reg, h.lane, h.warp) == b.at(h.reg, h.lane, h.warp); });
      equal += same;
      CAPTURE(a.text());
      CAPTURE(b.text());
      REQUIRE(same == (a == b));
    }
  }
  CHECK(equal > 20);
  CHECK(pairs > 5 * equal);
}

TEST_CASE("digits add up to the place") {
  Random random(3);
  for (int round = 0; round < 100; ++round) {
    Layout layout = layout_of(random.definition(random.below(4), random.below(4), round % 2 == 1));
    std::array<std::vector<Digit>, 3> digits{layout.digits(Carrier::registers), layout.digits(Carrier::lanes),
                                             layout.digits(Carrier::warps)};
    bool same = true, sums = true;
    for_each(layout, [&](Holder h) {
      std::array<int, 3> index{h.reg, h.lane, h.warp};
      Place bits, rest;
      for (std::size_t c = 0; c < 3; ++c) {
        for (const Digit& digit : digits[c]) {
          int value = index[c] / digit.divisor % digit.modulus;
          if (digit.bit && value) bits = {bits.row ^ digit.step.row, bits.column ^ digit.step.column};
          if (!digit.bit) rest = {rest.row + value * digit.step.row, rest.column + value * digit.step.column};
        }
      }
      Place place = layout.at(h.reg, h.lane, h.warp);
      same = same && place == Place{bits.row + rest.row, bits.column + rest.column};
      Place reg = layout.at(h.reg, 0, 0), thread = layout.at(0, h.lane, h.warp);
      sums = sums && place == Place{reg.row + thread.row, reg.column + thread.column};
    });
    REQUIRE(same);
    if (layout.separable()) REQUIRE(sums);
  }
}

TEST_CASE("transposes, slices and what is broadcast from them") {
  Random random(4);
  for (int round = 0; round < 200; ++round) {
    Layout layout = layout_of(random.definition(random.below(5), random.below(5), false));
    CAPTURE(layout.text());
    Layout turned = layout.transposed();
    REQUIRE(turned.transposed() == layout);
    Layout column = layout.slice(Axis::columns), row = layout.slice(Axis::rows);
    REQUIRE(column.shape() == Place{layout.shape().row, 1});
    REQUIRE(row.shape() == Place{1, layout.shape().column});
    REQUIRE(column.threads() == layout.threads());
    bool turns = true, holds = true;
    for_each(layout, [&](Holder h) {
      Place p = layout.at(h.reg, h.lane, h.warp);
      turns = turns && turned.at(h.reg, h.lane, h.warp) == Place{p.column, p.row};
      holds = holds && column.at(layout.slice_register(Axis::columns, h.reg), h.lane, h.warp) == Place{p.row, 0} &&
              row.at(layout.slice_register(Axis::rows, h.reg), h.lane, h.warp) == Place{0, p.column};
    });
    REQUIRE(turns);
    REQUIRE(holds);
    std::set<int> rows;
    for (int r = 0; r < column.registers(); ++r) rows.insert(column.at(r, 0, 0).row);
    REQUIRE(static_cast<int>(rows.size()) == column.registers());  // no element twice in one thread
  }
}

TEST_CASE("conversions move every element where it belongs, in the class that brute force finds") {
  Random random(5);
  std::map<Move, int> seen;
  for (int round = 0; round < 3000; ++round) {
    int row_bits = random.below(4), column_bits = random.below(4);
    Definition d = random.definition(row_bits, column_bits, round % 4 == 0);
    Definition e = d;
    if (round % 3 == 0) {
      e = random.definition(row_bits, column_bits, false);
      e.repetitions = d.repetitions;
    } else {
      // Neighbours: exchange bases within a carrier or between two.
      for (int i = 0; i < 1 + round % 2; ++i) {
        auto& a = e.bases[static_cast<std::size_t>(random.below(round % 5 == 1 ? 3 : 1))];
        auto& b = e.bases[static_cast<std::size_t>(random.below(round % 5 == 1 ? 3 : 2))];
        if (a.empty() || b.empty()) continue;
        std::swap(a[static_cast<std::size_t>(random.below(static_cast<int>(a.size())))],
                  b[static_cast<std::size_t>(random.below(static_cast<int>(b.size())))]);
      }
    }
    if (std::count(e.bases[0].begin(), e.bases[0].end(), Place{})) continue;
    Layout source = layout_of(d), destination = layout_of(e);
    if (source.warps() != destination.warps() || !(source.shape() == destination.shape())) continue;
    int rows = std::max(1, source.shape().row - random.below(3)),
        columns = std::max(1, source.shape().column - random.below(2));
    CAPTURE(source.text());
    CAPTURE(destination.text());
    Conversion conversion = convert(source, destination, rows, columns, 1e9);
    ++seen[conversion.move];

    // Exactly: a register exchange needs for each (register, lane) one (source register, lane) that serves all warps.
    Table table = table_of(source);
    bool in_thread = true, in_warp = true;
    for (int reg = 0; reg < destination.registers(); ++reg) {
      for (int lane = 0; lane < destination.lanes(); ++lane) {
        std::map<std::pair<int, int>, int> serves;
        int wanted = 0;
        bool own = true;
        for (int warp = 0; warp < destination.warps(); ++warp) {
          Place p = destination.at(reg, lane, warp);
          if (p.row >= rows || p.column >= columns) continue;
          ++wanted;
          bool thread = false;
          for (const Holder& s : table[{p.row, p.column}]) {
            if (s.warp == warp) ++serves[{s.reg, s.lane}];
            thread = thread || (s.warp == warp && s.lane == lane);
          }
          own = own && thread;
        }
        in_thread = in_thread && own;
        in_warp = in_warp && (wanted == 0 || std::any_of(serves.begin(), serves.end(),
                                                         [&](const auto& s) { return s.second == wanted; }));
      }
    }
    REQUIRE(in_warp == (conversion.move != Move::shared));
    if (!in_thread) REQUIRE(conversion.move >= Move::shuffle);
    if (conversion.move == Move::shared) continue;

    // Run it on a tile whose elements are their own places.
    auto value = [](Place p) { return p.row * 4096 + p.column; };
    bool right = true;
    for (int warp = 0; warp < source.warps(); ++warp) {
      std::vector<std::vector<int>> out(static_cast<std::size_t>(destination.registers()),
                                        std::vector<int>(static_cast<std::size_t>(source.lanes()), -1));
      if (conversion.move == Move::none || conversion.move == Move::registers) {
        for (int reg = 0; reg < destination.registers(); ++reg) {
          int from = conversion.move == Move::none ? reg : conversion.from[static_cast<std::size_t>(reg)];
          for (int lane = 0; lane < source.lanes(); ++lane)
            out[static_cast<std::size_t>(reg)][static_cast<std::size_t>(lane)] = value(source.at(from, lane, warp));
        }
      }
      for (const Shuffle& s : conversion.shuffles) {
        for (int lane = 0; lane < source.lanes(); ++lane) {
          auto l = static_cast<std::size_t>(lane);
          if (s.to >> lane & 1) out[static_cast<std::size_t>(s.reg)][l] = value(source.at(s.from, s.lanes[l], warp));
        }
      }
      for (int reg = 0; reg < destination.registers(); ++reg) {
        for (int lane = 0; lane < source.lanes(); ++lane) {
          Place p = destination.at(reg, lane, warp);
          int got = out[static_cast<std::size_t>(reg)][static_cast<std::size_t>(lane)];
          right = right && got >= 0 && (p.row >= rows || p.column >= columns || got == value(p));
        }
      }
    }
    REQUIRE(right);
  }
  for (Move move : {Move::none, Move::registers, Move::shuffle, Move::shared}) CHECK(seen[move] > 50);
}

TEST_CASE("blocked layouts cover the tile, coalesced") {
  for (int warps : {1, 2, 4, 6, 8}) {
    for (auto [rows, columns] :
         {std::pair(64, 128), {64, 96}, {1, 1}, {64, 1}, {1, 128}, {16, 8}, {13, 5}, {40, 12}, {128, 56}, {192, 256}}) {
      for (int vector : {1, 4, 8}) {
        Layout layout = blocked(rows, columns, vector, 32, warps);
        CAPTURE(layout.text());
        CHECK(layout.threads() == 32 * warps);
        CHECK(layout.shape().row >= rows);
        CHECK(layout.shape().column >= columns);
        CHECK(layout.shape().row * layout.shape().column <= std::max(4 * rows * columns, 1));
        for (int i = 0; i < std::min(vector, columns); ++i) CHECK(layout.at(i, 0, 0) == Place{0, i});
      }
    }
  }
  CHECK(blocked(64, 128, 8, 32, 4).text() == "r:C1 C2 C4 R8 R16 R32 l:C8 C16 C32 C64 R1 w:R2 R4");
  CHECK(blocked(64, 96, 8, 32, 4).text() == "r:C1 C2 C4 l:C8 C16 R1 R2 R4 w:R8 R16 C*3:r R*2:r");
  Layout all = replicated(3, 4, 32, 2);
  for (int lane : {0, 17}) CHECK(all.at(7, lane, 1) == Place{1, 3});
}

TEST_CASE("what is no layout is refused by a sentence") {
  auto fault = [](std::string_view text) {
    std::string why;
    CHECK_FALSE(Layout::parse(text, &why));
    return why;
  };
  CHECK(fault("r:C1 C1").find("depend") != std::string::npos);
  CHECK(fault("r:C1 C4").find("leave out") != std::string::npos);
  CHECK(fault("r:0").find("replicas") != std::string::npos);
  CHECK(fault("C*2:l").find("lanes") != std::string::npos);
  CHECK(fault("N*2:r").find("replicas") != std::string::npos);
  CHECK(fault("C*0:r").find("positive") != std::string::npos);
  CHECK(fault("r:X1").find("X1") != std::string::npos);
  CHECK(fault("C1").find("C1") != std::string::npos);
  CHECK(fault("r:C1 C*2:r R1").find("R1") != std::string::npos);
}

}  // namespace latile::simt
