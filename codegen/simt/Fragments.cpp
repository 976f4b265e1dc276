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

MatrixInstruction matrix_instruction(std::string name, Operand operand, int m, int n, int k, std::string_view a,
                                     std::string_view b, std::string_view c) {
  return {std::move(name), operand, m, n, k, read(a), read(b), read(c)};
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
