#include "codegen/nvrtc/Nvrtc.h"
#include "compiler/Compile.h"
#include "compiler/Version.h"
#include "latile/latile.h"
#include "runtime/Cache.h"
#include "runtime/cuda/CudaDevice.h"
#include "runtime/HostIsa.h"
#include "tools/latile/Commands.h"
#include "tools/latile/Machine.h"
#include "tools/latile/Plan.h"
#include "tools/latile/UserError.h"
#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>
#include <memory>
#include <nlohmann/json.hpp>
#include <unistd.h>

namespace latile {
namespace {

struct Finding {
  std::string topic, text;
  bool trouble = false;
};

Finding cache_finding() {
  const std::string folder = runtime::Cache::default_folder();
  if (folder.empty()) return {"cache", "none: neither LATILE_CACHE_DIR, XDG_CACHE_HOME nor HOME is set", true};
  std::error_code error;
  if (!std::filesystem::exists(folder, error)) return {"cache", folder + " (not made yet)"};
  std::size_t files = 0, bytes = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder, error))
    if (entry.is_regular_file(error)) ++files, bytes += entry.file_size(error);
  const bool writable = ::access(folder.c_str(), W_OK | X_OK) == 0;
  return {"cache",
          fmt::format("{} ({} files, {:.1f} MiB{})", folder, files, static_cast<double>(bytes) / 1048576,
                      writable ? "" : "; not writable, so plans are compiled anew in each process"),
          !writable};
}

/// A small plan through the whole way: record, lower, emit, load.
Finding compile_finding() {
  const std::vector<OperatorRow>& rows = operators();
  if (rows.empty()) return {"compile", "no operator in the table", true};
  Case c;
  c.extents = {16, 16};
  c.data = {{"", {{4}}}};
  try {
    const OperatorInfo info = describe(rows.front(), {});
    const Problem p = make_problem(info, c, c.data[0], {4}, ElementType::f32, 1, false);
    const ContextHandle context = make_context(1, "");
    const Plan plan(context.get(), plan_request(std::string(rows.front().name), c, p, ""));
    const nlohmann::json stages = nlohmann::json::parse(plan.stages());
    return {"compile", fmt::format("{} in {:.0f} ms for {}", rows.front().name, stages.value("total_ms", 0.0),
                                   stages.value("target", "host"))};
  } catch (const std::exception& e) { return {"compile", e.what(), true}; }
}

std::vector<Finding> examine() {
  std::vector<Finding> list;
  list.push_back({"version", fmt::format("{}, C interface {}", version_text, latile_abi())});
  list.push_back({"built by", LATILE_BUILT_BY});
  const HostIsa isa = HostIsa::native();
  list.push_back({"cpu", cpu_name()});
  if (const std::string complaint = host_isa_complaint(); !complaint.empty()) list.push_back({"isa", complaint, true});
  std::string levels;
  for (const char* level : {"x86-64-v3", "avx512", "avx512bf16", "amx"})
    if (HostIsa i; HostIsa::named(level, i) && host_supports(i)) levels += fmt::format("{} ", level);
  if (levels.empty())
    list.push_back({"isa", "this CPU lacks x86-64-v3 (AVX2, FMA, F16C), the least that is needed", true});
  else
    list.push_back({"isa", fmt::format("{} (offered: {})", isa.level, levels.substr(0, levels.size() - 1))});
  list.push_back({"threads", fmt::format("{} CPUs usable by this process", usable_cpus())});
  bool usable = false;
  list.push_back({"cuda", runtime::cuda::machine(usable)});
  std::string why;
  const auto nvrtc = nvrtc::Library::get(why);
  list.push_back({"nvrtc", nvrtc ? fmt::format("{} from {}", nvrtc->version, nvrtc->file)
                                 : why + " (for kernels in CUDA C++ alone)"});
  list.push_back(cache_finding());
  list.push_back(compile_finding());
  list.push_back({"operators", fmt::format("{}", operators().size())});
  return list;
}

}  // namespace

void add_doctor(CLI::App& app, int& code) {
  CLI::App* sub = app.add_subcommand("doctor", "Says what latile finds on this machine, and what is wrong with it");
  auto json = std::make_shared<bool>(false);
  sub->add_flag("--json", *json, "One JSON object on standard output");
  sub->callback([json, &code] {
    bool trouble = false;
    nlohmann::json object;
    for (const Finding& f : examine()) {
      trouble |= f.trouble;
      if (*json)
        object[f.topic] = f.text;
      else
        fmt::print("{:10} {}{}\n", f.topic, f.trouble ? "TROUBLE: " : "", f.text);
    }
    if (*json) object["trouble"] = trouble, fmt::print("{}\n", object.dump(2));
    code = trouble ? exit_bad_use : exit_ok;
  });
}

}  // namespace latile
