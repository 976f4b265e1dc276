#include "codegen/amdgcn/AmdgcnInstructions.h"
#include "llvm/IR/IntrinsicsAMDGPU.h"

namespace latile::amdgcn {

using llvm::ArrayRef, llvm::SmallVector;
using simt::Operand;

void AmdgcnInstructions::make_kernel(llvm::Function& f, int threads) const {
  f.setCallingConv(llvm::CallingConv::AMDGPU_KERNEL);
  f.addFnAttr("target-cpu", target_.name);
  f.addFnAttr("target-features", target_.lanes == 32 ? "+wavefrontsize32" : "+wavefrontsize64");
  f.addFnAttr("amdgpu-flat-work-group-size", std::to_string(threads) + "," + std::to_string(threads));
  f.addFnAttr("uniform-work-group-size", "true");
}

simt::Ir AmdgcnInstructions::thread_number(const Thread& t) const {
  return t.call(llvm::Intrinsic::amdgcn_workitem_id_x, {}, {});
}
simt::Ir AmdgcnInstructions::block_number(const Thread& t) const {
  return t.call(llvm::Intrinsic::amdgcn_workgroup_id_x, {}, {});
}

// The barrier orders no memory of its own.
void AmdgcnInstructions::barrier(const Thread& t) const {
  const llvm::SyncScope::ID block = t.b.getContext().getOrInsertSyncScopeID("workgroup");
  t.b.CreateFence(llvm::AtomicOrdering::Release, block);
  t.call(llvm::Intrinsic::amdgcn_s_barrier, {}, {});
  t.b.CreateFence(llvm::AtomicOrdering::Acquire, block);
}

// ds_bpermute takes the lane as the address of its word.
simt::Ir AmdgcnInstructions::shuffle_xor(const Thread& t, Ir x, int mask) const {
  Ir from = t.b.CreateShl(t.b.CreateXor(t.lane, t.i32(mask)), t.i32(2));
  Ir word = t.call(llvm::Intrinsic::amdgcn_ds_bpermute, {}, {from, t.b.CreateBitCast(x, t.b.getInt32Ty())});
  return t.b.CreateBitCast(word, x->getType());
}

simt::Ir AmdgcnInstructions::exp2(const Thread& t, Ir x) const {
  return t.call(llvm::Intrinsic::amdgcn_exp2, {t.b.getFloatTy()}, {x});
}

static simt::Ir vector_of(const simt::Thread& t, ArrayRef<simt::Ir> elements) {
  simt::Ir v = llvm::PoisonValue::get(
      llvm::FixedVectorType::get(elements[0]->getType(), static_cast<unsigned>(elements.size())));
  for (std::size_t k = 0; k < elements.size(); ++k) v = t.b.CreateInsertElement(v, elements[k], k);
  return v;
}

// A vector of 16-bit elements, bfloat16 as integers; float32 one by one, an element for each instruction.
simt::Fragment AmdgcnInstructions::pack(const Thread& t, const Matrix& mi, ArrayRef<Ir> elements) const {
  if (mi.operand == Operand::f32) return Fragment(elements);
  Ir v = vector_of(t, elements);
  if (mi.operand == Operand::bf16)
    v = t.b.CreateBitCast(v, llvm::FixedVectorType::get(t.b.getInt16Ty(), static_cast<unsigned>(elements.size())));
  return {v};
}

void AmdgcnInstructions::multiply(const Thread& t, const Matrix& mi, ArrayRef<Ir> a, ArrayRef<Ir> b,
                                  llvm::MutableArrayRef<Ir> c) const {
  Ir d = vector_of(t, c);
  for (auto [x, y] : llvm::zip(a, b)) {
    if (target_.lanes == 32) {
      d = t.call(mi.operand == Operand::bf16 ? llvm::Intrinsic::amdgcn_wmma_f32_16x16x16_bf16
                                             : llvm::Intrinsic::amdgcn_wmma_f32_16x16x16_f16,
                 {d->getType(), x->getType()}, {x, y, d});
      continue;
    }
    const auto id = mi.operand == Operand::bf16  ? llvm::Intrinsic::amdgcn_mfma_f32_16x16x16bf16_1k
                    : mi.operand == Operand::f16 ? llvm::Intrinsic::amdgcn_mfma_f32_16x16x16f16
                                                 : llvm::Intrinsic::amdgcn_mfma_f32_16x16x4f32;
    d = t.call(id, {}, {x, y, d, t.i32(0), t.i32(0), t.i32(0)});
  }
  for (std::size_t k = 0; k < c.size(); ++k) c[k] = t.b.CreateExtractElement(d, k);
}

}  // namespace latile::amdgcn
