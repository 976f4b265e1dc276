#include "codegen/simt/Conversion.h"

namespace latile::simt {

namespace {

/// Where a destination element is found: the source register, and the lane of the same warp that holds it.
struct Found {
  int reg = 0;
  int lane = 0;
};

class Search {
public:
  Search(const Layout& source, const Layout& destination, int rows, int columns)
      : source_(source), destination_(destination), rows_(rows), columns_(columns) {
    for (const Digit& digit : source.replicas(Carrier::lanes)) replica_lanes_ |= digit.divisor;
  }

  /// The shuffles that make destination register `reg`, none if another warp must help.
  std::optional<std::vector<Shuffle>> shuffles(int reg) const {
    std::vector<std::optional<Found>> lanes(static_cast<std::size_t>(destination_.lanes()));
    for (int warp = 0; warp < destination_.warps(); ++warp) {
      for (int lane = 0; lane < destination_.lanes(); ++lane) {
        Place place = destination_.at(reg, lane, warp);
        if (place.row >= rows_ || place.column >= columns_) continue;
        auto found = find(place, lane, warp);
        auto& known = lanes[static_cast<std::size_t>(lane)];
        if (!found || (known && (known->reg != found->reg || known->lane != found->lane))) return std::nullopt;
        known = found;
      }
    }
    return grouped(reg, lanes);
  }

private:
  std::optional<Found> find(Place place, int lane, int warp) const {
    Holder holder = source_.locate(place);
    int from = holder.lane | (lane & replica_lanes_);
    if (!(source_.at(holder.reg, from, warp) == place)) return std::nullopt;
    return Found{holder.reg, from};
  }

  /// One shuffle for each source register. Lanes that need nothing go along with the first.
  static std::vector<Shuffle> grouped(int reg, const std::vector<std::optional<Found>>& lanes) {
    std::vector<Shuffle> out;
    auto shuffle_from = [&](int from) -> Shuffle& {
      for (Shuffle& shuffle : out) {
        if (shuffle.from == from) return shuffle;
      }
      out.push_back({.reg = reg, .from = from, .to = 0, .lanes = {}});
      for (std::size_t lane = 0; lane < lanes.size(); ++lane)
        out.back().lanes.push_back(static_cast<std::uint8_t>(lane));
      return out.back();
    };
    for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
      if (!lanes[lane]) continue;
      Shuffle& shuffle = shuffle_from(lanes[lane]->reg);
      shuffle.to |= std::uint64_t{1} << lane;
      shuffle.lanes[lane] = static_cast<std::uint8_t>(lanes[lane]->lane);
    }
    if (out.empty()) shuffle_from(0);
    for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
      if (!lanes[lane]) out.front().to |= std::uint64_t{1} << lane;
    }
    return out;
  }

  const Layout& source_;
  const Layout& destination_;
  int rows_, columns_;
  int replica_lanes_ = 0;
};

bool is_identity(const Shuffle& shuffle) {
  for (std::size_t lane = 0; lane < shuffle.lanes.size(); ++lane) {
    if (shuffle.lanes[lane] != lane) return false;
  }
  return true;
}

}  // namespace

Conversion convert(const Layout& source, const Layout& destination, int rows, int columns, double most_shuffles) {
  Conversion out;
  if (source == destination) return out;
  Search search(source, destination, rows, columns);
  int exchanges = 0;
  bool copies = true;
  out.move = Move::shared;
  for (int reg = 0; reg < destination.registers(); ++reg) {
    auto shuffles = search.shuffles(reg);
    if (!shuffles) return {.move = Move::shared, .from = {}, .shuffles = {}};
    for (const Shuffle& shuffle : *shuffles) exchanges += !is_identity(shuffle);
    copies = copies && shuffles->size() == 1 && is_identity(shuffles->front());
    if (exchanges > most_shuffles * destination.registers()) return {.move = Move::shared, .from = {}, .shuffles = {}};
    out.shuffles.insert(out.shuffles.end(), shuffles->begin(), shuffles->end());
  }
  out.move = copies ? Move::registers : Move::shuffle;
  if (copies) {
    for (const Shuffle& shuffle : out.shuffles) out.from.push_back(shuffle.from);
    out.shuffles.clear();
  }
  return out;
}

}  // namespace latile::simt
