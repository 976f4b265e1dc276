// The checks of a run and its launches: see prepare() in Plan.h.
#include "runtime/Overlap.h"
#include "runtime/Plan.h"
#include <algorithm>
#include <cmath>
#include <numeric>

namespace latile::runtime {
namespace {

/// Reads an index or border tensor, of either integer type.
struct Integers {
  const char* data = nullptr;
  bool wide = false;
  std::int64_t stride = 1;
  std::int64_t operator[](std::int64_t i) const {
    if (wide) return reinterpret_cast<const std::int64_t*>(data)[i * stride];
    return reinterpret_cast<const std::int32_t*>(data)[i * stride];
  }
};

class Preparation {
public:
  Preparation(const latile_plan& plan, const latile_args& args)
      : plan(plan), signature(plan.signature), args(args), dims(args.dims), op(signature.op) {}

  Job job() {
    check_arguments();
    layout = plan.program.layout(signature, dims);
    check_workspace();
    check_tensors();
    if (signature.sequences.at(dims) == 0) return {};
    check_overlaps();
    check_borders();
    for (const CarryTensors& carry : signature.carries) check_slots(carry);
    return lay();
  }

private:
  void check_arguments() const;
  void check_workspace();
  void check_tensors() const;
  void check_overlaps() const;
  void check_borders();
  void check_slots(const CarryTensors& carry) const;
  Job lay();
  void order_sequences(std::int64_t* order) const;

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
};

void Preparation::check_arguments() const {
  signature.check_dims(dims);
  if (args.data == nullptr && !signature.tensors.empty())
    fail(LATILE_BAD_ARGUMENT, "{}: latile_args.data is null; give {} pointers", op, signature.tensors.size());
  if (args.strides == nullptr && signature.runtime_strides != 0)
    fail(LATILE_BAD_ARGUMENT, "{}: latile_args.strides is null, but the plan has {} strides given at run", op,
         signature.runtime_strides);
  if (args.stream != nullptr)
    fail(LATILE_BAD_ARGUMENT, "{}: latile_args.stream is set, but a host plan has no stream; give NULL", op);
  if (args.scalars == nullptr) return;
  for (std::size_t i = 0; i < signature.scalars.size(); ++i)
    if (!std::isfinite(args.scalars[i]))
      fail(LATILE_BAD_ARGUMENT, "{}: scalar {} is {}; it must be finite", op, signature.scalars[i].name,
           args.scalars[i]);
}

void Preparation::check_workspace() {
  if (args.workspace == nullptr)
    fail(LATILE_BAD_ARGUMENT, "{}: the workspace is null; give {} bytes (latile_plan_workspace)", op, layout.total);
  const auto address = reinterpret_cast<std::uintptr_t>(args.workspace);
  if (address % kWorkspaceAlignment != 0)
    fail(LATILE_BAD_ARGUMENT, "{}: the workspace is not aligned to {} bytes", op, kWorkspaceAlignment);
  if (args.workspace_size < layout.total)
    fail(LATILE_BAD_ARGUMENT, "{}: the workspace has {} bytes, this run needs {} (latile_plan_workspace)", op,
         args.workspace_size, layout.total);
  base = static_cast<char*>(args.workspace) + (kPage - address % kPage) % kPage;
}

Footprint Preparation::footprint(int index) const {
  const Tensor& of = tensor(index);
  Extents extents, strides;
  Footprint result;
  result.begin = static_cast<const char*>(args.data[index]);
  result.empty = signature.shape(of, dims, extents) == 0;
  strides_of(of, extents, args.strides, strides);
  for (int i = 0; i < of.rank(); ++i)
    result.add(extents[static_cast<std::size_t>(i)], strides[static_cast<std::size_t>(i)],
               static_cast<std::int64_t>(size(of.type)));
  result.element = static_cast<std::int64_t>(size(of.type));
  return result;
}

/// Same base, type and strides. The extent of the outermost axis may differ: a pool of slots beside N states.
bool Preparation::same_memory(int a, int b) const {
  if (args.data[a] != args.data[b] || tensor(a).type != tensor(b).type) return false;
  Extents extents_a, extents_b, strides_a, strides_b;
  signature.shape(tensor(a), dims, extents_a);
  signature.shape(tensor(b), dims, extents_b);
  strides_of(tensor(a), extents_a, args.strides, strides_a);
  strides_of(tensor(b), extents_b, args.strides, strides_b);
  for (std::size_t i = 0; i < tensor(a).axes.size(); ++i)
    if (strides_a[i] != strides_b[i] && (extents_a[i] > 1 || extents_b[i] > 1)) return false;
  return true;
}

void Preparation::check_tensors() const {
  for (std::size_t index = 0; index < signature.tensors.size(); ++index) {
    const Tensor& of = signature.tensors[index];
    if (!of.contiguous) {
      std::size_t next = of.first_runtime_stride;
      for (int i = 0; i < of.rank(); ++i)
        if (of.strides[static_cast<std::size_t>(i)] == -1 && args.strides[next++] < 0)
          fail(LATILE_BAD_SHAPE, "{}: tensor '{}': stride {} of dimension {} is negative", op, of.name,
               args.strides[next - 1], of.axes[static_cast<std::size_t>(i)].name);
    }
    const Footprint print = footprint(static_cast<int>(index));
    if (print.empty) continue;
    if (print.too_large)
      fail(LATILE_BAD_SHAPE, "{}: tensor '{}' spans more than 2^63 bytes with its strides", op, of.name);
    if (print.begin == nullptr) fail(LATILE_BAD_ARGUMENT, "{}: tensor '{}' is a null pointer", op, of.name);
    if (reinterpret_cast<std::uintptr_t>(print.begin) % of.alignment != 0)
      fail(LATILE_BAD_ARGUMENT, "{}: tensor '{}' is not aligned to {} bytes, as the plan was told", op, of.name,
           of.alignment);
    if (of.written() && print.overlaps_itself())
      fail(LATILE_BAD_SHAPE, "{}: tensor '{}' is written, but with its strides two elements share an address", op,
           of.name);
  }
}

void Preparation::check_overlaps() const {
  const Footprint scratch = Footprint::bytes(args.workspace, static_cast<std::int64_t>(layout.total));
  const auto in_place = [&](int written, int other) {
    if (tensor(written).role != Role::final || tensor(other).role != Role::initial) return false;
    return std::any_of(signature.carries.begin(), signature.carries.end(),
                       [&](const CarryTensors& carry) { return carry.final == written && carry.initial == other; });
  };
  for (int i = 0; i < static_cast<int>(signature.tensors.size()); ++i) {
    const Footprint print = footprint(i);
    if (!disjoint(print, scratch))
      fail(LATILE_BAD_ARGUMENT, "{}: tensor '{}' overlaps the workspace", op, tensor(i).name);
    if (!tensor(i).written()) continue;
    for (int j = 0; j < static_cast<int>(signature.tensors.size()); ++j) {
      if (j == i || (j < i && tensor(j).written())) continue;
      const Footprint other = footprint(j);
      if (disjoint(print, other)) continue;
      if (!in_place(i, j))
        fail(LATILE_BAD_ARGUMENT, "{}: tensor '{}' is written and overlaps '{}'; give it memory of its own", op,
             tensor(i).name, tensor(j).name);
      if (!same_memory(i, j))
        fail(LATILE_BAD_ARGUMENT,
             "{}: '{}' and '{}' overlap without being the same memory with the same strides and "
             "type; use one pool in place, or two",
             op, tensor(j).name, tensor(i).name);
    }
  }
}

Integers Preparation::integers(int index) const {
  const Tensor& of = tensor(index);
  Extents extents, strides;
  signature.shape(of, dims, extents);
  strides_of(of, extents, args.strides, strides);
  return {static_cast<const char*>(args.data[index]), of.type == ElementType::i64, strides[0]};
}

void Preparation::check_borders() {
  const std::int64_t sequences = signature.sequences.at(dims), rows = signature.rows.at(dims);
  const std::int64_t length = std::max<std::int64_t>(plan.program.chunk, 1);
  if (!signature.ragged()) {
    chunks = plan.program.chunk == 0 ? 0 : plan.program.most_chunks(signature, dims);
    return;
  }
  const Integers borders = integers(signature.borders);
  if (borders[0] != 0)
    fail(LATILE_BAD_SHAPE, "{}: cu_seqlens[0] is {}; the first sequence begins at 0", op, borders[0]);
  std::int64_t before = 0;
  for (std::int64_t n = 1; n <= sequences; ++n) {
    const std::int64_t border = borders[n];
    if (border < before)
      fail(LATILE_BAD_SHAPE, "{}: cu_seqlens[{}] is {}, below cu_seqlens[{}] = {}; it may not decrease", op, n, border,
           n - 1, before);
    chunks += (border - before + length - 1) / length;
    before = border;
  }
  if (before > rows)
    fail(LATILE_BAD_SHAPE, "{}: cu_seqlens[{}] is {}, beyond the {} tokens there are (T)", op, sequences, before, rows);
}

/// Slots in range; no two sequences write one; in place, none reads what another writes.
void Preparation::check_slots(const CarryTensors& carry) const {
  const std::int64_t sequences = signature.sequences.at(dims);
  const auto check_range = [&](int index) {
    const Integers slots = integers(index);
    const std::int64_t pool = signature.slots.at(dims);
    for (std::int64_t n = 0; n < sequences; ++n)
      if (slots[n] < -1 || slots[n] >= pool)
        fail(LATILE_BAD_SHAPE, "{}: {}[{}] is {}; slots are 0 to {}, and -1 stands for none", op, tensor(index).name, n,
             slots[n], pool - 1);
    return slots;
  };
  Integers reads, writes;
  if (carry.initial_index >= 0) reads = check_range(carry.initial_index);
  if (carry.final < 0) return;
  if (carry.final_index >= 0) writes = check_range(carry.final_index);
  const bool in_place = carry.initial >= 0 && !disjoint(footprint(carry.final), footprint(carry.initial));
  const auto conflict = [&](std::int64_t reader, std::int64_t slot, std::int64_t writer) {
    if (reader != writer)
      fail(LATILE_BAD_SHAPE,
           "{}: state {} is updated in place, but sequence {} reads slot {}, which sequence {} "
           "writes; give them slots of their own",
           op, carry.name, reader, slot, writer);
  };
  const auto read_slot = [&](std::int64_t n) { return carry.initial_index >= 0 ? reads[n] : n; };
  if (carry.final_index < 0) {
    // Sequence n writes slot n.
    for (std::int64_t n = 0; in_place && n < sequences; ++n)
      if (const std::int64_t slot = read_slot(n); slot >= 0 && slot < sequences) conflict(n, slot, slot);
    return;
  }
  auto* uses = reinterpret_cast<SlotUse*>(base + plan.program.launch_bytes);
  std::int64_t count = 0;
  for (std::int64_t n = 0; n < sequences; ++n)
    if (writes[n] >= 0) uses[count++] = {writes[n], n};
  const auto before = [](const SlotUse& a, const SlotUse& b) {
    return a.slot != b.slot ? a.slot < b.slot : a.sequence < b.sequence;
  };
  if (!std::is_sorted(uses, uses + count, before)) std::sort(uses, uses + count, before);
  for (std::int64_t i = 1; i < count; ++i)
    if (uses[i].slot == uses[i - 1].slot)
      fail(LATILE_BAD_SHAPE, "{}: {} sends sequences {} and {} to one slot, {}", op, tensor(carry.final_index).name,
           uses[i - 1].sequence, uses[i].sequence, uses[i].slot);
  if (!in_place) return;
  for (std::int64_t n = 0; n < sequences; ++n) {
    const std::int64_t slot = read_slot(n);
    const SlotUse* use = std::lower_bound(uses, uses + count, SlotUse{slot, -1}, before);
    if (slot >= 0 && use != uses + count && use->slot == slot) conflict(n, slot, use->sequence);
  }
}

/// Longest first, so that no thread begins a long sequence when the others are done.
void Preparation::order_sequences(std::int64_t* order) const {
  const std::int64_t sequences = signature.sequences.at(dims);
  const Integers borders = integers(signature.borders);
  std::iota(order, order + sequences, std::int64_t{0});
  std::sort(order, order + sequences, [&](std::int64_t a, std::int64_t b) {
    const std::int64_t of_a = borders[a + 1] - borders[a], of_b = borders[b + 1] - borders[b];
    return of_a != of_b ? of_a > of_b : a < b;
  });
}

Job Preparation::lay() {
  const Program& program = plan.program;
  const Sizes sizes{dims, chunks};
  auto* launches = reinterpret_cast<Launch*>(base);
  char* cursor = base + (program.kernels.size() * sizeof(Launch) + kLine - 1) / kLine * kLine;
  const auto take = [&]<class T>(T*, std::size_t count) {
    T* taken = reinterpret_cast<T*>(cursor);
    cursor += count * sizeof(T);
    return taken;
  };
  std::int64_t* order = nullptr;
  if (program.orders_sequences) {
    order = reinterpret_cast<std::int64_t*>(base + program.launch_bytes);
    order_sequences(order);
  }
  for (std::size_t k = 0; k < program.kernels.size(); ++k) {
    const BoundKernel& kernel = program.kernels[k];
    auto* pointers = take(static_cast<void**>(nullptr), kernel.views.size());
    auto* numbers = take(static_cast<std::int64_t*>(nullptr), kernel.integers);
    auto* scalars = take(static_cast<double*>(nullptr), kernel.scalars.size());
    Launch launch;
    launch.entry = kernel.entry;
    launch.arguments = {pointers, numbers, scalars};
    for (int view : kernel.views) {
      if (view >= 0) {
        const Tensor& of = tensor(view);
        Extents extents, strides;
        signature.shape(of, dims, extents);
        strides_of(of, extents, args.strides, strides);
        *pointers++ = args.data[view];
        numbers = std::copy_n(strides.begin(), of.rank(), numbers);
        continue;
      }
      const auto index = static_cast<std::size_t>(~view);
      const BoundWorkspace& of = program.workspace[index];
      // Offsets by the most chunks, as in the layout: where a tensor lies does not depend on cu_seqlens.
      const Sizes most{dims, program.most_chunks(signature, dims)};
      char* place = base + layout.tensors;
      for (std::size_t before = 0; before < index; ++before) place += program.workspace_tensor_bytes(before, most);
      *pointers++ = place;
      for (std::int64_t stride : {of.heads.at(sizes) * of.rows * of.cols, of.rows * of.cols, of.cols, std::int64_t{1}})
        *numbers++ = stride;
    }
    for (const Count& dim : kernel.dims) *numbers++ = dim.at(sizes);
    for (int scalar : kernel.scalars)
      *scalars++ =
          args.scalars != nullptr ? args.scalars[scalar] : signature.scalars[static_cast<std::size_t>(scalar)].value;
    launch.items = 1;
    for (const Count& axis : kernel.grid) launch.items *= axis.at(sizes);
    if (kernel.sequences_first) {
      launch.order = order;
      launch.inner = launch.items / signature.sequences.at(dims);
    } else {
      // Neighbours lie side by side in memory, so they go to one thread as long as that leaves enough to share out.
      launch.grain = std::clamp<std::int64_t>(launch.items / (8 * std::int64_t{layout.parts}), 1, 16);
    }
    launches[k] = launch;
  }
  return {launches, static_cast<int>(program.kernels.size()), layout.parts, base + layout.arenas, layout.arena_stride};
}

}  // namespace

void strides_of(const Tensor& tensor, const Extents& extents, const std::int64_t* given, Extents& strides) {
  if (tensor.contiguous) {
    std::int64_t stride = 1;
    for (int i = tensor.rank() - 1; i >= 0; --i) {
      strides[static_cast<std::size_t>(i)] = stride;
      // An overflow here means more elements than check_tensors lets pass, or none.
      stride = static_cast<std::int64_t>(static_cast<std::uint64_t>(stride) *
                                         static_cast<std::uint64_t>(extents[static_cast<std::size_t>(i)]));
    }
    return;
  }
  std::size_t next = tensor.first_runtime_stride;
  for (std::size_t i = 0; i < tensor.axes.size(); ++i)
    strides[i] = tensor.strides[i] == -1 ? given[next++] : tensor.strides[i];
}

Job prepare(const latile_plan& plan, const latile_args& args) {
  check_size(&args, args.size, sizeof(latile_args), "latile_args");
  return Preparation(plan, args).job();
}

}  // namespace latile::runtime
