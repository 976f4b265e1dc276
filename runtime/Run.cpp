// The checks of a run.
#include "runtime/Preparation.h"
#include <algorithm>
#include <cmath>

namespace latile::runtime {

bool Preparation::check() {
  check_arguments();
  layout = plan.program.layout(signature, dims);
  check_workspace();
  check_tensors();
  if (signature.sequences.at(dims) == 0) return false;
  check_overlaps();
  chunks = plan.program.most_chunks(signature, dims);
  return true;
}

std::int64_t Preparation::check_contents() {
  const std::int64_t there_are = signature.ragged() ? check_borders() : chunks;
  check_accepted();
  for (const CarryTensors& carry : signature.carries) check_slots(carry);
  return there_are;
}

void Preparation::check_arguments() const {
  signature.check_dims(dims);
  if (args.data == nullptr && !signature.tensors.empty())
    fail(LATILE_BAD_ARGUMENT, "{}: latile_args.data is null; give {} pointers", op, signature.tensors.size());
  if (args.strides == nullptr && signature.runtime_strides != 0)
    fail(LATILE_BAD_ARGUMENT, "{}: latile_args.strides is null, but the plan has {} strides given at run", op,
         signature.runtime_strides);
  if (args.stream != nullptr && !plan.program.on_device)
    fail(LATILE_BAD_ARGUMENT, "{}: latile_args.stream is set, but a host plan has no stream; give NULL", op);
  if (args.scalars == nullptr) return;
  for (std::size_t i = 0; i < signature.scalars.size(); ++i)
    if (!std::isfinite(args.scalars[i]))
      fail(LATILE_BAD_ARGUMENT, "{}: scalar {} is {}; it must be finite", op, signature.scalars[i].name,
           args.scalars[i]);
}

void Preparation::check_workspace() {
  const std::size_t alignment = plan.program.workspace_alignment();
  if (layout.total == 0) return;
  if (args.workspace == nullptr)
    fail(LATILE_BAD_ARGUMENT, "{}: the workspace is null; give {} bytes (latile_plan_workspace)", op, layout.total);
  const auto address = reinterpret_cast<std::uintptr_t>(args.workspace);
  if (address % alignment != 0)
    fail(LATILE_BAD_ARGUMENT, "{}: the workspace is not aligned to {} bytes", op, alignment);
  if (args.workspace_size < layout.total)
    fail(LATILE_BAD_ARGUMENT, "{}: the workspace has {} bytes, this run needs {} (latile_plan_workspace)", op,
         args.workspace_size, layout.total);
  base = static_cast<char*>(args.workspace);
  if (!plan.program.on_device) base += (kPage - address % kPage) % kPage;
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
  // The states of one carry may lie in one pool; which slots are whose, check_slots() sees.
  const auto in_place = [&](int a, int b) {
    return std::any_of(signature.carries.begin(), signature.carries.end(), [&](const CarryTensors& carry) {
      const auto one_of = [&](int index) {
        return index == carry.initial || index == carry.final || index == carry.history;
      };
      return one_of(a) && one_of(b);
    });
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
  const void* data = readable != nullptr ? readable[index] : args.data[index];
  return {static_cast<const char*>(data), of.type == ElementType::i64, strides[0], of.rank() > 1 ? strides[1] : 0};
}

std::int64_t Preparation::check_borders() const {
  const std::int64_t sequences = signature.sequences.at(dims), rows = signature.rows.at(dims);
  const std::int64_t length = std::max<std::int64_t>(plan.program.chunk, 1);
  const Integers borders = integers(signature.borders);
  if (borders[0] != 0)
    fail(LATILE_BAD_SHAPE, "{}: cu_seqlens[0] is {}; the first sequence begins at 0", op, borders[0]);
  std::int64_t before = 0, count = 0;
  for (std::int64_t n = 1; n <= sequences; ++n) {
    const std::int64_t border = borders[n];
    if (border < before)
      fail(LATILE_BAD_SHAPE, "{}: cu_seqlens[{}] is {}, below cu_seqlens[{}] = {}; it may not decrease", op, n, border,
           n - 1, before);
    count += (border - before + length - 1) / length;
    before = border;
  }
  if (before > rows)
    fail(LATILE_BAD_SHAPE, "{}: cu_seqlens[{}] is {}, beyond the {} tokens there are (T)", op, sequences, before, rows);
  return count;
}

}  // namespace latile::runtime
