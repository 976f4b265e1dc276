// Decayed scores of bfloat16 operands in blocks.
//
// Of the 2h rows of a block on the diagonal, the last h rows by the first h columns are a product of the rows times
// exp2(Gr_i - n) and the columns times exp2(n - Gc_j), n being Gc in the last of these columns: no exponent is above 0
// and both factors come from one another by the decay of a single row. The two halves are split in the same way, down
// to blocks of 8 rows, which are walked exactly. All products of one h stand side by side: the scaled rows and columns
// are kept without gaps, so that blocks of 8 share a tile.
#include "codegen/host/KernelEmitter.h"
#include "llvm/IR/IntrinsicsX86.h"

namespace latile::host {

using namespace tile;

bool splits_into_blocks(DecayedScoresOp op, Bfloat16 engine) {
  auto shape = extents(op.getTile());
  return engine == Bfloat16::tiles && op.getOperand() && op.getOperand()->isBF16() && shape[0] == shape[1] &&
         shape[0] % 16 == 0 && (shape[0] & (shape[0] - 1)) == 0 && op.getStair() == 1 && op.getKind() != MaskKind::All;
}

/// Rows of `x` times running decays, as bfloat16 without gaps: of every 2h rows the last h, from the first of them
/// down, each times `start` (of row and lane; null: 1) and the decays of the rows on the way; or, `columns`, the first
/// h from the last of them up.
KernelEmitter::Buffer KernelEmitter::scaled_halves(mlir::Value x, std::int64_t h, bool columns,
                                                   llvm::function_ref<Ir(Ir row, Ir j)> start, const Buffer& decays) {
  auto& b = builder_;
  std::int64_t rows = extents(x)[0], width = (extents(x)[1] + 31) / 32 * 32;
  Buffer to{allocate((rows / 2 + 15) / 16 * 16 * width * 2), l_.index(width * 2), 0};
  const Buffer from = stored(plain_, x);
  l_.loop(l_.index(0), l_.index(width), 32, [&](Ir j) {
    Ir places[2] = {j, l_.add(j, 16)};
    l_.loop(l_.index(0), l_.index(rows / 2), h, [&](Ir first) {  // counts rows without gaps
      Ir edge = l_.add(l_.mul(first, 2), columns ? h - 1 : h);
      auto put = [&](Ir step, ArrayRef<Ir> factors) {
        Ir row = columns ? b.CreateSub(edge, step) : l_.add(edge, step);
        Grid halves;
        for (int part = 0; part < 2; ++part) {
          Ir value = l_.load(address(from, row, places[part], false), ElementType::f32, nullptr);
          if (factors[static_cast<std::size_t>(part)])
            value = b.CreateFMul(value, factors[static_cast<std::size_t>(part)]);
          if (extents(x)[1] % 32 != 0)
            value = b.CreateSelect(l_.mask(b.CreateSub(l_.index(extents(x)[1]), places[part])), value, l_.splat(0.0));
          halves.push_back(value);
        }
        Ir place = columns ? b.CreateSub(l_.add(first, h - 1), step) : l_.add(first, step);
        b.CreateAlignedStore(pack(halves[0], halves[1]),
                             l_.at(to.base, l_.add(l_.mul(place, to.row_bytes), l_.mul(j, 2))), llvm::Align(2));
      };
      SmallVector<Ir> factors;
      for (Ir place : places) factors.push_back(start(edge, place));
      put(l_.index(0), factors);
      for (Ir& f : factors)
        if (!f) f = l_.splat(1.0);
      l_.loop(l_.index(1), l_.index(h), 1, factors, [&](Ir step, ArrayRef<Ir> above) {
        // Between two rows lies the decay of the later one.
        Ir later = columns ? b.CreateSub(l_.add(edge, 1), step) : l_.add(edge, step);
        SmallVector<Ir> next;
        for (int part = 0; part < 2; ++part)
          next.push_back(b.CreateFMul(above[static_cast<std::size_t>(part)],
                                      l_.load(address(decays, later, places[part], false), ElementType::f32, nullptr)));
        put(step, next);
        return next;
      });
    });
  });
  return to;
}

void KernelEmitter::emit_score_blocks(DecayedScoresOp op, const Buffer& to) {
  auto& b = builder_;
  mlir::Value q = op.getQ(), k = op.getK(), gr = op.getGr(), gc = op.getGc();
  std::int64_t rows = extents(q)[0], words = (extents(q)[1] + 31) / 32 * 16;
  auto tile = [&](int t) { return b.getInt8(static_cast<std::uint8_t>(t)); };
  auto key = [](mlir::Value x, mlir::Value rows_gate, mlir::Value columns_gate, std::int64_t half) {
    return std::tuple(x.getAsOpaquePointer(), rows_gate.getAsOpaquePointer(), columns_gate.getAsOpaquePointer(), half);
  };
  for (std::int64_t h = rows / 2; h >= exact_rows; h /= 2) {
    Buffer& left = scaled_[key(q, gr, gc, h)];
    if (!left.base) {
      const Buffer decays = step_decays(gr);
      left = scaled_halves(
          q, h, false, [&](Ir row, Ir j) { return decay_between(gr, gc, row, l_.add(row, -1), 1, j); }, decays);
    }
    Buffer& right = scaled_[key(k, nullptr, gc, h)];
    if (!right.base) {
      const Buffer decays = step_decays(gc);
      Buffer halves = scaled_halves(k, h, true, [](Ir, Ir) -> Ir { return nullptr; }, decays);
      std::int64_t across = (rows / 2 + 15) / 16 * 16;
      right = {allocate(words * across * 4), l_.index(across * 4), 0};
      transpose_words(halves, across, words, right);
    }
    auto product = [&](Ir i, Ir j, Ir out, Ir row_bytes) {
      pace(2 * words);
      b.CreateIntrinsic(llvm::Intrinsic::x86_tilezero, {}, {tile(0)});
      l_.loop(l_.index(0), l_.index(words), 16, [&](Ir w) {
        b.CreateIntrinsic(llvm::Intrinsic::x86_tileloadd64, {}, {tile(4), address(left, i, w, false), left.row_bytes});
        b.CreateIntrinsic(llvm::Intrinsic::x86_tileloadd64, {},
                          {tile(6), address(right, w, j, false), right.row_bytes});
        b.CreateIntrinsic(llvm::Intrinsic::x86_tdpbf16ps, {}, {tile(0), tile(4), tile(6)});
      });
      b.CreateIntrinsic(llvm::Intrinsic::x86_tilestored64, {}, {tile(0), out, row_bytes});
    };
    if (h >= 16) {
      l_.loop(l_.index(0), l_.index(rows / 2), h, [&](Ir first) {
        l_.loop(l_.index(0), l_.index(h), 16, [&](Ir i) {
          l_.loop(l_.index(0), l_.index(h), 16, [&](Ir j) {
            Ir row = l_.add(l_.add(l_.mul(first, 2), h), i), column = l_.add(l_.mul(first, 2), j);
            product(l_.add(first, i), l_.add(first, j), address(to, row, column, false), to.row_bytes);
          });
        });
      });
      continue;
    }
    // Two blocks of 8 on the diagonal of one tile.
    Buffer both{allocate(17 * 64), l_.index(64), 0};
    l_.loop(l_.index(0), l_.index(rows / 2), 16, [&](Ir first) {
      product(first, first, both.base, both.row_bytes);
      l_.loop(l_.index(0), l_.index(std::min<std::int64_t>(16, rows / 2)), 1, [&](Ir r) {
        Ir block = b.CreateAnd(r, l_.index(-8)), place = l_.add(first, block);
        Ir row = l_.add(l_.add(l_.mul(place, 2), 8), b.CreateSub(r, block));
        Ir x = l_.load(address(both, r, block, false), ElementType::f32, nullptr);
        l_.store(x, address(to, row, l_.mul(place, 2), false), ElementType::f32, l_.mask(l_.index(8)));
      });
    });
  }
}

}  // namespace latile::host
