#include "codegen/simt/Fragments.h"
#include <cstdio>
#include <cstdlib>
#include <map>

namespace latile::simt {

static Layout read(std::string_view text) {
  std::string why;
  auto layout = Layout::parse(text, &why);
  if (!layout) {
    std::fprintf(stderr, "latile: no fragment: %s\n", why.c_str());
    std::abort();
  }
  return *layout;
}

static std::string name_of(std::string_view stem, Operand operand) {
  return std::string(stem) + (operand == Operand::bf16 ? ".bf16" : operand == Operand::f16 ? ".f16" : ".tf32");
}

namespace {
/// The two rows of a table for instructions that take f16 and bf16 alike.
struct Pair {
  MatrixInstruction f16, bf16;
  Pair(std::string_view stem, int m, int n, int k, std::string_view a, std::string_view b, std::string_view c) {
    f16 = {name_of(stem, Operand::f16), Operand::f16, m, n, k, read(a), read(b), read(c)};
    bf16 = f16;
    bf16.name = name_of(stem, Operand::bf16);
    bf16.operand = Operand::bf16;
  }
  const MatrixInstruction& of(Operand operand) const { return operand == Operand::bf16 ? bf16 : f16; }
};
}  // namespace

// NVIDIA: PTX ISA, pinned on an H200. AMD: the ISA documents.

const MatrixInstruction& mma_m16n8k16(Operand operand) {
  static const Pair pair("mma.sync.m16n8k16", 16, 8, 16, "r:C1 R8 C8 l:C2 C4 R1 R2 R4", "r:R1 R8 l:R2 R4 C1 C2 C4",
                         "r:C1 R8 l:C2 C4 R1 R2 R4");
  return pair.of(operand);
}

const MatrixInstruction& mma_m16n8k8_tf32() {
  static const MatrixInstruction row{"mma.sync.m16n8k8.tf32",
                                     Operand::tf32,
                                     16,
                                     8,
                                     8,
                                     read("r:R8 C4 l:C1 C2 R1 R2 R4"),
                                     read("r:R4 l:R1 R2 C1 C2 C4"),
                                     read("r:C1 R8 l:C2 C4 R1 R2 R4")};
  return row;
}

const MatrixInstruction& mfma_16x16x16(Operand operand) {
  static const Pair pair("mfma.16x16x16", 16, 16, 16, "r:C1 C2 l:R1 R2 R4 R8 C4 C8", "r:R1 R2 l:C1 C2 C4 C8 R4 R8",
                         "r:R1 R2 l:C1 C2 C4 C8 R4 R8");
  return pair.of(operand);
}

const MatrixInstruction& mfma_32x32x8(Operand operand) {
  static const Pair pair("mfma.32x32x8", 32, 32, 8, "r:C1 C2 l:R1 R2 R4 R8 R16 C4", "r:R1 R2 l:C1 C2 C4 C8 C16 R4",
                         "r:R1 R2 R8 R16 l:C1 C2 C4 C8 C16 R4");
  return pair.of(operand);
}

const MatrixInstruction& wmma_16x16x16(Operand operand) {
  static const Pair pair("wmma.16x16x16", 16, 16, 16, "r:C1 C2 C4 l:R1 R2 R4 R8 C8", "r:R1 R2 R4 l:C1 C2 C4 C8 R8",
                         "r:R1 R2 R4 l:C1 C2 C4 C8 R8");
  return pair.of(operand);
}

ProductLayouts product_layouts(const MatrixInstruction& mi, WarpGrid grid, int M, int N, int K) {
  auto tiles = [](int extent, int by) { return (extent + by - 1) / by; };
  int down = tiles(M, mi.m * grid.rows), across = tiles(N, mi.n * grid.columns), deep = tiles(K, mi.k);
  using enum Axis;
  using enum Carrier;
  return {
      mi.a.repeated(
          {{columns, deep, registers}, {rows, down, registers}, {rows, grid.rows, warps}, {none, grid.columns, warps}}),
      mi.b.repeated({{rows, deep, registers},
                     {columns, across, registers},
                     {none, grid.rows, warps},
                     {columns, grid.columns, warps}}),
      mi.c.repeated({{columns, across, registers},
                     {rows, down, registers},
                     {rows, grid.rows, warps},
                     {columns, grid.columns, warps}})};
}

std::optional<std::vector<FragmentPlace>> fragments_of(const Layout& whole, const Layout& fragment) {
  if (whole.lanes() != fragment.lanes()) return std::nullopt;
  for (int lane = 0; lane < whole.lanes(); ++lane) {
    if (!(whole.at(0, lane, 0) == fragment.at(0, lane, 0))) return std::nullopt;
  }
  Place side = fragment.shape();
  auto registers = static_cast<std::size_t>(fragment.registers());
  std::map<std::pair<int, int>, std::vector<int>> found;
  for (int reg = 0; reg < whole.registers(); ++reg) {
    Place place = whole.at(reg, 0, 0);
    Place inside{place.row % side.row, place.column % side.column};
    Holder holder = fragment.locate(inside);
    if (holder.lane != 0) return std::nullopt;
    auto& list = found[{place.row - inside.row, place.column - inside.column}];
    list.resize(registers, -1);
    list[static_cast<std::size_t>(holder.reg)] = reg;
  }
  std::vector<FragmentPlace> out;
  for (auto& [place, list] : found) {
    for (int reg : list) {
      if (reg < 0) return std::nullopt;
    }
    out.push_back({{place.first, place.second}, std::move(list)});
  }
  return out;
}

}  // namespace latile::simt
