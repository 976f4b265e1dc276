#include "codegen/simt/Target.h"
#include <algorithm>

namespace latile::simt {

namespace {

Target nvidia(std::string name, std::size_t shared) {
  Target t;
  t.name = std::move(name);
  t.shared_limit = shared;
  t.matrix = {mma_m16n8k16(Operand::f16), mma_m16n8k16(Operand::bf16), mma_m16n8k8_tf32()};
  t.free_operand = FreeOperand::a;
  t.has_ldmatrix = true;
  t.has_async_copy = true;
  return t;
}

Target amd(std::string name, int lanes, int registers) {
  Target t;
  t.name = std::move(name);
  t.lanes = lanes;
  t.most_registers = registers;
  t.shared_limit = 64 * 1024;
  t.free_operand = FreeOperand::b;
  for (Operand operand : {Operand::f16, Operand::bf16})
    t.matrix.push_back(lanes == 64 ? mfma_16x16x16(operand) : wmma_16x16x16(operand));
  return t;
}

// Shared memory of a block: NVIDIA's programming guide, table of compute capabilities, less the kilobyte of the system.
const std::vector<Target>& targets() {
  static const std::vector<Target> list{
      nvidia("sm_80", 163 * 1024), nvidia("sm_86", 99 * 1024), nvidia("sm_89", 99 * 1024), nvidia("sm_90", 227 * 1024),
      amd("gfx90a", 64, 512),      amd("gfx942", 64, 512),     amd("gfx1200", 32, 256),    amd("gfx1201", 32, 256)};
  return list;
}

}  // namespace

const MatrixInstruction* Target::instruction(Operand operand) const {
  auto found =
      std::find_if(matrix.begin(), matrix.end(), [&](const MatrixInstruction& mi) { return mi.operand == operand; });
  return found == matrix.end() ? nullptr : &*found;
}

const Target* find_target(std::string_view name) {
  auto found = std::find_if(targets().begin(), targets().end(), [&](const Target& t) { return t.name == name; });
  return found == targets().end() ? nullptr : &*found;
}

std::vector<std::string_view> target_names() {
  std::vector<std::string_view> out;
  for (const Target& target : targets()) out.push_back(target.name);
  return out;
}

}  // namespace latile::simt
