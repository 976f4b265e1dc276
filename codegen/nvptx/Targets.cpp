#include "codegen/nvptx/Targets.h"

namespace latile::nvptx {

using simt::MatrixInstruction, simt::Operand, simt::Target;

// PTX ISA, pinned on an H200.

const MatrixInstruction& mma_m16n8k16(Operand operand) {
  auto row = [](const char* name, Operand type) {
    return simt::matrix_instruction(name, type, 16, 8, 16, "r:C1 R8 C8 l:C2 C4 R1 R2 R4", "r:R1 R8 l:R2 R4 C1 C2 C4",
                                    "r:C1 R8 l:C2 C4 R1 R2 R4");
  };
  static const MatrixInstruction f16 = row("mma.sync.m16n8k16.f16", Operand::f16),
                                 bf16 = row("mma.sync.m16n8k16.bf16", Operand::bf16);
  return operand == Operand::bf16 ? bf16 : f16;
}

const MatrixInstruction& mma_m16n8k8_tf32() {
  static const MatrixInstruction row =
      simt::matrix_instruction("mma.sync.m16n8k8.tf32", Operand::tf32, 16, 8, 8, "r:R8 C4 l:C1 C2 R1 R2 R4",
                               "r:R4 l:R1 R2 C1 C2 C4", "r:C1 R8 l:C2 C4 R1 R2 R4");
  return row;
}

const MatrixInstruction& mma_m16n8k8_tf32_chained() {
  static const MatrixInstruction row =
      simt::matrix_instruction("mma.sync.m16n8k8.tf32", Operand::tf32, 16, 8, 8, "r:R8 C1 l:C2 C4 R1 R2 R4",
                               "r:R1 l:R2 R4 C1 C2 C4", "r:C1 R8 l:C2 C4 R1 R2 R4");
  return row;
}

// Shared memory of a block: NVIDIA's programming guide, table of compute capabilities, less the kilobyte of the system.
static Target nvidia(std::string name, std::size_t shared) {
  Target t;
  t.name = std::move(name);
  t.family = simt::Family::nvptx;
  t.registers = 65536;
  t.shared_limit = shared;
  t.products = {{Operand::f16, mma_m16n8k16(Operand::f16), {}, 1},
                {Operand::bf16, mma_m16n8k16(Operand::bf16), {}, 1},
                {Operand::f32, mma_m16n8k8_tf32(), mma_m16n8k8_tf32_chained(), 2}};
  t.free_operand = simt::FreeOperand::a;
  t.has_async_copy = true;
  // ptxas 13.0 spills gla's scores at 128 registers for sm_80, not for sm_90.
  if (t.name == "sm_90") t.registers_of_scores = 128;
  return t;
}

const std::vector<Target>& targets() {
  static const std::vector<Target> list{nvidia("sm_80", 163 * 1024), nvidia("sm_86", 99 * 1024),
                                        nvidia("sm_89", 99 * 1024), nvidia("sm_90", 227 * 1024)};
  return list;
}

}  // namespace latile::nvptx
