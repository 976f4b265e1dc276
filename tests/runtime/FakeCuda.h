// A CUDA driver that is none: it records what it is asked for and runs the toy operator's kernels on host memory. In a
// process whose environment has FAKE_CUDA_ANY it takes any code, and its kernels do nothing.
#pragma once
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace latile::test {

struct FakeLaunch {
  std::string kernel;
  unsigned grid = 0, threads = 0, shared_bytes = 0;
  void* stream = nullptr;
  std::vector<std::int64_t> parameters;
  std::thread::id thread;
};

/// Guarded by the mutex while other threads call the driver.
struct FakeCuda {
  std::mutex mutex;
  std::map<std::string, int> calls;  ///< by name, "cuMemAlloc"
  std::vector<FakeLaunch> launches;
  std::map<std::string, int> opted_shared;  ///< bytes by kernel, of cuFuncSetAttribute
  std::string failing;                      ///< the call that fails, with error 719
  int loaded_modules = 0, retained_contexts = 0;
  int version = 13000;            ///< of the driver that opens the fake next
  std::vector<int> load_options;  ///< of the last module
  bool records_launches = true;   ///< false: so that the fake allocates nothing
};

}  // namespace latile::test

/// Exported by the library beside the driver's entries.
extern "C" latile::test::FakeCuda* fake_cuda(void);
