// Runs on a stream of their own, captured in a CUDA graph and timed.
#pragma once
#include "runtime/cuda/CudaDevice.h"
#include <algorithm>
#include <vector>

namespace latile {

inline double median(std::vector<double> times) {
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
  return times[times.size() / 2];
}

/// A stream, its events and a graph of runs. Driver errors are runtime::Failure.
class Recording {
public:
  explicit Recording(runtime::cuda::CudaDevice& device) : api(device.api()), current(api, device.context()) {
    api.check(api.StreamCreate(&stream, runtime::cuda::kNonBlocking), "a stream");
    api.check(api.EventCreate(&start, 0), "an event");
    api.check(api.EventCreate(&stop, 0), "an event");
  }
  ~Recording() {
    if (executable != nullptr) api.GraphExecDestroy(executable);
    api.EventDestroy(start), api.EventDestroy(stop);
    api.StreamDestroy(stream);
  }
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  /// Captures the run so many times; nothing runs.
  template <class Run> void record(int times, Run&& run) {
    runtime::cuda::Graph graph = nullptr;
    api.check(api.StreamBeginCapture(stream, runtime::cuda::kCaptureThreadLocal), "the capture of a graph");
    for (int i = 0; i < times; ++i) run();
    api.check(api.StreamEndCapture(stream, &graph), "the end of a capture");
    api.check(api.GraphInstantiateWithFlags(&executable, graph, 0), "a graph");
    api.check(api.GraphDestroy(graph), "the end of a graph");
  }
  /// Launches the graph and waits; its milliseconds.
  double replay() {
    api.check(api.EventRecord(start, stream), "an event");
    api.check(api.GraphLaunch(executable, stream), "a graph's launch");
    api.check(api.EventRecord(stop, stream), "an event");
    api.check(api.EventSynchronize(stop), "waiting for a graph");
    float ms = 0;
    api.check(api.EventElapsedTime(&ms, start, stop), "the time between events");
    return static_cast<double>(ms);
  }
  /// Milliseconds of each kernel of a run, in order: medians over runs that follow one another on the stream.
  template <class Run>
  std::vector<double> by_kernel(runtime::cuda::CudaDevice& device, std::size_t kernels, Run&& run) {
    constexpr int rounds = 20;
    std::vector<std::vector<runtime::cuda::Event>> marks(rounds);
    for (auto& row : marks) {
      row.resize(kernels + 1);
      for (auto& event : row) api.check(api.EventCreate(&event, 0), "an event");
      device.mark(row);
      run();
    }
    device.mark({});
    wait();
    std::vector<double> medians;
    for (std::size_t k = 0; k < kernels; ++k) {
      std::vector<double> times;
      for (const auto& row : marks) {
        float ms = 0;
        api.check(api.EventElapsedTime(&ms, row[k], row[k + 1]), "the time between events");
        times.push_back(static_cast<double>(ms));
      }
      medians.push_back(median(times));
    }
    for (auto& row : marks)
      for (auto& event : row) api.EventDestroy(event);
    return medians;
  }
  void wait() { api.check(api.StreamSynchronize(stream), "waiting for a stream"); }

  const runtime::cuda::Driver& api;
  runtime::cuda::Current current;
  runtime::cuda::Stream stream = nullptr;
  runtime::cuda::Event start = nullptr, stop = nullptr;
  runtime::cuda::GraphExec executable = nullptr;
};

}  // namespace latile
