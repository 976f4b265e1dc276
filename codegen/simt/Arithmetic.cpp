// Float32 arithmetic of one thread. The formulas and their error bounds are those of the host (codegen/host/Lanes.cpp),
// but for the exponential, which is the hardware's.
#include "codegen/simt/Thread.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include <cmath>
#include <limits>

namespace latile::simt {

Ir Thread::fma(Ir a, Ir x, Ir c) const { return call(llvm::Intrinsic::fma, {c->getType()}, {a, x, c}); }

Ir Thread::maximum(Ir a, Ir x) const {
  Ir larger = b.CreateSelect(b.CreateFCmpUGE(a, x), a, x);
  return b.CreateSelect(b.CreateFCmpUNO(x, x), x, larger);
}
Ir Thread::minimum(Ir a, Ir x) const {
  Ir smaller = b.CreateSelect(b.CreateFCmpULE(a, x), a, x);
  return b.CreateSelect(b.CreateFCmpUNO(x, x), x, smaller);
}

Ir Thread::exp2(Ir x) const { return call(llvm::Intrinsic::nvvm_ex2_approx_ftz, {b.getFloatTy()}, {x}); }

Ir Thread::log2(Ir x) const {
  // x = 2^e m with m in [sqrt(1/2), sqrt(2)); log2 m = s P(s^2) with s = (m - 1) / (m + 1).
  llvm::Type* integer = b.getInt32Ty();
  Ir bits = b.CreateBitCast(x, integer);
  Ir e = b.CreateAShr(b.CreateSub(bits, i32(0x3f3504f3)), i32(23));
  Ir m = b.CreateBitCast(b.CreateSub(bits, b.CreateShl(e, i32(23))), b.getFloatTy());
  Ir s = b.CreateFDiv(b.CreateFSub(m, f32(1.0)), b.CreateFAdd(m, f32(1.0)));
  Ir z = b.CreateFMul(s, s);
  const double two_over_ln2 = 2.0 / std::log(2.0);
  Ir p = f32(two_over_ln2 / 9);
  for (double c : {two_over_ln2 / 7, two_over_ln2 / 5, two_over_ln2 / 3, two_over_ln2}) p = fma(p, z, f32(c));
  Ir y = fma(s, p, b.CreateSIToFP(e, b.getFloatTy()));
  constexpr double inf = std::numeric_limits<double>::infinity();
  y = b.CreateSelect(b.CreateFCmpOEQ(x, f32(inf)), x, y);
  y = b.CreateSelect(b.CreateFCmpOEQ(x, f32(0.0)), f32(-inf), y);
  return b.CreateSelect(b.CreateFCmpULT(x, f32(0.0)), f32(std::nan("")), y);
}

Ir Thread::sigmoid(Ir x) const {
  const double log2e = 1.0 / std::log(2.0);
  Ir small = exp2(b.CreateFMul(call(llvm::Intrinsic::fabs, {b.getFloatTy()}, {x}), f32(-log2e)));  // e^-|x|
  Ir whole = b.CreateFDiv(f32(1.0), b.CreateFAdd(f32(1.0), small));
  return b.CreateSelect(b.CreateFCmpUGE(x, f32(0.0)), whole, b.CreateFMul(small, whole));
}

Ir Thread::softplus(Ir x) const {
  const double log2e = 1.0 / std::log(2.0);
  Ir y = exp2(b.CreateFMul(call(llvm::Intrinsic::fabs, {b.getFloatTy()}, {x}), f32(-log2e)));
  // log1p(y) = ln(u) y / (u - 1) with u = fl(1 + y), which undoes the rounding of u; y itself where u is 1.
  Ir u = b.CreateFAdd(f32(1.0), y);
  Ir d = b.CreateFSub(u, f32(1.0));
  Ir ln = b.CreateFMul(log2(u), f32(std::log(2.0)));
  Ir exact = b.CreateFCmpOEQ(d, f32(0.0));
  Ir quotient = b.CreateFDiv(y, b.CreateSelect(exact, f32(1.0), d));
  Ir tail = b.CreateSelect(exact, y, b.CreateFMul(ln, quotient));
  return b.CreateFAdd(maximum(x, f32(0.0)), tail);
}

Ir Thread::tanh(Ir x) const {
  // tanh x = 1 - 2 sigmoid(-2x); near 0 that cancels, so the odd series takes over there.
  Ir far = b.CreateFSub(f32(1.0), b.CreateFMul(f32(2.0), sigmoid(b.CreateFMul(x, f32(-2.0)))));
  Ir z = b.CreateFMul(x, x);
  Ir p = f32(62.0 / 2835);
  for (double c : {-17.0 / 315, 2.0 / 15, -1.0 / 3, 1.0}) p = fma(p, z, f32(c));
  Ir near = b.CreateFCmpOLT(call(llvm::Intrinsic::fabs, {b.getFloatTy()}, {x}), f32(0.25));
  return b.CreateSelect(near, b.CreateFMul(x, p), far);
}

Ir Thread::convert(Ir x, llvm::Type* to) const {
  llvm::Type* from = x->getType();
  if (from == to) return x;
  if (from->isFloatTy()) return b.CreateFPTrunc(x, to);
  Ir wide = b.CreateFPExt(x, b.getFloatTy());
  return to->isFloatTy() ? wide : b.CreateFPTrunc(wide, to);
}

}  // namespace latile::simt
