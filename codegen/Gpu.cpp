#include "codegen/Gpu.h"
#include "codegen/amdgcn/Amdgcn.h"
#include "codegen/nvptx/Nvptx.h"

namespace latile {

static bool is_amd(const simt::Target& target) { return target.family == simt::Family::amdgcn; }

bool lower_for_gpu(mlir::ModuleOp lowered, const simt::Target& target, llvm::Module& module, Artifact& artifact,
                   std::string& failure, bool arena) {
  return is_amd(target) ? amdgcn::lower(lowered, target, module, artifact, failure, arena)
                        : nvptx::lower(lowered, target, module, artifact, failure, arena);
}

bool write_gpu_assembly(llvm::Module& module, const simt::Target& target, std::string& text, std::string& failure) {
  return is_amd(target) ? amdgcn::write_assembly(module, target, text, failure)
                        : nvptx::write_ptx(module, target, text, failure);
}

bool write_gpu_code(llvm::Module& module, const simt::Target& target, std::string& code, std::string& failure) {
  return is_amd(target) ? amdgcn::write_code_object(module, target, code, failure)
                        : nvptx::write_ptx(module, target, code, failure);
}

}  // namespace latile
