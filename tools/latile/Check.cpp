#include "runtime/HostIsa.h"
#include "tools/latile/CaseRun.h"
#include "tools/latile/Commands.h"
#include "tools/latile/LargeCheck.h"
#include "tools/latile/Progress.h"
#include "tools/latile/UserError.h"
#include <algorithm>
#include <atomic>
#include <fmt/format.h>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

namespace latile {
namespace {

struct Options {
  std::vector<std::string> operators, except, types;
  std::string device = "host";
  CheckSettings settings;
  bool json = false, quick = false, progress = false, large = false, graph = false;
  int threads = 0;
};

struct Job {
  const OperatorRow* row;
  ElementType io;
  Case one;
};

/// The error of the worst tensor of a kind, beside what it may be; "-" when there is none.
std::string worst(const CaseResult& r, bool states) {
  const TensorError* most = nullptr;
  for (const TensorError& e : r.errors)
    if (e.state == states && (!most || !(e.error / e.allowed <= most->error / most->allowed))) most = &e;
  if (!most) return fmt::format("{:>9}   {:7}", "-", "");
  return fmt::format("{:>9.1e} / {:.1e}", most->error, most->allowed);
}

void print_result(const CaseResult& r) {
  std::string label = r.case_label + ": " + r.data_label;
  if (label.size() > 70) label = label.substr(0, 69) + "~";
  fmt::print("  {:70} {:20} {:20} {}\n", label, worst(r, false), worst(r, true), r.passed() ? "ok" : "FAILED");
  if (!r.failure.empty()) fmt::print("      {}\n", r.failure);
}

nlohmann::json to_json(const CaseResult& r) {
  nlohmann::json j{{"operator", r.op},
                   {"dtype", name(r.io)},
                   {"case", r.case_label},
                   {"data", r.data_label},
                   {"passed", r.passed()},
                   {"seconds", r.seconds},
                   {"tensors", nlohmann::json::array()}};
  if (!r.failure.empty()) j["failure"] = r.failure;
  for (const TensorError& e : r.errors) {
    nlohmann::json t{{"name", e.name}, {"error", nullptr}, {"allowed", e.allowed}, {"declared", nullptr}};
    if (std::isfinite(e.error)) t["error"] = e.error;
    if (e.declared >= 0) t["declared"] = e.declared;
    j["tensors"].push_back(std::move(t));
  }
  return j;
}

std::vector<Job> jobs_of(const Options& o) {
  std::vector<const OperatorRow*> rows;
  for (const std::string& name : o.operators) rows.push_back(&operator_named(name));
  if (rows.empty())
    for (const OperatorRow& row : operators()) rows.push_back(&row);
  for (const std::string& name : o.except) std::erase(rows, &operator_named(name));
  std::vector<ElementType> types;
  for (const std::string& t : o.types) types.push_back(element_type_named(t));
  if (types.empty() && o.large) types = {ElementType::bf16};
  if (types.empty())
    types = o.quick || o.settings.place.emulated() ? std::vector{ElementType::f32, ElementType::bf16}
                                                   : std::vector{ElementType::f32, ElementType::f16, ElementType::bf16};
  std::vector<Job> jobs;
  for (const OperatorRow* row : rows)
    for (std::size_t t = 0; t < types.size(); ++t) {
      if (o.large) {
        jobs.push_back({row, types[t], {}});
        continue;
      }
      const std::optional<int> half = o.types.empty() ? std::optional(static_cast<int>(t)) : std::nullopt;
      for (Case& c : o.settings.place.emulated() ? emulated_cases_of(*row, half) : cases_of(*row, o.quick))
        jobs.push_back({row, types[t], std::move(c)});
    }
  return jobs;
}

int check(Options& o) {
  o.settings.place = Place::named(o.device);
  const Place& place = o.settings.place;
  need_isa(o.settings.isa);
  if (!place.host() && !o.settings.isa.empty()) throw UserError("--isa is for the host");
  if ((o.large || o.graph) && place.id.type != LATILE_CUDA)
    throw UserError(fmt::format("{} is for CUDA devices, not for '{}'", o.large ? "--large" : "--graph", place.text));
  o.settings.place.graph = o.graph;
  const std::vector<Job> jobs = jobs_of(o);
  const int workers = o.large         ? 1  // there is memory for one
                      : o.threads > 0 ? o.threads
                                      : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  const ContextHandle context = make_context(workers, "");  // no cache: what is checked is compiled now

  Progress progress(jobs.size(), o.progress);
  std::vector<std::vector<CaseResult>> results(jobs.size());
  std::vector<std::atomic<bool>> ready(jobs.size());
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i; (i = next.fetch_add(1)) < jobs.size();) {
      const Job& job = jobs[i];
      progress.step(fmt::format("{} {} {}", job.row->name, name(job.io), job.one.label));
      results[i] = o.large ? run_large(context.get(), *job.row, job.io, o.settings)
                           : run_case(context.get(), *job.row, job.one, job.io, o.settings);
      ready[i].store(true);
      ready[i].notify_all();
    }
  };
  std::vector<std::jthread> threads;
  for (int t = 0; t < workers; ++t) threads.emplace_back(work);

  std::size_t failed = 0, count = 0;
  nlohmann::json rows = nlohmann::json::array();
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    ready[i].wait(false);
    const bool heading = i == 0 || jobs[i].row != jobs[i - 1].row || jobs[i].io != jobs[i - 1].io;
    if (!o.json) {
      progress.clear();
      if (heading)
        fmt::print("{}{}, {} tensors: RMS error against the float64 token reference / allowed\n  {:70} {:20} {}\n",
                   i ? "\n" : "", jobs[i].row->name, long_name(jobs[i].io), "case", "output", "state");
    }
    for (const CaseResult& r : results[i]) {
      ++count;
      failed += !r.passed();
      o.json ? rows.push_back(to_json(r)) : print_result(r);
    }
    std::fflush(stdout);
  }
  const std::string isa = o.settings.isa.empty() ? HostIsa::native().level : o.settings.isa;
  if (o.json)
    fmt::print("{}\n", nlohmann::json{{"version", LATILE_VERSION},
                                      {"device", o.device},
                                      {"isa", place.host() ? isa : place.description()},
                                      {"seed", o.settings.seed},
                                      {"failed", failed},
                                      {"cases", std::move(rows)}}
                           .dump(2));
  else
    fmt::print("\n{} of {} cases passed ({}, {}, seed {})\n", count - failed, count, place.text,
               place.host() ? isa : place.description(), o.settings.seed);
  return failed ? exit_failed : exit_ok;
}

}  // namespace

void need_isa(const std::string& level) {
  HostIsa isa;
  if (level.empty()) return;
  if (!HostIsa::named(level, isa))
    throw UserError(fmt::format("there is no instruction set level '{}'; x86-64-v3, avx512, avx512bf16 and amx are "
                                "known",
                                level));
  if (!host_supports(isa)) throw UserError(fmt::format("this CPU lacks the instruction set level '{}'", level));
}

void add_check(CLI::App& app, int& code) {
  CLI::App* sub = app.add_subcommand(
      "check",
      "Compiles operators and compares every variant with the float64 token reference; exit code 1 if an error "
      "exceeds its tolerance");
  auto o = std::make_shared<Options>();
  sub->add_option("operator", o->operators, "Operators; default all");
  sub->add_option("--except", o->except, "Operators to leave out")->allow_extra_args(false);
  sub->add_option("--device", o->device, place_help)->capture_default_str();
  sub->add_option("--dtype", o->types, "Tensor types, of f32,f16,bf16; default all (with --quick f32,bf16)")
      ->delimiter(',');
  sub->add_option("--seed", o->settings.seed, "Seed of the inputs")->capture_default_str();
  sub->add_option("--isa", o->settings.isa,
                  "Instruction set level: x86-64-v3, avx512, avx512bf16 or amx; default this CPU's");
  sub->add_option("--threads", o->threads, "Cases at a time; default one for each CPU")->check(CLI::PositiveNumber);
  sub->add_option("--repeat", o->settings.repeats, "Runs of each case that must give the same bits")
      ->check(CLI::Range(2, 10000))
      ->capture_default_str();
  sub->add_flag("--large", o->large,
                "On CUDA, instead of the list: tensors of more than 2^31 elements, 70000 sequences");
  sub->add_flag("--graph", o->graph, "On CUDA: each run is captured in a graph, and the graph launched");
  sub->add_flag("--quick", o->quick, "A part of the cases, for each build");
  sub->add_flag("--progress", o->progress, "Say on standard error what runs, also where that is no terminal");
  sub->add_flag("--json", o->json, "One JSON object on standard output");
  sub->footer("Allowed is the operator's tolerance; where bfloat16 tensors take part, the larger of that and 1.5 times "
              "the error of the interpreter in declared types on the same inputs.");
  sub->callback([o, &code] { code = check(*o); });
}

}  // namespace latile
