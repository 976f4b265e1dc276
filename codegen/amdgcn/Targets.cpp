#include "codegen/amdgcn/Targets.h"

namespace latile::amdgcn {

using simt::MatrixInstruction, simt::Operand, simt::Target;

// AMD's ISA documents; nothing here has run on a GPU.

namespace {

struct Rows {
  MatrixInstruction f16, bf16;
  Rows(const std::string& stem, int m, int n, int k, std::string_view a, std::string_view b, std::string_view c)
      : f16(simt::matrix_instruction(stem + ".f16", Operand::f16, m, n, k, a, b, c)),
        bf16(simt::matrix_instruction(stem + ".bf16", Operand::bf16, m, n, k, a, b, c)) {}
  const MatrixInstruction& of(Operand operand) const { return operand == Operand::bf16 ? bf16 : f16; }
};

}  // namespace

const MatrixInstruction& mfma_16x16x16(Operand operand) {
  static const Rows rows("mfma.16x16x16", 16, 16, 16, "r:C1 C2 l:R1 R2 R4 R8 C4 C8", "r:R1 R2 l:C1 C2 C4 C8 R4 R8",
                         "r:R1 R2 l:C1 C2 C4 C8 R4 R8");
  return rows.of(operand);
}

const MatrixInstruction& mfma_32x32x8(Operand operand) {
  static const Rows rows("mfma.32x32x8", 32, 32, 8, "r:C1 C2 l:R1 R2 R4 R8 R16 C4", "r:R1 R2 l:C1 C2 C4 C8 C16 R4",
                         "r:R1 R2 R8 R16 l:C1 C2 C4 C8 C16 R4");
  return rows.of(operand);
}

const MatrixInstruction& mfma_4x16x16x4_f32() {
  static const MatrixInstruction row =
      simt::matrix_instruction("4 mfma.16x16x4.f32", Operand::f32, 16, 16, 16, "r:C1 C2 l:R1 R2 R4 R8 C4 C8",
                               "r:R1 R2 l:C1 C2 C4 C8 R4 R8", "r:R1 R2 l:C1 C2 C4 C8 R4 R8");
  return row;
}

const MatrixInstruction& wmma_16x16x16(Operand operand) {
  static const Rows rows("wmma.16x16x16", 16, 16, 16, "r:C1 C2 C4 l:R1 R2 R4 R8 C8", "r:R1 R2 R4 l:C1 C2 C4 C8 R8",
                         "r:R1 R2 R4 l:C1 C2 C4 C8 R8");
  return rows.of(operand);
}

static Target amd(std::string name, int lanes, int registers) {
  Target t;
  t.name = std::move(name);
  t.family = simt::Family::amdgcn;
  t.lanes = lanes;
  t.most_registers = registers;
  t.shared_limit = 64 * 1024;
  t.free_operand = simt::FreeOperand::b;
  for (Operand operand : {Operand::f16, Operand::bf16})
    t.products.push_back({operand, lanes == 64 ? mfma_16x16x16(operand) : wmma_16x16x16(operand), {}, 1});
  if (lanes == 64)
    t.products.push_back({Operand::f32, mfma_4x16x16x4_f32(), {}, 1});
  else
    t.products.push_back({Operand::f32, wmma_16x16x16(Operand::bf16), {}, 3});
  return t;
}

const std::vector<Target>& targets() {
  static const std::vector<Target> list{amd("gfx90a", 64, 512), amd("gfx942", 64, 512), amd("gfx1200", 32, 256),
                                        amd("gfx1201", 32, 256)};
  return list;
}

}  // namespace latile::amdgcn
