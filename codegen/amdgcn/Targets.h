// AMD's GPUs as data.
#pragma once
#include "codegen/simt/Target.h"

namespace latile::amdgcn {

const simt::MatrixInstruction& mfma_16x16x16(simt::Operand);  ///< gfx90a and later, 64 lanes, f16 or bf16
const simt::MatrixInstruction& mfma_32x32x8(simt::Operand);
/// Four of 16x16x4 in float32: instruction i takes the terms 4g + i for g = 0 … 3, so that operands have the layouts of
/// mfma_16x16x16 and an accumulator is operand B here too.
const simt::MatrixInstruction& mfma_4x16x16x4_f32();
const simt::MatrixInstruction& wmma_16x16x16(simt::Operand);  ///< gfx12, 32 lanes, f16 or bf16

/// gfx90a and gfx942 (waves of 64, MFMA), gfx1200 and gfx1201 (waves of 32, WMMA; float32 is multiplied as the sum of
/// three bfloat16, in six products).
const std::vector<simt::Target>& targets();

}  // namespace latile::amdgcn
