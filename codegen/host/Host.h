// From kernels of the tile dialect to a shared object for x86-64.
#pragma once
#include "compiler/Specialisation.h"
#include "dialect/Tile.h"
#include "mlir/IR/BuiltinOps.h"
#include "runtime/Artifact.h"

namespace llvm {
class Module;
}

namespace latile::host {

/// What is written out on the way, on request.
struct Texts {
  std::string llvm;  ///< optimised LLVM IR
  std::string assembly;
  std::string object;  ///< the relocatable object
};

/// Compiles a lowered module (one tile.program of launches, its tile.kernel ops) for an instruction set. False: a
/// fault of the compiler, described in `failure`. `texts` may be null.
bool compile_host(mlir::ModuleOp, const HostIsa&, Artifact&, std::string& failure, Texts* texts);

/// Optimises, compiles and links a module of LLVM IR whose functions follow no convention of ours. `quick`: several
/// times faster, into slower code.
bool compile_module(llvm::Module&, const HostIsa&, std::string& shared, std::string& failure, bool quick = false);

/// Links one relocatable object into a shared object, in this process. Any undefined symbol is an error.
bool link_shared(const std::string& object, std::string& shared, std::string& failure);

}  // namespace latile::host
