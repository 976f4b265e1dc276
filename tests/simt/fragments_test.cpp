// Matrix instructions: the fragment table computes products, and what feeds what without exchange.
#include "codegen/amdgcn/Targets.h"
#include "codegen/nvptx/Targets.h"
#include "codegen/simt/Conversion.h"
#include "codegen/Targets.h"
#include <algorithm>
#include <doctest/doctest.h>
#include <map>
#include <tuple>

namespace latile::simt {

namespace {

using nvptx::mma_m16n8k16, nvptx::mma_m16n8k8_tf32, nvptx::mma_m16n8k8_tf32_chained;
using namespace amdgcn;

std::vector<MatrixInstruction> table() {
  std::vector<MatrixInstruction> out{mma_m16n8k8_tf32(), mma_m16n8k8_tf32_chained(), mfma_4x16x16x4_f32()};
  for (Operand operand : {Operand::f16, Operand::bf16}) {
    out.push_back(mma_m16n8k16(operand));
    out.push_back(mfma_16x16x16(operand));
    out.push_back(mfma_32x32x8(operand));
    out.push_back(wmma_16x16x16(operand));
  }
  return out;
}

/// Every element of the tile in exactly as many threads as there are replicas.
void check_covers(const Layout& layout, int replicas) {
  std::map<std::pair<int, int>, int> count;
  for (int warp = 0; warp < layout.warps(); ++warp) {
    for (int lane = 0; lane < layout.lanes(); ++lane) {
      for (int reg = 0; reg < layout.registers(); ++reg) {
        Place p = layout.at(reg, lane, warp);
        ++count[{p.row, p.column}];
      }
    }
  }
  CHECK(static_cast<int>(count.size()) == layout.shape().row * layout.shape().column);
  for (const auto& [place, n] : count) REQUIRE(n == replicas);
}

Move move_of(const Layout& a, const Layout& b, double most = 1e9) {
  return convert(a, b, a.shape().row, a.shape().column, most).move;
}

}  // namespace

TEST_CASE("fragments hold each element once") {
  for (const MatrixInstruction& mi : table()) {
    CAPTURE(mi.name);
    CHECK(mi.a.shape() == Place{mi.m, mi.k});
    CHECK(mi.b.shape() == Place{mi.k, mi.n});
    CHECK(mi.c.shape() == Place{mi.m, mi.n});
    for (const Layout* layout : {&mi.a, &mi.b, &mi.c}) check_covers(*layout, 1);
    CHECK(mi.a.lanes() == mi.c.lanes());
    CHECK(mi.b.lanes() == mi.c.lanes());
    if (mi.operand == Operand::f16 || mi.operand == Operand::bf16) {
      CHECK(pack_of(mi.a) == Pack::columns);
      CHECK(pack_of(mi.b) == Pack::rows);
    }
  }
}

TEST_CASE("NVIDIA's fragments are the formulas that were measured") {
  const MatrixInstruction& mi = mma_m16n8k16(Operand::bf16);
  const MatrixInstruction& tf = mma_m16n8k8_tf32();
  for (int lane = 0; lane < 32; ++lane) {
    int g = lane >> 2, t = lane & 3;
    for (int r = 0; r < 4; ++r) {
      for (int h = 0; h < 2; ++h)
        REQUIRE(mi.a.at(2 * r + h, lane, 0) == Place{g + 8 * (r & 1), 2 * t + 8 * (r >> 1) + h});
      REQUIRE(mi.c.at(r, lane, 0) == Place{g + 8 * (r >> 1), 2 * t + (r & 1)});
      REQUIRE(tf.a.at(r, lane, 0) == Place{g + 8 * (r & 1), t + 4 * (r >> 1)});
    }
    for (int r = 0; r < 2; ++r) {
      for (int h = 0; h < 2; ++h) REQUIRE(mi.b.at(2 * r + h, lane, 0) == Place{2 * t + 8 * r + h, g});
      REQUIRE(tf.b.at(r, lane, 0) == Place{t + 4 * r, g});
    }
  }
}

TEST_CASE("AMD's fragments are the formulas of its documents") {
  for (int lane = 0; lane < 64; ++lane) {
    const int i = lane % 16, g = lane / 16;
    for (int r = 0; r < 4; ++r) {
      for (const MatrixInstruction* mi : {&mfma_16x16x16(Operand::bf16), &mfma_4x16x16x4_f32()}) {
        // Instruction r of the float32 row takes of lane (i, g) the elements that it calls (i, g) and (g, i).
        REQUIRE(mi->a.at(r, lane, 0) == Place{i, 4 * g + r});
        REQUIRE(mi->b.at(r, lane, 0) == Place{4 * g + r, i});
        REQUIRE(mi->c.at(r, lane, 0) == Place{4 * g + r, i});
      }
    }
    if (lane >= 32) continue;
    const MatrixInstruction& wmma = wmma_16x16x16(Operand::f16);
    for (int r = 0; r < 8; ++r) {
      REQUIRE(wmma.a.at(r, lane, 0) == Place{i, 8 * g + r});
      REQUIRE(wmma.b.at(r, lane, 0) == Place{8 * g + r, i});
      REQUIRE(wmma.c.at(r, lane, 0) == Place{8 * g + r, i});
    }
  }
}

TEST_CASE("the free operand of a target takes an accumulator as it is, the other one does not") {
  for (std::string_view name : target_names()) {
    const Target& target = *find_target(name);
    CAPTURE(name);
    for (const MatrixProduct& p : target.products) {
      CHECK(p.instruction.c == target.products.front().instruction.c);
      const MatrixInstruction& mi = p.chained ? *p.chained : p.instruction;
      for (int warps : {1, 4}) {
        auto made = product_layouts(mi, {warps, 1}, 64, 64, 64), turned = product_layouts(mi, {1, warps}, 64, 64, 64);
        if (target.free_operand == FreeOperand::a) {
          CHECK(move_of(made.c, made.a) <= Move::registers);
          CHECK(move_of(turned.c, turned.b) >= Move::shuffle);
          CHECK(move_of(made.c.transposed(), product_layouts(mi, {1, warps}, 64, 64, 64).b) <= Move::registers);
        } else {
          CHECK(move_of(turned.c, turned.b) <= Move::registers);
          CHECK(move_of(made.c, made.a) >= Move::shuffle);
        }
      }
    }
  }
}

TEST_CASE("layouts of whole products cover them, replicated where warps share an operand") {
  for (const MatrixInstruction& mi : table()) {
    for (auto [grid, M, N, K] : {std::tuple(WarpGrid{2, 2}, 64, 64, 128),
                                 {WarpGrid{4, 1}, 64, 96, 48},
                                 {WarpGrid{1, 4}, 40, 192, 16},
                                 {WarpGrid{3, 1}, 192, 128, 64},
                                 {WarpGrid{2, 2}, 16, 8, 8}}) {
      auto p = product_layouts(mi, grid, M, N, K);
      CAPTURE(mi.name);
      CAPTURE(p.c.text());
      check_covers(p.a, grid.columns);
      check_covers(p.b, grid.rows);
      check_covers(p.c, 1);
      CHECK(p.a.shape().row == p.c.shape().row);
      CHECK(p.a.shape().column == p.b.shape().row);
      CHECK(p.b.shape().column == p.c.shape().column);
      CHECK(p.c.shape().row - M < mi.m * grid.rows);
      CHECK(p.c.shape().column - N < mi.n * grid.columns);
      CHECK(p.a.shape().column - K < mi.k);

      // Run it: each warp multiplies the fragments it holds, which must be the product of the whole.
      auto a = fragments_of(p.a, mi.a), b = fragments_of(p.b, mi.b), c = fragments_of(p.c, mi.c);
      REQUIRE(a);
      REQUIRE(b);
      REQUIRE(c);
      for (int warp = 0; warp < p.c.warps(); ++warp) {
        for (const FragmentPlace& d : *c) {
          Place at = p.c.at(d.registers[0], 0, warp);
          int depth = 0;
          for (const FragmentPlace& left : *a) {
            if (p.a.at(left.registers[0], 0, warp).row != at.row) continue;
            for (const FragmentPlace& right : *b) {
              Place from = p.b.at(right.registers[0], 0, warp);
              depth += from.column == at.column && from.row == p.a.at(left.registers[0], 0, warp).column;
            }
          }
          REQUIRE(depth == p.a.shape().column / mi.k);
        }
      }
      for (int reg = 0; reg < p.c.registers(); ++reg) {
        int times = 0;
        for (const FragmentPlace& d : *c)
          times += static_cast<int>(std::count(d.registers.begin(), d.registers.end(), reg));
        REQUIRE(times == 1);
      }
      if (!(mi.a == mi.c)) CHECK_FALSE(fragments_of(blocked(M, N, 4, mi.c.lanes(), 4), mi.c));
    }
  }
}

TEST_CASE("columns and rows of an accumulator") {
  // 64×64 on four warps down the rows: a column takes 2 registers, a row 16.
  auto p = product_layouts(mma_m16n8k16(Operand::bf16), {4, 1}, 64, 64, 64);
  CHECK(p.c.registers() == 32);
  CHECK(p.c.slice(Axis::columns).registers() == 2);
  CHECK(p.c.slice(Axis::rows).registers() == 16);
  CHECK(p.c.slice(Axis::columns).text() == "r:R8 l:0 0 R1 R2 R4 w:R16 R32");
}

}  // namespace latile::simt
