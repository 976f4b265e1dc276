#pragma once
#include "codegen/simt/Instructions.h"

namespace latile::nvptx {

/// NVIDIA's instructions from sm_80 on.
class NvptxInstructions final : public simt::Instructions {
  using Ir = simt::Ir;
  using Thread = simt::Thread;
  using Fragment = simt::Fragment;
  using Matrix = simt::MatrixInstruction;

public:
  void make_kernel(llvm::Function&, int threads) const override;
  void share_registers(llvm::Function&, int blocks) const override;
  Ir thread_number(const Thread&) const override;
  Ir block_number(const Thread&) const override;
  void barrier(const Thread&) const override;
  Ir shuffle_xor(const Thread&, Ir x, int mask) const override;
  Ir exp2(const Thread&, Ir x) const override;
  void start_copy(const Thread&, Ir shared, Ir global, Ir bytes) const override;
  void wait_copies(const Thread&) const override;
  llvm::SmallVector<Ir> split(const Thread&, const Matrix&, Ir x, int parts) const override;
  Fragment pack(const Thread&, const Matrix&, llvm::ArrayRef<Ir> elements) const override;
  int fragments_per_load(const Matrix&, simt::FreeOperand side, bool transposed) const override;
  llvm::SmallVector<Fragment, 2> load_fragments(const Thread&, const Matrix&, simt::FreeOperand side,
                                                const simt::Stored&, simt::PlaceIr warp,
                                                simt::Place corner) const override;
  void multiply(const Thread&, const Matrix&, llvm::ArrayRef<Ir> a, llvm::ArrayRef<Ir> b,
                llvm::MutableArrayRef<Ir> c) const override;
};

}  // namespace latile::nvptx
