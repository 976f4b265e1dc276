// A run on a device: the checks that need no look into its memory, and its launches.
#include "runtime/Preparation.h"

namespace latile::runtime {

/// The ranges that a device which watches them is told of. A state updated in place is one range.
std::vector<MemoryRange> Preparation::memory() const {
  std::vector<MemoryRange> ranges;
  for (int i = 0; i < static_cast<int>(signature.tensors.size()); ++i) {
    const Footprint print = footprint(i);
    if (print.empty) continue;
    const Tensor& of = tensor(i);
    MemoryRange range{of.name.c_str(), args.data[i], static_cast<std::size_t>(print.span + print.element), of.written(),
                      !of.written()};
    for (MemoryRange& known : ranges)
      if (known.begin == range.begin) {
        known.written |= range.written, known.filled |= range.filled;
        known.bytes = std::max(known.bytes, range.bytes);
        range.bytes = 0;
      }
    if (range.bytes != 0) ranges.push_back(range);
  }
  const Sizes sizes{dims, chunks};
  char* place = base;
  for (std::size_t i = 0; i < plan.program.workspace.size(); ++i) {
    const std::size_t bytes = plan.program.workspace_tensor_bytes(i, sizes);
    if (bytes != 0) ranges.push_back({plan.code->artifact.workspace[i].name.c_str(), place, bytes, true, false});
    place += bytes;
  }
  if (layout.block_arenas != 0)
    ranges.push_back({"arenas", base + layout.arenas,
                      static_cast<std::size_t>(layout.block_arenas) * layout.arena_stride, true, false});
  return ranges;
}

void Preparation::check_copied_contents() {
  std::vector<const void*> sources(signature.tensors.size(), nullptr);
  std::vector<std::vector<char>> copies;
  for (std::size_t i = 0; i < signature.tensors.size(); ++i) {
    const Tensor& of = signature.tensors[i];
    const Footprint print = footprint(static_cast<int>(i));
    if (!of.integer()) continue;
    if (print.empty) continue;
    sources[i] = args.data[i];
    if (plan.code->device->host_memory()) continue;
    std::vector<char>& copy = copies.emplace_back(static_cast<std::size_t>(print.span + print.element));
    plan.code->device->copy_out(copy.data(), print.begin, copy.size(), args.stream);
    sources[i] = copy.data();
  }
  std::int64_t most = 0;
  for (const CarryTensors& carry : signature.carries) most = std::max(most, signature.written_slots(carry, dims));
  std::vector<SlotUse> room(static_cast<std::size_t>(most));
  readable = sources.data(), slot_uses = room.data();
  check_contents();
  readable = nullptr, slot_uses = nullptr;
}

void Preparation::launch() {
  if (!check()) return;
  Device& device = *plan.code->device;
  if (device.host_memory() || plan.context->checks_device_indices()) check_copied_contents();
  launch_on(device);
}

void Preparation::launch_on(Device& device) {
  // On the stack: a run allocates nothing. Drivers copy the parameters before they return.
  std::int64_t parameters[kMaxLaunches][kMaxParameters];
  DeviceLaunch launches[kMaxLaunches];
  std::size_t count = 0;
  for (const BoundKernel& kernel : plan.program.kernels) {
    const std::int64_t items = kernel.items({dims, chunks});
    if (items == 0) continue;
    // Twice the blocks repeat some work: worth it where a quarter of the device had none.
    const bool is_narrow = kernel.narrow && 4 * items * kernel.slices < 3 * device.multiprocessors();
    std::int64_t* row = parameters[count];
    std::int64_t* numbers = row + kernel.views.size();
    // Pointers, integers and doubles all take 8 bytes here, which the sizes below hold to.
    static_assert(sizeof(void*) == sizeof(std::int64_t) && sizeof(double) == sizeof(std::int64_t));
    lay_arguments(kernel, reinterpret_cast<void**>(row), numbers, reinterpret_cast<double*>(numbers + kernel.integers));
    if (kernel.arena_bytes != 0) {
      const std::int64_t blocks = items * kernel.slices;
      std::int64_t* last = row + kernel.parameters() - 4;
      last[0] = reinterpret_cast<std::int64_t>(base + layout.arenas);
      last[1] = static_cast<std::int64_t>(layout.arena_stride), last[2] = blocks;
      last[3] = kernel.launched(blocks);
    }
    const auto begin = [&](const auto& form) {
      launches[count++] = {form.on_device.handle, form.symbol.c_str(), kernel.launched(items * form.slices),
                           form.threads,          form.shared_bytes,   {row, kernel.parameters()}};
    };
    if (is_narrow)
      begin(*kernel.narrow);
    else
      begin(kernel);
  }
  DeviceRun run{args.stream, {}};
  std::vector<MemoryRange> ranges;
  if (device.wants_memory()) run.memory = ranges = memory();
  device.launch(run, {launches, count});
}

}  // namespace latile::runtime
