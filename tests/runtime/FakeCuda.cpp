#include "FakeCuda.h"
#include "runtime/cuda/Driver.h"
#include <algorithm>
#include <cstdlib>
#include <cstring>

using namespace latile::runtime::cuda;
using latile::test::FakeCuda;

namespace {

constexpr Result kInvalidValue = 1, kInvalidPtx = 218, kNotFound = 500, kLaunchFailed = 719;

/// In a process of the command every kernel is there, and does nothing; launches are recorded on demand.
const bool any_kernel = std::getenv("FAKE_CUDA_ANY") != nullptr;
FakeCuda fake;
thread_local std::vector<ContextHandle> current;

/// Counts a call; the result that it is to have.
Result called(const char* name) {
  const std::lock_guard lock(fake.mutex);
  ++fake.calls[name];
  return fake.failing == name ? kLaunchFailed : kSuccess;
}

ContextHandle context_of(int device) {
  static char contexts[4];
  return reinterpret_cast<ContextHandle>(&contexts[device]);
}

/// Parameters, as a kernel of one block after another would read them.
using Run = void (*)(const std::int64_t* p, std::int64_t blocks);

template <class T> T* pointer(std::int64_t value) { return reinterpret_cast<T*>(value); }

/// cu_seqlens, table; their strides; N, T, chunks. A place for each chunk without a sum over sequences.
void table(const std::int64_t* p, std::int64_t blocks) {
  const auto* borders = pointer<const std::int32_t>(p[0]);
  auto* rows = pointer<std::int32_t>(p[1]);
  const std::int64_t sequences = p[6], chunks = p[8];
  if (blocks != 1 || p[2] != 1 || p[3] != 3 || p[4] != 3 || p[5] != 1) std::abort();
  for (std::int64_t i = 0; i < chunks; ++i) rows[3 * i] = -1;
  for (std::int32_t n = 0; n < sequences; ++n)
    for (std::int32_t first = borders[n], i = 0; first < borders[n + 1]; first += 16, ++i) {
      const std::int64_t place = borders[n] / 16 + n + i;
      if (place >= chunks) std::abort();
      rows[3 * place] = n, rows[3 * place + 1] = first, rows[3 * place + 2] = std::min(borders[n + 1] - first, 16);
    }
}

/// o = scale * v for one half of V of a chunk's rows. v, o; strides of both; T, HV, V, chunks, B; scale.
void scale(const std::int64_t* p, std::int64_t blocks, const std::int32_t* rows) {
  const auto* v = pointer<const float>(p[0]);
  auto* o = pointer<float>(p[1]);
  const std::int64_t *vs = p + 2, *os = p + 6, T = p[10], HV = p[11], V = p[12], chunks = p[13], B = p[14];
  double factor = 0;
  std::memcpy(&factor, p + 15, sizeof factor);
  if (blocks != chunks * HV * 2) std::abort();
  for (std::int64_t block = 0; block < blocks; ++block) {
    const std::int64_t slice = block % 2, head = block / 2 % HV, chunk = block / 2 / HV;
    std::int64_t batch = 0, first = 0, count = 0;
    if (rows != nullptr) {
      if (rows[3 * chunk] < 0) continue;
      first = rows[3 * chunk + 1], count = rows[3 * chunk + 2];
    } else {
      const std::int64_t each = (T + 15) / 16;
      batch = chunk / each, first = chunk % each * 16, count = std::min<std::int64_t>(16, T - first);
      if (batch >= B) std::abort();
    }
    for (std::int64_t t = first; t < first + count; ++t)
      for (std::int64_t i = slice * (V / 2); i < (slice == 0 ? V / 2 : V); ++i)
        o[batch * os[0] + t * os[1] + head * os[2] + i * os[3]] =
            static_cast<float>(factor * static_cast<double>(v[batch * vs[0] + t * vs[1] + head * vs[2] + i * vs[3]]));
  }
}

void scale_dense(const std::int64_t* p, std::int64_t blocks) { scale(p, blocks, nullptr); }

/// A block after another fills its arena; the arenas, the bytes from one to the next, items and blocks beside the rest.
void scale_in_arenas(const std::int64_t* p, std::int64_t blocks) {
  if (blocks != p[19] || blocks > p[18] || p[17] < 100000) std::abort();
  for (std::int64_t block = 0; block < blocks; ++block)
    std::fill_n(pointer<char>(p[16] + block * p[17]), 100000, static_cast<char>(block));
  for (std::int64_t block = 0; block < blocks; ++block)
    if (*pointer<char>(p[16] + block * p[17]) != static_cast<char>(block)) std::abort();
  scale(p, p[18], nullptr);
}

/// The table and its strides beside the rest.
void scale_ragged(const std::int64_t* p, std::int64_t blocks) {
  std::int64_t rest[16];
  rest[0] = p[1], rest[1] = p[2];
  std::copy_n(p + 6, 14, rest + 2);
  scale(rest, blocks, pointer<const std::int32_t>(p[0]));
}

struct Kernel {
  const char* name;
  std::size_t parameters;
  Run run;
};
Kernel kernels[] = {{"toy_table", 9, table},
                    {"toy_scale", 16, scale_dense},
                    {"toy_scale_ragged", 20, scale_ragged},
                    {"toy_scale_in_arenas", 20, scale_in_arenas}};

void launch(const Kernel& kernel, unsigned grid, unsigned threads, unsigned shared, Stream stream, void** extra) {
  const auto* parameters = static_cast<const std::int64_t*>(extra[1]);
  {
    const std::lock_guard lock(fake.mutex);
    if (fake.records_launches)
      fake.launches.push_back({kernel.name, grid, threads, shared, stream,
                               std::vector<std::int64_t>(parameters, parameters + kernel.parameters),
                               std::this_thread::get_id()});
  }
  kernel.run(parameters, grid);
}

}  // namespace

#define FAKE __attribute__((visibility("default")))

extern "C" {

FAKE FakeCuda* fake_cuda(void) { return &fake; }

FAKE Result cuInit(unsigned) {
  fake.records_launches &= !any_kernel;
  return called("cuInit");
}
FAKE Result cuDriverGetVersion(int* version) { return *version = fake.version, kSuccess; }
FAKE Result cuGetErrorName(Result error, const char** name) {
  *name = error == kLaunchFailed ? "CUDA_ERROR_LAUNCH_FAILED"
          : error == kInvalidPtx ? "CUDA_ERROR_INVALID_PTX"
                                 : "CUDA_ERROR_OTHER";
  return kSuccess;
}
FAKE Result cuGetErrorString(Result error, const char** text) {
  *text = error == kLaunchFailed ? "unspecified launch failure" : "something else";
  return kSuccess;
}
FAKE Result cuDeviceGetCount(int* count) { return *count = 3, kSuccess; }
FAKE Result cuDeviceGet(DeviceHandle* device, int ordinal) { return *device = ordinal, kSuccess; }
FAKE Result cuDeviceGetName(char* name, int length, DeviceHandle device) {
  std::strncpy(name, device == 2 ? "Old" : "Fake", static_cast<std::size_t>(length));
  return kSuccess;
}
FAKE Result cuDeviceTotalMem_v2(std::size_t* bytes, DeviceHandle) { return *bytes = std::size_t{80} << 30, kSuccess; }
FAKE Result cuDeviceGetAttribute(int* value, int attribute, DeviceHandle device) {
  *value = attribute == kMajor ? (device == 2 ? 7 : 9) : attribute == kMinor ? (device == 2 ? 5 : 0) : 0;
  if (attribute == kSharedPerBlockOptin) *value = 227 << 10;
  if (attribute == kMultiprocessors) *value = 132;
  return kSuccess;
}
FAKE Result cuDevicePrimaryCtxRetain(ContextHandle* context, DeviceHandle device) {
  const std::lock_guard lock(fake.mutex);
  ++fake.retained_contexts;
  return *context = context_of(device), kSuccess;
}
FAKE Result cuDevicePrimaryCtxRelease_v2(DeviceHandle) {
  const std::lock_guard lock(fake.mutex);
  return --fake.retained_contexts, kSuccess;
}
FAKE Result cuCtxGetCurrent(ContextHandle* context) {
  return *context = current.empty() ? nullptr : current.back(), kSuccess;
}
FAKE Result cuCtxPushCurrent_v2(ContextHandle context) { return current.push_back(context), kSuccess; }
FAKE Result cuCtxPopCurrent_v2(ContextHandle* context) {
  if (current.empty()) return kInvalidValue;
  *context = current.back();
  return current.pop_back(), kSuccess;
}
FAKE Result cuModuleLoadDataEx(ModuleHandle* module, const void* image, unsigned count, int* options, void** values) {
  if (const Result result = called("cuModuleLoadDataEx"); result != kSuccess) return result;
  if (current.empty()) return kInvalidValue;
  {
    const std::lock_guard lock(fake.mutex);
    fake.load_options.assign(options, options + count);
  }
  if (std::strstr(static_cast<const char*>(image), "broken") != nullptr) {
    for (unsigned i = 0; i < count; ++i)
      if (options[i] == kErrorLog) std::strcpy(static_cast<char*>(values[i]), "ptxas: line 7\nis broken");
    return kInvalidPtx;
  }
  const std::lock_guard lock(fake.mutex);
  ++fake.loaded_modules;
  return *module = reinterpret_cast<ModuleHandle>(kernels), kSuccess;
}
FAKE Result cuModuleUnload(ModuleHandle) {
  const std::lock_guard lock(fake.mutex);
  return --fake.loaded_modules, kSuccess;
}
FAKE Result cuModuleGetFunction(Function* function, ModuleHandle, const char* name) {
  for (Kernel& kernel : kernels)
    if (std::strcmp(kernel.name, name) == 0) return *function = reinterpret_cast<Function>(&kernel), kSuccess;
  if (!any_kernel) return kNotFound;
  const std::lock_guard lock(fake.mutex);
  static std::map<std::string, Kernel, std::less<>> empty_kernels;
  auto [known, fresh] = empty_kernels.try_emplace(name);
  if (fresh) known->second = {known->first.c_str(), 0, [](const std::int64_t*, std::int64_t) {}};
  return *function = reinterpret_cast<Function>(&known->second), kSuccess;
}
FAKE Result cuFuncGetAttribute(int* value, int attribute, Function) {
  return *value = attribute == kMaxThreads ? 512 : attribute == kRegisters ? 40 : 0, kSuccess;
}
FAKE Result cuFuncSetAttribute(Function function, int attribute, int value) {
  const std::lock_guard lock(fake.mutex);
  if (attribute == kMaxDynamicShared) fake.opted_shared[reinterpret_cast<Kernel*>(function)->name] = value;
  return kSuccess;
}
FAKE Result cuLaunchKernel(Function function, unsigned x, unsigned y, unsigned z, unsigned threads, unsigned ty,
                           unsigned tz, unsigned shared, Stream stream, void** parameters, void** extra) {
  if (const Result result = called("cuLaunchKernel"); result != kSuccess) return result;
  Kernel kernel = *reinterpret_cast<Kernel*>(function);
  if (any_kernel) kernel.parameters = *static_cast<std::size_t*>(extra[3]) / 8;
  const bool shape = x > 0 && y == 1 && z == 1 && ty == 1 && tz == 1 && parameters == nullptr && !current.empty();
  if (!shape || extra[0] != kBufferPointer || extra[2] != kBufferSize || extra[4] != kEnd ||
      *static_cast<std::size_t*>(extra[3]) != kernel.parameters * 8)
    return kInvalidValue;
  launch(kernel, x, threads, shared, stream, extra);
  return kSuccess;
}
FAKE Result cuMemAlloc_v2(Pointer* memory, std::size_t bytes) {
  called("cuMemAlloc");
  *memory = reinterpret_cast<Pointer>(std::aligned_alloc(256, (bytes / 256 + 1) * 256));
  return kSuccess;
}
FAKE Result cuMemFree_v2(Pointer memory) { return std::free(reinterpret_cast<void*>(memory)), kSuccess; }
FAKE Result cuMemsetD8Async(Pointer memory, unsigned char value, std::size_t bytes, Stream) {
  called("cuMemsetD8Async");
  return std::memset(reinterpret_cast<void*>(memory), value, bytes), kSuccess;
}
FAKE Result cuMemcpyHtoD_v2(Pointer to, const void* from, std::size_t bytes) {
  called("cuMemcpyHtoD");
  return std::memcpy(reinterpret_cast<void*>(to), from, bytes), kSuccess;
}
FAKE Result cuMemcpyDtoHAsync_v2(void* to, Pointer from, std::size_t bytes, Stream) {
  called("cuMemcpyDtoHAsync");
  return std::memcpy(to, reinterpret_cast<const void*>(from), bytes), kSuccess;
}
FAKE Result cuStreamCreate(Stream* stream, unsigned) { return *stream = reinterpret_cast<Stream>(new char), kSuccess; }
FAKE Result cuStreamDestroy_v2(Stream stream) { return delete reinterpret_cast<char*>(stream), kSuccess; }
FAKE Result cuStreamSynchronize(Stream) { return called("cuStreamSynchronize"); }
FAKE Result cuStreamBeginCapture_v2(Stream, int) { return called("cuStreamBeginCapture"); }
FAKE Result cuStreamEndCapture(Stream, Graph*) { return called("cuStreamEndCapture"); }
FAKE Result cuGraphInstantiateWithFlags(GraphExec*, Graph, unsigned long long) { return kSuccess; }
FAKE Result cuGraphLaunch(GraphExec, Stream) { return kSuccess; }
FAKE Result cuGraphExecDestroy(GraphExec) { return kSuccess; }
FAKE Result cuGraphDestroy(Graph) { return kSuccess; }
FAKE Result cuEventCreate(Event*, unsigned) { return kSuccess; }
FAKE Result cuEventRecord(Event, Stream) { return kSuccess; }
FAKE Result cuEventSynchronize(Event) { return kSuccess; }
FAKE Result cuEventElapsedTime(float* ms, Event, Event) { return *ms = 1, kSuccess; }
FAKE Result cuEventDestroy_v2(Event) { return kSuccess; }

}  // extern "C"
