#include "runtime/EmulatedDevice.h"
#include "runtime/emulator/Emulator.h"
#include "runtime/Failure.h"
#include "runtime/Module.h"
#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace latile::runtime {
namespace {

struct Chip {
  std::int32_t id;
  const char* name;
  std::size_t most_shared;  ///< bytes of shared memory that a block may have
};
constexpr Chip chips[] = {
    {80, "sm_80", 163 << 10}, {90, "sm_90", 227 << 10}, {0x90a, "gfx90a", 64 << 10}, {0x1201, "gfx1201", 64 << 10}};

class EmulatedModule : public DeviceModule {
public:
  EmulatedModule(std::shared_ptr<Module> module, const Chip& chip) : module(std::move(module)), chip(chip) {}
  DeviceKernel kernel(const KernelFacts& facts) override {
    using Entry = const emulator::EmulatedKernel* (*)();
    const auto entry = reinterpret_cast<Entry>(module->symbol(facts.symbol));
    if (entry == nullptr) fail(LATILE_INTERNAL, "there is no kernel {} in the emulated code", facts.symbol);
    const emulator::EmulatedKernel* kernel = entry();
    if (kernel->abi != emulator::abi_version)
      fail(LATILE_INTERNAL, "kernel {} is for version {} of the emulator, this is {}", facts.symbol, kernel->abi,
           emulator::abi_version);
    if (facts.shared_bytes > chip.most_shared)
      fail(LATILE_NO_DEVICE, "kernel {} needs {} bytes of shared memory, a block of the emulated {} has {}",
           facts.symbol, facts.shared_bytes, chip.name, chip.most_shared);
    return {const_cast<emulator::EmulatedKernel*>(kernel)};
  }

private:
  std::shared_ptr<Module> module;
  const Chip& chip;
};

/// Tensors that share memory become one range: the emulator's allocations do not overlap.
struct Merged {
  std::string name;
  char *begin, *end;
  bool filled;
};

std::vector<Merged> merged(std::span<const MemoryRange> ranges) {
  std::vector<Merged> list;
  for (const MemoryRange& range : ranges)
    list.push_back(
        {range.name, static_cast<char*>(range.begin), static_cast<char*>(range.begin) + range.bytes, range.filled});
  std::sort(list.begin(), list.end(), [](const Merged& a, const Merged& b) { return a.begin < b.begin; });
  std::vector<Merged> result;
  for (Merged& each : list) {
    if (result.empty() || each.begin >= result.back().end) {
      result.push_back(std::move(each));
      continue;
    }
    Merged& last = result.back();
    last.name += " and " + each.name;
    last.end = std::max(last.end, each.end);
    last.filled |= each.filled;
  }
  return result;
}

class EmulatedDevice : public Device {
public:
  explicit EmulatedDevice(const Chip& chip) : chip(chip), the_target(fmt::format("emulated:{}", chip.name)) {}

  const std::string& target() const override { return the_target; }
  std::string description() const override { return the_target.substr(9) + ", emulated on the CPU"; }
  bool host_memory() const override { return true; }
  /// A small GPU: the smallest grids take narrow kernels, the others do not.
  int multiprocessors() const override { return 16; }
  bool wants_memory() const override { return true; }

  std::shared_ptr<DeviceModule> load(const Artifact& artifact) override {
    std::string why;
    std::shared_ptr<Module> module = Module::load(artifact.binary, why);
    if (!module) fail(LATILE_INTERNAL, "{}", why);
    return std::make_shared<EmulatedModule>(std::move(module), chip);
  }

  void launch(const DeviceRun& run, std::span<const DeviceLaunch> launches) override {
    if (run.stream != nullptr)
      fail(LATILE_BAD_ARGUMENT, "latile_args.stream is set, but an emulated device has no stream; give NULL");
    emulator::Memory memory;
    for (const Merged& range : merged(run.memory)) {
      const auto bytes = static_cast<std::size_t>(range.end - range.begin);
      const std::size_t granule = reinterpret_cast<std::uintptr_t>(range.begin) % 2 == 0 ? 2 : 1;
      if (!memory.add(range.name, range.begin, bytes, granule))
        fail(LATILE_INTERNAL, "the emulator does not take {} bytes of {}", bytes, range.name);
      if (range.filled) memory.mark_written(range.begin, bytes);
    }
    for (const DeviceLaunch& each : launches) {
      const auto* kernel = static_cast<const emulator::EmulatedKernel*>(each.kernel);
      if (kernel->parameters != each.parameters.size())
        fail(LATILE_INTERNAL, "kernel {} takes {} parameters, the plan gives {}", each.symbol, kernel->parameters,
             each.parameters.size());
      emulator::Launch launch;
      launch.kernel = kernel;
      launch.name = each.symbol;
      launch.blocks = each.blocks, launch.threads = each.threads, launch.shared_bytes = each.shared_bytes;
      launch.parameters = reinterpret_cast<const std::uint64_t*>(each.parameters.data());
      const emulator::Result result = emulator::emulate(launch, memory);
      if (!result.reports.empty()) {
        const std::size_t more = result.reports.size() - 1 + result.suppressed;
        fail(LATILE_INTERNAL, "the emulator reports: {}{}", result.reports.front().text,
             more == 0 ? "" : fmt::format(" ({} more)", more));
      }
      if (!result.completed) fail(LATILE_INTERNAL, "kernel {} did not come to its end in the emulator", each.symbol);
    }
  }

  void* allocate(std::size_t bytes) override {
    void* memory = std::aligned_alloc(kDeviceAlignment, (bytes / kDeviceAlignment + 1) * kDeviceAlignment);
    if (memory == nullptr) throw std::bad_alloc();
    return memory;
  }
  void release(void* memory) noexcept override { std::free(memory); }
  void fill(void* memory, int byte, std::size_t bytes) override { std::memset(memory, byte, bytes); }
  void copy_in(void* to, const void* from, std::size_t bytes) override { std::memcpy(to, from, bytes); }
  void copy_out(void* to, const void* from, std::size_t bytes, void*) override { std::memcpy(to, from, bytes); }
  void synchronise(void*) override {}

private:
  const Chip& chip;
  std::string the_target;
};

std::shared_ptr<Device> make_emulated(std::int32_t id) {
  for (const Chip& chip : chips)
    if (chip.id == id) return std::make_shared<EmulatedDevice>(chip);
  fail(LATILE_NO_DEVICE, "there is no emulated device {}; 80 and 90 (sm_80, sm_90), 0x90a and 0x1201 (gfx) are known",
       id);
}

}  // namespace

void install_emulated_devices() { add_device_kind(LATILE_EMULATED, &make_emulated); }

bool emulated_chip(const std::string& name, std::int32_t& id) {
  for (const Chip& chip : chips)
    if (name == chip.name) return id = chip.id, true;
  return false;
}

std::vector<std::string> emulated_chips() {
  std::vector<std::string> names;
  for (const Chip& chip : chips) names.emplace_back(chip.name);
  return names;
}

}  // namespace latile::runtime
