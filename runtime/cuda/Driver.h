// The CUDA driver, loaded at run time: the part of its interface that latile calls, declared here so that the build
// needs no toolkit.
#pragma once
#include "runtime/ChosenLibrary.h"
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace latile::runtime::cuda {

using Result = int;
using DeviceHandle = int;
struct ContextOpaque;
struct ModuleOpaque;
struct FunctionOpaque;
struct StreamOpaque;
struct EventOpaque;
struct GraphOpaque;
struct GraphExecOpaque;
using ContextHandle = ContextOpaque*;
using ModuleHandle = ModuleOpaque*;
using Function = FunctionOpaque*;
using Stream = StreamOpaque*;
using Event = EventOpaque*;
using Graph = GraphOpaque*;
using GraphExec = GraphExecOpaque*;
using Pointer = unsigned long long;

inline constexpr Result kSuccess = 0, kNoDevice = 100, kSystemNotReady = 802, kStubLibrary = 34;
/// cuLaunchKernel's `extra`: the parameters as one buffer.
inline void* const kEnd = nullptr;
inline void* const kBufferPointer = reinterpret_cast<void*>(1);
inline void* const kBufferSize = reinterpret_cast<void*>(2);
enum Attribute : int {
  kMultiprocessors = 16,
  kMajor = 75,
  kMinor = 76,
  kSharedPerBlockOptin = 97,
};
enum FunctionAttribute : int {
  kMaxThreads = 0,
  kStaticShared = 1,
  kLocalBytes = 3,
  kRegisters = 4,
  kMaxDynamicShared = 8
};
enum JitOption : int { kInfoLog = 3, kInfoLogBytes = 4, kErrorLog = 5, kErrorLogBytes = 6, kSplitCompile = 34 };
inline constexpr int kSplitsCompiles = 13000;  ///< first version of the driver that knows kSplitCompile
inline constexpr unsigned kNonBlocking = 1, kCaptureThreadLocal = 1;

/// Name, its version suffix, and its arguments.
#define LATILE_CUDA_FUNCTIONS(F)                                                                                       \
  F(Init, "", (unsigned flags))                                                                                        \
  F(DriverGetVersion, "", (int* version))                                                                              \
  F(GetErrorName, "", (Result error, const char** name))                                                               \
  F(GetErrorString, "", (Result error, const char** text))                                                             \
  F(DeviceGetCount, "", (int* count))                                                                                  \
  F(DeviceGet, "", (DeviceHandle * device, int ordinal))                                                               \
  F(DeviceGetName, "", (char* name, int length, DeviceHandle device))                                                  \
  F(DeviceTotalMem, "_v2", (std::size_t* bytes, DeviceHandle device))                                                  \
  F(DeviceGetAttribute, "", (int* value, int attribute, DeviceHandle device))                                          \
  F(DevicePrimaryCtxRetain, "", (ContextHandle * context, DeviceHandle device))                                        \
  F(DevicePrimaryCtxRelease, "_v2", (DeviceHandle device))                                                             \
  F(CtxGetCurrent, "", (ContextHandle * context))                                                                      \
  F(CtxPushCurrent, "_v2", (ContextHandle context))                                                                    \
  F(CtxPopCurrent, "_v2", (ContextHandle * context))                                                                   \
  F(ModuleLoadDataEx, "", (ModuleHandle * module, const void* image, unsigned count, int* options, void** values))     \
  F(ModuleUnload, "", (ModuleHandle module))                                                                           \
  F(ModuleGetFunction, "", (Function * function, ModuleHandle module, const char* name))                               \
  F(FuncGetAttribute, "", (int* value, int attribute, Function function))                                              \
  F(FuncSetAttribute, "", (Function function, int attribute, int value))                                               \
  F(LaunchKernel, "",                                                                                                  \
    (Function function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,         \
     unsigned block_z, unsigned shared_bytes, Stream stream, void** parameters, void** extra))                         \
  F(MemAlloc, "_v2", (Pointer * memory, std::size_t bytes))                                                            \
  F(MemFree, "_v2", (Pointer memory))                                                                                  \
  F(MemsetD8Async, "", (Pointer memory, unsigned char value, std::size_t bytes, Stream stream))                        \
  F(MemcpyHtoD, "_v2", (Pointer to, const void* from, std::size_t bytes))                                              \
  F(MemcpyDtoHAsync, "_v2", (void* to, Pointer from, std::size_t bytes, Stream stream))                                \
  F(StreamCreate, "", (Stream * stream, unsigned flags))                                                               \
  F(StreamDestroy, "_v2", (Stream stream))                                                                             \
  F(StreamSynchronize, "", (Stream stream))                                                                            \
  F(StreamBeginCapture, "_v2", (Stream stream, int mode))                                                              \
  F(StreamEndCapture, "", (Stream stream, Graph * graph))                                                              \
  F(GraphInstantiateWithFlags, "", (GraphExec * executable, Graph graph, unsigned long long flags))                    \
  F(GraphLaunch, "", (GraphExec executable, Stream stream))                                                            \
  F(GraphExecDestroy, "", (GraphExec executable))                                                                      \
  F(GraphDestroy, "", (Graph graph))                                                                                   \
  F(EventCreate, "", (Event * event, unsigned flags))                                                                  \
  F(EventRecord, "", (Event event, Stream stream))                                                                     \
  F(EventSynchronize, "", (Event event))                                                                               \
  F(EventElapsedTime, "", (float* ms, Event start, Event end))                                                         \
  F(EventDestroy, "_v2", (Event event))

class Driver {
public:
  /// The process's driver, initialised; loaded from $LATILE_CUDA_DRIVER or libcuda.so.1. Null: there is none, and `why`
  /// says so in a sentence.
  static std::shared_ptr<const Driver> get(std::string& why);
  /// The same from a file, for every later get() of this process. For tests.
  static std::shared_ptr<const Driver> use(const std::string& file, std::string& why);
  ~Driver();
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  /// Throws Failure (DRIVER, with the driver's code) unless `result` is success. `what`: "loading code on device 0".
  void check(Result result, const char* what) const {
    if (result != kSuccess) refuse(result, what);
  }
  /// "CUDA_ERROR_INVALID_VALUE (invalid argument)"
  std::string text(Result result) const;

#define LATILE_CUDA_POINTER(name, suffix, arguments) Result(*name) arguments = nullptr;
  LATILE_CUDA_FUNCTIONS(LATILE_CUDA_POINTER)
#undef LATILE_CUDA_POINTER

  std::string file;
  int version = 0;  ///< 13000: 13.0
  int devices = 0;

private:
  Driver() = default;
  static std::shared_ptr<const Driver> open(const std::string& file, std::string& why);
  static ChosenLibrary<Driver>& chosen();
  [[noreturn]] void refuse(Result result, const char* what) const;
  void* library = nullptr;
};

/// Makes a context current for the scope, unless it is already.
class Current {
public:
  Current(const Driver& driver, ContextHandle context) : driver(driver) {
    ContextHandle now = nullptr;
    driver.check(driver.CtxGetCurrent(&now), "asking for the current context");
    if (now == context) return;
    driver.check(driver.CtxPushCurrent(context), "making a context current");
    pushed = true;
  }
  ~Current() {
    ContextHandle old = nullptr;
    if (pushed) driver.CtxPopCurrent(&old);
  }
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;

private:
  const Driver& driver;
  bool pushed = false;
};

}  // namespace latile::runtime::cuda
