// Emission of LLVM IR for float vectors of one width: loops, memory with masks, conversions, elementary functions.
#pragma once
#include "codegen/Elementary.h"
#include "compiler/Specialisation.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/IR/IRBuilder.h"

namespace latile::host {

using llvm::ArrayRef;
using llvm::SmallVector;
using Ir = llvm::Value*;

class Lanes : public Elementary<Lanes> {
public:
  Lanes(llvm::IRBuilder<>& builder, const HostIsa& isa);

  llvm::IRBuilder<>& b;
  const HostIsa& isa;
  const int width;  ///< floats of a vector
  llvm::FixedVectorType *vec, *ivec;

  Ir index(std::int64_t) const;
  Ir add(Ir, Ir) const;
  Ir add(Ir, std::int64_t) const;
  Ir mul(Ir, Ir) const;
  Ir mul(Ir, std::int64_t) const;
  Ir scalar(double) const;  ///< a float
  Ir splat(double) const;   ///< a vector of one constant
  Ir splat(Ir scalar) const;
  Ir number(double c) const { return splat(c); }
  Ir first_lane(Ir vector) const;
  /// base + bytes, an i8 address.
  Ir at(Ir base, Ir bytes) const;

  /// for (iv = lo; iv < hi; iv += step): a test before the first turn is emitted only where the bounds are unknown.
  SmallVector<Ir> loop(Ir lo, Ir hi, std::int64_t step, ArrayRef<Ir> init,
                       llvm::function_ref<SmallVector<Ir>(Ir iv, ArrayRef<Ir> carried)> body) const;
  void loop(Ir lo, Ir hi, std::int64_t step, llvm::function_ref<void(Ir iv)> body) const;
  void when(Ir condition, llvm::function_ref<void()> then) const;

  /// The first `count` lanes (count may be negative or above the width).
  Ir mask(Ir count) const;
  /// `width` elements of a type in memory as floats; lanes outside `mask` are zero and not read. Null: all.
  Ir load(Ir address, ElementType, Ir mask) const;
  /// The same with a stride in bytes between elements.
  Ir load_strided(Ir address, ElementType, Ir stride_bytes, Ir mask) const;
  Ir load_scalar(Ir address, ElementType) const;
  void store(Ir vector, Ir address, ElementType, Ir mask) const;
  /// One float. Not a store of one lane: LLVM 22 makes a 16-bit one of a constant mask and a truncation four bytes
  /// wide.
  void store_scalar(Ir x, Ir address, ElementType) const;
  void store_strided(Ir vector, Ir address, ElementType, Ir stride_bytes, Ir mask) const;

  /// 2^x to 1e-7 relative: exactly 0 at and far below -127, NaN stays NaN, +inf above 128.
  Ir exp2(Ir x) const;
  Ir sum(Ir vector) const;  ///< of the lanes, in a fixed order
  Ir largest(Ir vector) const;
  Ir call(llvm::Intrinsic::ID, ArrayRef<Ir>) const;

private:
  Ir from_memory(Ir bits, ElementType) const;
  Ir to_memory(Ir floats, ElementType) const;
  llvm::Type* memory_type(ElementType, bool vector) const;
};

}  // namespace latile::host
