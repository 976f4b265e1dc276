// Kernels in CUDA C++: what is refused, what the key of their code has, and a plan with one from the compiler, the
// cache and a bundle, on a driver that records launches.
#define DOCTEST_CONFIG_IMPLEMENT
#include "codegen/nvrtc/Nvrtc.h"
#include "compiler/Compile.h"
#include "examples/extern_kernel/GatedOutput.h"
#include "latile/latile.hpp"
#include "latile/table.h"
#include "runtime/Cache.h"
#include "runtime/cuda/Driver.h"
#include "runtime/EmulatedDevice.h"
#include "tests/runtime/FakeCuda.h"
#include "tests/tool/Command.h"
#include <cmath>
#include <cstring>
#include <dlfcn.h>
#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

using namespace latile;
using nvrtc::Library;

namespace {

bool nvrtc_is_there() {
  std::string why;
  if (Library::get(why)) return true;
  MESSAGE("SKIPPED: NVRTC: ", why);
  return false;
}

/// What the operator "variable" is at the moment: y = 2 x, by a kernel alone.
ExternKernel variable_kernel() {
  return {.entry = "twice",
          .source = "extern \"C\" __global__ void twice(const latile::Arguments a) {\n"
                    "  const latile::Block at = latile::block(a);\n"
                    "  const long long t = at.T, d = at.D * 32 + threadIdx.x;\n"
                    "  if (d < latile::D) a.y[t * a.strides.y[1] + d * a.strides.y[2]] =\n"
                    "      2 * float(a.x[t * a.strides.x[1] + d * a.strides.x[2]]);\n"
                    "}\n",
          .grid = {{"T"}, {"D", 32}},
          .threads = 32,
          .reads = {"x"},
          .writes = {"y"}};
}
ExternKernel now = variable_kernel();

void variable(Operator& op) {
  auto [D] = op.dims("D");
  auto x = op.sequence("x", {D});
  auto factor = op.scalar("factor", 2.0);
  auto y = op.output("y", {D});
  op.reference([&](Token) { y = factor * x; });
  op.extern_kernel(now);
}

Specialisation specialisation(const std::string& device, ElementType io = ElementType::f32) {
  Specialisation s;
  s.op = "variable";
  s.extents = {{"D", 40}};
  s.io = io;
  s.device = device;
  s.tensors = {{"x", io, 2}, {"y", io, 2}};
  return s;
}

/// Compiles "variable" as it is now; the failure, or empty.
std::string failure_of(const Specialisation& s, Artifact* artifact = nullptr) {
  Artifact own;
  CompileFailure failure;
  if (compile(*find_operator("variable"), s, artifact ? *artifact : own, failure)) return "";
  CHECK(failure.user_error);
  return failure.text;
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

test::FakeCuda& fake() {
  std::string why;
  REQUIRE_MESSAGE(runtime::cuda::Driver::use(FAKE_CUDA, why), why);
  static auto* record =
      reinterpret_cast<test::FakeCuda* (*)()>(dlsym(dlopen(FAKE_CUDA, RTLD_NOW | RTLD_NOLOAD), "fake_cuda"))();
  record->launches.clear();
  record->records_launches = true;
  return *record;
}

/// A prefill of the example, bfloat16 with a float32 output, ragged: plan, tensors, and the launch of its CUDA kernel.
struct Gated {
  explicit Gated(const api::Context& context) : description("gated_output", "prefill") {
    const latile_dtype bf16 = LATILE_BF16, i32 = LATILE_I32, f32 = LATILE_F32;
    description.dim("H", 1, 64).dim("HV", 2, 128).dim("K", 32).dim("V", 48).dim("B", 1).dim("T", 0, 1 << 20);
    description.dim("N", 0, 1 << 20);
    for (const char* name : {"q", "k", "v"}) description.tensor(name, bf16);
    description.tensor("g", f32);
    description.tensor("z", bf16, {-1, -1, -1, 1});
    description.tensor("o", f32);
    description.tensor("cu_seqlens", i32).tensor("S.initial", f32).tensor("S.final", f32);
    description.device(LATILE_CUDA, 0);
    plan.emplace(context, description);
  }
  void run() {
    workspace.resize(plan->workspace(dims) + 256);
    void* start = workspace.data();
    std::size_t room = workspace.size();
    auto* aligned = static_cast<std::byte*>(std::align(256, plan->workspace(dims), start, room));
    plan->run(data, dims, strides, {aligned, plan->workspace(dims)}, nullptr, &stream);
  }

  api::PlanDescription description;
  std::optional<api::Plan> plan;
  std::vector<std::byte> workspace;
  const std::vector<std::int64_t> dims{3, 6, 32, 48, 1, 100, 4}, strides{9999, 300, 50};
  std::vector<std::int64_t> memory = std::vector<std::int64_t>(14 << 13);
  std::vector<void*> data{&memory[0],       &memory[1 << 13], &memory[2 << 13],      &memory[3 << 13], &memory[4 << 13],
                          &memory[6 << 13], &memory[8 << 13], &memory[8 << 13] + 64, &memory[11 << 13]};
  int stream = 0;
};

std::int64_t number(const void* pointer) { return reinterpret_cast<std::int64_t>(pointer); }

void check_launches(const test::FakeCuda& record, Gated& on) {
  REQUIRE(record.launches.size() >= 2);
  const test::FakeLaunch& launch = record.launches.back();
  CHECK(launch.kernel == "gate_output");
  CHECK(launch.grid == 1 * 7 * 6);  // B, 100 rows by 16, heads
  CHECK(launch.threads == 128);
  CHECK(launch.shared_bytes == 0);
  CHECK(launch.stream == &on.stream);
  const double scale = 1 / std::sqrt(32.0);
  std::int64_t bits = 0;
  std::memcpy(&bits, &scale, 8);
  // z, cu_seqlens, o; their strides; B, T, N, H, HV; scale: as latile::Arguments has them.
  CHECK(launch.parameters == std::vector<std::int64_t>{number(on.data[4]), number(on.data[6]), number(on.data[5]), 9999,
                                                       300, 50, 1, 1, 100 * 6 * 48, 6 * 48, 48, 1, 1, 100, 4, 3, 6,
                                                       bits});
}

}  // namespace

TEST_CASE("mistakes of a definition are told at its line") {
  const auto mistakes = [](const std::function<void(ExternKernel&)>& change) {
    now = variable_kernel();
    change(now);
    std::vector<Diagnostic> list;
    Operator op("variable");
    variable(op);
    op.finish();
    std::string text;
    for (const Diagnostic& d : op.diagnostics()) text += d.message() + "\n";
    now = variable_kernel();
    return text;
  };
  CHECK(mistakes([](ExternKernel&) {}).empty());
  const auto told = [&](const std::string& sentence, const std::function<void(ExternKernel&)>& change) {
    const std::string text = mistakes(change);
    CHECK_MESSAGE(contains(text, "extern_test.cpp:"), text);
    CHECK_MESSAGE(contains(text, sentence), text);
  };
  told("extern kernel 'a b': its entry is the name of a function", [](auto& k) { k.entry = "a b"; });
  told("extern kernel 'twice': it has no source", [](auto& k) { k.source.clear(); });
  told("threads is 2000; a block has 1 to 1024", [](auto& k) { k.threads = 2000; });
  told("it has no grid", [](auto& k) { k.grid.clear(); });
  told("its grid has an axis 'E', which is no dimension", [](auto& k) { k.grid = {{"E"}}; });
  told("axis T of its grid follows an inner dimension", [](auto& k) { k.grid = {{"D"}, {"T"}}; });
  told("a block covers 0 of axis T", [](auto& k) { k.grid = {{"T", 0}}; });
  told("axis T is twice in its grid", [](auto& k) { k.grid = {{"T"}, {"T"}}; });
  told("there is no tensor 'xx'; the nearest is 'x'", [](auto& k) { k.reads = {"xx"}; });
  told("it writes 'x', which is an input", [](auto& k) { k.reads = {}, k.writes = {"x"}; });
  told("tensor 'y' is named twice", [](auto& k) { k.reads = {"y"}; });
  told("it writes nothing", [](auto& k) { k.writes = {}; });
  told("no kernel writes 'y'", [](auto& k) { k.writes = {}; });
}

TEST_CASE("hosts and emulated chips refuse the mode that has it, by name; the reference's modes run there") {
  for (const char* device : {"host", "emulated:sm_80"}) {
    Specialisation s = specialisation(device);
    CHECK(failure_of(s) == std::string("variable: mode prefill has the extern kernel 'twice', which is CUDA C++ and "
                                       "runs on CUDA devices, not on '") +
                               device + "'; use a CUDA device, or mode recurrent");
    s.mode = Mode::recurrent;
    CHECK(failure_of(s).empty());
  }
}

TEST_CASE("where NVRTC is missing or too old, that is said") {
  Library::use("/no/such/libnvrtc.so");
  const std::string text = failure_of(specialisation("cuda:sm_80"));
  CHECK_MESSAGE(text.starts_with("variable: extern kernel 'twice': it is CUDA C++, and NVRTC cannot be loaded: "),
                text);
  CHECK_MESSAGE(contains(text, "/no/such/libnvrtc.so"), text);
  ::setenv("FAKE_NVRTC_VERSION", "11.8", 1);
  Library::use(FAKE_NVRTC);
  CHECK(contains(failure_of(specialisation("cuda:sm_80")), "is NVRTC 11.8; 12.0 or newer is needed"));
  Library::use(FAKE_CUDA);
  CHECK(contains(failure_of(specialisation("cuda:sm_80")), "is no NVRTC: it lacks nvrtcVersion"));
  Library::use("");
}

TEST_CASE("the key has source, options, geometry, chip and NVRTC's version") {
  ::setenv("FAKE_NVRTC_VERSION", "13.0", 1);
  Library::use(FAKE_NVRTC);
  const auto key = [](const Specialisation& s) {
    return runtime::cache_key(installed_compiler()->fingerprint(s), s.json());
  };
  const Specialisation plain = specialisation("cuda:sm_80");
  const std::string before = key(plain);
  CHECK(key(plain) == before);
  CHECK(key(specialisation("cuda:sm_90")) != before);
  const auto differs = [&](const char* what, const std::function<void(ExternKernel&)>& change) {
    now = variable_kernel();
    change(now);
    CHECK_MESSAGE(key(plain) != before, what);
    now = variable_kernel();
  };
  differs("source", [](auto& k) { k.source += " "; });
  differs("options", [](auto& k) { k.options = {"-use_fast_math"}; });
  differs("entry", [](auto& k) { k.entry = "thrice"; });
  differs("threads", [](auto& k) { k.threads = 64; });
  differs("shared", [](auto& k) { k.shared_bytes = 64; });
  differs("span", [](auto& k) { k.grid[1].span = 16; });
  differs("axes", [](auto& k) { k.grid.pop_back(); });
  differs("tensors", [](auto& k) { k.reads.clear(); });
  CHECK(key(plain) == before);
  ::setenv("FAKE_NVRTC_VERSION", "13.1", 1);
  Library::use(FAKE_NVRTC);
  CHECK(key(plain) != before);
  // Code that NVRTC has no part in does not depend on it.
  Specialisation step = plain;
  step.mode = Mode::step;
  const std::string of_step = key(step);
  Library::use("/no/such/libnvrtc.so");
  CHECK(key(plain) != before);
  CHECK(key(step) == of_step);
  Library::use("");
}

TEST_CASE("a kernel alone: its code and facts") {
  if (!nvrtc_is_there()) return;
  for (const char* chip : {"sm_80", "sm_90"}) {
    Artifact artifact;
    REQUIRE(failure_of(specialisation(std::string("cuda:") + chip, ElementType::bf16), &artifact) == "");
    REQUIRE(artifact.kernels.size() == 1);
    const KernelFacts& facts = artifact.kernels[0];
    CHECK(facts.symbol == "twice");
    CHECK(facts.grid == std::vector<std::string>{"T"});
    CHECK(facts.slices == 2);  // 40 columns by 32
    CHECK(facts.threads == 32);
    CHECK(facts.part == 1);
    const std::string ptx = artifact.part(1);
    CHECK(contains(ptx, std::string(".target ") + chip));
    CHECK(contains(ptx, ".entry twice("));
    CHECK(artifact.part(2) == nullptr);
    // What cache and bundles keep of it gives the same again.
    Artifact read;
    read.binary = artifact.binary;
    REQUIRE(Artifact::from_json(artifact.facts_json(), read));
    CHECK(read.part(1) == ptx);
    CHECK(read.kernels[0].part == 1);
    CHECK(read.kernels[0].spans == std::vector<std::int64_t>{1});
  }
}

TEST_CASE("what NVRTC refuses comes with its words at the user's lines, and wrong kernels by name") {
  if (!nvrtc_is_there()) return;
  const auto refused = [](const std::function<void(ExternKernel&)>& change) {
    now = variable_kernel();
    change(now);
    std::string text = failure_of(specialisation("cuda:sm_80"));
    now = variable_kernel();
    return text;
  };
  std::string text = refused([](auto& k) { k.source = "\n\nint f() { return y; }\n"; });
  CHECK_MESSAGE(text.starts_with("variable: extern kernel 'twice': NVRTC "), text);
  CHECK_MESSAGE(contains(text, "twice.cu(3): error: identifier \"y\" is undefined"), text);
  text = refused([](auto& k) { k.options = {"--no-such-option"}; });
  CHECK_MESSAGE(contains(text, "no-such-option"), text);
  text = refused([](auto& k) { k.entry = "thrice"; });
  CHECK_MESSAGE(contains(text, "its source has no kernel thrice: declare it extern \"C\" __global__"), text);
  text = refused([](auto& k) { k.source = "extern \"C\" __global__ void twice(float* x) { *x = 1; }"; });
  CHECK_MESSAGE(contains(text, "twice takes other parameters than (const latile::Arguments a)"), text);
}

TEST_CASE("headers of the toolkit are found, the types are those of its own") {
  std::string why;
  if (!nvrtc_is_there()) return;
  now = variable_kernel();
  now.source = "#include <cuda_bf16.h>\nstatic_assert(sizeof(latile::io) == sizeof(__nv_bfloat16));\n" + now.source;
  const std::string text = failure_of(specialisation("cuda:sm_80", ElementType::bf16));
  now = variable_kernel();
  if (contains(text, "cannot open source file")) {
    MESSAGE("SKIPPED: NVRTC is here without the headers of its toolkit");
    return;
  }
  CHECK_MESSAGE(text.empty(), text);
}

TEST_CASE("a scan and its epilogue: from the compiler, the cache and a bundle") {
  if (!nvrtc_is_there()) return;
  const Folder folder;
  test::FakeCuda& record = fake();
  const auto source = [](const Gated& on) { return std::string(on.plan->stages()); };
  for (const char* from : {"\"source\":\"compiler\"", "\"source\":\"cache\""}) {
    const api::Context context(1, folder.file("cache").c_str());
    record.launches.clear();
    Gated on(context);
    CHECK_MESSAGE(contains(source(on), from), source(on));
    on.run();
    check_launches(record, on);
  }
  const std::string file = folder.file("gated.bundle");
  const Outcome wrote = command({"bundle", "gated_output", "--targets", "sm_80,sm_90", "--shapes", "K=32,V=48,ratio=2",
                                 "--mode", "prefill", "--dtype", "bf16", "--batches", "ragged", "-o", file});
  REQUIRE_MESSAGE(wrote.code == 0, wrote.err);
  const Outcome shown = command({"bundle", "inspect", file, "--json"});
  const auto plans = nlohmann::json::parse(shown.out)["plans"];
  REQUIRE(plans.size() == 2);
  for (const auto& plan : plans) CHECK(plan["kernels"].get<int>() >= 2);
  // For a host the bundle is refused before anything is written.
  const Outcome host = command({"bundle", "gated_output", "--targets", "host", "--shapes", "K=32,V=48", "--mode",
                                "prefill", "-o", folder.file("none")});
  CHECK(host.code != 0);
  CHECK_MESSAGE(contains(host.err, "extern kernel 'gate_output', which is CUDA C++"), host.err);
  CHECK(!folder.has("none"));

  Compiler* compiler = installed_compiler();
  set_compiler(nullptr);
  Library::use("/no/such/libnvrtc.so");
  {
    api::Context context(1, "");
    context.open_bundle(file.c_str());
    record.launches.clear();
    Gated on(context);
    CHECK_MESSAGE(contains(source(on), "\"source\":\"bundle\""), source(on));
    on.run();
    check_launches(record, on);
  }
  set_compiler(compiler);
  Library::use("");
}

int main(int argc, char** argv) {
  ::setenv("FAKE_CUDA_ANY", "1", 1);
  install_compiler();
  runtime::install_emulated_devices();
  register_operator({"variable", variable, "changes with the test", 5e-3, 5e-3});
  register_operator({"gated_output", gated_output, "gated linear attention with a gate on its output", 5e-3, 5e-3});
  return doctest::Context(argc, argv).run();
}
