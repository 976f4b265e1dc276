// NVIDIA's GPUs as data.
#pragma once
#include "codegen/simt/Target.h"

namespace latile::nvptx {

const simt::MatrixInstruction& mma_m16n8k16(simt::Operand);  ///< f16 or bf16
const simt::MatrixInstruction& mma_m16n8k8_tf32();
/// The same with the terms in the order in which accumulators hold them.
const simt::MatrixInstruction& mma_m16n8k8_tf32_chained();

/// sm_80, sm_86, sm_89, sm_90: each with what sm_80 has and its own limit of shared memory.
const std::vector<simt::Target>& targets();

}  // namespace latile::nvptx
