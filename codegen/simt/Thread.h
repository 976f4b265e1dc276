// Emission of LLVM IR for one thread of a block: who it is, what it exchanges with others, scalar arithmetic, control
// flow.
#pragma once
#include "codegen/Elementary.h"
#include "codegen/simt/Layout.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/IR/IRBuilder.h"

namespace latile::simt {

using llvm::ArrayRef;
using llvm::SmallVector;
using Ir = llvm::Value*;

/// Row and column of an element, 32-bit integers.
struct PlaceIr {
  Ir row, column;
};

class Instructions;

class Thread : public Elementary<Thread> {
public:
  /// `lanes` of a warp, `threads` of a block.
  Thread(llvm::IRBuilder<>& builder, const Instructions& instructions, int lanes, int threads)
      : b(builder), isa(instructions), lanes(lanes), threads(threads) {}
  /// Reads the thread's number at the builder's place, which must dominate everything else: the entry block.
  void begin();

  llvm::IRBuilder<>& b;
  const Instructions& isa;
  const int lanes, threads;
  int warps() const { return threads / lanes; }
  Ir tid = nullptr, lane = nullptr, warp = nullptr;  ///< 32 bits; lane = tid mod lanes

  // Integers; constants are folded
  Ir i32(std::int64_t) const;
  Ir i64(std::int64_t) const;
  Ir f32(double) const;
  Ir number(double c) const { return f32(c); }
  Ir add(Ir, Ir) const;
  Ir add(Ir, std::int64_t) const;
  Ir mul(Ir, Ir) const;
  Ir mul(Ir, std::int64_t) const;
  Ir div(Ir, std::int64_t) const;  ///< of a non-negative number
  Ir rem(Ir, std::int64_t) const;
  Ir wide(Ir) const;  ///< 32 to 64 bits, signed
  Ir at(Ir pointer, Ir bytes) const;

  /// What lane and warp contribute to a place of a separable layout: its place is this plus `layout.at(reg, 0, 0)`.
  PlaceIr place(const Layout&);
  /// What the lane contributes to the row (columns: to the column) of a place of a fragment, computed where it is used:
  /// few instructions.
  Ir place_of_lane(const Layout& fragment, Axis) const;
  /// Whether the thread is the first of those that hold the same elements; null: all are.
  Ir is_first_replica(const Layout&);

  /// All threads of the block; what was written to shared memory before is seen after.
  void barrier();
  /// The value of lane (lane xor mask), any type of 1, 16 or 32 bits.
  Ir shuffle_xor(Ir x, int mask) const;

  /// for (iv = lo; iv < hi; iv += step) with carried values; bounds of one integer type.
  SmallVector<Ir> loop(Ir lo, Ir hi, std::int64_t step, ArrayRef<Ir> init,
                       llvm::function_ref<SmallVector<Ir>(Ir iv, ArrayRef<Ir> carried)> body) const;
  void loop(Ir lo, Ir hi, std::int64_t step, llvm::function_ref<void(Ir iv)> body) const;
  /// Elements `from, from + threads, …` below `count`, one each for every thread.
  void spread(std::int64_t count, llvm::function_ref<void(Ir element)> body) const;
  void when(Ir condition, llvm::function_ref<void()> then) const;
  void either(Ir condition, llvm::function_ref<void()> then, llvm::function_ref<void()> otherwise) const;
  /// Values that both branches give.
  SmallVector<Ir> choose(Ir condition, llvm::function_ref<SmallVector<Ir>()> then,
                         llvm::function_ref<SmallVector<Ir>()> otherwise) const;

  // Float32 arithmetic
  Ir exp2(Ir) const;  ///< 2 ulp; the hardware's
  /// Float types into one another, rounding to nearest.
  Ir convert(Ir x, llvm::Type* to) const;
  Ir call(llvm::Intrinsic::ID, ArrayRef<llvm::Type*> overloads, ArrayRef<Ir>) const;

private:
  Ir digit(Ir index, const Digit&) const;
  std::vector<std::pair<Layout, PlaceIr>> places_;
  llvm::BasicBlock* entry_ = nullptr;
};

/// Bytes of an element in memory.
int bytes_of(llvm::Type*);

}  // namespace latile::simt
