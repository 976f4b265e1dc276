// A device that runs kernels asynchronously on memory of its own: CUDA, or the emulator. The host is not one of these:
// its kernels are called by threads (Team.h).
#pragma once
#include "latile/latile.h"
#include "runtime/Artifact.h"
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace latile::runtime {

/// The most 8-byte parameters of a kernel: 4 KiB, what every CUDA driver takes.
inline constexpr std::size_t kMaxParameters = 512;
/// The most kernels of a device plan.
inline constexpr std::size_t kMaxLaunches = 8;
/// Blocks of a one-dimensional grid.
inline constexpr std::int64_t kMaxBlocks = 0x7fffffff;
/// Of a device plan's workspace and of the tensors in it.
inline constexpr std::size_t kDeviceAlignment = 256;

/// A kernel of a module, and what the device says of it.
struct DeviceKernel {
  void* handle = nullptr;
  int registers = 0;            ///< of a thread; 0: not known
  std::size_t local_bytes = 0;  ///< of a thread: spilled registers and arrays
};

/// Code on a device. Immutable; goes with its last owner.
class DeviceModule {
public:
  virtual ~DeviceModule() = default;
  /// A kernel, made ready for its shared memory. Throws Failure, naming what the device lacks.
  virtual DeviceKernel kernel(const KernelFacts& facts) = 0;
};

/// Memory that the launches of a run may touch. What is not `filled` is written before it is read.
struct MemoryRange {
  const char* name = "";
  void* begin = nullptr;
  std::size_t bytes = 0;
  bool written = false, filled = true;
};

struct DeviceLaunch {
  void* kernel = nullptr;  ///< of the module
  const char* symbol = "";
  std::int64_t blocks = 0;  ///< 1 to kMaxBlocks
  int threads = 0;
  std::size_t shared_bytes = 0;
  std::span<std::int64_t> parameters;
};

/// What the launches of one run share.
struct DeviceRun {
  void* stream = nullptr;
  std::span<const MemoryRange> memory;  ///< where the device asks for it (Device::wants_memory)
};

/// Every function may be called from several threads at once, and throws Failure.
class Device {
public:
  virtual ~Device() = default;
  /// What its code is compiled for: "cuda:sm_90". Devices of one target share cache entries.
  virtual const std::string& target() const = 0;
  /// Its name and what matters of it, for people.
  virtual std::string description() const = 0;
  /// The host may read its memory at any time.
  virtual bool host_memory() const = 0;
  virtual bool wants_memory() const { return false; }
  /// How many blocks of a kernel that fills one work at a time.
  virtual int multiprocessors() const = 0;

  virtual std::shared_ptr<DeviceModule> load(const Artifact& artifact) = 0;
  /// Begins the launches in order on the run's stream. Allocates nothing and waits for nothing on a real device.
  virtual void launch(const DeviceRun& run, std::span<const DeviceLaunch> launches) = 0;

  // For tools and tests: an engine has its own.
  virtual void* allocate(std::size_t bytes) = 0;
  virtual void release(void* memory) noexcept = 0;
  virtual void fill(void* memory, int byte, std::size_t bytes) = 0;
  virtual void copy_in(void* to, const void* from, std::size_t bytes) = 0;
  /// Waits for what was begun on `stream` before.
  virtual void copy_out(void* to, const void* from, std::size_t bytes, void* stream) = 0;
  virtual void synchronise(void* stream) = 0;
};

/// Finds the device of a kind with this number; throws Failure (NO_DEVICE) when there is none.
using DeviceFactory = std::shared_ptr<Device> (*)(std::int32_t id);
/// Adds a kind of device to this process. CUDA is always there.
void add_device_kind(std::int32_t type, DeviceFactory factory);
/// Throws Failure (NO_DEVICE) for a kind or number that there is not.
std::shared_ptr<Device> find_device(latile_device device);

}  // namespace latile::runtime
