#include "codegen/simt/Instructions.h"
#include "llvm/Support/ErrorHandling.h"

namespace latile::simt {

void Instructions::share_registers(llvm::Function&, int) const {}
void Instructions::start_copy(const Thread&, Ir, Ir, Ir) const {
  llvm_unreachable("a target without asynchronous copies");
}
void Instructions::wait_copies(const Thread&) const { llvm_unreachable("a target without asynchronous copies"); }
int Instructions::fragments_per_load(const MatrixInstruction&, FreeOperand, bool) const { return 0; }
SmallVector<Fragment, 2> Instructions::load_fragments(const Thread&, const MatrixInstruction&, FreeOperand,
                                                      const Stored&, PlaceIr, Place) const {
  llvm_unreachable("a target that loads fragments element by element");
}

}  // namespace latile::simt
