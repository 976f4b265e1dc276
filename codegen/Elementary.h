// Elementary functions in float32, for emitters of vectors and of single threads alike.
#pragma once
#include "llvm/IR/Intrinsics.h"
#include "llvm/IR/IRBuilder.h"
#include <cmath>
#include <limits>

namespace latile {

/// What follows from an emitter's own exponential. Emitter has the builder `b`, `exp2(x)`, and `number(c)`: a float
/// constant of the shape of its values, scalar or vector.
template <class Emitter> class Elementary {
public:
  using Ir = llvm::Value*;

  Ir fma(Ir a, Ir x, Ir c) const { return b().CreateIntrinsic(llvm::Intrinsic::fma, {c->getType()}, {a, x, c}); }

  /// Propagates NaN. Not llvm.maximum: its order of signed zeros costs three more instructions, and no use here depends
  /// on it.
  Ir maximum(Ir a, Ir x) const {
    Ir larger = b().CreateSelect(b().CreateFCmpUGE(a, x), a, x);
    return b().CreateSelect(b().CreateFCmpUNO(x, x), x, larger);
  }
  Ir minimum(Ir a, Ir x) const {
    Ir smaller = b().CreateSelect(b().CreateFCmpULE(a, x), a, x);
    return b().CreateSelect(b().CreateFCmpUNO(x, x), x, smaller);
  }

  /// Base-2 logarithm of normal positive x to 1e-7 relative, near 1 as well; 0 gives -inf, negative NaN.
  Ir log2(Ir x) const {
    // x = 2^e m with m in [sqrt(1/2), sqrt(2)); log2 m = s P(s^2) with s = (m - 1) / (m + 1).
    llvm::Type* integer = x->getType()->getWithNewType(b().getInt32Ty());
    auto whole = [&](std::uint64_t i) { return llvm::ConstantInt::get(integer, i); };
    Ir bits = b().CreateBitCast(x, integer);
    Ir e = b().CreateAShr(b().CreateSub(bits, whole(0x3f3504f3)), whole(23));
    Ir m = b().CreateBitCast(b().CreateSub(bits, b().CreateShl(e, whole(23))), x->getType());
    Ir s = b().CreateFDiv(b().CreateFSub(m, number(1.0)), b().CreateFAdd(m, number(1.0)));
    Ir z = b().CreateFMul(s, s);
    const double two_over_ln2 = 2.0 / std::log(2.0);
    Ir p = number(two_over_ln2 / 9);
    for (double c : {two_over_ln2 / 7, two_over_ln2 / 5, two_over_ln2 / 3, two_over_ln2}) p = fma(p, z, number(c));
    Ir y = fma(s, p, b().CreateSIToFP(e, x->getType()));
    constexpr double inf = std::numeric_limits<double>::infinity();
    y = b().CreateSelect(b().CreateFCmpOEQ(x, number(inf)), x, y);
    y = b().CreateSelect(b().CreateFCmpOEQ(x, number(0.0)), number(-inf), y);
    return b().CreateSelect(b().CreateFCmpULT(x, number(0.0)), number(std::nan("")), y);
  }

  Ir sigmoid(Ir x) const {
    Ir small = exp_minus_absolute(x);  // at most 1
    Ir whole = b().CreateFDiv(number(1.0), b().CreateFAdd(number(1.0), small));
    return b().CreateSelect(b().CreateFCmpUGE(x, number(0.0)), whole, b().CreateFMul(small, whole));
  }

  Ir softplus(Ir x) const {
    Ir y = exp_minus_absolute(x);
    // log1p(y) = ln(u) y / (u - 1) with u = fl(1 + y), which undoes the rounding of u; y itself where u is 1.
    Ir u = b().CreateFAdd(number(1.0), y);
    Ir d = b().CreateFSub(u, number(1.0));
    Ir ln = b().CreateFMul(log2(u), number(std::log(2.0)));
    Ir exact = b().CreateFCmpOEQ(d, number(0.0));
    Ir quotient = b().CreateFDiv(y, b().CreateSelect(exact, number(1.0), d));
    Ir tail = b().CreateSelect(exact, y, b().CreateFMul(ln, quotient));
    return b().CreateFAdd(maximum(x, number(0.0)), tail);
  }

  Ir tanh(Ir x) const {
    // tanh x = 1 - 2 sigmoid(-2x); near 0 that cancels, so the odd series takes over there.
    Ir far = b().CreateFSub(number(1.0), b().CreateFMul(number(2.0), sigmoid(b().CreateFMul(x, number(-2.0)))));
    Ir z = b().CreateFMul(x, x);
    Ir p = number(62.0 / 2835);
    for (double c : {-17.0 / 315, 2.0 / 15, -1.0 / 3, 1.0}) p = fma(p, z, number(c));
    Ir near = b().CreateFCmpOLT(absolute(x), number(0.25));
    return b().CreateSelect(near, b().CreateFMul(x, p), far);
  }

private:
  const Emitter& self() const { return static_cast<const Emitter&>(*this); }
  llvm::IRBuilder<>& b() const { return self().b; }
  Ir number(double c) const { return self().number(c); }
  Ir absolute(Ir x) const { return b().CreateIntrinsic(llvm::Intrinsic::fabs, {x->getType()}, {x}); }
  Ir exp_minus_absolute(Ir x) const { return self().exp2(b().CreateFMul(absolute(x), number(-1.0 / std::log(2.0)))); }
};

}  // namespace latile
