// What it takes to bring a tile from one layout into another.
#pragma once
#include "codegen/simt/Layout.h"

namespace latile::simt {

enum class Move : std::uint8_t {
  none,       ///< the layouts are equal
  registers,  ///< every thread holds what it needs: destination register r is source register `from[r]`
  shuffle,    ///< every warp holds what it needs
  shared,     ///< through shared memory
};

/// One exchange in a warp: destination register `reg` of the lanes in `to` (bit l: lane l) takes source register `from`
/// of lane `lanes[l]`. For lanes outside of `to`, `lanes[l]` is l.
struct Shuffle {
  int reg = 0;
  int from = 0;
  std::uint64_t to = 0;
  std::vector<std::uint8_t> lanes;
};

struct Conversion {
  Move move = Move::none;
  /// registers: for each destination register the source register.
  std::vector<int> from;
  /// shuffle: in order of the destination register; each destination register is covered for every lane. Shuffles whose
  /// `lanes` are the identity are copies.
  std::vector<Shuffle> shuffles;
};

/// The cheapest way from `source` to `destination`, which have the same lanes and warps and shapes that both cover
/// `rows` × `columns` (elements beyond are of no interest: a destination register that is outside for all threads takes
/// source register 0). Shuffles are chosen up to `most_shuffles` for each destination register, on average.
Conversion convert(const Layout& source, const Layout& destination, int rows, int columns, double most_shuffles = 1.0);

}  // namespace latile::simt
