// `latile bench` on a GPU: the time of the kernels by replay of a graph of runs, and the host's time for one call.
#include "tools/latile/DeviceBench.h"
#include "runtime/cuda/CudaDevice.h"
#include "runtime/Failure.h"
#include "tools/latile/Commands.h"
#include "tools/latile/Meaning.h"
#include "tools/latile/Plan.h"
#include "tools/latile/Recording.h"
#include "tools/latile/UserError.h"
#include <algorithm>
#include <chrono>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace latile {
namespace {

/// What an H200 moves to or from its memory at best, bytes a second.
constexpr double memory_rate = 4.3e12;
/// Runs in one graph: enough that its own launch counts for little.
constexpr int runs_in_graph = 10;

using runtime::cuda::CudaDevice;

double now_us() {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

class DeviceBench {
public:
  DeviceBench(const DeviceBenchOptions& o, const OperatorRow& row, BenchShape shape, bool step, ElementType io)
      : o(o), row(row), shape(shape), step(step), io(io) {
    c.label = "bench";
    c.mode = step ? Mode::step : Mode::prefill;
    c.extents = {shape.K, shape.V};
    c.heads = shape.heads;
    c.chunk = step ? 0 : o.chunk;
    for (const std::string& text : o.options) c.options.push_back(split_pair(text, "--option"));
  }

  void measure() {
    const OperatorInfo info = describe(row, c.options);
    // The content of one short sequence, repeated on the device: making all of it would take longer than measuring.
    const std::int64_t tokens = step ? 1 : std::min<std::int64_t>(shape.tokens, 512);
    const Meaning program(row, specialisation_of(o.op, c, make_problem(info, c, {}, {1}, io, 1, false), io));
    const Problem p = make_problem(info, c, {}, {tokens}, io, 1, program.divides());
    const ContextHandle context = make_context(1);
    Plan plan(context.get(), plan_request(o.op, c, p, "", o.place));
    plan.keep_workspace();

    std::vector<std::int64_t> dims;
    for (const auto& [name, value] : p.dims)
      dims.push_back(name == "B" || name == "N" ? shape.batch : name == "T" && !step ? shape.tokens : value);
    std::vector<std::unique_ptr<DeviceMemory>> memory;
    std::vector<void*> data;
    double bytes = 0;
    for (std::size_t i = 0; i < p.entries.size(); ++i) {
      const Problem::Entry& e = p.entries[i];
      const auto of_tensor = static_cast<std::size_t>(element_count(plan.shape(i, dims))) * size(e.tensor.type);
      bytes += static_cast<double>(of_tensor);
      memory.push_back(std::make_unique<DeviceMemory>(o.place.device, of_tensor));
      data.push_back(memory.back()->data());
      if (e.role != Problem::Role::output && e.role != Problem::Role::final) repeat(e.tensor.bytes, *memory.back());
    }
    // A decode step works on the states where they lie, as an engine has it.
    for (std::size_t i = 0; step && i < p.entries.size(); ++i)
      for (std::size_t j = 0; j < p.entries.size(); ++j)
        if (p.entries[i].role == Problem::Role::initial && p.entries[j].role == Problem::Role::final &&
            p.entries[j].carry == p.entries[i].carry)
          data[j] = data[i];

    std::vector<std::vector<std::int64_t>> strides;
    for (const Problem::Entry& e : p.entries) strides.push_back(e.tensor.strides);
    const double begun = now_us();
    plan.run(data, strides, dims, {});
    const double first_us = now_us() - begun;

    auto& device = static_cast<CudaDevice&>(*o.place.device);
    Recording recording(device);
    recording.record(runs_in_graph, [&] { plan.begin(data, dims, recording.stream); });
    std::vector<double> times, calls;
    recording.replay();
    const double end = now_us() + 1e6 * o.seconds;
    while (times.size() < 10 || (now_us() < end && times.size() < 10000))
      times.push_back(recording.replay() / runs_in_graph);
    for (int i = 0; i < 200; ++i) {
      recording.wait();
      const double start = now_us();
      plan.begin(data, dims, recording.stream);
      calls.push_back(now_us() - start);
    }
    recording.wait();
    stages = nlohmann::json::parse(plan.stages());
    if (auto& kernels = stages["kernels"]; kernels.size() > 1) {
      const auto each = recording.by_kernel(static_cast<CudaDevice&>(plan.device()), kernels.size(),
                                            [&] { plan.begin(data, dims, recording.stream); });
      for (std::size_t k = 0; k < each.size(); ++k) kernels[k]["gpu_ms"] = each[k];
    }
    print(device, median(times), *std::min_element(times.begin(), times.end()), median(calls), first_us,
          bytes / memory_rate * 1e3, times.size());
  }

private:
  void repeat(const std::vector<std::byte>& pattern, DeviceMemory& memory) const {
    if (pattern.empty()) return;
    std::vector<std::byte> all(memory.size());
    for (std::size_t at = 0; at < all.size(); at += pattern.size())
      std::copy_n(pattern.begin(), std::min(pattern.size(), all.size() - at),
                  all.begin() + static_cast<std::ptrdiff_t>(at));
    memory.write(all.data());
  }

  void print(const CudaDevice& device, double gpu_ms, double best_ms, double call_us, double first_us, double floor_ms,
             std::size_t runs) const {
    if (o.json) {
      const nlohmann::json j{{"engine", "latile"},
                             {"op", o.op},
                             {"mode", step ? "step" : "prefill"},
                             {"B", shape.batch},
                             {"T", step ? 1 : shape.tokens},
                             {"H", shape.heads},
                             {"K", shape.K},
                             {"V", shape.V},
                             {"dtype", name(io)},
                             {"options", o.options},
                             {"gpu_ms", gpu_ms},
                             {"best_gpu_ms", best_ms},
                             {"call_us", call_us},
                             {"first_run_ms", first_us / 1e3},
                             {"floor_ms", floor_ms},
                             {"ratio", gpu_ms / floor_ms},
                             {"runs", runs * runs_in_graph},
                             {"commit", o.commit},
                             {"device", device.name()},
                             {"plan", stages}};
      fmt::print("{}\n", j.dump());
    } else {
      fmt::print("{:8} {:8} {:22} {:>9.4f} ms  floor {:>8.4f} ms  ratio {:6.2f}  call {:6.1f} us\n",
                 step ? "step" : "prefill", long_name(io),
                 fmt::format("{}x{}x{}x{}x{}", shape.batch, step ? 1 : shape.tokens, shape.heads, shape.K, shape.V),
                 gpu_ms, floor_ms, gpu_ms / floor_ms, call_us);
    }
    std::fflush(stdout);
  }

  const DeviceBenchOptions& o;
  const OperatorRow& row;
  BenchShape shape;
  bool step;
  ElementType io;
  Case c;
  nlohmann::json stages;
};

}  // namespace

BenchShape bench_shape(const std::string& text) {
  std::vector<std::int64_t> numbers;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find('x', at), text.size());
    numbers.push_back(integer_in(text.substr(at, end - at), "--shape " + text));
    at = end + 1;
  }
  if (numbers.size() == 4) numbers.push_back(numbers[3]);
  if (numbers.size() != 5 || *std::min_element(numbers.begin(), numbers.end()) < 1)
    throw UserError(fmt::format("--shape {}: give BATCHxTOKENSxHEADSxK or BATCHxTOKENSxHEADSxKxV", text));
  return {numbers[0], numbers[1], numbers[2], numbers[3], numbers[4]};
}

void bench_device(const DeviceBenchOptions& o) {
  if (o.place.id.type != LATILE_CUDA)
    throw UserError(fmt::format("bench measures the host and CUDA devices, not '{}'", o.place.text));
  const OperatorRow& row = operator_named(o.op);
  if (!o.json)
    fmt::print(
        "{} on {}\nGPU time by replay of graphs of {} runs; shape is batch x tokens x heads x K x V; floor: every "
        "tensor moved once at 4.3 TB/s\n",
        o.op, o.place.description(), runs_in_graph);
  try {
    for (const std::string& mode : o.modes) {
      std::vector<std::string> shapes = o.shapes;
      if (shapes.empty())
        shapes = mode == "step" ? std::vector<std::string>{"1x1x32x128", "16x1x32x128", "128x1x32x128"}
                                : std::vector<std::string>{"4x2048x16x128", "2x16384x16x128"};
      for (const std::string& type : o.types)
        for (const std::string& shape : shapes)
          DeviceBench(o, row, bench_shape(shape), mode == "step", element_type_named(type)).measure();
    }
  } catch (const runtime::Failure& failure) { throw UserError(failure.text, exit_internal); }
}

}  // namespace latile
