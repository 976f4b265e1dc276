#include "runtime/Device.h"
#include "runtime/cuda/CudaDevice.h"
#include "runtime/Failure.h"
#include <map>
#include <mutex>

namespace latile::runtime {
namespace {

struct Kinds {
  std::mutex mutex;
  std::map<std::int32_t, DeviceFactory> factories = {{LATILE_CUDA, &cuda::make_device}};
};

Kinds& kinds() {
  static Kinds all;
  return all;
}

}  // namespace

void add_device_kind(std::int32_t type, DeviceFactory factory) {
  const std::lock_guard lock(kinds().mutex);
  kinds().factories[type] = factory;
}

std::shared_ptr<Device> find_device(latile_device device) {
  DeviceFactory factory = nullptr;
  {
    const std::lock_guard lock(kinds().mutex);
    const auto found = kinds().factories.find(device.type);
    if (found != kinds().factories.end()) factory = found->second;
  }
  if (factory == nullptr)
    fail(LATILE_NO_DEVICE,
         "there is no target for device type {} in this build; use {{LATILE_CPU, 0}} or {{LATILE_CUDA, n}}",
         device.type);
  return factory(device.id);
}

}  // namespace latile::runtime
