#include "codegen/simt/Target.h"
#include <cstdio>
#include <cstdlib>

namespace latile::simt {

const MatrixProduct& Target::product(Operand type) const {
  for (const MatrixProduct& p : products)
    if (p.type == type) return p;
  std::fprintf(stderr, "latile: %s has no product of this type\n", name.c_str());
  std::abort();
}

}  // namespace latile::simt
