// Compiled code tied to a plan's signature: every name of the kernels' facts resolved to an index.
#pragma once
#include "runtime/Device.h"
#include "runtime/Module.h"
#include "runtime/Signature.h"
#include "runtime/Team.h"
#include <algorithm>

namespace latile::runtime {

/// Code as compiled or cached, shared by plans.
struct Code {
  Artifact artifact;  ///< without its binary
  // One of the two; the device before its module, which goes first.
  std::shared_ptr<Module> module;  ///< on the host
  std::shared_ptr<Device> device;
  std::shared_ptr<DeviceModule> device_module;
};

/// Alignment of arenas and of all that lies in the workspace, and what a host workspace's own pointer needs.
inline constexpr std::size_t kPage = 4096, kWorkspaceAlignment = 16, kLine = 64;

/// Blocks with an arena that a device is given at a time: more than run at once where each takes most of the shared
/// memory of a multiprocessor.
inline constexpr std::int64_t kMostArenas = 256;

/// What a run's sizes follow from.
struct Sizes {
  const std::int64_t* dims = nullptr;
  std::int64_t chunks = 0;
};

/// An integer that a kernel reads or its grid has: a dimension, a constant, or the count of chunks.
struct Count {
  Extent extent;
  bool chunks = false;
  std::int64_t span = 1;  ///< of a grid's axis: how many of them are one item
  std::int64_t at(const Sizes& sizes) const {
    const std::int64_t all = chunks ? sizes.chunks : extent.at(sizes.dims);
    return all / span + (all % span != 0);
  }
};

/// Another kernel with the same arguments.
struct NarrowKernel {
  DeviceKernel on_device;
  int threads = 0, slices = 1;
  std::size_t shared_bytes = 0;
  std::string symbol;
};

struct BoundKernel {
  HostKernel entry = nullptr;
  DeviceKernel on_device;
  int threads = 0, slices = 1;
  std::size_t shared_bytes = 0, arena_bytes = 0;
  std::string symbol;
  std::vector<Count> grid;
  std::vector<int> views;  ///< index into Signature::tensors, or ~index into Program::workspace
  std::vector<Count> dims;
  std::vector<int> scalars;  ///< indices into Signature::scalars
  std::size_t integers = 0;  ///< strides and dims together
  bool sequences_first = false;
  std::optional<NarrowKernel> narrow;  ///< for grids that are small beside the device
  /// Of 8 bytes each; an arena's are a pointer, a size and two counts.
  std::size_t parameters() const {
    return views.size() + integers + scalars.size() + (arena_bytes != 0 && threads != 0 ? 4 : 0);
  }
  /// Blocks that a device is given for so many that the grid has.
  std::int64_t launched(std::int64_t blocks) const { return arena_bytes == 0 ? blocks : std::min(blocks, kMostArenas); }
  /// Of its grid, slices not counted.
  std::int64_t items(const Sizes& sizes) const {
    std::int64_t product = 1;
    for (const Count& axis : grid) product *= axis.at(sizes);
    return product;
  }
};

struct BoundWorkspace {
  Count heads;
  std::int64_t rows = 1, cols = 1, element_bytes = 4;
  bool by_head = true;  ///< false: [chunks, rows, cols]
};

/// Where things lie in the workspace, from its first multiple of 4096; on a device, from its beginning.
struct WorkspaceLayout {
  std::size_t tensors = 0, arenas = 0, arena_stride = 0, total = 0;
  int parts = 1;                  ///< threads of a run, each with an arena
  std::int64_t block_arenas = 0;  ///< of blocks of a device
};

class Program {
public:
  /// Empty `why`: fine. Otherwise the facts and the signature don't fit, which is a fault of the compiler or the cache.
  /// `threads`: the most that a run is shared by.
  static Program bind(const Code& code, const Signature& signature, int threads, std::string& why);

  std::int64_t most_chunks(const Signature&, const std::int64_t* dims) const;
  /// What the pointer of a workspace needs.
  std::size_t workspace_alignment() const { return on_device ? kDeviceAlignment : kWorkspaceAlignment; }
  /// At checked dims, for the most chunks; throws Failure when it does not fit 64 bits.
  WorkspaceLayout layout(const Signature&, const std::int64_t* dims) const;
  std::size_t workspace_tensor_bytes(std::size_t index, const Sizes&) const;

  std::vector<BoundKernel> kernels;
  std::vector<BoundWorkspace> workspace;
  std::int64_t chunk = 0;
  std::size_t arena_bytes = 0;
  std::size_t launch_bytes = 0;  ///< of the launches with their arguments, at the workspace's beginning
  bool orders_sequences = false;
  bool on_device = false;
  int threads = 1;
};

/// Scratch for one sequence: a slot and its reader, sorted; afterwards the order of sequences.
struct SlotUse {
  std::int64_t slot, sequence;
};

}  // namespace latile::runtime
