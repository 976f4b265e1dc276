// What the lowering asks of a GPU's instruction set. With Target, which is data, it is all that codegen/simt knows of a
// GPU; codegen/nvptx and codegen/amdgcn answer.
#pragma once
#include "codegen/simt/Fragments.h"
#include "codegen/simt/Thread.h"
#include "llvm/IR/Function.h"

namespace latile::simt {

/// Address spaces in LLVM IR; its backends for GPUs number them alike.
inline constexpr unsigned global_space = 1, shared_space = 3;

/// A fragment of an operand in a lane's registers, as the instruction takes it.
using Fragment = SmallVector<Ir, 4>;

/// An operand of a product in shared memory.
struct Stored {
  /// Address of an element by the row and column as they are stored; `more` is a constant part of both.
  llvm::function_ref<Ir(PlaceIr at, Place more)> address;
  bool transposed = false;  ///< the operand's rows are stored as columns
};

/// Each function emits code at the builder of a thread.
class Instructions {
public:
  virtual ~Instructions() = default;

  /// Calling convention and attributes of a kernel for blocks of so many threads.
  virtual void make_kernel(llvm::Function&, int threads) const = 0;
  /// At least so many blocks of a kernel shall fit on a multiprocessor at once by their registers.
  virtual void share_registers(llvm::Function&, int blocks) const;
  /// Number of the thread in its block, and of the block in its launch: 32 bits.
  virtual Ir thread_number(const Thread&) const = 0;
  virtual Ir block_number(const Thread&) const = 0;

  /// All threads of the block meet; what one wrote to shared memory before, all see after.
  virtual void barrier(const Thread&) const = 0;

  /// A 32-bit word (i32 or float) from lane (own xor mask); all lanes of the warp take part.
  virtual Ir shuffle_xor(const Thread&, Ir x, int mask) const = 0;

  /// 2^x in float32 within 2 ulp; subnormal results may be zero.
  virtual Ir exp2(const Thread&, Ir x) const = 0;

  // Copies that pass no register. Called only where Target::has_async_copy.

  /// 16 bytes from global to shared memory; the source gives only the first `bytes` (0 to 16, i32), the rest is zero.
  virtual void start_copy(const Thread&, Ir shared, Ir global, Ir bytes) const;
  /// Until those that this thread started have arrived.
  virtual void wait_copies(const Thread&) const;

  // Products of fragments

  /// A float32 as a sum of `parts` elements of the instruction's type, the largest first. Here: of a type of 16 bits.
  virtual SmallVector<Ir> split(const Thread&, const MatrixInstruction&, Ir x, int parts) const;
  /// A fragment from its elements in the order of the layout's registers.
  virtual Fragment pack(const Thread&, const MatrixInstruction&, ArrayRef<Ir> elements) const = 0;
  /// How many neighbouring fragments `load_fragments` loads of an operand, stored transposed or not; 0: fragments are
  /// loaded element by element and packed.
  virtual int fragments_per_load(const MatrixInstruction&, FreeOperand side, bool transposed) const;
  /// Fragments of an operand side by side, along rows of A and columns of B; the first one's element (0, 0) is at
  /// `warp` + `corner`. Elements that the instruction takes in parts come as they are stored, one in each register.
  virtual SmallVector<Fragment, 2> load_fragments(const Thread&, const MatrixInstruction&, FreeOperand side,
                                                  const Stored&, PlaceIr warp, Place corner) const;
  /// c += a · b; c: the accumulator's registers.
  virtual void multiply(const Thread&, const MatrixInstruction&, ArrayRef<Ir> a, ArrayRef<Ir> b,
                        llvm::MutableArrayRef<Ir> c) const = 0;
};

}  // namespace latile::simt
