// What one GPU can do, as data: the lowering and the choice of layouts ask nothing else about a target but how to do it
// (Instructions).
#pragma once
#include "codegen/simt/Fragments.h"
#include <string_view>

namespace latile::simt {

/// Whose instructions a target has, and so which of LLVM's backends makes its code.
enum class Family : std::uint8_t { nvptx, amdgcn };

struct Target {
  std::string name;  ///< "sm_80", "gfx90a"
  Family family = Family::nvptx;
  int lanes = 32;            ///< lanes of a warp (wavefront, subgroup), a power of two up to 64
  int most_threads = 1024;   ///< of a block
  int most_registers = 255;  ///< 32-bit registers of a thread
  int registers = 0;         ///< of a multiprocessor, where blocks can be made to share them; 0: they cannot
  /// Registers that a kernel with decayed scores can be held to, for blocks side by side, without spills as its
  /// assembler was seen to make code; 0: none known.
  int registers_of_scores = 0;
  std::size_t shared_limit =
      0;  ///< bytes of shared memory a block may use; a device may have more than its architecture promises
  std::vector<MatrixProduct> products;  ///< of f16, bf16 and f32; all with the same accumulator
  /// Which operand of the next product an accumulator is without any exchange between lanes.
  FreeOperand free_operand = FreeOperand::none;
  bool has_async_copy = false;  ///< copies from global to shared memory that pass no register
  int vector_bytes = 16;        ///< most bytes one lane loads or stores at once

  /// How operands of a type (f16, bf16 or f32) are multiplied.
  const MatrixProduct& product(Operand type) const;
};

}  // namespace latile::simt
