#include "runtime/cuda/CudaDevice.h"
#include "runtime/Failure.h"
#include <algorithm>

namespace latile::runtime::cuda {
namespace {

constexpr std::size_t kUsualShared = 48 << 10;

Pointer pointer(const void* memory) { return reinterpret_cast<Pointer>(memory); }

/// Code of one artifact: a module of the driver for each part.
class CudaModule : public DeviceModule {
public:
  /// The device is kept: with its last owner the primary context may go.
  CudaModule(std::shared_ptr<const Driver> driver, ContextHandle context, int ordinal, int shared)
      : driver(std::move(driver)), context(context), ordinal(ordinal), shared(shared) {}
  ~CudaModule() override {
    try {
      const Current current(*driver, context);
      for (ModuleHandle module : modules)
        if (module != nullptr) driver->ModuleUnload(module);
    } catch (...) {
      // The context is gone already, and the modules with it: the process ends.
    }
  }

  void load(const Artifact& artifact) {
    const Current current(*driver, context);
    for (int part = 0; part <= static_cast<int>(artifact.parts.size()); ++part) {
      modules.push_back(nullptr);
      const bool used = std::any_of(artifact.kernels.begin(), artifact.kernels.end(),
                                    [&](const KernelFacts& facts) { return facts.part == part; });
      if (used) load(artifact, part);
    }
  }

  DeviceKernel kernel(const KernelFacts& facts) override {
    const Current current(*driver, context);
    Function function = nullptr;
    if (facts.part < 0 || static_cast<std::size_t>(facts.part) >= modules.size())
      fail(LATILE_INTERNAL, "kernel {} is in part {} of {} parts of code", facts.symbol, facts.part, modules.size());
    driver->check(
        driver->ModuleGetFunction(&function, modules[static_cast<std::size_t>(facts.part)], facts.symbol.c_str()),
        "finding a kernel in its code");
    int of_function = 0, threads = 0, registers = 0, local = 0;
    driver->check(driver->FuncGetAttribute(&of_function, kStaticShared, function), "asking for static shared memory");
    driver->check(driver->FuncGetAttribute(&threads, kMaxThreads, function), "asking for the most threads of a kernel");
    driver->check(driver->FuncGetAttribute(&registers, kRegisters, function), "asking for registers");
    driver->check(driver->FuncGetAttribute(&local, kLocalBytes, function), "asking for local memory");
    const std::size_t wanted = facts.shared_bytes + static_cast<std::size_t>(of_function);
    if (wanted > static_cast<std::size_t>(shared))
      fail(LATILE_NO_DEVICE, "kernel {} needs {} bytes of shared memory, CUDA device {} has {} a block", facts.symbol,
           wanted, ordinal, shared);
    if (facts.threads > threads)
      fail(LATILE_NO_DEVICE, "kernel {} has {} threads a block, CUDA device {} runs at most {} with its registers",
           facts.symbol, facts.threads, ordinal, threads);
    if (wanted > kUsualShared)
      driver->check(driver->FuncSetAttribute(function, kMaxDynamicShared, static_cast<int>(facts.shared_bytes)),
                    "more than 48 KiB of shared memory");
    return {function, registers, static_cast<std::size_t>(local)};
  }

private:
  void load(const Artifact& artifact, int part) {
    char errors[4096] = {};
    // Kernels of PTX are compiled side by side, on all of the machine's CPUs.
    int options[] = {kErrorLog, kErrorLogBytes, kSplitCompile};
    void* values[] = {errors, reinterpret_cast<void*>(sizeof errors - 1), nullptr};
    const unsigned known = driver->version >= kSplitsCompiles ? 3 : 2;
    const char* code = artifact.part(part);
    if (code == nullptr) fail(LATILE_INTERNAL, "part {} of the code for {} is not there", part, artifact.target);
    const Result result = driver->ModuleLoadDataEx(&modules.back(), code, known, options, values);
    if (result == kSuccess) return;
    modules.back() = nullptr;
    std::string log = errors;
    std::replace(log.begin(), log.end(), '\n', ' ');
    throw Failure{LATILE_DRIVER,
                  fmt::format("the CUDA driver refused code for {} on device {}: {}{}{}", artifact.target, ordinal,
                              driver->text(result), log.empty() ? "" : ": ", log),
                  result};
  }

  std::shared_ptr<const Driver> driver;
  ContextHandle context;
  int ordinal, shared;
  std::vector<ModuleHandle> modules;
};

}  // namespace

CudaDevice::CudaDevice(std::shared_ptr<const Driver> loaded, int ordinal) : driver(std::move(loaded)), number(ordinal) {
  driver->check(driver->DeviceGet(&handle, number), "a device");
  const auto attribute = [&](Attribute which) {
    int value = 0;
    driver->check(driver->DeviceGetAttribute(&value, which, handle), "a device attribute");
    return value;
  };
  major = attribute(kMajor), minor = attribute(kMinor);
  shared = attribute(kSharedPerBlockOptin);
  processors = attribute(kMultiprocessors);
  char text[256] = {};
  driver->check(driver->DeviceGetName(text, sizeof text - 1, handle), "a device's name");
  driver->check(driver->DeviceTotalMem(&memory_bytes, handle), "a device's memory");
  the_name = text;
  if (major < 8)
    fail(LATILE_NO_DEVICE, "CUDA device {} ({}) has compute capability {}.{}; 8.0 or newer is needed", number, the_name,
         major, minor);
  the_target = fmt::format("cuda:sm_{}{}", major, minor);
  driver->check(driver->DevicePrimaryCtxRetain(&primary, handle), "the primary context of a device");
}

CudaDevice::~CudaDevice() { driver->DevicePrimaryCtxRelease(handle); }

std::string CudaDevice::description() const {
  return fmt::format("{}, {}, {} multiprocessors, {:.0f} GiB, {} KiB of shared memory a block, CUDA {}.{}", the_name,
                     the_target.substr(5), processors, static_cast<double>(memory_bytes) / (1 << 30), shared / 1024,
                     driver->version / 1000, driver->version % 1000 / 10);
}

std::shared_ptr<DeviceModule> CudaDevice::load(const Artifact& artifact) {
  auto module = std::make_shared<CudaModule>(driver, primary, number, shared);
  module->load(artifact);
  return module;
}

void CudaDevice::launch(const DeviceRun& run, std::span<const DeviceLaunch> launches) {
  const Current current(*driver, primary);
  std::size_t begun = 0;
  for (const DeviceLaunch& each : launches) {
    if (begun < marks.size())
      driver->check(driver->EventRecord(marks[begun++], static_cast<Stream>(run.stream)), "a mark");
    std::size_t bytes = each.parameters.size_bytes();
    void* extra[] = {kBufferPointer, each.parameters.data(), kBufferSize, &bytes, kEnd};
    driver->check(driver->LaunchKernel(static_cast<Function>(each.kernel), static_cast<unsigned>(each.blocks), 1, 1,
                                       static_cast<unsigned>(each.threads), 1, 1,
                                       static_cast<unsigned>(each.shared_bytes), static_cast<Stream>(run.stream),
                                       nullptr, extra),
                  each.symbol);
  }
  if (begun < marks.size()) driver->check(driver->EventRecord(marks[begun], static_cast<Stream>(run.stream)), "a mark");
}

void* CudaDevice::allocate(std::size_t bytes) {
  const Current current(*driver, primary);
  Pointer memory = 0;
  driver->check(driver->MemAlloc(&memory, std::max<std::size_t>(bytes, 1)), "memory of a device");
  return reinterpret_cast<void*>(memory);
}

void CudaDevice::release(void* memory) noexcept {
  if (memory == nullptr) return;
  try {
    const Current current(*driver, primary);
    driver->MemFree(pointer(memory));
  } catch (...) {
    // A context that is gone has freed it.
  }
}

void CudaDevice::fill(void* memory, int byte, std::size_t bytes) {
  if (bytes == 0) return;
  const Current current(*driver, primary);
  driver->check(driver->MemsetD8Async(pointer(memory), static_cast<unsigned char>(byte), bytes, nullptr),
                "filling memory");
  driver->check(driver->StreamSynchronize(nullptr), "waiting for memory to be filled");
}

void CudaDevice::copy_in(void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  const Current current(*driver, primary);
  driver->check(driver->MemcpyHtoD(pointer(to), from, bytes), "a copy to the device");
}

void CudaDevice::copy_out(void* to, const void* from, std::size_t bytes, void* stream) {
  if (bytes == 0) return;
  const Current current(*driver, primary);
  const auto queue = static_cast<Stream>(stream);
  driver->check(driver->MemcpyDtoHAsync(to, pointer(from), bytes, queue), "a copy from the device");
  driver->check(driver->StreamSynchronize(queue), "waiting for the device");
}

void CudaDevice::synchronise(void* stream) {
  const Current current(*driver, primary);
  driver->check(driver->StreamSynchronize(static_cast<Stream>(stream)), "waiting for the device");
}

std::shared_ptr<Device> make_device(std::int32_t id) {
  std::string why;
  std::shared_ptr<const Driver> driver = Driver::get(why);
  if (!driver) fail(LATILE_NO_DEVICE, "there is no CUDA device {}: {}", id, why);
  if (id < 0 || id >= driver->devices)
    fail(LATILE_NO_DEVICE, "there is no CUDA device {}; the driver has {} (0 to {})", id, driver->devices,
         driver->devices - 1);
  return std::make_shared<CudaDevice>(std::move(driver), id);
}

std::string machine(bool& usable) {
  std::string text;
  const std::shared_ptr<const Driver> driver = Driver::get(text);
  usable = driver != nullptr && driver->devices > 0;
  if (!driver) return text;
  text = fmt::format("driver {}.{} from {}, {} device{}", driver->version / 1000, driver->version % 1000 / 10,
                     driver->file, driver->devices, driver->devices == 1 ? "" : "s");
  for (int i = 0; i < driver->devices; ++i) {
    DeviceHandle handle = 0;
    char name[256] = {};
    int major = 0, minor = 0;
    if (driver->DeviceGet(&handle, i) != kSuccess || driver->DeviceGetName(name, sizeof name - 1, handle) != kSuccess ||
        driver->DeviceGetAttribute(&major, kMajor, handle) != kSuccess ||
        driver->DeviceGetAttribute(&minor, kMinor, handle) != kSuccess)
      continue;
    text += fmt::format("; {}: {}, sm_{}{}{}", i, name, major, minor, major < 8 ? " (too old: sm_80 is needed)" : "");
  }
  return text;
}

}  // namespace latile::runtime::cuda
