// Kernels of a plan that are written in CUDA C++ (ExternKernel in latile/dsl.h): from the program's attribute to PTX
// and facts beside those of our own kernels.
#pragma once
#include "compiler/Specialisation.h"
#include "dialect/Tile.h"
#include "mlir/IR/BuiltinOps.h"
#include "runtime/Artifact.h"
#include "runtime/Compiler.h"

namespace latile {

/// Entry of the first such kernel of a module's program; empty: there is none.
std::string extern_kernel(mlir::ModuleOp);

/// What stands before the source of one: types, constants, the argument. Exposed for tests and people.
std::string extern_prelude(mlir::ModuleOp, const Specialisation&, mlir::DictionaryAttr kernel);

/// Compiles them for a chip, "sm_90", and adds them to the artifact behind its own code and kernels. False: told in
/// `failure`, which is the user's where NVRTC is missing or refuses the source.
bool add_extern_kernels(mlir::ModuleOp, const Specialisation&, const std::string& chip, Artifact&, CompileFailure&);

/// What the code of such kernels depends on beside the definition: NVRTC and its version, or that there is none.
std::string extern_compiler();

}  // namespace latile
