#include "runtime/emulator/Machine.h"
#include <numeric>
#include <thread>

namespace latile::emulator {
namespace {

// Machines keep their stacks and shadows from launch to launch: making them costs more than a small launch.
class Machines {
public:
  std::unique_ptr<Machine> take() {
    std::lock_guard lock(mutex_);
    if (free_.empty()) return std::make_unique<Machine>();
    auto m = std::move(free_.back());
    free_.pop_back();
    return m;
  }
  void give(std::unique_ptr<Machine> m) {
    std::lock_guard lock(mutex_);
    free_.push_back(std::move(m));
  }

private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<Machine>> free_;
};

std::string refusal(const Launch& launch) {
  if (launch.kernel->abi != abi_version) return "was compiled for another version of the emulator; compile it again";
  if (launch.threads < 1 || launch.threads > 1024)
    return "has blocks of " + std::to_string(launch.threads) + " threads; 1 to 1024 are possible";
  if (launch.shared_bytes > Machine::shared_span)
    return "wants " + std::to_string(launch.shared_bytes) + " bytes of shared memory; 1 MiB is the most";
  if (launch.blocks < 0 || launch.blocks > 0x7fffffff)
    return "has a grid of " + std::to_string(launch.blocks) + " blocks; 2^31 - 1 is the most";
  return "";
}

}  // namespace

const char* name(Report::Kind kind) {
  static const char* const names[] = {
      "race",       "read of unwritten memory", "access out of bounds", "misaligned access",
      "divergence", "memory in flight",         "unsupported"};
  return names[static_cast<int>(kind)];
}

Result emulate(const Launch& launch, Memory& memory, const Options& options) {
  Memory::State& state = *memory.state_;
  if (std::string why = refusal(launch); !why.empty()) {
    Result result;
    result.reports.push_back({Report::Kind::unsupported, "kernel " + launch.name + " " + why, "", "", 0, 0});
    return result;
  }
  if (launch.blocks == 0) return {true, {}, 0};
  for (auto& a : state.allocations) a->reachable = a->writable = false;
  for (std::uint32_t p = 0; p < launch.kernel->parameters; ++p)
    if (Memory::Allocation* a = state.find(reinterpret_cast<const void*>(launch.parameters[p]))) {
      a->reachable = true;
      a->writable = a->writable || launch.kernel->all_written || launch.kernel->written[p];
    }
  LaunchState shared{.launch = launch,
                     .options = options,
                     .memory = state,
                     .first_serial = state.serials(launch.blocks),
                     .mutex = {},
                     .known = {},
                     .result = {}};
  std::uint64_t seed = options.seed * 0x9e3779b97f4a7c15u;
  std::uint64_t blocks = static_cast<std::uint64_t>(launch.blocks);
  shared.offset = static_cast<std::int64_t>((seed >> 20) % blocks);
  shared.stride = static_cast<std::int64_t>((seed >> 8) % blocks) | 1;
  while (std::gcd(shared.stride, launch.blocks) != 1) shared.stride += 2;

  static Machines machines;
  auto work = [&] {
    std::unique_ptr<Machine> machine = machines.take();
    machine->work(shared);
    machines.give(std::move(machine));
  };
  std::vector<std::thread> helpers;
  for (std::int64_t w = 1; w < std::min<std::int64_t>(options.workers, launch.blocks); ++w) helpers.emplace_back(work);
  work();
  for (std::thread& t : helpers) t.join();
  shared.result.completed = !shared.stopped;
  return std::move(shared.result);
}

}  // namespace latile::emulator
