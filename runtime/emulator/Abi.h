// What an emulated kernel and the emulator know of each other. codegen/emulator writes these into compiled code, so a
// change here is a change of `abi_version`.
#pragma once
#include <cstddef>
#include <cstdint>

namespace latile::emulator {

constexpr std::uint32_t abi_version = 1;

struct Lane;

/// Entries of the table that Lane::hooks points to. `Where` is a location: an index into EmulatedKernel::locations.
/// `shape` is the size of an access in bytes, its required alignment in the upper half.
enum class Hook : std::uint32_t {
  read_shared,    ///< void(Lane*, const void*, uint32 shape, uint32 where), before the access; so the next five
  read_global,    ///< addrspace(1)
  read_generic,   ///< shared, global or the lane's own stack, by the address
  write_shared,   //
  write_global,   //
  write_generic,  //
  collective,     ///< void(Lane*, const CallSite*, const void* in, void* out): an instruction of a warp
  barrier,        ///< void(Lane*, const CallSite*)
  start_copy,     ///< void(Lane*, void* to, const void* from, uint32 bytes, uint32 read, uint32 where): cp.async
  commit_copies,  ///< void(Lane*)
  wait_copies,    ///< void(Lane*, uint32 groups that may stay in flight)
  copy,           ///< void(Lane*, void* to, const void* from, uint64 bytes, uint32 where)
  fill,           ///< void(Lane*, void* to, uint32 byte, uint64 bytes, uint32 where)
  exp2_32,        ///< float(float); so all that end in 32
  exp2_ftz_32,    ///< subnormal arguments and results are zero
  log2_32,
  log2_ftz_32,
  exp_32,
  log_32,
  sin_32,
  cos_32,
  tanh_32,
  exp2_64,  ///< double(double); so all that end in 64
  log2_64,
  exp_64,
  log_64,
  sin_64,
  cos_64,
  tanh_64,
  pow_32,  ///< float(float, float)
  pow_64,  ///< double(double, double)
  count
};

/// Instructions that the lanes of a warp execute together. In and out: the operands and results of one lane, each in
/// whole 32-bit words, pointers in two, one after another.
enum class Collective : std::uint16_t {
  warp_barrier,      ///< in: member mask
  shuffle,           ///< variant: Shuffle; in: mask, value, lane or distance, clamp; out: value, in range
  vote,              ///< variant: Vote; in: mask, predicate; out: word
  reduce,            ///< variant: Reduce; in: value, mask; out: value
  active_mask,       ///< out: mask
  load_matrices,     ///< variant: count, +8 transposed; in: address (shared); out: `count` words
  store_matrices,    ///< the same; in: address, words
  transpose_matrix,  ///< in, out: word
  mma_bf16_k16,      ///< m16n8k16, float32 accumulators; in: A 4, B 2, C 4; out: D 4
  mma_f16_k16,
  mma_bf16_k8,  ///< m16n8k8; in: A 2, B 1, C 4
  mma_f16_k8,
  mma_tf32_k8,         ///< m16n8k8; in: A 4, B 2, C 4
  mma_tf32_k4,         ///< m16n8k4; in: A 2, B 1, C 4
  permute,             ///< AMD ds_bpermute; in: 4 * lane, value; out: value
  first_lane,          ///< AMD readfirstlane; in, out: word
  mfma_bf16_16x16x16,  ///< in: A 2, B 2, C 4; out: D 4
  mfma_f16_16x16x16,
  mfma_bf16_32x32x8,  ///< in: A 2, B 2, C 16; out: D 16
  mfma_f16_32x32x8,
  mfma_f32_16x16x4,      ///< in: A 1, B 1, C 4
  mfma_f32_32x32x2,      ///< in: A 1, B 1, C 16
  wmma12_bf16_16x16x16,  ///< gfx12, wave32; in: A 4, B 4, C 8; out: D 8
  wmma12_f16_16x16x16,
  count
};

enum class Shuffle : std::uint16_t { index, up, down, butterfly };
enum class Vote : std::uint16_t { all, any, uniform, ballot };
enum class Reduce : std::uint16_t { add, min_signed, max_signed, min_unsigned, max_unsigned, bit_and, bit_or, bit_xor };

/// One call of a collective or barrier in the code. Lanes meet where their CallSite is the same object.
struct CallSite {
  Collective op;
  std::uint16_t variant;
  std::uint32_t location;
};

/// What compiled code reads of the lane that runs it; the emulator's own state follows.
struct Lane {
  const void* const* hooks;
  void* shared;          ///< the block's shared memory
  std::uint32_t thread;  ///< in the block
  std::uint32_t lane;    ///< in the warp
  std::uint32_t warp;    ///< in the block
  std::uint32_t threads;
  std::uint32_t block;
  std::uint32_t blocks;
};

/// What the exported function of a kernel, `const EmulatedKernel* symbol()`, returns.
struct EmulatedKernel {
  std::uint32_t abi;
  std::uint32_t warp_size;   ///< 32 or 64
  std::uint32_t granule;     ///< bytes: every access is a multiple of it in size and alignment; 1, 2 or 4
  std::uint32_t parameters;  ///< 8-byte words
  std::uint32_t location_count;
  std::uint32_t all_written;     ///< 1: a store's address could not be traced to one parameter
  const std::uint8_t* written;   ///< for each parameter, 1 if the kernel stores through it
  const char* const* locations;  ///< "tile.dot at gated_delta_rule.cpp:31"
  void (*entry)(Lane*, const std::uint64_t* parameters);
};

}  // namespace latile::emulator
