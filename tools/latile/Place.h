// Where a command runs its plans: the host, or a device with memory of its own.
#pragma once
#include "latile/latile.h"
#include "runtime/Device.h"
#include "tools/latile/HostTensor.h"
#include <memory>
#include <string>
#include <vector>

namespace latile {

struct Place {
  std::string text = "host";  ///< "host", "cuda:0", "emulated:sm_80"
  latile_device id{LATILE_CPU, 0};
  std::shared_ptr<runtime::Device> device;  ///< null: the host
  bool graph = false;                       ///< CUDA: each run is captured in a graph and the graph launched

  /// "host", "cuda" (its device 0), "cuda:N" or "emulated:CHIP"; throws UserError when there is no such device.
  static Place named(const std::string& text);
  bool host() const { return device == nullptr; }
  bool emulated() const { return id.type == LATILE_EMULATED; }
  /// Until all that was begun on the device's default stream is done. Throws UserError.
  void wait() const;
  /// What the machine calls it, for headings.
  std::string description() const;
};

/// What --device takes, for the help of the commands.
inline constexpr const char* place_help =
    "Where to run: host, cuda, cuda:N or emulated:CHIP (sm_80, sm_90, gfx90a, gfx1201)";

/// Memory of a device, with a fence on both sides that nothing may write to.
class DeviceMemory {
public:
  DeviceMemory(std::shared_ptr<runtime::Device>, std::size_t bytes);
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  void* data() const { return memory + fence; }
  std::size_t size() const { return bytes; }
  void write(const void* from) { device->copy_in(data(), from, bytes); }
  /// Waits for the device's default stream.
  void read(void* to) const { device->copy_out(to, data(), bytes, nullptr); }
  /// Every byte 0xff, the fences too.
  void poison();
  /// Something was written to a fence.
  bool overran() const;

private:
  static constexpr std::size_t fence = 256;
  std::shared_ptr<runtime::Device> device;
  std::size_t bytes;
  char* memory;
};

/// The memory that a plan's tensors have where it runs: their own on the host, a copy on a device.
class PlacedTensors {
public:
  /// `memory`: for each tensor the index of the one whose memory it uses, mostly its own. shift: copies begin one
  /// element after an aligned address, as a caller's may.
  PlacedTensors(const Place&, std::vector<HostTensor>& tensors, const std::vector<std::size_t>& memory,
                bool shift = false);
  const std::vector<void*>& data() const { return pointers; }
  /// After a run: brings the contents back into the tensors.
  void fetch();
  bool overran() const;

private:
  struct Copy {
    std::unique_ptr<DeviceMemory> memory;
    std::size_t tensor = 0, shift = 0;
  };
  std::vector<HostTensor>& tensors;
  std::vector<Copy> copies;
  std::vector<void*> pointers;
};

}  // namespace latile
