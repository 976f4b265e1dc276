// DLPack tensors as plan descriptions and run arguments. See include/latile/dlpack.h.
#include "latile/dlpack.h"
#include "runtime/Failure.h"
#include "runtime/Plan.h"
#include <algorithm>
#include <cstddef>
#include <string_view>

using namespace latile::runtime;

namespace {

static_assert(sizeof(DLDataType) == sizeof(latile_dtype) && sizeof(DLDevice) == sizeof(latile_device));

void need(const void* pointer, const char* name) {
  if (pointer == nullptr) fail(LATILE_BAD_ARGUMENT, "{} is null", name);
}

/// Whether the elements lie one after another, the last axis fastest. Axes of one element have any stride.
bool contiguous(const DLTensor& tensor) {
  if (tensor.strides == nullptr) return true;
  std::int64_t step = 1;
  for (int i = tensor.ndim - 1; i >= 0; --i) {
    if (tensor.shape[i] == 0) return true;
    if (tensor.shape[i] > 1 && tensor.strides[i] != step) return false;
    if (__builtin_mul_overflow(step, tensor.shape[i], &step)) return false;
  }
  return true;
}

void check(std::string_view name, const DLTensor& tensor) {
  if (tensor.ndim < 0) fail(LATILE_BAD_ARGUMENT, "tensor '{}': DLTensor.ndim is {}", name, tensor.ndim);
  if (tensor.ndim > kMaxRank)
    fail(LATILE_UNSUPPORTED, "tensor '{}' has {} axes, above the limit of {}", name, tensor.ndim, kMaxRank);
  if (tensor.ndim > 0 && tensor.shape == nullptr)
    fail(LATILE_BAD_ARGUMENT, "tensor '{}': DLTensor.shape is null with {} axes", name, tensor.ndim);
  for (int i = 0; i < tensor.ndim; ++i) {
    if (tensor.shape[i] < 0)
      fail(LATILE_BAD_SHAPE, "tensor '{}': extent {} of axis {} is negative", name, tensor.shape[i], i);
    if (tensor.strides != nullptr && tensor.shape[i] > 1 && tensor.strides[i] < 0)
      fail(LATILE_BAD_SHAPE, "tensor '{}': stride {} of axis {} is negative; copy it to a tensor without", name,
           tensor.strides[i], i);
  }
}

constexpr latile_dtype known_types[] = {LATILE_F32, LATILE_F16, LATILE_BF16, LATILE_I32, LATILE_I64};

latile_dtype type_of(std::string_view name, const DLTensor& tensor) {
  for (const latile_dtype& type : known_types)
    if (tensor.dtype.code == type.code && tensor.dtype.bits == type.bits && tensor.dtype.lanes == type.lanes)
      return type;
  fail(LATILE_BAD_TYPE, "tensor '{}' has the type (code {}, bits {}, lanes {}); latile has f32, f16, bf16, i32, i64",
       name, tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes);
}

latile_dtype type_of(latile::ElementType type) {
  switch (type) {
  case latile::ElementType::f16: return LATILE_F16;
  case latile::ElementType::bf16: return LATILE_BF16;
  case latile::ElementType::i32: return LATILE_I32;
  case latile::ElementType::i64: return LATILE_I64;
  default: return LATILE_F32;
  }
}

/// Takes the tensors of one run apart.
class Reading {
public:
  Reading(const latile_plan& plan, const DLTensor* const* tensors, std::int64_t* dims, std::int64_t* strides)
      : plan(plan), signature(plan.signature), tensors(tensors), dims(dims), strides(strides) {}

  void read(void** data) {
    constexpr std::int64_t unknown = -1;
    std::fill_n(dims, signature.dims.size(), unknown);
    for (std::size_t i = 0; i < signature.tensors.size(); ++i) {
      if (tensors[i] == nullptr)
        fail(LATILE_BAD_ARGUMENT, "{}: tensor '{}' is null", signature.op, signature.tensors[i].name);
      read_shape(signature.tensors[i], *tensors[i]);
    }
    fill_dims();
    for (std::size_t i = 0; i < signature.tensors.size(); ++i) {
      const DLTensor& given = *tensors[i];
      read_strides(signature.tensors[i], given);
      // Null with an offset stays null: an empty tensor may have no memory.
      data[i] = given.data == nullptr ? nullptr : static_cast<char*>(given.data) + given.byte_offset;
    }
  }

private:
  void read_shape(const Tensor& of, const DLTensor& given) {
    check(of.name, given);
    const bool pinned = plan.device.type == LATILE_CPU &&
                        (given.device.device_type == kDLCUDAHost || given.device.device_type == kDLROCMHost);
    if (!pinned && (static_cast<std::int32_t>(given.device.device_type) != plan.device.type ||
                    given.device.device_id != plan.device.id))
      fail(LATILE_NO_DEVICE,
           "{}: tensor '{}' is on device (type {}, id {}), the plan on (type {}, id {}); move it there", signature.op,
           of.name, static_cast<int>(given.device.device_type), given.device.device_id, plan.device.type,
           plan.device.id);
    const latile_dtype type = type_of(of.name, given), wanted = type_of(of.type);
    if (type.code != wanted.code || type.bits != wanted.bits)
      fail(LATILE_BAD_TYPE, "{}: tensor '{}' has the type (code {}, bits {}), the plan was made for {}", signature.op,
           of.name, type.code, type.bits, latile::name(of.type));
    if (given.ndim != of.rank())
      fail(LATILE_BAD_SHAPE, "{}: tensor '{}' has {} axes; it needs {}", signature.op, of.name, given.ndim, of.rank());
    for (int i = 0; i < given.ndim; ++i) read_extent(of, i, given.shape[i]);
  }

  void read_extent(const Tensor& of, int i, std::int64_t extent) {
    const Extent& axis = of.axes[static_cast<std::size_t>(i)];
    if (axis.dim < 0) {
      if (extent != axis.factor + axis.extra)
        fail(LATILE_BAD_SHAPE, "{}: tensor '{}': axis {} has the extent {}; it is {} = {}", signature.op, of.name, i,
             extent, axis.name, axis.factor + axis.extra);
      return;
    }
    const std::int64_t rest = extent - axis.extra;
    if (rest < 0 || rest % axis.factor != 0)
      fail(LATILE_BAD_SHAPE, "{}: tensor '{}': axis {} has the extent {}, which is not {}{}{}", signature.op, of.name,
           i, extent, axis.factor > 1 ? fmt::format("{} times ", axis.factor) : "", axis.name,
           axis.extra != 0 ? fmt::format(" + {}", axis.extra) : "");
    std::int64_t& value = dims[axis.dim];
    if (value >= 0 && value != rest / axis.factor)
      fail(LATILE_BAD_SHAPE, "{}: dimension {} is {} by tensor '{}' and {} by one before it; they must agree",
           signature.op, axis.name, rest / axis.factor, of.name, value);
    value = rest / axis.factor;
  }

  /// What no tensor has an axis of.
  void fill_dims() {
    for (const HeadRatio& pair : signature.heads) {
      if (dims[pair.coarse] < 0 && dims[pair.fine] >= 0) dims[pair.coarse] = dims[pair.fine] / pair.ratio;
      if (dims[pair.fine] < 0 && dims[pair.coarse] >= 0) dims[pair.fine] = dims[pair.coarse] * pair.ratio;
    }
    for (std::size_t i = 0; i < signature.dims.size(); ++i) {
      const Dimension& dim = signature.dims[i];
      if (dims[i] >= 0) continue;
      if (dim.min == dim.max)
        dims[i] = dim.min;
      else if (dim.name == "N" && !signature.ragged())
        dims[i] = signature.batch.at(dims);
      else if ((dim.name == "B" && signature.ragged()) || (dim.name == "T" && signature.step))
        dims[i] = 1;
      else
        fail(LATILE_BAD_SHAPE, "{}: dimension {} follows from no tensor; give the plan one value of it", signature.op,
             dim.name);
    }
  }

  void read_strides(const Tensor& of, const DLTensor& given) {
    if (of.contiguous) {
      if (!contiguous(given))
        fail(LATILE_BAD_SHAPE,
             "{}: tensor '{}' is not contiguous, but the plan was made for contiguous ones; make a plan with its "
             "strides (latile_dlpack_describe) or copy it",
             signature.op, of.name);
      return;
    }
    std::size_t next = of.first_runtime_stride;
    std::int64_t dense = 1;
    for (std::size_t i = 0, rank = of.axes.size(); i < rank; ++i) {
      if (given.strides == nullptr) {
        dense = 1;
        for (std::size_t later = i + 1; later < rank; ++later)
          if (__builtin_mul_overflow(dense, std::max<std::int64_t>(given.shape[later], 1), &dense))
            fail(LATILE_BAD_SHAPE, "{}: tensor '{}' would have more than 2^63 elements", signature.op, of.name);
      }
      const std::int64_t stride = given.strides != nullptr ? given.strides[i] : dense;
      if (of.strides[i] == -1) {
        // The stride of an axis of one element is never used and may be anything.
        strides[next++] = given.shape[i] > 1 ? stride : std::max<std::int64_t>(stride, 0);
      } else if (given.shape[i] > 1 && stride != of.strides[i]) {
        fail(LATILE_BAD_SHAPE, "{}: tensor '{}': stride {} of axis {} ({}), the plan was made for {}", signature.op,
             of.name, stride, i, of.axes[i].name, of.strides[i]);
      }
    }
  }

  const latile_plan& plan;
  const Signature& signature;
  const DLTensor* const* tensors;
  std::int64_t *dims, *strides;
};

}  // namespace

extern "C" {

latile_status latile_dlpack_describe(const char* name, const DLTensor* tensor, latile_tensor* described,
                                     int64_t* strides, latile_error* error) {
  return guarded(error, [&] {
    need(name, "name");
    need(tensor, "tensor");
    need(described, "described");
    check(name, *tensor);
    latile_tensor made = {name, type_of(name, *tensor), 0, nullptr, 0, 0};
    if (!contiguous(*tensor)) {
      need(strides, "strides");
      int unit = -1;
      for (int i = 0; i < tensor->ndim; ++i)
        if (tensor->strides[i] == 1 && tensor->shape[i] > 1) unit = i;
      for (int i = 0; i < tensor->ndim; ++i) strides[i] = i == unit ? 1 : -1;
      made.ndim = tensor->ndim;
      made.strides = strides;
    }
    *described = made;
  });
}

latile_status latile_dlpack_args(const latile_plan* plan, const DLTensor* const* tensors, size_t count,
                                 latile_args* args, void** data, int64_t* dims, int64_t* strides, latile_error* error) {
  return guarded(error, [&] {
    need(plan, "plan");
    need(args, "latile_args");
    const Signature& signature = plan->signature;
    if (count != signature.tensors.size())
      fail(LATILE_BAD_ARGUMENT, "{}: {} tensors are given; the plan has {}", signature.op, count,
           signature.tensors.size());
    if (count != 0) need(tensors, "tensors"), need(data, "data");
    if (!signature.dims.empty()) need(dims, "dims");
    if (signature.runtime_strides != 0) need(strides, "strides");
    Reading(*plan, tensors, dims, strides).read(data);
    args->data = data;
    args->dims = dims;
    args->strides = signature.runtime_strides != 0 ? strides : nullptr;
  });
}

latile_status latile_dlpack_tensor(const DLManagedTensorVersioned* managed, int32_t written, const DLTensor** tensor,
                                   latile_error* error) {
  return guarded(error, [&] {
    need(managed, "managed");
    need(tensor, "tensor");
    if (managed->version.major != DLPACK_MAJOR_VERSION)
      fail(LATILE_UNSUPPORTED, "the tensor is of DLPack {}.{}; this library knows version {}", managed->version.major,
           managed->version.minor, DLPACK_MAJOR_VERSION);
    if (written != 0 && (managed->flags & DLPACK_FLAG_BITMASK_READ_ONLY) != 0)
      fail(LATILE_BAD_ARGUMENT, "the tensor is marked as read-only and would be written; give a tensor of your own");
    *tensor = &managed->dl_tensor;
  });
}

}  // extern "C"
