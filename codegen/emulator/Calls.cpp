// Calls of target functions and intrinsics.
#include "codegen/emulator/Instrument.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/IntrinsicInst.h"
#include <cstddef>

namespace latile::emulator {

using Kind = Meaning::Kind;

void Instrumenter::call(llvm::CallInst& c) {
  llvm::Function* callee = c.getCalledFunction();
  if (auto* text = llvm::dyn_cast<llvm::InlineAsm>(c.getCalledOperand()))
    return fail(c, "assembly has no meaning here: " + text->getAsmString());
  if (!callee) return fail(c, "calls through pointers are not emulated");
  if (auto* m = llvm::dyn_cast<llvm::MemIntrinsic>(&c)) return move_bytes(*m);
  if (auto known = meaning(callee->getName())) {
    Ir value = meaning_of(c, *known);
    if (value) c.replaceAllUsesWith(value);
    if (failure_.empty()) c.eraseFromParent();
    return;
  }
  if (llvm::isa<llvm::DbgInfoIntrinsic>(c)) return;
  if (callee->isIntrinsic() && !callee->isTargetIntrinsic()) {
    // On a bfloat16 those of one operation are taken in float.
    bool narrow = c.getType()->getScalarType()->isBFloatTy();
    for (Ir x : c.args()) narrow |= x->getType()->getScalarType()->isBFloatTy();
    if (!narrow) return;
    switch (callee->getIntrinsicID()) {
    case llvm::Intrinsic::fabs:
    case llvm::Intrinsic::copysign:
    case llvm::Intrinsic::minnum:
    case llvm::Intrinsic::maxnum:
    case llvm::Intrinsic::minimum:
    case llvm::Intrinsic::maximum:
    case llvm::Intrinsic::sqrt: {
      llvm::SmallVector<Ir> wide;
      for (Ir x : c.args()) wide.push_back(from_bf16(x));
      c.replaceAllUsesWith(to_bf16(b_.CreateIntrinsic(callee->getIntrinsicID(), {wide[0]->getType()}, wide)));
      c.eraseFromParent();
      return;
    }
    default: return fail(c, callee->getName() + " of bfloat16 is not emulated");
    }
  }
  fail(c, "the emulator gives " + callee->getName() + " no meaning");
}

void Instrumenter::move_bytes(llvm::MemIntrinsic& m) {
  Ir bytes = b_.CreateZExtOrTrunc(m.getLength(), b_.getInt64Ty());
  granule_ = 1;
  if (auto* set = llvm::dyn_cast<llvm::MemSetInst>(&m))
    call_hook(Hook::fill, b_.getVoidTy(),
              {lane_, m.getDest(), b_.CreateZExt(set->getValue(), b_.getInt32Ty()), bytes, where(m)});
  else
    call_hook(Hook::copy, b_.getVoidTy(),
              {lane_, m.getDest(), llvm::cast<llvm::MemTransferInst>(m).getSource(), bytes, where(m)});
  m.eraseFromParent();
}

Ir Instrumenter::meaning_of(llvm::CallInst& c, const Meaning& m) {
  auto field = [&](std::size_t offset) { return b_.CreateZExtOrTrunc(lane_field(offset), c.getType()); };
  switch (m.kind) {
  case Kind::collective: collective(c, m); return nullptr;
  case Kind::barrier:
    if (c.arg_size() && !llvm::isa<llvm::ConstantInt>(c.getArgOperand(0)))
      fail(c, "the number of a barrier must be known");
    else if (c.arg_size() && !llvm::cast<llvm::ConstantInt>(c.getArgOperand(0))->isZero())
      fail(c, "barriers other than number 0 are not emulated");
    call_hook(Hook::barrier, b_.getVoidTy(), {lane_, call_site(c, Collective::count, 0)});
    return nullptr;
  case Kind::thread: return field(offsetof(Lane, thread));
  case Kind::lane: return field(offsetof(Lane, lane));
  case Kind::warp: return field(offsetof(Lane, warp));
  case Kind::threads: return field(offsetof(Lane, threads));
  case Kind::block: return field(offsetof(Lane, block));
  case Kind::blocks: return field(offsetof(Lane, blocks));
  case Kind::constant: return llvm::ConstantInt::get(c.getType(), m.variant);
  case Kind::start_copy: {
    Ir read = c.arg_size() > 2 ? c.getArgOperand(2) : b_.getInt32(m.variant);
    call_hook(Hook::start_copy, b_.getVoidTy(),
              {lane_, c.getArgOperand(0), c.getArgOperand(1), b_.getInt32(m.variant), read, where(c)});
    return nullptr;
  }
  case Kind::wait_all:
  case Kind::commit: call_hook(Hook::commit_copies, b_.getVoidTy(), {lane_}); [[fallthrough]];
  case Kind::wait:
    if (m.kind != Kind::commit)
      call_hook(Hook::wait_copies, b_.getVoidTy(),
                {lane_, m.kind == Kind::wait ? c.getArgOperand(0) : static_cast<Ir>(b_.getInt32(0))});
    return nullptr;
  case Kind::nothing: return nullptr;
  case Kind::math: return elementwise(c, m);
  default: return arithmetic(c, m);
  }
}

/// Each element through the hook.
Ir Instrumenter::elementwise(llvm::CallInst& c, const Meaning& m) {
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(c.getType());
  if (!vector) {
    llvm::SmallVector<Ir> operands(c.args());
    return call_hook(m.hook, c.getType(), operands);
  }
  Ir all = llvm::PoisonValue::get(vector);
  for (unsigned e = 0; e < vector->getNumElements(); ++e) {
    llvm::SmallVector<Ir> operands;
    for (Ir x : c.args()) operands.push_back(b_.CreateExtractElement(x, e));
    all = b_.CreateInsertElement(all, call_hook(m.hook, vector->getElementType(), operands), e);
  }
  return all;
}

Ir Instrumenter::arithmetic(llvm::CallInst& c, const Meaning& m) {
  llvm::Type* f = b_.getFloatTy();
  auto flushed = [&](Ir x) {
    if (!m.flush) return x;
    Ir size = b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x);
    Ir zero = b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, llvm::ConstantFP::get(f, 0.0), x);
    return b_.CreateSelect(b_.CreateFCmpOLT(size, llvm::ConstantFP::get(f, 0x1p-126)), zero, x);
  };
  auto x = [&](unsigned n) { return flushed(c.getArgOperand(n)); };
  auto pair = [&](llvm::Type* element, Ir low, Ir high) {
    Ir v = llvm::PoisonValue::get(llvm::FixedVectorType::get(element, 2));
    return b_.CreateInsertElement(b_.CreateInsertElement(v, low, std::uint64_t{0}), high, 1);
  };
  llvm::Type* half = b_.getHalfTy();
  switch (m.kind) {
  case Kind::pack_bf16: return pair(b_.getBFloatTy(), to_bf16(x(1)), to_bf16(x(0)));
  case Kind::pack_f16: return pair(half, b_.CreateFPTrunc(x(1), half), b_.CreateFPTrunc(x(0), half));
  case Kind::to_bf16: return b_.CreateBitCast(to_bf16(x(0)), c.getType());
  case Kind::to_f16: return b_.CreateBitCast(b_.CreateFPTrunc(x(0), half), c.getType());
  case Kind::to_tf32: return to_tf32(x(0));
  case Kind::reciprocal: return flushed(b_.CreateFDiv(llvm::ConstantFP::get(f, 1.0), x(0)));
  case Kind::root: return flushed(b_.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, x(0)));
  case Kind::inverse_root:
    return flushed(b_.CreateFDiv(llvm::ConstantFP::get(f, 1.0), b_.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, x(0))));
  case Kind::quotient: return flushed(b_.CreateFDiv(x(0), x(1)));
  case Kind::maximum: return b_.CreateMaxNum(x(0), x(1));
  case Kind::minimum: return b_.CreateMinNum(x(0), x(1));
  case Kind::fused: return flushed(b_.CreateIntrinsic(llvm::Intrinsic::fma, {f}, {x(0), x(1), x(2)}));
  case Kind::lanes_below: {
    // Bits of the mask, which covers lanes `variant` to `variant` + 31, below this lane.
    Ir lane = lane_field(offsetof(Lane, lane)), base = b_.getInt32(m.variant);
    Ir over = b_.CreateBinaryIntrinsic(llvm::Intrinsic::usub_sat, lane, base);
    Ir below = b_.CreateSelect(b_.CreateICmpUGE(over, b_.getInt32(32)), b_.getInt32(~0u),
                               b_.CreateSub(b_.CreateShl(b_.getInt32(1), b_.CreateAnd(over, 31)), b_.getInt32(1)));
    Ir bits = b_.CreateUnaryIntrinsic(llvm::Intrinsic::ctpop, b_.CreateAnd(c.getArgOperand(0), below));
    return b_.CreateAdd(bits, c.getArgOperand(1));
  }
  default: break;
  }
  fail(c, "this kind of arithmetic is not emulated");
  return nullptr;
}

/// Operands and results go through memory, in whole words one after another.
void Instrumenter::collective(llvm::CallInst& c, const Meaning& m) {
  const llvm::DataLayout& layout = module_.getDataLayout();
  auto word = [&](Ir base, unsigned at) { return b_.CreateConstInBoundsGEP1_32(b_.getInt32Ty(), base, at); };
  unsigned operands = m.operands ? m.operands : c.arg_size(), at = 0;
  for (unsigned n = operands; n < c.arg_size(); ++n)
    if (auto* zero = llvm::dyn_cast<llvm::ConstantInt>(c.getArgOperand(n)); !zero || !zero->isZero())
      return fail(c, c.getCalledFunction()->getName() + " is emulated without modifiers only");
  for (unsigned n = 0; n < operands; ++n) {
    Ir x = c.getArgOperand(n);
    if (x->getType()->isPointerTy() && x->getType()->getPointerAddressSpace() == 1)
      return fail(c, "its address must be one of shared memory");
    if (x->getType()->isIntegerTy() && x->getType()->getIntegerBitWidth() < 32) x = b_.CreateZExt(x, b_.getInt32Ty());
    b_.CreateAlignedStore(x, word(in_, at), llvm::Align(4));
    at += static_cast<unsigned>(layout.getTypeStoreSize(x->getType()).getFixedValue() + 3) / 4;
  }
  if (at > 64) return fail(c, "more than 64 words of operands");
  call_hook(Hook::collective, b_.getVoidTy(), {lane_, call_site(c, m.op, m.variant), in_, out_});
  llvm::Type* type = c.getType();
  if (type->isVoidTy()) return;
  unsigned from = 0;
  auto result = [&](llvm::Type* t) -> Ir {
    Ir place = word(out_, from);
    from += static_cast<unsigned>(layout.getTypeStoreSize(t).getFixedValue() + 3) / 4;
    if (t->isIntegerTy(1)) return b_.CreateICmpNE(b_.CreateLoad(b_.getInt32Ty(), place), b_.getInt32(0));
    return b_.CreateAlignedLoad(t, place, llvm::Align(4));
  };
  Ir value;
  if (auto* parts = llvm::dyn_cast<llvm::StructType>(type)) {
    value = llvm::PoisonValue::get(type);
    for (unsigned e = 0; e < parts->getNumElements(); ++e)
      value = b_.CreateInsertValue(value, result(parts->getElementType(e)), e);
  } else {
    value = result(type);
  }
  c.replaceAllUsesWith(value);
}

}  // namespace latile::emulator
