#include "codegen/simt/Instructions.h"
#include "llvm/Support/ErrorHandling.h"

namespace latile::simt {

void Instructions::share_registers(llvm::Function&, int) const {}
void Instructions::start_copy(const Thread&, Ir, Ir, Ir) const {
  llvm_unreachable("a target without asynchronous copies");
}
void Instructions::wait_copies(const Thread&) const { llvm_unreachable("a target without asynchronous copies"); }
SmallVector<Ir> Instructions::split(const Thread& t, const MatrixInstruction& mi, Ir x, int parts) const {
  llvm::Type* type = mi.operand == Operand::f16 ? t.b.getHalfTy() : t.b.getBFloatTy();
  SmallVector<Ir> out;
  for (int k = 0; k < parts; ++k) {
    if (k) x = t.b.CreateFSub(x, t.convert(out.back(), t.b.getFloatTy()));
    out.push_back(t.convert(x, type));
  }
  return out;
}
int Instructions::fragments_per_load(const MatrixInstruction&, FreeOperand, bool) const { return 0; }
SmallVector<Fragment, 2> Instructions::load_fragments(const Thread&, const MatrixInstruction&, FreeOperand,
                                                      const Stored&, PlaceIr, Place) const {
  llvm_unreachable("a target that loads fragments element by element");
}

}  // namespace latile::simt
