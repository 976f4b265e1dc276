// Runs kernels of a GPU on the CPU, lane by lane, and reports what a GPU would leave to chance: races, reads of memory
// that nobody wrote, addresses outside of every allocation, tiles used while a copy into them is in flight, barriers
// that not all threads reach. Results are the kernel's own arithmetic; products of matrices round to nearest where
// tensor cores truncate. Knows no LLVM: kernels are compiled by codegen/emulator.
#pragma once
#include "runtime/emulator/Abi.h"
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace latile::emulator {

/// The global memory that kernels may touch: allocations of the caller, each with a shadow. Host memory is used as it
/// is. Adding, removing and marking must not overlap a run of emulate on the same Memory.
class Memory {
public:
  struct Allocation;

  Memory();
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  /// Registers `bytes` at `base`, nothing of it written yet. `granule` (1, 2 or 4 bytes, and base a multiple of it) is
  /// the least access that tells two threads apart: the element size of a tensor, 2 for a workspace of mixed types.
  /// False: the range overlaps an allocation that is there.
  bool add(const std::string& name, void* base, std::size_t bytes, std::size_t granule = 2);
  /// Forgets the allocation that starts at `base`. False: there is none.
  bool remove(const void* base);
  /// The host wrote these bytes (a copy to the device, a fill), so that a kernel may read them.
  void mark_written(const void* base, std::size_t bytes);
  /// The contents are to count as unwritten: a workspace handed to a new run.
  void mark_unwritten(const void* base, std::size_t bytes);
  std::size_t allocations() const;

private:
  friend class Machine;
  friend struct LaunchState;
  friend struct Result emulate(const struct Launch&, Memory&, const struct Options&);
  struct State;
  std::unique_ptr<State> state_;
};

struct Launch {
  const EmulatedKernel* kernel = nullptr;
  std::string name;                           ///< for reports
  std::int64_t blocks = 0;                    ///< one-dimensional grid; 0 runs nothing
  int threads = 0;                            ///< of a block, 1 to 1024
  std::size_t shared_bytes = 0;               ///< dynamic shared memory of a block, up to 1 MiB
  const std::uint64_t* parameters = nullptr;  ///< EmulatedKernel::parameters of them
};

struct Options {
  std::uint64_t seed = 1;       ///< of the order of blocks, warps and lanes and of the moments at which copies happen
  int workers = 1;              ///< host threads that run blocks
  std::size_t max_reports = 8;  ///< different ones; more are only counted
};

struct Report {
  enum class Kind {
    race,
    unwritten,      ///< read of memory that nobody wrote
    out_of_bounds,  ///< ends the launch, as do the next two
    misaligned,
    divergence,  ///< a barrier or collective that its threads do not all reach
    in_flight,   ///< shared memory used while a copy into it is in flight
    unsupported  ///< ends the launch
  };
  Kind kind = Kind::race;
  std::string text;   ///< one sentence with kernel, op, thread, block and address
  std::string op;     ///< location of the instruction that was reported
  std::string other;  ///< of the other access, where there is one
  std::int64_t block = 0;
  int thread = 0;
};

struct Result {
  bool completed = false;  ///< every block ran to its end
  std::vector<Report> reports;
  std::size_t suppressed = 0;  ///< reports beyond Options::max_reports, or equal to an earlier one
};

/// Runs a launch to its end, or to the first report that ends it. Blocks are run in any order, as on a GPU. May be
/// called by several threads at once, on different Memory objects. Allocates; throws nothing but std::bad_alloc.
Result emulate(const Launch&, Memory&, const Options& = {});

const char* name(Report::Kind);

}  // namespace latile::emulator
