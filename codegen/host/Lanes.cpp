#include "codegen/host/Lanes.h"
#include "llvm/IR/Intrinsics.h"
#include <cmath>
#include <limits>

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

Ir Lanes::fma(Ir a, Ir x, Ir c) const { return b.CreateIntrinsic(llvm::Intrinsic::fma, {c->getType()}, {a, x, c}); }

// Not llvm.maximum: its order of signed zeros costs three more instructions, and no use here depends on it.
Ir Lanes::maximum(Ir a, Ir x) const {
  Ir larger = b.CreateSelect(b.CreateFCmpUGE(a, x), a, x);
  return b.CreateSelect(b.CreateFCmpUNO(x, x), x, larger);
}
Ir Lanes::minimum(Ir a, Ir x) const {
  Ir smaller = b.CreateSelect(b.CreateFCmpULE(a, x), a, x);
  return b.CreateSelect(b.CreateFCmpUNO(x, x), x, smaller);
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

Ir Lanes::log2(Ir x) const {
  // x = 2^e m with m in [sqrt(1/2), sqrt(2)); log2 m = s P(s^2) with s = (m - 1) / (m + 1).
  Ir bits = b.CreateBitCast(x, ivec);
  Ir offset = llvm::ConstantInt::get(ivec, 0x3f3504f3);
  Ir shifted = b.CreateSub(bits, offset);
  Ir e = b.CreateAShr(shifted, llvm::ConstantInt::get(ivec, 23));
  Ir m = b.CreateBitCast(b.CreateSub(bits, b.CreateShl(e, llvm::ConstantInt::get(ivec, 23))), vec);
  Ir s = b.CreateFDiv(b.CreateFSub(m, splat(1.0)), b.CreateFAdd(m, splat(1.0)));
  Ir z = b.CreateFMul(s, s);
  const double two_over_ln2 = 2.0 / std::log(2.0);
  Ir p = splat(two_over_ln2 / 9);
  for (double c : {two_over_ln2 / 7, two_over_ln2 / 5, two_over_ln2 / 3, two_over_ln2}) p = fma(p, z, splat(c));
  Ir y = fma(s, p, b.CreateSIToFP(e, vec));
  constexpr double inf = std::numeric_limits<double>::infinity();
  y = b.CreateSelect(b.CreateFCmpOEQ(x, splat(inf)), x, y);
  y = b.CreateSelect(b.CreateFCmpOEQ(x, splat(0.0)), splat(-inf), y);
  return b.CreateSelect(b.CreateFCmpULT(x, splat(0.0)), splat(std::nan("")), y);
}

Ir Lanes::sigmoid(Ir x) const {
  const double log2e = 1.0 / std::log(2.0);
  Ir small = exp2(b.CreateFMul(call(llvm::Intrinsic::fabs, {x}), splat(-log2e)));  // e^-|x|, at most 1
  Ir whole = b.CreateFDiv(splat(1.0), b.CreateFAdd(splat(1.0), small));
  return b.CreateSelect(b.CreateFCmpUGE(x, splat(0.0)), whole, b.CreateFMul(small, whole));
}

Ir Lanes::softplus(Ir x) const {
  const double log2e = 1.0 / std::log(2.0);
  Ir y = exp2(b.CreateFMul(call(llvm::Intrinsic::fabs, {x}), splat(-log2e)));
  // log1p(y) = ln(u) y / (u - 1) with u = fl(1 + y), which undoes the rounding of u; y itself where u is 1.
  Ir u = b.CreateFAdd(splat(1.0), y);
  Ir d = b.CreateFSub(u, splat(1.0));
  Ir ln = b.CreateFMul(log2(u), splat(std::log(2.0)));
  Ir exact = b.CreateFCmpOEQ(d, splat(0.0));
  Ir quotient = b.CreateFDiv(y, b.CreateSelect(exact, splat(1.0), d));
  Ir tail = b.CreateSelect(exact, y, b.CreateFMul(ln, quotient));
  return b.CreateFAdd(maximum(x, splat(0.0)), tail);
}

Ir Lanes::tanh(Ir x) const {
  // tanh x = 1 - 2 sigmoid(-2x); near 0 that cancels, so the odd series takes over there.
  Ir far = b.CreateFSub(splat(1.0), b.CreateFMul(splat(2.0), sigmoid(b.CreateFMul(x, splat(-2.0)))));
  Ir z = b.CreateFMul(x, x);
  Ir p = splat(62.0 / 2835);
  for (double c : {-17.0 / 315, 2.0 / 15, -1.0 / 3, 1.0}) p = fma(p, z, splat(c));
  Ir near = b.CreateFCmpOLT(call(llvm::Intrinsic::fabs, {x}), splat(0.25));
  return b.CreateSelect(near, b.CreateFMul(x, p), far);
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
