#include "codegen/host/Lanes.h"
#include "llvm/IR/Intrinsics.h"

namespace latile::host {

Lanes::Lanes(llvm::IRBuilder<>& builder, const HostIsa& host_isa)
    : b(builder), isa(host_isa), width(host_isa.vector_floats()),
      vec(llvm::FixedVectorType::get(builder.getFloatTy(), static_cast<unsigned>(width))),
      ivec(llvm::FixedVectorType::get(builder.getInt32Ty(), static_cast<unsigned>(width))) {}

Ir Lanes::index(std::int64_t v) const { return b.getInt64(static_cast<std::uint64_t>(v)); }
Ir Lanes::add(Ir x, Ir y) const { return b.CreateAdd(x, y, "", false, true); }
Ir Lanes::add(Ir x, std::int64_t v) const { return v == 0 ? x : add(x, index(v)); }
Ir Lanes::mul(Ir x, Ir y) const { return b.CreateMul(x, y, "", false, true); }
Ir Lanes::mul(Ir x, std::int64_t v) const { return v == 1 ? x : mul(x, index(v)); }
Ir Lanes::scalar(double v) const { return llvm::ConstantFP::get(b.getFloatTy(), v); }
Ir Lanes::splat(double v) const { return llvm::ConstantFP::get(vec, v); }
Ir Lanes::splat(Ir s) const { return b.CreateVectorSplat(static_cast<unsigned>(width), s); }
Ir Lanes::first_lane(Ir v) const { return b.CreateExtractElement(v, std::uint64_t{0}); }
Ir Lanes::at(Ir base, Ir bytes) const { return b.CreateGEP(b.getInt8Ty(), base, bytes); }
Ir Lanes::call(llvm::Intrinsic::ID id, ArrayRef<Ir> args) const {
  return b.CreateIntrinsic(id, {args.front()->getType()}, args);
}

SmallVector<Ir> Lanes::loop(Ir lo, Ir hi, std::int64_t step, ArrayRef<Ir> init,
                            llvm::function_ref<SmallVector<Ir>(Ir, ArrayRef<Ir>)> body) const {
  auto* clo = llvm::dyn_cast<llvm::ConstantInt>(lo);
  auto* chi = llvm::dyn_cast<llvm::ConstantInt>(hi);
  if (clo && chi) {
    std::int64_t turns = (chi->getSExtValue() - clo->getSExtValue() + step - 1) / step;
    if (turns <= 0) return SmallVector<Ir>(init);
    if (turns == 1) return body(lo, init);
  }
  llvm::Function* f = b.GetInsertBlock()->getParent();
  llvm::LLVMContext& context = b.getContext();
  llvm::BasicBlock* head = b.GetInsertBlock();
  llvm::BasicBlock* turn = llvm::BasicBlock::Create(context, "turn", f);
  llvm::BasicBlock* exit = llvm::BasicBlock::Create(context, "exit", f);
  bool guarded = !(clo && chi);
  if (guarded)
    b.CreateCondBr(b.CreateICmpSLT(lo, hi), turn, exit);
  else
    b.CreateBr(turn);

  b.SetInsertPoint(turn);
  llvm::PHINode* iv = b.CreatePHI(b.getInt64Ty(), 2);
  iv->addIncoming(lo, head);
  SmallVector<llvm::PHINode*> phis;
  SmallVector<Ir> carried;
  for (Ir v : init) {
    phis.push_back(b.CreatePHI(v->getType(), 2));
    phis.back()->addIncoming(v, head);
    carried.push_back(phis.back());
  }
  SmallVector<Ir> next = body(iv, carried);
  Ir following = add(iv, step);
  llvm::BasicBlock* latch = b.GetInsertBlock();
  iv->addIncoming(following, latch);
  for (std::size_t k = 0; k < phis.size(); ++k) phis[k]->addIncoming(next[k], latch);
  b.CreateCondBr(b.CreateICmpSLT(following, hi), turn, exit);

  b.SetInsertPoint(exit);
  SmallVector<Ir> results;
  for (std::size_t k = 0; k < phis.size(); ++k) {
    if (!guarded) {
      results.push_back(next[k]);
      continue;
    }
    llvm::PHINode* out = b.CreatePHI(next[k]->getType(), 2);
    out->addIncoming(init[k], head);
    out->addIncoming(next[k], latch);
    results.push_back(out);
  }
  return results;
}

void Lanes::loop(Ir lo, Ir hi, std::int64_t step, llvm::function_ref<void(Ir)> body) const {
  loop(lo, hi, step, {}, [&](Ir iv, ArrayRef<Ir>) {
    body(iv);
    return SmallVector<Ir>();
  });
}

void Lanes::when(Ir condition, llvm::function_ref<void()> then) const {
  llvm::Function* f = b.GetInsertBlock()->getParent();
  auto* yes = llvm::BasicBlock::Create(b.getContext(), "then", f);
  auto* after = llvm::BasicBlock::Create(b.getContext(), "after", f);
  b.CreateCondBr(condition, yes, after);
  b.SetInsertPoint(yes);
  then();
  b.CreateBr(after);
  b.SetInsertPoint(after);
}

Ir Lanes::mask(Ir count) const {
  if (auto* known = llvm::dyn_cast<llvm::ConstantInt>(count)) {
    SmallVector<llvm::Constant*> kept;
    for (int k = 0; k < width; ++k) kept.push_back(b.getInt1(k < known->getSExtValue()));
    return llvm::ConstantVector::get(kept);
  }
  Ir low = b.CreateBinaryIntrinsic(llvm::Intrinsic::smax, count, index(0));
  low = b.CreateBinaryIntrinsic(llvm::Intrinsic::smin, low, index(width));
  SmallVector<llvm::Constant*> lanes;
  for (int k = 0; k < width; ++k) lanes.push_back(b.getInt32(static_cast<std::uint32_t>(k)));
  Ir bound = splat(b.CreateTrunc(low, b.getInt32Ty()));
  return b.CreateICmpULT(llvm::ConstantVector::get(lanes), bound);
}

llvm::Type* Lanes::memory_type(ElementType t, bool vector) const {
  llvm::Type* e = t == ElementType::f32   ? b.getFloatTy()
                  : t == ElementType::f16 ? b.getHalfTy()
                                          : static_cast<llvm::Type*>(b.getInt16Ty());
  return vector ? llvm::FixedVectorType::get(e, static_cast<unsigned>(width)) : e;
}

Ir Lanes::from_memory(Ir x, ElementType t) const {
  if (t == ElementType::f32) return x;
  bool vector = x->getType()->isVectorTy();
  llvm::Type* f = vector ? static_cast<llvm::Type*>(vec) : b.getFloatTy();
  if (t == ElementType::f16) return b.CreateFPExt(x, f);
  llvm::Type* i = vector ? static_cast<llvm::Type*>(ivec) : b.getInt32Ty();
  return b.CreateBitCast(b.CreateShl(b.CreateZExt(x, i), llvm::ConstantInt::get(i, 16)), f);
}

// bfloat16 by integer arithmetic (round to nearest even, NaN kept): LLVM calls a library for it below AVX512-BF16.
Ir Lanes::to_memory(Ir x, ElementType t) const {
  if (t == ElementType::f32) return x;
  bool vector = x->getType()->isVectorTy();
  if (t == ElementType::f16) return b.CreateFPTrunc(x, memory_type(t, vector));
  llvm::Type* i = vector ? static_cast<llvm::Type*>(ivec) : b.getInt32Ty();
  llvm::Type* h = memory_type(t, vector);
  if (vector && (isa.level == "avx512bf16" || isa.level == "amx"))
    return b.CreateBitCast(
        b.CreateFPTrunc(x, llvm::FixedVectorType::get(b.getBFloatTy(), static_cast<unsigned>(width))), h);
  Ir bits = b.CreateBitCast(x, i);
  Ir odd = b.CreateAnd(b.CreateLShr(bits, llvm::ConstantInt::get(i, 16)), llvm::ConstantInt::get(i, 1));
  Ir rounded = b.CreateLShr(b.CreateAdd(bits, b.CreateAdd(odd, llvm::ConstantInt::get(i, 0x7fff))),
                            llvm::ConstantInt::get(i, 16));
  Ir nan = b.CreateOr(b.CreateLShr(bits, llvm::ConstantInt::get(i, 16)), llvm::ConstantInt::get(i, 0x40));
  return b.CreateTrunc(b.CreateSelect(b.CreateFCmpUNO(x, x), nan, rounded), h);
}

Ir Lanes::load(Ir address, ElementType t, Ir lanes) const {
  llvm::Type* type = memory_type(t, true);
  llvm::Align align(size(t));
  Ir x = lanes ? b.CreateMaskedLoad(type, address, align, lanes, llvm::Constant::getNullValue(type))
               : static_cast<Ir>(b.CreateAlignedLoad(type, address, align));
  return from_memory(x, t);
}

Ir Lanes::load_scalar(Ir address, ElementType t) const {
  return from_memory(b.CreateAlignedLoad(memory_type(t, false), address, llvm::Align(size(t))), t);
}

static Ir lane_addresses(const Lanes& l, Ir address, Ir stride_bytes) {
  SmallVector<llvm::Constant*> lanes;
  for (int k = 0; k < l.width; ++k) lanes.push_back(l.b.getInt64(static_cast<std::uint64_t>(k)));
  Ir offsets = l.b.CreateMul(llvm::ConstantVector::get(lanes),
                             l.b.CreateVectorSplat(static_cast<unsigned>(l.width), stride_bytes));
  return l.b.CreateGEP(l.b.getInt8Ty(), address, offsets);
}

Ir Lanes::load_strided(Ir address, ElementType t, Ir stride_bytes, Ir lanes) const {
  llvm::Type* type = memory_type(t, true);
  Ir all =
      lanes ? lanes
            : llvm::Constant::getAllOnesValue(llvm::FixedVectorType::get(b.getInt1Ty(), static_cast<unsigned>(width)));
  Ir x = b.CreateMaskedGather(type, lane_addresses(*this, address, stride_bytes), llvm::Align(size(t)), all,
                              llvm::Constant::getNullValue(type));
  return from_memory(x, t);
}

void Lanes::store(Ir v, Ir address, ElementType t, Ir lanes) const {
  // A masked store of one known lane of 16 bits becomes one of 32 in LLVM 22's instruction selection, and would write
  // over the element behind it: it is made a store of that one element here.
  auto* known = lanes ? llvm::dyn_cast<llvm::Constant>(lanes) : nullptr;
  if (known && known->getAggregateElement(0u)->isOneValue() && known->getAggregateElement(1u)->isNullValue())
    return store_scalar(first_lane(v), address, t);
  Ir x = to_memory(v, t);
  if (lanes)
    b.CreateMaskedStore(x, address, llvm::Align(size(t)), lanes);
  else
    b.CreateAlignedStore(x, address, llvm::Align(size(t)));
}

void Lanes::store_scalar(Ir x, Ir address, ElementType t) const {
  b.CreateAlignedStore(to_memory(x, t), address, llvm::Align(size(t)));
}

void Lanes::store_strided(Ir v, Ir address, ElementType t, Ir stride_bytes, Ir lanes) const {
  Ir all =
      lanes ? lanes
            : llvm::Constant::getAllOnesValue(llvm::FixedVectorType::get(b.getInt1Ty(), static_cast<unsigned>(width)));
  b.CreateMaskedScatter(to_memory(v, t), lane_addresses(*this, address, stride_bytes), llvm::Align(size(t)), all);
}

Ir Lanes::exp2(Ir x) const {
  // fcmp-select with the constant second keeps a NaN x: it is one vmaxps with x as the second operand.
  Ir floor = splat(-127.0), ceiling = splat(128.0);
  x = b.CreateSelect(b.CreateFCmpOGT(floor, x), floor, x);
  x = b.CreateSelect(b.CreateFCmpOLT(ceiling, x), ceiling, x);
  Ir n = call(llvm::Intrinsic::roundeven, {x});
  Ir r = b.CreateFSub(x, n);
  Ir p = splat(1.535336188319500e-4);
  for (double c : {1.339887440266574e-3, 9.618437357674640e-3, 5.550332471162809e-2, 2.402264791363012e-1,
                   6.931472028550421e-1, 1.0})
    p = fma(p, r, splat(c));
  // Frozen, so that the exponent of a NaN is some integer; p is NaN then and stays so.
  Ir i = b.CreateFreeze(b.CreateFPToSI(n, ivec));
  Ir bits = b.CreateShl(b.CreateAdd(i, llvm::ConstantInt::get(ivec, 127)), llvm::ConstantInt::get(ivec, 23));
  return b.CreateFMul(p, b.CreateBitCast(bits, vec));
}

Ir Lanes::sum(Ir v) const {
  for (int half = width / 2; half >= 1; half /= 2) {
    SmallVector<int> low, high;
    for (int k = 0; k < half; ++k) {
      low.push_back(k);
      high.push_back(k + half);
    }
    v = b.CreateFAdd(b.CreateShuffleVector(v, low), b.CreateShuffleVector(v, high));
  }
  return first_lane(v);
}

Ir Lanes::largest(Ir v) const {
  for (int half = width / 2; half >= 1; half /= 2) {
    SmallVector<int> low, high;
    for (int k = 0; k < half; ++k) {
      low.push_back(k);
      high.push_back(k + half);
    }
    v = maximum(b.CreateShuffleVector(v, low), b.CreateShuffleVector(v, high));
  }
  return first_lane(v);
}

}  // namespace latile::host
