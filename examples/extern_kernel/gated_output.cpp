// The `latile` command with one operator more, whose prefill ends in a kernel in CUDA C++:
//   extern_kernel check gated_output --device cuda
//   extern_kernel bundle gated_output --targets sm_80,sm_90 --shapes K=128,V=128 --mode prefill -o gated.bundle
#include "GatedOutput.h"
#include "latile/table.h"
#include "latile/tool.h"

int main(int argc, char** argv) {
  latile::register_operator({"gated_output", gated_output, "gated linear attention with a gate on its output", 5e-3,
                             5e-3, "S = e^g S + k vᵀ, o = silu(z) ∘ Sᵀ (scale q)"});
  return latile::tool_main(argc, argv);
}
