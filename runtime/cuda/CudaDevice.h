// CUDA devices through their driver. Work goes to the device's primary context, the one of the CUDA runtime API.
#pragma once
#include "runtime/cuda/Driver.h"
#include "runtime/Device.h"

namespace latile::runtime::cuda {

class CudaDevice : public Device {
public:
  CudaDevice(std::shared_ptr<const Driver> driver, int ordinal);
  ~CudaDevice() override;

  const std::string& target() const override { return the_target; }
  std::string description() const override;
  bool host_memory() const override { return false; }
  int multiprocessors() const override { return processors; }
  std::shared_ptr<DeviceModule> load(const Artifact& artifact) override;
  void launch(const DeviceRun& run, std::span<const DeviceLaunch> launches) override;
  void* allocate(std::size_t bytes) override;
  void release(void* memory) noexcept override;
  void fill(void* memory, int byte, std::size_t bytes) override;
  void copy_in(void* to, const void* from, std::size_t bytes) override;
  void copy_out(void* to, const void* from, std::size_t bytes, void* stream) override;
  void synchronise(void* stream) override;

  const Driver& api() const { return *driver; }
  ContextHandle context() const { return primary; }
  int shared_limit() const { return shared; }
  int ordinal() const { return number; }
  const std::string& name() const { return the_name; }
  /// For measuring, with no other thread at work: events that launches record before each kernel and after the last.
  void mark(std::vector<Event> events) { marks = std::move(events); }

private:
  std::shared_ptr<const Driver> driver;
  int number;
  DeviceHandle handle = 0;
  ContextHandle primary = nullptr;
  int major = 0, minor = 0, shared = 0, processors = 0;
  std::size_t memory_bytes = 0;
  std::string the_target, the_name;
  std::vector<Event> marks;
};

/// The factory of LATILE_CUDA.
std::shared_ptr<Device> make_device(std::int32_t id);

/// What the driver says of this machine without making a context; one sentence, or why there is no driver.
std::string machine(bool& usable);

}  // namespace latile::runtime::cuda
