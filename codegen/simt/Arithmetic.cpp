// Float32 arithmetic of one thread: the host's functions (codegen/Elementary.h) over the hardware's exponential.
#include "codegen/simt/Instructions.h"

namespace latile::simt {

Ir Thread::exp2(Ir x) const { return isa.exp2(*this, x); }

Ir Thread::convert(Ir x, llvm::Type* to) const {
  llvm::Type* from = x->getType();
  if (from == to) return x;
  if (from->isFloatTy()) return b.CreateFPTrunc(x, to);
  Ir wide = b.CreateFPExt(x, b.getFloatTy());
  return to->isFloatTy() ? wide : b.CreateFPTrunc(wide, to);
}

}  // namespace latile::simt
