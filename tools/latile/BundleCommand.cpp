#include "compiler/Compile.h"
#include "runtime/Bundle.h"
#include "runtime/Describe.h"
#include "runtime/HostIsa.h"
#include "tools/latile/Commands.h"
#include "tools/latile/File.h"
#include "tools/latile/Plan.h"
#include "tools/latile/Progress.h"
#include "tools/latile/UserError.h"
#include <algorithm>
#include <atomic>
#include <fmt/format.h>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <thread>

namespace latile {
namespace {

struct Options {
  std::vector<std::string> ops, targets{"host"}, shapes, dtypes{"bf16"}, modes{"prefill", "step"}, options, without;
  std::string batches = "both", states = "f32", pool, layout = "kv", gates = "f32", file;
  bool progress = false;
};

/// "K=128,V=128,ratio=2"
struct Shape {
  std::map<std::string, std::int64_t> extents;
  std::int64_t ratio = 1;
};

Shape shape_of(const std::string& text) {
  Shape shape;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t cut = std::min(text.find(',', at), text.size());
    const auto [name, value] = split_pair(text.substr(at, cut - at), "--shapes");
    const std::int64_t number = integer_in(value, "--shapes " + name);
    if (name == "ratio")
      shape.ratio = number;
    else
      shape.extents[name] = number;
    at = cut + 1;
  }
  return shape;
}

struct Target {
  std::string device;  ///< "" for the host
  HostIsa isa;
  std::string text() const { return device.empty() ? "host:" + isa.level : device; }
};

std::vector<Target> targets_of(const std::vector<std::string>& words) {
  std::vector<Target> targets;
  for (const std::string& word : words) {
    HostIsa isa;
    if (word == "host") {
      // One that runs everywhere, and this machine's.
      targets.push_back({"", {"x86-64-v3"}});
      if (HostIsa::native().level != "x86-64-v3" && HostIsa::native().level != "none")
        targets.push_back({"", HostIsa::native()});
    } else if (word.starts_with("host:") && HostIsa::named(word.substr(5), isa)) {
      targets.push_back({"", isa});
    } else if (word.starts_with("sm_")) {
      targets.push_back({"cuda:" + word, {}});
    } else if (word.starts_with("emulated:")) {
      targets.push_back({word, {}});
    } else {
      throw UserError(fmt::format("--targets has '{}'; it takes host, host:LEVEL (x86-64-v3, avx512, avx512bf16, amx), "
                                  "sm_80 and its like, emulated:sm_80",
                                  word));
    }
  }
  return targets;
}

/// One plan to compile. A plan description's names are views, so this keeps them.
struct Work {
  PlanRequest request;
  Target target;
  runtime::BundlePlan plan;
  std::string label;
};

class Bundling {
public:
  explicit Bundling(const Options& o) : o(o) {}

  void execute() {
    for (const std::string& op : o.ops) list(operator_named(op));
    if (work.empty()) throw UserError("there is nothing to bundle");
    compile();
    std::vector<runtime::BundlePlan> plans;
    std::uint64_t bytes = 0;
    for (Work& each : work) {
      bytes += each.plan.artifact.binary.size();
      plans.push_back(std::move(each.plan));
    }
    write_file(o.file, runtime::bundle_content(infos, plans));
    fmt::print("{}: {} plans, {} bytes of code\n", o.file, plans.size(), bytes);
  }

private:
  void list(const OperatorRow& row) {
    std::vector<std::pair<std::string, std::string>> own;
    for (const std::string& option : o.options) own.push_back(split_pair(option, "--option"));
    std::vector<std::pair<std::string, std::string>> meant = own;
    std::erase_if(meant, [](const auto& option) {
      return option.first == "head_map" || option.first == "chunk_size" || option.first == "reverse";
    });
    const OperatorInfo info = describe(row, meant);
    std::vector<std::string> shapes = o.shapes;
    if (shapes.empty()) shapes.emplace_back("");
    for (const std::string& text : shapes) {
      const Shape shape = text.empty() ? Shape() : shape_of(text);
      for (const std::string& dtype : o.dtypes)
        for (const std::string& mode : o.modes) {
          const bool token = mode != "prefill";
          if (token ? !info.has_reference || !info.no_step.empty() : !info.has_prefill()) continue;
          for (bool ragged : {false, true}) {
            if (ragged ? o.batches == "dense" || mode == "step" : o.batches == "ragged" && mode != "step") continue;
            add(row, info, own, shape, element_type_named(dtype), mode, ragged);
          }
        }
    }
  }

  void add(const OperatorRow& row, const OperatorInfo& info,
           const std::vector<std::pair<std::string, std::string>>& options, const Shape& shape, ElementType io,
           const std::string& mode, bool ragged) {
    PlanRequest r;
    r.op = info.name;
    r.mode = mode == "prefill" ? Mode::prefill : mode == "step" ? Mode::step : Mode::recurrent;
    r.options = options;
    constexpr std::int64_t many = std::int64_t{1} << 20;
    for (const DimInfo& d : info.dims) {
      if (d.head) {
        const std::int64_t per = d.group.empty() ? 1 : shape.ratio;
        r.dims.push_back({d.name, per, per * many});
        continue;
      }
      const auto given = shape.extents.find(d.name);
      const std::int64_t value = given != shape.extents.end() ? given->second
                                 : d.most                     ? std::min<std::int64_t>(128, d.most)
                                                              : 128;
      r.dims.push_back({d.name, value, value});
    }
    for (const auto& [name, value] : shape.extents)
      if (!info.dim(name) || info.dim(name)->head)
        throw UserError(fmt::format("--shapes: {} has no inner dimension '{}'", info.name, name));
    r.dims.push_back({"B", ragged ? 1 : 0, ragged ? 1 : many});
    if (r.mode == Mode::step)
      r.dims.push_back({"T", 1, 1});
    else
      r.dims.push_back({"T", 0, std::int64_t{1} << 31});
    if (ragged) r.dims.push_back({"N", 0, many});
    if (!o.pool.empty()) r.dims.push_back({"slots", 0, many});
    const ElementType index = o.pool == "i64" ? ElementType::i64 : ElementType::i32;
    const auto bind = [&](const std::string& name, ElementType type, const TensorInfo* state = nullptr) {
      PlanRequest::Tensor tensor{name, type, {}, 0};
      if (state && o.layout == "vk" && state->dims.size() - !state->head.empty() == 2)
        tensor.strides.assign(state->dims.size() + 1, -1), tensor.strides[state->dims.size() - 1] = 1;
      r.tensors.push_back(std::move(tensor));
    };
    for (const TensorInfo& t : info.tensors) {
      if (std::find(o.without.begin(), o.without.end(), t.name) != o.without.end()) continue;
      if (t.kind != TensorInfo::Kind::carry) {
        const bool wide = t.type == Type::f32 || (t.type == Type::any && o.gates == "f32");
        bind(t.name, t.type == Type::i32   ? ElementType::i32
                     : t.type == Type::i64 ? ElementType::i64
                     : wide                ? ElementType::f32
                                           : io);
        continue;
      }
      if (o.states == "none") continue;
      const ElementType type = o.states == "io" ? io : element_type_named(o.states);
      bind(t.name + ".initial", type, &t);
      if (!o.pool.empty()) bind(t.name + ".initial_index", index);
      bind(t.name + ".final", type, &t);
      if (!o.pool.empty()) bind(t.name + ".final_index", index);
    }
    if (ragged) bind("cu_seqlens", o.pool == "i64" ? ElementType::i64 : ElementType::i32);
    for (const Target& target : targets_of(o.targets)) {
      Work each{r, target, {}, ""};
      prepare(row, each);
      if (!seen.insert(each.plan.specialisation).second) continue;
      work.push_back(std::move(each));
    }
  }

  /// What the caller of latile_plan_create would have described.
  void prepare(const OperatorRow& row, Work& each) {
    const PlanRequest& r = each.request;
    std::vector<latile_option> options;
    for (const auto& [name, value] : r.options) options.push_back({name.c_str(), value.c_str()});
    std::vector<latile_dim> dims;
    for (const auto& d : r.dims) dims.push_back({d.name.c_str(), d.min, d.max});
    std::vector<latile_tensor> tensors;
    std::vector<std::string> bound;
    for (const auto& t : r.tensors) {
      tensors.push_back({t.name.c_str(), dtype_of(t.type), static_cast<std::int32_t>(t.strides.size()),
                         t.strides.empty() ? nullptr : t.strides.data(), 0, 0});
      bound.push_back(t.name);
    }
    const latile_device device = {each.target.device.empty() ? LATILE_CPU : LATILE_CUDA, 0};
    const latile_plan_desc desc = {sizeof desc,    r.op.c_str(), name(r.mode), device,         options.data(),
                                   options.size(), dims.data(),  dims.size(),  tensors.data(), tensors.size()};
    try {
      const runtime::Described d = runtime::describe(*installed_compiler(), desc, each.target.isa, each.target.device);
      spec.push_back(d.specialisation);
      each.plan.specialisation = d.specialisation.json();
      std::sort(bound.begin(), bound.end());
      each.plan.info = info_of(row, d.specialisation.options, bound);
    } catch (const runtime::Failure& failure) { throw UserError(failure.text); }
    each.label = fmt::format("{} {} {} {}{}", r.op, name(r.mode), long_name(spec.back().io), each.target.text(),
                             spec.back().ragged() ? " ragged" : "");
    if (seen.contains(each.plan.specialisation)) spec.pop_back();
  }

  std::size_t info_of(const OperatorRow& row, const std::vector<std::pair<std::string, std::string>>& options,
                      const std::vector<std::string>& bound) {
    for (std::size_t i = 0; i < infos.size(); ++i)
      if (infos[i].info.name == row.name && infos[i].options == options && infos[i].bound == bound) return i;
    runtime::BundleInfo made{options, bound, {}};
    CompileFailure failure;
    if (!installed_compiler()->describe(std::string(row.name), options, bound, made.info, failure))
      throw UserError(failure.text, failure.user_error ? exit_bad_use : exit_internal);
    infos.push_back(std::move(made));
    return infos.size() - 1;
  }

  void compile() {
    Progress progress(work.size(), o.progress);
    std::atomic<std::size_t> next = 0;
    std::mutex lock;
    std::optional<UserError> error;
    const auto run = [&] {
      for (std::size_t i; (i = next++) < work.size();) {
        CompileFailure failure;
        const bool good = installed_compiler()->compile(spec[i], work[i].plan.artifact, failure);
        progress.step(work[i].label);
        if (good) continue;
        const std::lock_guard guard(lock);
        if (!error) error.emplace(failure.text, failure.user_error ? exit_bad_use : exit_internal);
        next = work.size();
      }
    };
    std::vector<std::thread> threads;
    const std::size_t most = std::min<std::size_t>(work.size(), std::max(1u, std::thread::hardware_concurrency()));
    for (std::size_t i = 1; i < most; ++i) threads.emplace_back(run);
    run();
    for (std::thread& thread : threads) thread.join();
    if (error) throw *error;
  }

  const Options& o;
  std::vector<Work> work;
  std::vector<Specialisation> spec;  ///< of each
  std::vector<runtime::BundleInfo> infos;
  std::set<std::string> seen;
};

void inspect(const std::string& file, bool json) {
  try {
    const runtime::Bundle bundle(file);
    bundle.verify();
    const std::string text = bundle.text();
    if (json) return fmt::print("{}\n", nlohmann::ordered_json::parse(text).dump(2));
    const auto all = nlohmann::ordered_json::parse(text);
    fmt::print("{}: format {}, written by {}, {} plans, every checksum right\n", file, runtime::kBundleFormat,
               bundle.writer, bundle.plans.size());
    for (const auto& plan : all["plans"]) {
      std::vector<std::string> dims, tensors, options;
      for (const auto& [name, value] : plan["dims"].items()) dims.push_back(fmt::format("{}={}", name, value.dump()));
      for (const auto& t : plan["tensors"])
        tensors.push_back(fmt::format("{}:{}", t["name"].get<std::string>(), t["type"].get<std::string>()));
      for (const auto& option : plan["options"])
        options.push_back(fmt::format("{}={}", option[0].get<std::string>(), option[1].get<std::string>()));
      fmt::print("  {} {} {} {} ratio={}{}{}  {} bytes\n    {}\n", plan["op"].get<std::string>(),
                 plan["mode"].get<std::string>(), plan["target"].get<std::string>(), fmt::join(dims, " "),
                 plan["head_ratio"].dump(), options.empty() ? "" : " ", fmt::join(options, " "), plan["bytes"].dump(),
                 fmt::join(tensors, " "));
    }
  } catch (const runtime::Failure& failure) { throw UserError(failure.text); }
}

}  // namespace

void add_bundle(CLI::App& app, int& code) {
  CLI::App* sub = app.add_subcommand("bundle", "Compiles plans into one file, for programs without a compiler");
  auto o = std::make_shared<Options>();
  sub->add_option("operator", o->ops, "The operators");
  sub->add_option("-o,--output", o->file, "The file");
  sub->add_option("--targets", o->targets,
                  "host (x86-64-v3 and this CPU's level), host:LEVEL, sm_80 and its like, emulated:sm_80")
      ->delimiter(',')
      ->capture_default_str();
  sub->add_option("--shapes", o->shapes,
                  "Inner dimensions and the ratio of heads: K=128,V=128,ratio=1. Several words are several shapes; a "
                  "dimension that is not named is 128");
  sub->add_option("--dtype", o->dtypes, "f32, f16, bf16")->delimiter(',')->capture_default_str();
  sub->add_option("--mode", o->modes, "prefill, recurrent, step; what an operator has not is left out")
      ->delimiter(',')
      ->check(CLI::IsMember({"prefill", "recurrent", "step"}))
      ->capture_default_str();
  sub->add_option("--batches", o->batches, "dense, ragged or both")
      ->check(CLI::IsMember({"dense", "ragged", "both"}))
      ->capture_default_str();
  sub->add_option("--states", o->states, "Type of initial and final states: f32, bf16, io, or none of them")
      ->check(CLI::IsMember({"f32", "bf16", "io", "none"}))
      ->capture_default_str();
  sub->add_option("--pool", o->pool, "States lie in slots of a pool, with indices of this type: i32 or i64")
      ->check(CLI::IsMember({"i32", "i64"}));
  sub->add_option("--state-layout", o->layout, "Order of a state's last two axes in memory: kv or vk")
      ->check(CLI::IsMember({"kv", "vk"}))
      ->capture_default_str();
  sub->add_option("--gates", o->gates, "Type of tensors that may be float32 or the dtype: f32 or io")
      ->check(CLI::IsMember({"f32", "io"}))
      ->capture_default_str();
  sub->add_option("--option", o->options, "NAME=VALUE: an option of the operators, or head_map, chunk_size, reverse");
  sub->add_option("--without", o->without, "Optional tensors that are not bound")->delimiter(',');
  sub->add_flag("--progress", o->progress, "Progress also where standard error is no terminal");
  sub->footer("A plan is found in the bundle when it has the same operator, mode, options, bound tensors, types, inner "
              "dimensions and ratio of heads. Batch, lengths and counts of heads are free.");
  CLI::App* look = sub->add_subcommand("inspect", "What a bundle has; reads and verifies all of it");
  auto file = std::make_shared<std::string>();
  auto json = std::make_shared<bool>(false);
  look->add_option("file", *file, "The bundle")->required();
  look->add_flag("--json", *json, "A JSON object");
  sub->require_subcommand(0, 1);
  look->callback([=, &code] {
    inspect(*file, *json);
    code = exit_ok;
  });
  sub->callback([sub, o, &code] {
    if (!sub->get_subcommands().empty()) return;
    if (o->ops.empty()) throw UserError("bundle needs an operator; `latile list` names all");
    if (o->file.empty()) throw UserError("bundle needs a file to write: add -o FILE");
    Bundling(*o).execute();
    code = exit_ok;
  });
}

}  // namespace latile
