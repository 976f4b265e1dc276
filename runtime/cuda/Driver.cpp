#include "runtime/cuda/Driver.h"
#include "runtime/Failure.h"
#include <cstdlib>
#include <dlfcn.h>
#include <mutex>

namespace latile::runtime::cuda {
namespace {

struct Chosen {
  std::mutex mutex;
  bool tried = false;
  std::shared_ptr<const Driver> driver;
  std::string why;
};

Chosen& chosen() {
  static Chosen one;
  return one;
}

}  // namespace

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

std::shared_ptr<const Driver> Driver::get(std::string& why) {
  Chosen& choice = chosen();
  const std::lock_guard lock(choice.mutex);
  if (!choice.tried) {
    choice.tried = true;
    const char* file = secure_getenv("LATILE_CUDA_DRIVER");
    choice.driver = open(file != nullptr && *file != 0 ? file : "libcuda.so.1", choice.why);
  }
  why = choice.why;
  return choice.driver;
}

std::shared_ptr<const Driver> Driver::use(const std::string& file, std::string& why) {
  Chosen& choice = chosen();
  const std::lock_guard lock(choice.mutex);
  choice.tried = true;
  choice.why.clear();
  choice.driver = open(file, choice.why);
  why = choice.why;
  return choice.driver;
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
