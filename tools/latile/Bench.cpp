#include "tools/latile/Commands.h"
#include "tools/latile/DeviceBench.h"
#include "tools/latile/Machine.h"
#include "tools/latile/Meaning.h"
#include "tools/latile/Plan.h"
#include "tools/latile/Progress.h"
#include "tools/latile/UserError.h"
#include <algorithm>
#include <chrono>
#include <fmt/format.h>
#include <memory>
#include <nlohmann/json.hpp>

namespace latile {
namespace {

struct Options {
  std::string op, isa, device = "host", commit;
  std::vector<std::string> modes, types, options, shapes;
  std::vector<int> threads;
  std::int64_t tokens = 4096, batch = 16, heads = 8, decode_heads = 32, extent = 128, chunk = 0;
  double seconds = 2;
  bool json = false, progress = false;
};

double now_ms() {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double median(std::vector<double> times) {
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
  return times[times.size() / 2];
}

struct Measured {
  std::string mode, what;
  ElementType io = ElementType::f32;
  int threads = 1;
  std::size_t runs = 0;
  double ms = 0, best_ms = 0, floor_ms = 0;
  std::string floor;
  std::string shape, stages;
};

std::size_t data_bytes(const Problem& p) {
  std::size_t bytes = 0;
  for (const Problem::Entry& e : p.entries) bytes += static_cast<std::size_t>(e.tensor.count()) * size(e.tensor.type);
  return bytes;
}

class Bench {
public:
  Bench(const Options& o, const OperatorRow& row, bool step, ElementType io, int threads)
      : o(o), row(row), step(step), io(io), threads(threads) {
    c.label = "bench";
    c.mode = step ? Mode::step : Mode::prefill;
    c.extents = {o.extent};
    c.heads = step ? o.decode_heads : o.heads;
    c.chunk = step ? 0 : o.chunk;
    for (const std::string& text : o.options) c.options.push_back(split_pair(text, "--option"));
  }

  Measured measure() {
    const OperatorInfo info = describe(row, c.options);
    const std::vector<std::int64_t> lengths(static_cast<std::size_t>(step ? o.batch : 1), step ? 1 : o.tokens);
    const Meaning program(row, specialisation_of(o.op, c, make_problem(info, c, {}, {1}, io, 1, false), io));
    Problem p = make_problem(info, c, {}, lengths, io, 1, program.divides());

    const ContextHandle context = make_context(threads);
    Plan plan(context.get(), plan_request(o.op, c, p, o.isa));
    plan.keep_workspace();
    std::vector<void*> data;
    std::vector<std::vector<std::int64_t>> strides;
    std::vector<std::int64_t> dims;
    for (const auto& [name, value] : p.dims) dims.push_back(value);
    for (Problem::Entry& e : p.entries) {
      data.push_back(e.tensor.bytes.data());
      strides.push_back(e.tensor.strides);
    }
    // A decode step works on the states where they lie, as an engine has it.
    std::vector<float> bound;
    for (std::size_t i = 0; step && i < p.entries.size(); ++i) {
      if (p.entries[i].role != Problem::Role::initial) continue;
      bound.resize(bound.size() + static_cast<std::size_t>(p.entries[i].tensor.count()), 1.0f);
      for (std::size_t j = 0; j < p.entries.size(); ++j)
        if (p.entries[j].role == Problem::Role::final && p.entries[j].carry == p.entries[i].carry) data[j] = data[i];
    }

    Measured m;
    m.mode = step ? "step" : "prefill";
    m.io = io, m.threads = threads;
    m.stages = plan.stages();
    m.shape = fmt::format("{}x{}x{}x{}", lengths.size(), lengths[0], p.fine_heads, o.extent);
    plan.run(data, strides, dims, {});
    std::vector<double> times, bounds;
    const double end = now_ms() + 1000 * o.seconds;
    while (times.size() < 5 || (now_ms() < end && times.size() < 100000)) {
      const double start = now_ms();
      plan.run(data, strides, dims, {});
      times.push_back(now_ms() - start);
      if (step) bounds.push_back(in_place_ms(bound.data(), bound.size(), threads));
    }
    m.runs = times.size();
    m.ms = median(times);
    m.best_ms = *std::min_element(times.begin(), times.end());
    if (step) {
      m.floor_ms = median(bounds), m.floor = "states read and written in place";
    } else {
      const double flops = program.dot_flops_per_token() * static_cast<double>(p.rows * p.sequences * p.fine_heads);
      const double bf16 = io == ElementType::bf16 ? bf16_gflops(threads) : 0;
      const double compute = flops / (bf16 > 0 ? bf16 : fma_gflops(threads)) / 1e6;
      const double memory = static_cast<double>(data_bytes(p)) / copy_gbs(threads) / 1e6;
      m.floor_ms = std::max(compute, memory);
      m.floor = compute < memory ? "every tensor moved once" : bf16 > 0 ? "bfloat16 products" : "float32 products";
    }
    return m;
  }

private:
  const Options& o;
  const OperatorRow& row;
  bool step;
  ElementType io;
  int threads;
  Case c;
};

void print(const Options& o, const Measured& m) {
  if (o.json) {
    nlohmann::json j{{"engine", "latile"},
                     {"compiler", LATILE_COMPILER},
                     {"op", o.op},
                     {"mode", m.mode},
                     {"dtype", name(m.io)},
                     {"threads", m.threads},
                     {"shape", m.shape},
                     {"ms", m.ms},
                     {"best_ms", m.best_ms},
                     {"runs", m.runs},
                     {"floor_ms", m.floor_ms},
                     {"floor", m.floor},
                     {"ratio", m.ms / m.floor_ms},
                     {"plan", nlohmann::json::parse(m.stages)}};
    fmt::print("{}\n", j.dump());
  } else {
    fmt::print("{:8} {:8} {:>2} threads  {:16} {:>9.3f} ms  floor {:>8.3f} ms  ratio {:.2f}  ({} runs; floor: {})\n",
               m.mode, long_name(m.io), m.threads, m.shape, m.ms, m.floor_ms, m.ms / m.floor_ms, m.runs, m.floor);
  }
  std::fflush(stdout);
}

void bench(Options o) {
  if (const Place place = Place::named(o.device); !place.host()) {
    if (o.modes.empty()) o.modes = {"prefill", "step"};
    if (o.types.empty()) o.types = {"bf16"};
    return bench_device({o.op, place, o.modes, o.types, o.options, o.shapes, o.chunk, o.seconds, o.commit, o.json});
  }
  if (!o.shapes.empty())
    throw UserError("--shape is for devices; on the host give --tokens, --batch, --heads and --extent");
  const OperatorRow& row = operator_named(o.op);
  need_isa(o.isa);
  if (o.modes.empty()) o.modes = {"prefill", "step"};
  if (o.types.empty()) o.types = {"f32", "bf16"};
  if (o.threads.empty()) {
    o.threads = {1};
    if (usable_cpus() > 1) o.threads.push_back(usable_cpus());
  }
  Progress progress(o.modes.size() * o.types.size() * o.threads.size(), o.progress);
  if (!o.json)
    fmt::print("{} on {}: median of many runs; shape is batch x tokens x heads x extent\n", o.op, cpu_name());
  for (const std::string& mode : o.modes)
    for (const std::string& type : o.types)
      for (int threads : o.threads) {
        progress.step(fmt::format("{} {} {} threads", mode, type, threads));
        const Measured m = Bench(o, row, mode == "step", element_type_named(type), threads).measure();
        progress.clear();
        print(o, m);
      }
}

}  // namespace

void add_bench(CLI::App& app, int& code) {
  CLI::App* sub = app.add_subcommand("bench", "Times an operator: a long prompt, and a decode step of a batch");
  auto o = std::make_shared<Options>();
  sub->add_option("operator", o->op, "Its name")->required();
  sub->add_option("--device", o->device, "Where to run: host, cuda or cuda:N")->capture_default_str();
  sub->add_option("--shape", o->shapes,
                  "On a device: BATCHxTOKENSxHEADSxK or BATCHxTOKENSxHEADSxKxV; default "
                  "4x2048x16x128 and 2x16384x16x128, of a step 1, 16 and 128 sequences of 32 heads of 128")
      ->delimiter(',');
  sub->add_option("--commit", o->commit, "On a device: what the rows name as their commit");
  sub->add_option("--mode", o->modes, "prefill,step; default both")
      ->delimiter(',')
      ->check(CLI::IsMember({"prefill", "step"}));
  sub->add_option("--dtype", o->types, "Tensor types; default f32,bf16, on a device bf16")->delimiter(',');
  sub->add_option("--threads", o->threads, "Thread counts; default 1 and one for each CPU")
      ->delimiter(',')
      ->check(CLI::Range(1, 1024));
  sub->add_option("--tokens", o->tokens, "Tokens of the prompt")->check(CLI::Range(1, 1 << 24))->capture_default_str();
  sub->add_option("--batch", o->batch, "Sequences of a decode step")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
  sub->add_option("--heads", o->heads, "Heads of the prompt")->check(CLI::Range(1, 4096))->capture_default_str();
  sub->add_option("--decode-heads", o->decode_heads, "Heads of the decode step")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  sub->add_option("--extent", o->extent, "Every inner dimension")->check(CLI::Range(8, 512))->capture_default_str();
  sub->add_option("--option", o->options, "NAME=VALUE: an option of the operator");
  sub->add_option("--chunk", o->chunk, "Rows of a chunk: 16, 32 or 64; default the target's choice")
      ->check(CLI::IsMember({16, 32, 64}));
  sub->add_option("--isa", o->isa, "Instruction set level; default this CPU's");
  sub->add_option("--seconds", o->seconds, "Time for each measurement")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  sub->add_flag("--progress", o->progress, "Say on standard error what runs, also where that is no terminal");
  sub->add_flag("--json", o->json, "One JSON object a line on standard output");
  sub->footer(
      "The floor of a prompt is the larger of its matrix products at the CPU's measured peak and its tensors "
      "moved once at the measured rate of a copy; that of a step is one pass over the states, in place, measured "
      "between the runs.");
  sub->callback([o, &code] {
    bench(*o);
    code = exit_ok;
  });
}

}  // namespace latile
