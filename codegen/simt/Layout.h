// Where the elements of a tile live: which register of which lane of which warp holds which (row, column).
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace latile::simt {

/// A place in a tile, or the place reached when one bit of an index is set.
struct Place {
  int row = 0;
  int column = 0;
  friend bool operator==(const Place&, const Place&) = default;
};

enum class Axis : std::uint8_t { rows, columns, none };         ///< none: replicated
enum class Carrier : std::uint8_t { registers, lanes, warps };  ///< what an index counts

/// `count` copies of all before it, side by side along `axis`, counted by `carrier` (registers or warps, never lanes).
struct Repetition {
  Axis axis = Axis::none;
  int count = 1;
  Carrier carrier = Carrier::registers;
  friend bool operator==(const Repetition&, const Repetition&) = default;
};

/// One part of a carrier's index and what it adds to the place: `(index / divisor) % modulus` times `step`; parts that
/// are bits of the atom (`bit`, modulus 2) are combined by XOR, the others by addition. Where the layout is
/// `separable`, XOR is addition as well.
struct Digit {
  int divisor = 1;
  int modulus = 1;
  Place step;
  bool bit = false;
};

/// Who holds an element: register, and the lane and warp of one holder.
struct Holder {
  int reg = 0;
  int lane = 0;
  int warp = 0;
  friend bool operator==(const Holder&, const Holder&) = default;
};

/// A map from (register, lane, warp) to a place in a tile.
///
/// The *atom* maps the low bits of the three indices linearly over F2: one *base* for each bit, the place reached when
/// only that bit is set; the place of an index is the XOR of its bases. A base (0,0) is a replica: the bit does not
/// matter; only lanes and warps have such. The other bases are independent and span a box of powers of two, the atom's
/// sides. *Repetitions* then tile the plane with the atom: they are ordered; repetition i of axis d moves by (side of
/// d) × (product of the counts of earlier repetitions on d), and its digit of the carrier's index is worth 2^(bits of
/// the carrier in the atom) × (product of the counts of the carrier's earlier repetitions). Axis none replicates over
/// warps.
///
/// The shape is that of the padded tile: a tile of [40, 12] may have a layout of [48, 16]. What lies outside of the
/// tile holds whatever the op that made the value put there, and no op lets it reach what lies inside.
///
/// Layouts are kept in a canonical form (powers of two that can be bits are bits; repetitions in a fixed order), so
/// that equal maps compare equal, and print alike.
class Layout {
public:
  using Bases = std::vector<Place>;

  /// One element in one register, one lane, one warp.
  Layout() = default;

  /// The layout, or nothing and a sentence in `why`: dependent bases, a replica in registers, an empty count, ...
  static std::optional<Layout> make(Bases registers, Bases lanes, Bases warps, std::vector<Repetition> = {},
                                    std::string* why = nullptr);
  /// The same for what is known to be a layout (a table of ours); aborts otherwise.
  static Layout of(Bases registers, Bases lanes, Bases warps = {}, std::vector<Repetition> = {});

  /// "r:C1 R8 l:C2 C4 R1 R2 R4 w:R16 0 C*3:r N*2:w": bases low to high ("R1C2" has both parts, "0" is a replica), then
  /// repetitions. Empty carriers are left out; the scalar is "".
  std::string text() const;
  static std::optional<Layout> parse(std::string_view, std::string* why = nullptr);

  /// Appends repetitions.
  Layout repeated(std::vector<Repetition>) const;

  // What it is

  const Bases& bases(Carrier c) const { return bases_[static_cast<std::size_t>(c)]; }
  const std::vector<Repetition>& repetitions() const { return repetitions_; }
  Place side() const { return side_; }    ///< rows and columns of the atom
  Place shape() const { return shape_; }  ///< rows and columns of the padded tile
  int size(Carrier) const;                ///< registers of a thread, lanes of a warp, warps
  int registers() const { return size(Carrier::registers); }
  int lanes() const { return size(Carrier::lanes); }
  int warps() const { return size(Carrier::warps); }
  int threads() const { return lanes() * warps(); }
  /// Whether each base moves along one axis by one power of two, so that the place is a sum over registers, lane and
  /// warp: at(r, l, w) = at(r, 0, 0) + at(0, l, w). All matrix fragments and blocked layouts are separable.
  bool separable() const;
  friend bool operator==(const Layout& a, const Layout& b) {
    return a.bases_ == b.bases_ && a.repetitions_ == b.repetitions_;
  }

  // Index to place, and back

  Place at(int reg, int lane, int warp) const;
  /// The parts of the place for one carrier; the sum (XOR for bits) over the three carriers is `at`.
  std::vector<Digit> digits(Carrier) const;
  /// The holder of an element whose replicated bits and digits are 0. The place must lie in `shape()`.
  Holder locate(Place) const;
  /// All holders of an element, replicas included, the one of `locate` first. They agree on the register.
  std::vector<Holder> holders(Place) const;
  /// Digits of the lane's or warp's index that do not matter. A thread is the first among its replicas, and the one
  /// that stores, when all of them are 0.
  std::vector<Digit> replicas(Carrier) const;
  bool is_first_replica(int lane, int warp) const;

  // Derived layouts

  /// Rows and columns exchanged. No data moves.
  Layout transposed() const;
  /// The layout of the vector that is left when `axis` is reduced, or from which a tile is broadcast along `axis`:
  /// slice(columns) is a column [R,1], slice(rows) a row [1,C]. Lanes and warps along `axis` become replicas; registers
  /// along it are dropped. Every thread that holds (i, j) holds element i of slice(columns). The layout is separable.
  Layout slice(Axis axis) const;
  /// The register of slice(axis) that holds the element register `reg` of this layout needs, in the same thread.
  int slice_register(Axis axis, int reg) const;

private:
  std::array<Bases, 3> bases_;
  std::vector<Repetition> repetitions_;
  Place side_{1, 1}, shape_{1, 1};
  std::vector<std::uint32_t> rows_inverse_, columns_inverse_;  // for each bit of a coordinate, the bases that reach it

  std::string invert();
  void canonicalise();
};

/// How elements of 16 bits share a 32-bit word: along which axis register bit 0 goes, if it moves by one.
enum class Pack : std::uint8_t { none, rows, columns };
/// Registers 2i and 2i + 1 are neighbours along the axis given: the pair of word i.
Pack pack_of(const Layout&);

/// The layout in which threads read a row-major tile of `rows` × `columns` coalesced: each lane `vector` neighbouring
/// columns (a power of two; fewer where the tile is narrow), lanes along columns first, then rows, warps along rows,
/// the rest in registers. Lanes and warps for which nothing is left are replicas. The padded shape is at least the
/// tile's.
Layout blocked(int rows, int columns, int vector, int lanes, int warps);

/// Every thread holds all of a tile of `rows` × `columns` in its registers, columns fastest.
Layout replicated(int rows, int columns, int lanes, int warps);

}  // namespace latile::simt
