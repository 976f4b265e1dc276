// From LLVM IR for a GPU to a shared object that runtime/emulator runs lane by lane.
#pragma once
#include <string>

namespace llvm {
class Module;
}

namespace latile::emulator {

/// Compiles a module of device kernels for the emulator. Kernels are the functions of the `ptx_kernel` or
/// `amdgpu_kernel` convention, their parameters 8 bytes each; shared memory is the external array `latile_shared` of
/// address space 3, global memory address space 1. The IR may be optimised or not, but target functions must still be
/// calls. The place of an instruction in reports is its debug location: file and line, where a file named after the op
/// and a line that counts ops are as good as any.
///
/// The module is changed and of no further use. `shared` exports `const EmulatedKernel* symbol()` for each kernel and
/// needs nothing from outside. False: an instruction has no meaning here or the module breaks these rules; `failure`
/// names it.
bool compile_emulated(llvm::Module&, std::string& shared, std::string& failure);

}  // namespace latile::emulator
