// One run on its way: its checks and its launches. See prepare() in Plan.h.
#pragma once
#include "runtime/Overlap.h"
#include "runtime/Plan.h"

namespace latile::runtime {

/// Reads an index or border tensor, of either integer type.
struct Integers {
  const char* data = nullptr;
  bool wide = false;
  std::int64_t stride = 1, column_stride = 0;
  std::int64_t operator[](std::int64_t i) const { return at(i, 0); }
  std::int64_t at(std::int64_t i, std::int64_t column) const {
    const std::int64_t place = i * stride + column * column_stride;
    if (wide) return reinterpret_cast<const std::int64_t*>(data)[place];
    return reinterpret_cast<const std::int32_t*>(data)[place];
  }
};

class Preparation {
public:
  Preparation(const latile_plan& plan, const latile_args& args)
      : plan(plan), signature(plan.signature), args(args), dims(args.dims), op(signature.op) {}

  /// On the host: checks all, then lays the launches into the workspace.
  Job job();
  /// On a device: checks all that needs no look into its memory, then begins the launches.
  void launch();

private:
  /// False: there is no sequence, and nothing to do.
  bool check();
  /// Of index tensors: counts the chunks that there are.
  std::int64_t check_contents();
  void check_arguments() const;
  void check_workspace();
  void check_tensors() const;
  void check_overlaps() const;
  std::int64_t check_borders() const;
  void check_accepted() const;
  void check_slots(const CarryTensors& carry) const;
  struct Lengths;
  struct Starts;
  Lengths lengths() const;
  Starts starts(const CarryTensors& carry) const;
  /// Puts the slots that the final states, the history states or both of a carry go to into slot_uses.
  std::int64_t gather_writes(const CarryTensors& carry, bool finals, bool histories) const;
  void check_writes(const CarryTensors& carry, bool finals, bool histories) const;
  Job lay();
  void lay_arguments(const BoundKernel& kernel, void** pointers, std::int64_t* numbers, double* scalars) const;
  /// Copies index tensors from the device, for contexts that check them there.
  void check_copied_contents();
  void launch_on(Device& device);
  void order_sequences(std::int64_t* order) const;
  std::vector<MemoryRange> memory() const;

  const Tensor& tensor(int index) const { return signature.tensors[static_cast<std::size_t>(index)]; }
  Footprint footprint(int index) const;
  bool same_memory(int a, int b) const;
  Integers integers(int index) const;

  const latile_plan& plan;
  const Signature& signature;
  const latile_args& args;
  const std::int64_t* dims;
  const std::string& op;
  WorkspaceLayout layout;
  char* base = nullptr;  ///< the workspace's first page
  std::int64_t chunks = 0;
  const void* const* readable = nullptr;  ///< copies of a device's index tensors; null: args.data
  SlotUse* slot_uses = nullptr;           ///< room for Signature::written_slots of any carry
};

}  // namespace latile::runtime
