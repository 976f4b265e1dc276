// Runs host code on the data of a test: strided memory of the program's types between guard bytes, poisoned with NaN.
#pragma once
#include "runtime/Artifact.h"
#include "tests/interpreter/Fixture.h"
#include "tests/passes/ScanData.h"

namespace latile::test {

/// Rounds every input to the type of its view, so that both sides read the same numbers.
void round_to_views(mlir::ModuleOp recorded, Data&);

/// Lays `data` out as the arguments of the recorded program say, with strides drawn from `seed`, runs every item of
/// every kernel in a random order in an arena full of NaN, and reads the arrays back. Elements that nothing wrote
/// become 777 again. Fails the test when a byte outside the outputs, the arena or the workspace changed.
void run_host(const Artifact&, mlir::ModuleOp recorded, Data& data, std::uint64_t seed);

/// RMS of the difference beside the RMS of `expected`; infinite when either has a NaN or they differ in an infinity.
double rms_ratio(const Array& got, const Array& expected);

/// Names of the instruction sets that this CPU runs.
const std::vector<std::string>& host_levels();

/// Lowers the recorded module along a schedule, compiles it for each of `levels` and compares every array with the
/// float64 meaning. What rounding each result once costs (interpreted) tells how well-conditioned a program is:
/// an array may be off by `base` plus 8 times that.
void check_host(mlir::ModuleOp recorded, Schedule, const BatchShape&, std::uint64_t seed,
                const std::vector<std::string>& levels, double base = 2e-5);

/// What a GPU has less of than others of its kind; 0: as much.
struct Shortage {
  std::size_t shared_bytes = 0;  ///< of a block, which has an arena where it needs one
  int registers = 0;             ///< of a thread
};

/// The same for a GPU, run by the emulator: what it reports fails as well. Odd seeds give strides that wide accesses
/// allow. Returns how many kernels have arenas or, where registers are short, tiles that wait in shared memory.
int check_emulated(mlir::ModuleOp recorded, Schedule, const BatchShape&, std::uint64_t seed,
                   const std::string& target = "sm_80", double base = 2e-5, Shortage = {});

}  // namespace latile::test
