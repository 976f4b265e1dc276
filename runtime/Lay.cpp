// The launches of a run, with their arguments.
#include "runtime/Preparation.h"
#include <algorithm>
#include <numeric>

namespace latile::runtime {

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

void Preparation::lay_arguments(const BoundKernel& kernel, void** pointers, std::int64_t* numbers,
                                double* scalars) const {
  const Program& program = plan.program;
  const Sizes sizes{dims, chunks};
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
    const std::int64_t tile = of.rows * of.cols;
    *numbers++ = of.by_head ? of.heads.at(sizes) * tile : tile;
    if (of.by_head) *numbers++ = tile;
    *numbers++ = of.cols;
    *numbers++ = 1;
  }
  for (const Count& dim : kernel.dims) *numbers++ = dim.at(sizes);
  for (int scalar : kernel.scalars)
    *scalars++ =
        args.scalars != nullptr ? args.scalars[scalar] : signature.scalars[static_cast<std::size_t>(scalar)].value;
}

Job Preparation::job() {
  if (!check()) return {};
  slot_uses = reinterpret_cast<SlotUse*>(base + plan.program.launch_bytes);
  chunks = check_contents();
  return lay();
}

Job Preparation::lay() {
  const Program& program = plan.program;
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
    lay_arguments(kernel, pointers, numbers, scalars);
    launch.items = kernel.items({dims, chunks});
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

void launch(const latile_plan& plan, const latile_args& args) {
  check_size(&args, args.size, sizeof(latile_args), "latile_args");
  Preparation(plan, args).launch();
}

}  // namespace latile::runtime
