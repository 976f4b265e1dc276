// Products of bfloat16: dots of pairs in vector registers (AVX512-BF16) or tiles of 16 rows by 32 terms (AMX).
#include "codegen/host/KernelEmitter.h"
#include "llvm/IR/IntrinsicsX86.h"

namespace latile::host {

using namespace tile;

static std::int64_t round_up(std::int64_t x, std::int64_t m) { return (x + m - 1) / m * m; }

/// Two vectors of 16 floats as 32 bfloat16, rounded to nearest even.
Ir KernelEmitter::pack(Ir low, Ir high) {
  SmallVector<int> both;
  for (int k = 0; k < 32; ++k) both.push_back(k);
  Ir floats = builder_.CreateShuffleVector(low, high, both);
  return builder_.CreateFPTrunc(floats, llvm::FixedVectorType::get(builder_.getBFloatTy(), 32));
}

// Terms past the value's own are zero in every form, since tiles take them 32 at a time and pairs two at a time.
void KernelEmitter::store_halves(mlir::Value v) {
  std::int64_t rows = extents(v)[0], cols = extents(v)[1], width = round_up(cols, 32);
  auto [it, fresh] = halves_.try_emplace(v);
  if (fresh) it->second = {allocate(round_up(rows, 16) * width * 2), l_.index(width * 2), 0};
  const Buffer to = it->second;
  l_.loop(l_.index(0), l_.index(rows), 1, [&](Ir r) {
    pace(8 * width / 16);
    l_.loop(l_.index(0), l_.index(width), 32, [&](Ir j) {
      Grid x;
      for (int part = 0; part < 2; ++part) {
        Ir at = l_.add(j, part * 16);
        x.append(evaluate(v, {r, 1, at, 1}));
        if (cols % 32 != 0)
          x.back() = builder_.CreateSelect(l_.mask(builder_.CreateSub(l_.index(cols), at)), x.back(), l_.splat(0.0));
      }
      builder_.CreateAlignedStore(pack(x[0], x[1]), l_.at(to.base, l_.add(l_.mul(r, to.row_bytes), l_.mul(j, 2))),
                                  llvm::Align(2));
    });
  });
}

void KernelEmitter::store_pairs(mlir::Value v) {
  std::int64_t rows = extents(v)[0], terms = round_up(rows, 32), width = columns(v);
  auto [it, fresh] = pairs_.try_emplace(v);
  if (fresh) it->second = {allocate(terms / 2 * width * 4), l_.index(width * 4), 0};
  const Buffer to = it->second;
  SmallVector<int> interleave;
  for (int k = 0; k < 16; ++k) interleave.append({k, k + 16});
  auto put = [&](Ir pair, Ir j, Ir bfloats) {
    builder_.CreateAlignedStore(bfloats, l_.at(to.base, l_.add(l_.mul(pair, to.row_bytes), l_.mul(j, 4))),
                                llvm::Align(4));
  };
  l_.loop(l_.index(0), l_.index((rows + 1) / 2), 1, [&](Ir pair) {
    pace(16 * width / 16);
    l_.loop(l_.index(0), l_.index(width), 16, [&](Ir j) {
      Ir low = evaluate(v, {l_.mul(pair, 2), 1, j, 1})[0], high_row = l_.add(l_.mul(pair, 2), 1);
      Ir high = evaluate(v, {high_row, 1, j, 1})[0];
      if (rows % 2) high = builder_.CreateSelect(builder_.CreateICmpSLT(high_row, l_.index(rows)), high, l_.splat(0.0));
      put(pair, j, builder_.CreateShuffleVector(pack(low, high), interleave));
    });
  });
  l_.loop(l_.index((rows + 1) / 2), l_.index(terms / 2), 1, [&](Ir pair) {
    l_.loop(l_.index(0), l_.index(width), 16, [&](Ir j) {
      put(pair, j, llvm::Constant::getNullValue(llvm::FixedVectorType::get(builder_.getBFloatTy(), 32)));
    });
  });
}

// A form of pairs seen as 32-bit words is the transpose of the other form seen so.
void KernelEmitter::flip_words(mlir::Value v, Form from_form, Form to_form) {
  std::int64_t rows = extents(v)[0], cols = extents(v)[1];
  bool from_halves = from_form == halves;
  const Buffer from = from_halves ? stored(halves_, v) : stored(pairs_, v);
  // halves: a word is (row r, columns 2c and 2c+1); pairs: (rows 2r and 2r+1, column c).
  std::int64_t word_rows = from_halves ? round_up(rows, 16) : round_up(rows, 32) / 2;
  std::int64_t word_cols = from_halves ? round_up(cols, 32) / 2 : cols;
  std::int64_t width = round_up(word_rows, 16);
  auto& forms = to_form == pairs_flipped ? pairs_flipped_ : halves_flipped_;
  auto [it, fresh] = forms.try_emplace(v);
  if (fresh) it->second = {allocate(round_up(word_cols, 16) * width * 4), l_.index(width * 4), 0};
  const Buffer to = it->second;
  transpose_words(from, word_rows, word_cols, to);
}

// By gathers: a network of shuffles is some 5 % of gla's time faster and doubles the time to compile it.
void KernelEmitter::transpose_words(const Buffer& from, std::int64_t rows, std::int64_t columns, const Buffer& to) {
  l_.loop(l_.index(0), l_.index(rows), 16, [&](Ir r) {
    l_.loop(l_.index(0), l_.index(columns), 1, [&](Ir c) {
      Ir words = l_.load_strided(address(from, r, c, false), ElementType::f32, from.row_bytes, nullptr);
      l_.store(words, address(to, c, r, false), ElementType::f32, nullptr);
    });
  });
}

// acc[r][c] += a pair · b pair: one dot instruction takes two terms.
KernelEmitter::Grid KernelEmitter::multiply_pairs(OperandForm a, OperandForm c, const Block& block, Grid init,
                                                  bool negate, Ir terms) {
  auto& b = builder_;
  auto* bfloats = llvm::FixedVectorType::get(b.getBFloatTy(), 32);
  const Buffer left = a.transposed ? stored(pairs_, a.value) : stored(halves_, a.value);
  const Buffer right = c.transposed ? stored(pairs_flipped_, c.value) : stored(pairs_, c.value);
  if (init.empty()) init.assign(static_cast<std::size_t>(block.rows * block.vectors), l_.splat(0.0));
  if (negate)
    for (Ir& x : init) x = b.CreateFNeg(x);
  Ir count = b.CreateLShr(l_.add(terms, 1), l_.index(1));
  pace(block.rows * block.vectors * 32);
  Grid out = l_.loop(l_.index(0), count, 1, init, [&](Ir k, ArrayRef<Ir> acc) {
    SmallVector<Ir> columns, next;
    for (int v = 0; v < block.vectors; ++v)
      columns.push_back(
          b.CreateAlignedLoad(bfloats, address(right, k, l_.add(block.j, v * 16), false), llvm::Align(4)));
    for (int r = 0; r < block.rows; ++r) {
      Ir row = l_.add(block.i, r);
      Ir at = a.transposed ? address(left, k, row, false) : address(left, row, k, false);
      Ir word = b.CreateVectorSplat(16, b.CreateAlignedLoad(b.getInt32Ty(), at, llvm::Align(4)));
      Ir x = b.CreateBitCast(word, bfloats);
      for (int v = 0; v < block.vectors; ++v)
        next.push_back(b.CreateIntrinsic(
            llvm::Intrinsic::x86_avx512bf16_dpbf16ps_512, {},
            {acc[static_cast<std::size_t>(r * block.vectors + v)], x, columns[static_cast<std::size_t>(v)]}));
    }
    return next;
  });
  if (negate)
    for (Ir& x : out) x = b.CreateFNeg(x);
  return out;
}

void KernelEmitter::configure_tiles() {
  // Palette 1: eight tiles of 16 rows by 64 bytes.
  llvm::SmallVector<std::uint8_t> bytes(64, 0);
  bytes[0] = 1;
  for (std::size_t t = 0; t < 8; ++t) {
    bytes[16 + 2 * t] = 64;
    bytes[48 + t] = 16;
  }
  auto* data = llvm::ConstantDataArray::get(module_.getContext(), llvm::ArrayRef<std::uint8_t>(bytes));
  auto* global =
      new llvm::GlobalVariable(module_, data->getType(), true, llvm::GlobalValue::PrivateLinkage, data, "tiles");
  global->setAlignment(llvm::Align(64));
  builder_.CreateIntrinsic(llvm::Intrinsic::x86_ldtilecfg, {}, {global});
}

// Blocks of two by two tiles of results; tiles 0 to 3 accumulate, 4 and 5 hold rows of the left operand, 6 and 7
// columns of the right one. Results go to the value's buffer as float32.
void KernelEmitter::emit_tile_product(DotOp d) {
  auto& b = builder_;
  mlir::Value v = d.getTile();
  OperandForm a = operand_form(d.getA()), c = operand_form(d.getB());
  Buffer to = new_buffer(v, false);
  plain_[v] = to;
  const Buffer left = a.transposed ? stored(halves_flipped_, a.value) : stored(halves_, a.value);
  const Buffer right = c.transposed ? stored(pairs_flipped_, c.value) : stored(pairs_, c.value);
  std::int64_t rows = round_up(extents(v)[0], 16), cols = columns(v), terms = round_up(extents(d.getA())[1], 32);
  auto tile = [&](int t) { return b.getInt8(static_cast<std::uint8_t>(t)); };
  auto block = [&](Ir i, int down, Ir j, int across) {
    pace(2 * terms + 64);
    for (int m = 0; m < down; ++m)
      for (int n = 0; n < across; ++n) b.CreateIntrinsic(llvm::Intrinsic::x86_tilezero, {}, {tile(2 * m + n)});
    l_.loop(l_.index(0), l_.index(terms / 2), 16, [&](Ir k) {  // k counts pairs
      for (int m = 0; m < down; ++m)
        b.CreateIntrinsic(llvm::Intrinsic::x86_tileloadd64, {},
                          {tile(4 + m), address(left, l_.add(i, 16 * m), k, false), left.row_bytes});
      for (int n = 0; n < across; ++n)
        b.CreateIntrinsic(llvm::Intrinsic::x86_tileloadd64, {},
                          {tile(6 + n), address(right, k, l_.add(j, 16 * n), false), right.row_bytes});
      for (int m = 0; m < down; ++m)
        for (int n = 0; n < across; ++n)
          b.CreateIntrinsic(llvm::Intrinsic::x86_tdpbf16ps, {}, {tile(2 * m + n), tile(4 + m), tile(6 + n)});
    });
    for (int m = 0; m < down; ++m)
      for (int n = 0; n < across; ++n)
        b.CreateIntrinsic(llvm::Intrinsic::x86_tilestored64, {},
                          {tile(2 * m + n), address(to, l_.add(i, 16 * m), l_.add(j, 16 * n), false), to.row_bytes});
  };
  auto band = [&](Ir i, int down) {
    l_.loop(l_.index(0), l_.index(cols / 32 * 32), 32, [&](Ir j) { block(i, down, j, 2); });
    if (cols % 32) block(i, down, l_.index(cols / 32 * 32), 1);
  };
  l_.loop(l_.index(0), l_.index(rows / 32 * 32), 32, [&](Ir i) { band(i, 2); });
  if (rows % 32) band(l_.index(rows / 32 * 32), 1);
}

}  // namespace latile::host
