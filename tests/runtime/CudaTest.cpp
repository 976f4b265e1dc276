// Plans on CUDA devices against a driver that records what it is asked for: arguments of launches, streams, errors, and
// that a run neither allocates nor waits.
#include "FakeCuda.h"
#include "runtime/cuda/Driver.h"
#include "Toy.h"
#include <algorithm>
#include <cmath>
#include <cstring>
#include <dlfcn.h>
#include <doctest/doctest.h>
#include <functional>
#include <memory>
#include <optional>
#include <thread>

using namespace latile;
using namespace latile::test;
using runtime::cuda::Driver;

namespace {

/// The fake as this process's driver, its records empty.
FakeCuda& fake() {
  std::string why;
  static const std::shared_ptr<const Driver> driver = Driver::use(FAKE_CUDA, why);
  REQUIRE_MESSAGE(driver, why);
  static auto* record =
      reinterpret_cast<FakeCuda* (*)()>(dlsym(dlopen(FAKE_CUDA, RTLD_NOW | RTLD_NOLOAD), "fake_cuda"))();
  record->calls.clear(), record->launches.clear(), record->opted_shared.clear(), record->failing.clear();
  return *record;
}

struct Aligned {
  explicit Aligned(std::size_t bytes) : bytes(bytes + 256) {
    void* start = this->bytes.data();
    std::size_t room = this->bytes.size();
    memory = static_cast<std::byte*>(std::align(256, bytes, start, room));
    std::memset(this->bytes.data(), 0xff, this->bytes.size());
    size = bytes;
  }
  std::vector<std::byte> bytes;
  std::byte* memory = nullptr;
  std::size_t size = 0;
  std::span<std::byte> span() { return {memory, size}; }
};

struct OnDevice {
  explicit OnDevice(api::Context& context, Problem& p, int id = 0) : description("toy", p.mode) {
    p.make();
    p.describe(description);
    description.device(LATILE_CUDA, id);
    plan.emplace(context, description);
    workspace.emplace(plan->workspace(p.dims));
  }
  void run(Problem& p, void* stream = nullptr) {
    plan->run(p.data, p.dims, p.strides, workspace->span(), nullptr, stream);
  }
  api::PlanDescription description;
  std::optional<api::Plan> plan;
  std::optional<Aligned> workspace;
};

/// o = v / sqrt(K) in the rows of some sequence, and NaN elsewhere.
bool right(const Problem& p) {
  const std::int64_t rows = p.borders.empty() ? p.B * p.T : p.borders.back();
  for (std::size_t i = 0; i < p.o.size(); ++i) {
    const bool row = static_cast<std::int64_t>(i) / (p.HV * p.V) < rows;
    const float want = static_cast<float>(static_cast<double>(p.v[i]) / std::sqrt(static_cast<double>(p.K)));
    if (row ? p.o[i] != want : !std::isnan(p.o[i])) return false;
  }
  return true;
}

latile_status status_of(const std::function<void()>& call, std::string& text) {
  try {
    call();
  } catch (const api::Error& error) { return text = error.what(), error.status(); }
  return LATILE_OK;
}

}  // namespace

TEST_CASE("cuda: a dense plan's launch has the caller's pointers, strides, dims and stream") {
  FakeCuda& record = fake();
  api::Context context(1, "");
  Problem p;
  p.B = 2, p.T = 40;
  OnDevice on(context, p);
  int stream = 0;
  on.run(p, &stream);
  CHECK(right(p));
  REQUIRE(record.launches.size() == 1);
  const FakeLaunch& launch = record.launches[0];
  CHECK(launch.kernel == "toy_scale");
  CHECK(launch.grid == 2 * 3 * 4 * 2);  // sequences, chunks of 16, heads, slices
  CHECK(launch.threads == 64);
  CHECK(launch.shared_bytes == 1024);
  CHECK(launch.stream == &stream);
  const auto address = [](const void* pointer) { return reinterpret_cast<std::int64_t>(pointer); };
  double scale = 1 / std::sqrt(8.0);
  std::int64_t bits = 0;
  std::memcpy(&bits, &scale, 8);
  CHECK(launch.parameters == std::vector<std::int64_t>{address(p.v.data()), address(p.o.data()), 40 * 4 * 12, 4 * 12,
                                                       12, 1, 40 * 4 * 12, 4 * 12, 12, 1, 40, 4, 12, 6, 2, bits});
  const std::string stages = on.plan->stages();
  CHECK(stages.find("cuda:sm_90") != std::string::npos);
  CHECK(stages.find(R"({"name":"toy_scale","threads":64,"shared_bytes":1024,"registers":40,"local_bytes":0})") !=
        std::string::npos);
  CHECK(on.plan->parts(p.dims) == 1);
}

TEST_CASE("cuda: a plan of two kernels, ragged, shares a workspace for T / C + N chunks that no head axis has") {
  FakeCuda& record = fake();
  api::Context context(1, "");
  Problem p;
  p.T = 150, p.borders = {0, 0, 0, 1, 17, 17, 140};
  OnDevice on(context, p);
  CHECK(on.plan->workspace(p.dims) == (3 * 4 * (150 / 16 + 6) + 255) / 256 * 256);
  on.run(p);
  CHECK(right(p));
  REQUIRE(record.launches.size() == 2);
  CHECK(record.launches[0].kernel == "toy_table");
  CHECK(record.launches[0].grid == 1);
  CHECK(record.launches[1].kernel == "toy_scale_ragged");
  CHECK(record.launches[1].grid == (150 / 16 + 6) * 4 * 2);
  CHECK(record.launches[1].parameters[0] == reinterpret_cast<std::int64_t>(on.workspace->memory));
}

TEST_CASE("cuda: blocks with arenas are at most 256, and their arenas lie in the workspace") {
  FakeCuda& record = fake();
  api::Context context(1, "");
  for (const std::int64_t batch : {1, 50}) {
    Problem p;
    p.options = {{"n", "5"}};
    p.B = batch, p.T = 40;
    OnDevice on(context, p);
    const std::int64_t items = batch * 3 * 4 * 2, blocks = std::min<std::int64_t>(items, 256), stride = 25 * 4096;
    CHECK(on.plan->workspace(p.dims) == static_cast<std::size_t>(blocks * stride));
    record.launches.clear();
    on.run(p);
    CHECK(right(p));
    REQUIRE(record.launches.size() == 1);
    const FakeLaunch& launch = record.launches[0];
    CHECK(launch.grid == blocks);
    const auto arenas = reinterpret_cast<std::int64_t>(on.workspace->memory);
    CHECK(std::vector(launch.parameters.end() - 4, launch.parameters.end()) ==
          std::vector<std::int64_t>{arenas, stride, items, blocks});
  }
}

TEST_CASE("cuda: a run neither allocates nor waits nor copies, and leaves the thread's context as it was") {
  FakeCuda& record = fake();
  api::Context context(1, "");
  Problem p;
  p.T = 100, p.borders = {0, 30, 100};
  OnDevice on(context, p);
  record.calls.clear();
  for (int i = 0; i < 5; ++i) on.run(p);
  CHECK(record.calls == std::map<std::string, int>{{"cuLaunchKernel", 10}});
  std::string why;
  runtime::cuda::ContextHandle now = nullptr;
  Driver::get(why)->CtxGetCurrent(&now);
  CHECK(now == nullptr);
}

TEST_CASE("cuda: no sequence and no row are no launch") {
  FakeCuda& record = fake();
  api::Context context(1, "");
  Problem p;
  p.B = 2, p.T = 4;
  OnDevice on(context, p);
  p.dims[5] = 0;  // T
  on.run(p);
  p.dims[4] = p.dims[6] = 0;  // B, N
  on.run(p);
  CHECK(record.launches.empty());
}

TEST_CASE("cuda: threads share a plan, each with its stream") {
  FakeCuda& record = fake();
  api::Context context(1, "");
  std::vector<Problem> problems(8);
  OnDevice on(context, problems[0]);
  std::vector<std::thread> threads;
  for (Problem& p : problems) {
    if (&p != &problems[0]) p.make();
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i) on.plan->run(p.data, p.dims, p.strides, {}, nullptr, &p);
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(record.launches.size() == 160);
  for (const FakeLaunch& launch : record.launches)
    CHECK(launch.parameters[1] == reinterpret_cast<std::int64_t>(static_cast<Problem*>(launch.stream)->o.data()));
  for (const Problem& p : problems) CHECK(right(p));
}

TEST_CASE("cuda: shared memory above 48 KiB is asked for, above the device's limit refused") {
  FakeCuda& record = fake();
  api::Context context(1, "");
  Problem p;
  p.options = {{"n", "2"}};
  OnDevice on(context, p);
  CHECK(record.opted_shared == std::map<std::string, int>{{"toy_scale", 100 << 10}});
  on.run(p);
  CHECK(record.launches[0].shared_bytes == 100 << 10);
  Problem large;
  large.options = {{"n", "3"}};
  std::string text;
  CHECK(status_of([&] { OnDevice refused(context, large); }, text) == LATILE_NO_DEVICE);
  CHECK(text == "kernel toy_scale needs 307200 bytes of shared memory, CUDA device 0 has 232448 a block");
}

TEST_CASE("cuda: what the driver refuses is told in its words") {
  FakeCuda& record = fake();
  api::Context context(1, "");
  Problem p, broken;
  broken.options = {{"n", "4"}};
  std::string text;
  CHECK(status_of([&] { OnDevice refused(context, broken); }, text) == LATILE_DRIVER);
  CHECK(text.find("CUDA_ERROR_INVALID_PTX (something else): ptxas: line 7 is broken") != std::string::npos);
  OnDevice on(context, p);
  record.failing = "cuLaunchKernel";
  latile_args args{};
  args.size = sizeof args, args.data = p.data.data(), args.dims = p.dims.data(), args.strides = p.strides.data();
  latile_error error = {sizeof error, 0, 0, ""};
  CHECK(latile_run(on.plan->get(), &args, &error) == LATILE_DRIVER);
  CHECK(error.driver_code == 719);
  CHECK(std::string(error.text) ==
        "the CUDA driver refused toy_scale: CUDA_ERROR_LAUNCH_FAILED (unspecified launch failure)");
  record.failing.clear();
  CHECK(latile_run(on.plan->get(), &args, &error) == LATILE_OK);
  CHECK(error.driver_code == 0);
}

TEST_CASE("cuda: the driver compiles kernels side by side if it can") {
  FakeCuda& record = fake();
  std::string why;
  for (const auto& [version, splits] : {std::pair{12090, 0}, {13000, 1}}) {
    record.version = version;
    REQUIRE(Driver::use(FAKE_CUDA, why) != nullptr);
    api::Context context(1, "");
    Problem p;
    OnDevice on(context, p);
    CHECK(std::count(record.load_options.begin(), record.load_options.end(), runtime::cuda::kSplitCompile) == splits);
  }
}

TEST_CASE("cuda: devices that there are not") {
  fake();
  api::Context context(1, "");
  Problem p;
  std::string text;
  CHECK(status_of([&] { OnDevice refused(context, p, 3); }, text) == LATILE_NO_DEVICE);
  CHECK(text == "there is no CUDA device 3; the driver has 3 (0 to 2)");
  CHECK(status_of([&] { OnDevice refused(context, p, 2); }, text) == LATILE_NO_DEVICE);
  CHECK(text == "CUDA device 2 (Old) has compute capability 7.5; 8.0 or newer is needed");
  std::string why;
  CHECK(Driver::use("/no/such/libcuda.so", why) == nullptr);
  CHECK(status_of([&] { OnDevice refused(context, p, 0); }, text) == LATILE_NO_DEVICE);
  CHECK(text.find("there is no CUDA device 0: the CUDA driver cannot be loaded: /no/such/libcuda.so") == 0);
  CHECK(Driver::use(FAKE_CUDA, why) != nullptr);
}

TEST_CASE("cuda: devices of one target share a cache entry; each loads the code for itself, once") {
  FakeCuda& record = fake();
  const Folder folder;
  const int before = toy().compilations;
  Problem p, q;
  {
    api::Context context(1, folder.path.c_str());
    OnDevice first(context, p, 0), again(context, p, 0), second(context, q, 1);
    CHECK(toy().compilations == before + 1);
    CHECK(record.calls["cuModuleLoadDataEx"] == 2);
    CHECK(record.loaded_modules == 2);
    CHECK(record.retained_contexts == 2);
    CHECK(std::string(second.plan->stages()).find("\"source\":\"cache\"") != std::string::npos);
    second.run(q);
    CHECK(right(q));
  }
  CHECK(record.loaded_modules == 0);
  CHECK(record.retained_contexts == 0);
  // A host plan of the same operator has code of its own.
  api::Context context(1, folder.path.c_str());
  p.make();
  api::PlanDescription host("toy", p.mode);
  p.describe(host);
  const api::Plan plan(context, host);
  CHECK(toy().compilations == before + 2);
}

TEST_CASE("cuda: index tensors are looked at where the context asks for it") {
  FakeCuda& record = fake();
  Problem p;
  p.T = 50, p.borders = {0, 20, 50};
  latile_context_desc desc{};
  desc.size = sizeof desc, desc.cache_dir = "", desc.flags = LATILE_CHECK_DEVICE_INDICES;
  api::Context checking(desc), trusting(1, "");
  OnDevice on(checking, p);
  on.run(p);
  CHECK(right(p));
  CHECK(record.calls["cuMemcpyDtoHAsync"] == 1);
  auto* borders = static_cast<std::int32_t*>(p.data[p.at("cu_seqlens")]);
  borders[1] = 60;
  record.launches.clear();
  std::string text;
  CHECK(status_of([&] { on.run(p); }, text) == LATILE_BAD_SHAPE);
  CHECK(text.find("cu_seqlens[2] is 50, below cu_seqlens[1] = 60") != std::string::npos);
  CHECK(record.launches.empty());
  desc.flags = 2;
  CHECK(status_of([&] { api::Context unknown(desc); }, text) == LATILE_UNSUPPORTED);
}

TEST_CASE("cuda: what a device plan does not take") {
  fake();
  api::Context context(1, "");
  Problem p;
  p.T = 40, p.borders = {0, 40};
  OnDevice on(context, p);
  std::string text;
  const api::Team team(1);
  CHECK(status_of([&] { on.plan->run_part(p.data, p.dims, p.strides, on.workspace->span(), team, 0); }, text) ==
        LATILE_UNSUPPORTED);
  const auto with = [&](std::span<std::byte> workspace) {
    return status_of([&] { on.plan->run(p.data, p.dims, p.strides, workspace); }, text);
  };
  CHECK(with({}) == LATILE_BAD_ARGUMENT);
  CHECK(with({on.workspace->memory + 16, on.workspace->size - 16}) == LATILE_BAD_ARGUMENT);
  CHECK(text == "toy: the workspace is not aligned to 256 bytes");
  CHECK(with({on.workspace->memory, on.workspace->size - 1}) == LATILE_BAD_ARGUMENT);
  Problem levels;
  levels.options = {{"host_isa", "native"}};
  CHECK(status_of([&] { OnDevice refused(context, levels); }, text) == LATILE_BAD_ARGUMENT);
  CHECK(text.find("option host_isa") != std::string::npos);
  Problem many;
  OnDevice large(context, many);
  many.dims[4] = many.dims[6] = 1 << 20, many.dims[5] = 1 << 12;  // B, N, T
  CHECK(status_of([&] { large.plan->workspace(many.dims); }, text) == LATILE_BAD_SHAPE);
  CHECK(text.find("2147483648 blocks") != std::string::npos);
}
