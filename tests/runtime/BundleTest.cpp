// Bundles: made with a compiler, used without one; what is refused, and how.
#include "runtime/Bundle.h"
#include "runtime/Cache.h"
#include "runtime/cuda/Driver.h"
#include "runtime/Describe.h"
#include "runtime/Failure.h"
#include "runtime/InfoJson.h"
#include "Toy.h"
#include <algorithm>
#include <cmath>
#include <cstring>
#include <doctest/doctest.h>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

using namespace latile;
using namespace latile::test;
using runtime::Bundle;
using runtime::BundleInfo;
using runtime::BundlePlan;
namespace fs = std::filesystem;

namespace {

/// Compiles what a problem needs, as the command does. device: the target of a device; empty for the host.
void add(const Problem& p, const std::string& level, std::vector<BundleInfo>& infos, std::vector<BundlePlan>& plans,
         const std::string& device = "") {
  api::PlanDescription description("toy", p.mode);
  p.describe(description);
  HostIsa isa;
  isa.level = level;
  const runtime::Described d = runtime::describe(toy(), description.get(), isa, device);
  BundleInfo info{d.specialisation.options, p.names, {}};
  std::sort(info.bound.begin(), info.bound.end());
  CompileFailure failure;
  REQUIRE(toy().describe("toy", info.options, info.bound, info.info, failure));
  BundlePlan plan;
  plan.specialisation = d.specialisation.json();
  plan.info = infos.size();
  REQUIRE(toy().compile(d.specialisation, plan.artifact, failure));
  infos.push_back(info);
  plans.push_back(plan);
}

Problem with_states() {
  Problem p;
  p.final = true;
  p.borders = {0, 3, 20};
  p.make();
  return p;
}

std::string two_plans(const std::string& level = "x86-64-v3") {
  std::vector<BundleInfo> infos;
  std::vector<BundlePlan> plans;
  Problem plain;
  plain.make();
  add(plain, level, infos, plans);
  add(with_states(), level, infos, plans);
  return runtime::bundle_content(infos, plans);
}

std::string file_with(const Folder& folder, const std::string& bytes) {
  const std::string path = folder.path + "/toy.bundle";
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
  return path;
}

std::string refusal(const std::string& path) {
  try {
    const Bundle bundle(path);
    bundle.verify();
  } catch (const runtime::Failure& failure) {
    CHECK(failure.status == LATILE_BAD_FILE);
    CHECK(failure.text.starts_with(path));
    return failure.text;
  }
  return "";
}

/// The process as it is when only the runtime is linked.
struct WithoutCompiler {
  WithoutCompiler() { set_compiler(nullptr); }
  ~WithoutCompiler() { set_compiler(&toy()); }
};

void open(const api::Context& context, const std::string& path) {
  latile_error error = {sizeof error, 0, 0, {}};
  const latile_status status = latile_bundle_open(context.get(), path.c_str(), &error);
  REQUIRE_MESSAGE(status == LATILE_OK, error.text);
}

std::string source(const api::Context& context, Problem& p) {
  p.make();
  api::PlanDescription description("toy", p.mode);
  p.describe(description);
  const api::Plan plan(context, description);
  auto workspace = workspace_of(plan, p.dims);
  plan.run(p.data, p.dims, p.strides, workspace);
  CHECK(p.error() < 1e-5);
  return nlohmann::json::parse(plan.stages())["source"];
}

std::string failing(const api::Context& context, Problem p, latile_status status) {
  p.make();
  api::PlanDescription description("toy", p.mode);
  p.describe(description);
  try {
    const api::Plan plan(context, description);
  } catch (const api::Error& error) {
    CHECK(error.status() == status);
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a program without a compiler runs from a bundle, and says by name what the bundle lacks") {
  const Folder folder;
  const std::string path = file_with(folder, two_plans());
  const WithoutCompiler without;
  const int before = toy().compilations;
  const api::Context context(1, folder.path.c_str());
  Problem p;
  CHECK(failing(context, p, LATILE_NO_COMPILER).find("open a bundle") != std::string::npos);
  open(context, path);
  CHECK(source(context, p) == "bundle");
  p.B = 3, p.T = 41;  // what a plan leaves free
  CHECK(source(context, p) == "bundle");
  Problem q;
  q.final = true, q.borders = {0, 1, 1, 9};
  CHECK(source(context, q) == "bundle");
  p = {};
  p.options = {{"cut", "0"}, {"n", "01"}};  // another spelling of the defaults
  CHECK(source(context, p) == "bundle");
  CHECK(toy().compilations == before);

  const auto lacks = [&](const Problem& wanted, const std::string& part) {
    const std::string said = failing(context, wanted, LATILE_NO_COMPILER);
    CHECK_MESSAGE(said.find(part) != std::string::npos, said);
  };
  p = {};
  p.K = 16, lacks(p, "no bundle has code for mode prefill with K = 16, V = 12, f32"), p = {};
  p.final = true, lacks(p, "no bundle has a plan with the tensors S.final, k, o, q, v; one has k, o, q, v"), p = {};
  p.mode = "recurrent", lacks(p, "mode recurrent"), p = {};
  p.options = {{"cut", "true"}}, lacks(p, "no bundle has a plan with the options cut = true; one has the default"),
  p = {};
  p.options = {{"cut", "maybe"}}, lacks(p, "cut = maybe"), p = {};
  CHECK(!fs::exists(folder.path + "/toy.lock"));
  std::size_t files = 0;
  for ([[maybe_unused]] const auto& each : fs::directory_iterator(folder.path)) ++files;
  CHECK(files == 1);  // nothing went to the cache

  CHECK(latile_bundle_count(context.get()) == 1);
  const auto text = nlohmann::json::parse(latile_bundle_json(context.get(), 0));
  CHECK(text["plans"].size() == 2);
  CHECK(text["plans"][1]["dims"]["K"] == 8);
  CHECK(text["writer"].get<std::string>().starts_with("latile "));
  CHECK(latile_bundle_json(context.get(), 1) == nullptr);
}

TEST_CASE("beside a compiler the bundle comes first, and the compiler gives the rest") {
  const Folder folder;
  const std::string path = file_with(folder, two_plans());
  const api::Context context(1, "");
  open(context, path);
  Problem p;
  CHECK(source(context, p) == "bundle");
  p.tiled = true;
  CHECK(source(context, p) == "compiler");
}

TEST_CASE("on the host the code of the highest level below the CPU's is taken") {
  const Folder folder;
  const HostIsa native = HostIsa::native();
  if (native.level == "x86-64-v3") return;
  std::vector<BundleInfo> infos;
  std::vector<BundlePlan> plans;
  Problem p;
  p.make();
  for (const char* level : {"x86-64-v3", "avx512"}) add(p, level, infos, plans);
  const api::Context context(1, "");
  open(context, file_with(folder, runtime::bundle_content(infos, plans)));
  api::PlanDescription description("toy", "prefill");
  p.describe(description);
  CHECK(nlohmann::json::parse(api::Plan(context, description).stages())["target"] == "host:avx512");
  description.option("host_isa", "x86-64-v3");
  CHECK(nlohmann::json::parse(api::Plan(context, description).stages())["target"] == "host:x86-64-v3");
}

TEST_CASE("on CUDA the PTX for the latest chip up to the device's is taken") {
  std::string why;
  REQUIRE_MESSAGE(runtime::cuda::Driver::use(FAKE_CUDA, why), why);
  const Folder folder;
  Problem p;
  p.make();
  const auto target = [&](const std::vector<std::string>& chips, const std::string& code = "") -> std::string {
    std::vector<BundleInfo> infos;
    std::vector<BundlePlan> plans;
    for (const std::string& chip : chips) {
      add(p, "x86-64-v3", infos, plans, "cuda:" + chip);
      if (!code.empty()) plans.back().artifact.binary = code;
    }
    const std::string path = file_with(folder, runtime::bundle_content(infos, plans));
    const WithoutCompiler without;
    const api::Context context(1, "");
    open(context, path);
    api::PlanDescription description("toy", p.mode);
    p.describe(description);
    description.device(LATILE_CUDA, 0);
    try {
      return nlohmann::json::parse(api::Plan(context, description).stages())["target"];
    } catch (const api::Error& error) {
      CHECK(error.status() == LATILE_NO_COMPILER);
      return error.what();
    }
  };
  CHECK(target({"sm_80", "sm_90", "sm_100"}) == "cuda:sm_90");
  CHECK(target({"sm_86", "sm_80", "sm_100", "sm_89a"}) == "cuda:sm_86");
  CHECK(target({"sm_100"}).find("there is code for cuda:sm_100") != std::string::npos);
  CHECK(target({"sm_80"}, "\x7f"
                          "ELF machine code")
            .find("there is code for cuda:sm_80") != std::string::npos);
}

TEST_CASE("damage, truncation, another version: refused by name") {
  const Folder folder;
  const std::string good = two_plans();
  const auto says = [&](const std::string& bytes) { return refusal(file_with(folder, bytes)); };
  const auto has = [&](const std::string& said, const char* part) {
    CHECK_MESSAGE(said.find(part) != std::string::npos, said);
  };
  CHECK(says(good).empty());
  has(refusal(folder.path + "/none"), "cannot be opened");
  has(refusal(folder.path), "is no regular file");
  has(says(""), "is no bundle");
  has(says("latileK\n" + good.substr(8)), "is no bundle");
  has(says(good.substr(0, 60)), "truncated inside its header");
  has(says(good.substr(0, 200)), "truncated inside its index");
  has(says(good.substr(0, good.size() - 1)), "is truncated: it had");
  has(says(good + "x"), "1 bytes behind its end");

  std::string other = good;
  other[8] = 2;  // the format of a later version, which may be anything else behind its name
  std::memcpy(other.data() + 16, "latile 9.9.0\0", 13);
  has(says(other), "format 2, written by latile 9.9.0; this runtime reads format 1");
  has(says(other.substr(0, 60)), "format 2, written by latile 9.9.0");
  other = good;
  other[12] = static_cast<char>(other[12] + 1);
  has(says(other), "kernels are called in another way");

  // Any bit: in the header, in the index, in a binary. Between binaries lie bytes that nobody reads.
  std::vector<std::pair<std::size_t, std::size_t>> read;
  {
    const Bundle bundle(file_with(folder, good));
    read.emplace_back(0, bundle.plans[0].offset);
    for (const BundlePlan& plan : bundle.plans) read.emplace_back(plan.offset, plan.offset + plan.bytes);
  }
  for (std::size_t at = 0; at < good.size(); at += at < 6000 ? 7 : 211) {
    std::string flipped = good;
    flipped[at] = static_cast<char>(flipped[at] ^ 1 << at % 8);
    const bool matters =
        std::any_of(read.begin(), read.end(), [&](const auto& part) { return at >= part.first && at < part.second; });
    CHECK(says(flipped).empty() != matters);
  }
}

TEST_CASE("code that was damaged after opening is not run") {
  const Folder folder;
  std::string bytes = two_plans();
  const std::string path = file_with(folder, bytes);
  const WithoutCompiler without;
  const api::Context context(1, "");
  open(context, path);
  bytes[bytes.size() - 100] = static_cast<char>(bytes[bytes.size() - 100] ^ 1);
  file_with(folder, bytes);
  const std::string said = failing(context, with_states(), LATILE_BAD_FILE);
  CHECK_MESSAGE(said.find("checksum of the code") != std::string::npos, said);
  Problem p;
  CHECK(source(context, p) == "bundle");
}

TEST_CASE("an index with a right checksum and wrong contents is refused") {
  const Folder folder;
  std::vector<BundleInfo> infos;
  std::vector<BundlePlan> plans;
  Problem p;
  p.make();
  add(p, "x86-64-v3", infos, plans);
  plans[0].info = 1;
  CHECK(refusal(file_with(folder, runtime::bundle_content(infos, plans))).find("plan 0 of its index") !=
        std::string::npos);
  plans[0].info = 0, plans[0].specialisation = "3";
  CHECK(refusal(file_with(folder, runtime::bundle_content(infos, plans))).find("is damaged") != std::string::npos);
  CHECK(refusal(file_with(folder, runtime::bundle_content({}, {}))).empty());
}

TEST_CASE("descriptions survive their text") {
  OperatorInfo info;
  CompileFailure failure;
  REQUIRE(toy().describe("toy", {{"weighted", "true"}}, {}, info, failure));
  info.dims[2].most = 32, info.dims[2].limit_why = "because";
  info.tensors[0].neutral = -std::numeric_limits<double>::infinity(), info.tensors[1].neutral = 0.1;
  info.tensors[2].rate = 3, info.tensors[3].gate = true, info.tensors[0].given = false;
  info.options[4].range = {-5.0, 0.0};
  info.no_step = "a", info.no_prefill = "b", info.no_segment = "c", info.mini_batch = 16, info.has_kernel = true;
  const OperatorInfo back = runtime::info_from_json(nlohmann::json::parse(runtime::info_to_json(info).dump()));
  CHECK(runtime::info_to_json(back) == runtime::info_to_json(info));
  CHECK(back.tensors[0].neutral == info.tensors[0].neutral);
  CHECK(back.tensors[3].gate);
  CHECK(back.options[4].range == info.options[4].range);
  CHECK(!back.scalars[0].fallback);
  CHECK(*back.scalars[1].fallback == 1e-5);
  // Each field that is left out, or is something else, is refused.
  const auto whole = runtime::info_to_json(info);
  for (const auto& [key, value] : whole.items()) {
    auto without = whole;
    without.erase(key);
    CHECK_THROWS_AS((void)runtime::info_from_json(without), nlohmann::json::exception);
    without[key] = nullptr;
    CHECK_THROWS_AS((void)runtime::info_from_json(without), nlohmann::json::exception);
  }
  auto unknown = whole;
  unknown["tensors"][0]["kind"] = 77;
  CHECK_THROWS_AS((void)runtime::info_from_json(unknown), nlohmann::json::exception);
}
