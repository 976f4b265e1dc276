#include "runtime/cuda/Driver.h"
#include "runtime/Failure.h"
#include <dlfcn.h>

namespace latile::runtime::cuda {

std::shared_ptr<const Driver> Driver::open(const std::string& file, std::string& why) {
  std::shared_ptr<Driver> driver(new Driver());
  driver->file = file;
  driver->library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (driver->library == nullptr) {
    const char* reason = dlerror();
    why = fmt::format("the CUDA driver cannot be loaded: {}", reason != nullptr ? reason : file);
    return nullptr;
  }
#define LATILE_CUDA_LOAD(name, suffix, arguments)                                                                      \
  driver->name = reinterpret_cast<Result(*) arguments>(dlsym(driver->library, "cu" #name suffix));                     \
  if (driver->name == nullptr) {                                                                                       \
    why = fmt::format("the CUDA driver {} is too old: it lacks cu" #name suffix "; 12.0 or newer is needed", file);    \
    return nullptr;                                                                                                    \
  }
  LATILE_CUDA_FUNCTIONS(LATILE_CUDA_LOAD)
#undef LATILE_CUDA_LOAD
  if (const Result result = driver->Init(0); result != kSuccess) {
    why = fmt::format("the CUDA driver {} finds no usable device: {}", file, driver->text(result));
    return nullptr;
  }
  driver->DriverGetVersion(&driver->version);
  if (driver->version < 12000) {
    why = fmt::format("the CUDA driver {} is version {}.{}; 12.0 or newer is needed", file, driver->version / 1000,
                      driver->version % 1000 / 10);
    return nullptr;
  }
  if (const Result result = driver->DeviceGetCount(&driver->devices); result != kSuccess) {
    why = fmt::format("the CUDA driver {} counts no devices: {}", file, driver->text(result));
    return nullptr;
  }
  return driver;
}

Driver::~Driver() {
  // An initialised driver stays: its own threads may be under way.
  if (library != nullptr && devices == 0) dlclose(library);
}

ChosenLibrary<Driver>& Driver::chosen() {
  static ChosenLibrary<Driver> one(open, "LATILE_CUDA_DRIVER", {"libcuda.so.1"});
  return one;
}

std::shared_ptr<const Driver> Driver::get(std::string& why) { return chosen().get(why); }

std::shared_ptr<const Driver> Driver::use(const std::string& file, std::string& why) {
  chosen().use(file);
  return get(why);
}

std::string Driver::text(Result result) const {
  const char *name = nullptr, *text = nullptr;
  if (GetErrorName(result, &name) != kSuccess || name == nullptr) return fmt::format("error {}", result);
  if (GetErrorString(result, &text) != kSuccess || text == nullptr) return name;
  return fmt::format("{} ({})", name, text);
}

void Driver::refuse(Result result, const char* what) const {
  throw Failure{LATILE_DRIVER, fmt::format("the CUDA driver refused {}: {}", what, text(result)), result};
}

}  // namespace latile::runtime::cuda
