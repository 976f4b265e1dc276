// What the emulator knows of target functions, by their names.
#pragma once
#include "runtime/emulator/Abi.h"
#include "llvm/ADT/StringRef.h"
#include <optional>

namespace latile::emulator {

struct Meaning {
  enum class Kind {
    collective,  ///< `op`, `variant`; the first `operands` arguments are exchanged, all if 0; the others must be zero
    barrier,
    thread,        ///< number in the block; so the next ones, of Lane
    lane,          //
    warp,          //
    threads,       //
    block,         //
    blocks,        //
    constant,      ///< `variant`
    math,          ///< through `hook`, element by element
    start_copy,    ///< cp.async of `variant` bytes
    commit,        //
    wait,          ///< for all groups but as many as the argument says
    wait_all,      //
    nothing,       ///< orders memory, which is in order here
    pack_bf16,     ///< two floats to two bfloat16, the second argument in the lower half
    pack_f16,      //
    to_bf16,       ///< rounds to nearest even
    to_f16,        //
    to_tf32,       ///< to nearest, ties away from zero; the result is the word
    reciprocal,    //
    root,          //
    inverse_root,  //
    quotient,      //
    maximum,       ///< the number where one operand is NaN
    minimum,       //
    fused,         ///< a * b + c
    lanes_below  ///< AMD mbcnt: bits of the first argument below the lane's number, and the second; `variant`: 32 added
  };
  Kind kind = Kind::nothing;
  Collective op = Collective::warp_barrier;
  std::uint16_t variant = 0;
  unsigned operands = 0;
  Hook hook = Hook::count;
  bool flush = false;  ///< subnormal operands and results are zero
};

/// The meaning of a target function, `llvm.nvvm.…`, `llvm.amdgcn.…` or `latile.nvptx.…`; also of the target-independent
/// intrinsics that a CPU has only in its C library.
std::optional<Meaning> meaning(llvm::StringRef name);

}  // namespace latile::emulator
