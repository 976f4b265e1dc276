#include "codegen/nvptx/NvptxInstructions.h"
#include "codegen/nvptx/Targets.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

namespace latile::nvptx {

using llvm::ArrayRef, llvm::SmallVector;
using simt::FreeOperand, simt::Operand, simt::Place, simt::PlaceIr, simt::Stored;

void NvptxInstructions::make_kernel(llvm::Function& f, int threads) const {
  f.setCallingConv(llvm::CallingConv::PTX_Kernel);
  f.addFnAttr("nvvm.reqntid", std::to_string(threads));
}

void NvptxInstructions::share_registers(llvm::Function& f, int blocks) const {
  f.addFnAttr("nvvm.minctasm", std::to_string(blocks));
}

simt::Ir NvptxInstructions::thread_number(const Thread& t) const {
  return t.call(llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x, {}, {});
}
simt::Ir NvptxInstructions::block_number(const Thread& t) const {
  return t.call(llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_x, {}, {});
}

void NvptxInstructions::barrier(const Thread& t) const {
  t.call(llvm::Intrinsic::nvvm_barrier_cta_sync_aligned_all, {}, {t.i32(0)});
}

simt::Ir NvptxInstructions::shuffle_xor(const Thread& t, Ir x, int mask) const {
  return t.call(x->getType()->isFloatTy() ? llvm::Intrinsic::nvvm_shfl_sync_bfly_f32
                                          : llvm::Intrinsic::nvvm_shfl_sync_bfly_i32,
                {}, {t.i32(-1), x, t.i32(mask), t.i32(31)});
}

simt::Ir NvptxInstructions::exp2(const Thread& t, Ir x) const {
  return t.call(llvm::Intrinsic::nvvm_ex2_approx_ftz, {t.b.getFloatTy()}, {x});
}

void NvptxInstructions::start_copy(const Thread& t, Ir shared, Ir global, Ir bytes) const {
  if (auto* whole = llvm::dyn_cast<llvm::ConstantInt>(bytes); whole && whole->equalsInt(16))
    t.call(llvm::Intrinsic::nvvm_cp_async_cg_shared_global_16, {}, {shared, global});
  else
    t.call(llvm::Intrinsic::nvvm_cp_async_cg_shared_global_16_s, {}, {shared, global, bytes});
}
void NvptxInstructions::wait_copies(const Thread& t) const { t.call(llvm::Intrinsic::nvvm_cp_async_wait_all, {}, {}); }

// Parts are words of tf32, of which the matrix unit drops the low 13 bits. All but the last are rounded, ties away from
// zero: so the second of two has at most 12 bits, of which at most the last is dropped. An infinity stays one; the
// rounding of what is no number may come out as one, but the last part of it is none.
SmallVector<simt::Ir> NvptxInstructions::split(const Thread& t, const Matrix& mi, Ir x, int parts) const {
  if (mi.operand != Operand::tf32) return Instructions::split(t, mi, x, parts);
  SmallVector<Ir> out;
  auto bits = [&](Ir y) { return t.b.CreateBitCast(y, t.b.getInt32Ty()); };
  for (int k = 0; k + 1 < parts; ++k) {
    out.push_back(t.b.CreateAnd(t.b.CreateAdd(bits(x), t.i32(0x1000)), t.i32(~0x1fff)));
    x = t.b.CreateFSub(x, t.b.CreateBitCast(out.back(), t.b.getFloatTy()));
  }
  out.push_back(bits(x));
  return out;
}

// Fragments are words: pairs of 16-bit elements, or elements of tf32.
simt::Fragment NvptxInstructions::pack(const Thread& t, const Matrix& mi, ArrayRef<Ir> elements) const {
  if (mi.operand == Operand::tf32) return Fragment(elements);
  Fragment words;
  for (std::size_t k = 0; k < elements.size(); k += 2) {
    Ir pair = llvm::PoisonValue::get(llvm::FixedVectorType::get(elements[k]->getType(), 2));
    for (unsigned i = 0; i < 2; ++i) pair = t.b.CreateInsertElement(pair, elements[k + i], std::uint64_t{i});
    words.push_back(t.b.CreateBitCast(pair, t.b.getInt32Ty()));
  }
  return words;
}

// Rows of 16 bytes: eight terms of 16 bits either way round; four of float32 only along a row of A or a column of B,
// and in their own order.
int NvptxInstructions::fragments_per_load(const Matrix& mi, FreeOperand side, bool transposed) const {
  const bool left = side == FreeOperand::a;
  if (mi.operand == Operand::tf32 && (left == transposed || !(mi.a == mma_m16n8k8_tf32().a))) return 0;
  return left ? 1 : 2;
}

// ldmatrix: four 8 × 8 matrices, of which lanes 8i … 8i + 7 give the rows of matrix i as they are stored.
SmallVector<simt::Fragment, 2> NvptxInstructions::load_fragments(const Thread& t, const Matrix& mi, FreeOperand side,
                                                                 const Stored& from, PlaceIr warp, Place corner) const {
  auto& b = t.b;
  Ir low3 = b.CreateAnd(t.lane, t.i32(7)), bit3 = b.CreateAnd(b.CreateLShr(t.lane, t.i32(3)), t.i32(1)),
     high = b.CreateLShr(t.lane, t.i32(4)), low4 = b.CreateAnd(t.lane, t.i32(15)), high8 = b.CreateShl(high, t.i32(3)),
     bit8 = b.CreateShl(bit3, t.i32(3));
  const bool left = side == FreeOperand::a, words_stored = mi.operand == Operand::tf32;
  PlaceIr at;
  if (left && from.transposed)
    at = {t.add(low3, high8), bit8};
  else if (left)
    at = {low4, words_stored ? b.CreateShl(high, t.i32(2)) : high8};
  else if (from.transposed)
    at = {t.add(low3, high8), words_stored ? b.CreateShl(bit3, t.i32(2)) : bit8};
  else
    at = {low4, high8};
  if (from.transposed) {
    std::swap(warp.row, warp.column);
    std::swap(corner.row, corner.column);
  }
  at = {t.add(warp.row, at.row), t.add(warp.column, at.column)};
  // The instruction gives operands as rows of A and columns of B: what is stored the other way round is transposed.
  Ir all = t.call(left == from.transposed ? llvm::Intrinsic::nvvm_ldmatrix_sync_aligned_m8n8_x4_trans_b16
                                          : llvm::Intrinsic::nvvm_ldmatrix_sync_aligned_m8n8_x4_b16,
                  {b.getPtrTy(simt::shared_space)}, {from.address(at, corner)});
  Fragment words;
  for (unsigned k = 0; k < 4; ++k) {
    Ir word = b.CreateExtractValue(all, k);
    words.push_back(words_stored ? b.CreateBitCast(word, b.getFloatTy()) : word);
  }
  if (left) return {words};
  return {Fragment{words[0], words[1]}, Fragment{words[2], words[3]}};
}

void NvptxInstructions::multiply(const Thread& t, const Matrix& mi, ArrayRef<Ir> a, ArrayRef<Ir> b,
                                 llvm::MutableArrayRef<Ir> c) const {
  const auto id = mi.operand == Operand::bf16  ? llvm::Intrinsic::nvvm_mma_m16n8k16_row_col_bf16
                  : mi.operand == Operand::f16 ? llvm::Intrinsic::nvvm_mma_m16n8k16_row_col_f32_f32
                                               : llvm::Intrinsic::nvvm_mma_m16n8k8_row_col_tf32;
  SmallVector<Ir> operands;
  for (ArrayRef<Ir> side : {a, b})
    for (Ir word : side)
      operands.push_back(
          mi.operand == Operand::f16 ? t.b.CreateBitCast(word, llvm::FixedVectorType::get(t.b.getHalfTy(), 2)) : word);
  operands.append(c.begin(), c.end());
  Ir d = t.call(id, {}, operands);
  for (unsigned k = 0; k < c.size(); ++k) c[k] = t.b.CreateExtractValue(d, k);
}

}  // namespace latile::nvptx
