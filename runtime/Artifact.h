// What a compiler leaves: a binary and how to call it. Knows no LLVM; serialised into the cache and into bundles.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace latile {

/// The one calling convention of host kernels. `item` is the flattened grid index, the last axis fastest.
/// pointers: one for each view argument, in order; integers: every stride of every view, in elements, outermost
/// first, then the dims named in KernelFacts; scalars in order. `arena` is KernelFacts::arena_bytes of scratch,
/// 4096-aligned, private to the calling thread.
struct KernelArguments {
  void* const* pointers;
  const std::int64_t* integers;
  const double* scalars;
};
using HostKernel = void (*)(const KernelArguments*, std::int64_t item, void* arena);

struct ViewArgument {
  std::string tensor;  ///< "q", "S.initial", "cu_seqlens", or "workspace.T"
  int rank = 0;        ///< strides it takes in `integers`
};

struct WorkspaceTensor {
  std::string name;  ///< "T": passed as the view "workspace.T" [chunks, heads, rows, cols], dense
  std::string axis;  ///< head axis; "": none
  std::int64_t rows = 1, cols = 1;
  std::int64_t element_bytes = 4;
  std::int64_t chunk = 0;  ///< chunk length, for the count of chunks
};

struct KernelFacts {
  std::string symbol;
  std::vector<std::string> grid;  ///< "N", "chunks", or a head axis, outermost first
  std::int64_t chunk = 0;         ///< of the axis "chunks"
  std::vector<ViewArgument> views;
  std::vector<std::string> dims;  ///< run-time dims it reads: "T", "N", "HV", "chunks"
  std::vector<std::string> scalars;
  std::size_t arena_bytes = 0;  ///< scratch of a thread of the host, of a block of a device
  // Device kernels only. They take the addresses of the views, then the integers, then the scalars as doubles: one
  // array of 8-byte parameters. Block b of the one-dimensional grid works on item b / slices, slice b % slices. With an
  // arena they take four more: the address of block 0's arena, the bytes from one to the next, the count of blocks that
  // the grid would have without, and of those that it has. Block b then does the work of b, b + grid, b + 2 grid, ….
  int threads = 0;               ///< of a block
  std::size_t shared_bytes = 0;  ///< dynamic shared memory of a block
  int slices = 1;                ///< blocks that share an item
  /// More slices of what the kernel before it does, with the same arguments: launched instead of it where the grid
  /// would leave multiprocessors without a block.
  bool narrow = false;
  std::vector<std::int64_t> spans{};  ///< indices of each grid axis that an item covers; empty: one
  int part = 0;                       ///< of the binary that has it
};

struct StageTime {
  std::string stage;
  double ms = 0;
};

struct Artifact {
  std::string target;                ///< "host:avx512", "cuda:sm_90", "emulated:sm_80"
  std::int64_t chunk = 0;            ///< rows of a chunk that the operator was recorded at; 0: by tokens or rows
  std::vector<KernelFacts> kernels;  ///< in launch order
  std::vector<WorkspaceTensor> workspace;
  std::string binary;  ///< a shared object (host, emulated), PTX text or a cubin (cuda)
  /// Where the parts of the binary after its first begin: code that was compiled apart. Each ends in a zero byte.
  std::vector<std::size_t> parts{};
  std::vector<StageTime> stages;  ///< of its compilation; not serialised
  /// Registers of a thread that a kernel holds above what its assembler can give it: it will spill. Not serialised.
  double short_of_registers = 0;

  /// Adds code to the binary; its part's number.
  int add_part(const std::string& code);
  /// The code of a part, up to the zero that ends it; null: there is no such part.
  const char* part(int number) const;

  std::string facts_json() const;                        ///< everything but binary and stages
  static bool from_json(const std::string&, Artifact&);  ///< false: not such a text
};

}  // namespace latile
