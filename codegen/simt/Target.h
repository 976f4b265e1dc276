// What one GPU can do, as data: the lowering and the choice of layouts ask nothing else about a target.
#pragma once
#include "codegen/simt/Fragments.h"
#include <string_view>

namespace latile::simt {

struct Target {
  std::string name;          ///< "sm_80", "gfx90a"
  int lanes = 32;            ///< lanes of a warp (wavefront, subgroup)
  int most_threads = 1024;   ///< of a block
  int most_registers = 255;  ///< 32-bit registers of a thread
  std::size_t shared_limit =
      0;  ///< bytes of shared memory a block may use; a device may have more than its architecture promises
  std::vector<MatrixInstruction> matrix;
  /// Which operand of the next product an accumulator is without any exchange between lanes.
  FreeOperand free_operand = FreeOperand::none;
  bool has_ldmatrix = false;    ///< 8×8 blocks of 16-bit elements from shared memory into fragments, also transposed
  bool has_async_copy = false;  ///< copies from global to shared memory that pass no register
  int vector_bytes = 16;        ///< most bytes one lane loads or stores at once

  /// The instruction for operands of a type, or null: then a product is multiplied out on a blocked layout.
  const MatrixInstruction* instruction(Operand) const;
};

/// The target of a name, or null. NVIDIA: sm_80, sm_86, sm_89, sm_90 (each with what sm_80 has and its own limit of
/// shared memory); AMD: gfx90a, gfx942, gfx1200, gfx1201.
const Target* find_target(std::string_view name);

/// All names that `find_target` knows.
std::vector<std::string_view> target_names();

}  // namespace latile::simt
