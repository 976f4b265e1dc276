// From kernels of the tile dialect to LLVM IR for one thread of a GPU's block.
#pragma once
#include "codegen/simt/Target.h"
#include "dialect/Tile.h"
#include "mlir/IR/BuiltinOps.h"
#include "runtime/Artifact.h"
#include "llvm/IR/Module.h"

namespace latile::simt {

class Instructions;

/// Emits every launched kernel of a lowered module as a function `void symbol(views…, strides and dims as i64…,
/// scalars as double…)` of the target's convention for kernels, and fills the artifact's kernels and workspace. Views
/// are pointers into address space 1; shared memory is the external array `latile_shared` of address space 3. The
/// module must have its triple and data layout. Instructions carry the tile op they come from as their debug location:
/// file "tile.dot", line: the op's number in the kernel. False: a fault of the compiler or a limit of the target,
/// described in `failure`. `arena`: a kernel that needs more shared memory than there is keeps the copies that it
/// accesses least in global memory; it then takes four more parameters (KernelFacts::arena_bytes).
bool emit_kernels(mlir::ModuleOp lowered, const Target&, const Instructions&, llvm::Module&, Artifact&,
                  std::string& failure, bool arena = false);

}  // namespace latile::simt
