#pragma once
#include "codegen/simt/Instructions.h"
#include "codegen/simt/Target.h"

namespace latile::amdgcn {

/// AMD's instructions: MFMA of gfx90a and later in waves of 64, WMMA of gfx12 in waves of 32.
class AmdgcnInstructions final : public simt::Instructions {
  using Ir = simt::Ir;
  using Thread = simt::Thread;
  using Fragment = simt::Fragment;
  using Matrix = simt::MatrixInstruction;

public:
  explicit AmdgcnInstructions(const simt::Target& target) : target_(target) {}

  void make_kernel(llvm::Function&, int threads) const override;
  Ir thread_number(const Thread&) const override;
  Ir block_number(const Thread&) const override;
  void barrier(const Thread&) const override;
  Ir shuffle_xor(const Thread&, Ir x, int mask) const override;
  Ir exp2(const Thread&, Ir x) const override;
  Fragment pack(const Thread&, const Matrix&, llvm::ArrayRef<Ir> elements) const override;
  void multiply(const Thread&, const Matrix&, llvm::ArrayRef<Ir> a, llvm::ArrayRef<Ir> b,
                llvm::MutableArrayRef<Ir> c) const override;

private:
  const simt::Target& target_;
};

}  // namespace latile::amdgcn
