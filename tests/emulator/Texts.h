// Kernels of the tests, as LLVM IR.
#pragma once
#include <string>

namespace latile::emulator {

/// o[i] = x[i] for i < n, a thread each.
extern const std::string copy_text;
/// o = transpose of x, 32 x 32 float32, through shared memory; 256 threads.
extern const std::string transpose_text;
/// Rows of 128 bytes, 16-byte pieces swizzled by the row, read back by columns of pieces; 64 threads, one row of pieces
/// each eighth of a warp.
extern const std::string swizzle_text;
/// Two stages of 2048 bytes, filled by cp.async one step ahead; o is x with the 128 pieces of each step reversed.
extern const std::string stages_text;
/// d = a · b, 16 x 16 by 16 x 8, from global memory; b is stored by columns.
extern const std::string product_text;

extern const std::string declarations;

}  // namespace latile::emulator
