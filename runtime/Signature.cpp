#include "runtime/Signature.h"

namespace latile::runtime {

int Signature::dim(const std::string& wanted) const {
  for (std::size_t i = 0; i < dims.size(); ++i)
    if (dims[i].name == wanted) return static_cast<int>(i);
  return -1;
}

int Signature::tensor(const std::string& wanted) const {
  for (std::size_t i = 0; i < tensors.size(); ++i)
    if (tensors[i].name == wanted) return static_cast<int>(i);
  return -1;
}

std::int64_t Signature::written_slots(const CarryTensors& carry, const std::int64_t* given) const {
  const std::int64_t finals = carry.final_index >= 0 || (carry.final >= 0 && carry.history >= 0) ? 1 : 0;
  if (carry.history_index < 0) return sequences.at(given) * finals;
  const Extent& columns = tensors[static_cast<std::size_t>(carry.history_index)].axes[1];
  return sequences.at(given) * (finals + columns.at(given));
}

void Signature::check_dims(const std::int64_t* given) const {
  if (given == nullptr && !dims.empty()) fail(LATILE_BAD_ARGUMENT, "{}: dims is null; give {} values", op, dims.size());
  for (std::size_t i = 0; i < dims.size(); ++i)
    if (given[i] < dims[i].min || given[i] > dims[i].max)
      fail(LATILE_BAD_SHAPE, "{}: dimension {} is {}, outside the plan's range {} to {}; make a plan with a wider one",
           op, dims[i].name, given[i], dims[i].min, dims[i].max);
  for (const HeadRatio& pair : heads)
    if (given[pair.fine] / pair.ratio != given[pair.coarse] || given[pair.fine] % pair.ratio != 0)
      fail(LATILE_BAD_SHAPE,
           "{}: dimensions {} = {} and {} = {} are not in the plan's ratio of {}; make a plan for them", op,
           dims[pair.fine].name, given[pair.fine], dims[pair.coarse].name, given[pair.coarse], pair.ratio);
  if (step && rows.at(given) != 1)
    fail(LATILE_BAD_SHAPE, "{}: dimension T is {}, but mode step takes one token a sequence; use prefill", op,
         rows.at(given));
  if (ragged()) {
    if (batch.at(given) != 1)
      fail(LATILE_BAD_SHAPE, "{}: dimension B is {}, but with cu_seqlens all sequences lie in one row: give 1", op,
           batch.at(given));
  } else {
    const int declared = dim("N");
    if (declared >= 0 && given[declared] != batch.at(given))
      fail(LATILE_BAD_SHAPE, "{}: dimension N is {}, but without cu_seqlens it is the batch, B = {}", op,
           given[declared], batch.at(given));
  }
}

std::int64_t Signature::shape(const Tensor& tensor, const std::int64_t* given, Extents& extents) const {
  std::int64_t elements = 1;
  bool too_many = false, empty = false;
  for (int i = 0; i < tensor.rank(); ++i) {
    const Extent& axis = tensor.axes[static_cast<std::size_t>(i)];
    std::int64_t& extent = extents[static_cast<std::size_t>(i)];
    const std::int64_t of_dim = axis.dim < 0 ? 1 : given[axis.dim];
    too_many |= __builtin_mul_overflow(of_dim, axis.factor, &extent);
    too_many |= __builtin_add_overflow(extent, axis.extra, &extent);
    too_many |= __builtin_mul_overflow(elements, extent, &elements);
    empty |= extent == 0;
  }
  std::int64_t bytes = 0;
  too_many |= __builtin_mul_overflow(elements, static_cast<std::int64_t>(size(tensor.type)), &bytes);
  if (too_many && !empty)
    fail(LATILE_BAD_SHAPE, "{}: tensor '{}' would have more than 2^63 bytes at these dimensions", op, tensor.name);
  return empty ? 0 : elements;
}

}  // namespace latile::runtime
