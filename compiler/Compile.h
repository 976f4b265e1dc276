// The compiler as one call: operator and specialisation in, artifact out.
#pragma once
#include "compiler/Specialisation.h"
#include "latile/table.h"
#include "runtime/Artifact.h"
#include "runtime/Compiler.h"

namespace latile {

/// Records, lowers and compiles one specialisation for the host. Reports the time of each stage in the artifact.
bool compile(const OperatorRow&, const Specialisation&, Artifact&, CompileFailure&);

/// What `compile --emit` writes.
enum class Stage : std::uint8_t { tile, kernel, llvm, object, assembly };
bool parse_stage(const std::string&, Stage&);
/// The text (or the object file's bytes) of one stage.
bool emit_stage(const OperatorRow&, const Specialisation&, Stage, std::string& text, CompileFailure&);

/// The rows of a chunk where the caller leaves it open.
std::int64_t default_chunk(const Specialisation&);

/// Makes this compiler the process's (runtime/Compiler.h). Idempotent.
void install_compiler();

}  // namespace latile
