/* dlpack.h: tensors in the form that frameworks exchange (DLPack 1) as plan descriptions and run arguments.
 *
 *   latile_dlpack_describe   a DLTensor as one entry of latile_plan_desc.tensors
 *   latile_dlpack_args       the DLTensors of one run as the pointers, dimensions and strides of latile_args
 *   latile_dlpack_tensor     the DLTensor inside a DLManagedTensorVersioned, its version and flags checked
 *
 * Nothing here takes ownership, calls a deleter, copies data or waits for a stream. C11, no dependency; also a C++
 * header. The structures below are DLPack's, field for field. A program that uses DLPack's own header includes that one
 * first, and then its structures are used.
 */
#ifndef LATILE_DLPACK_H
#define LATILE_DLPACK_H
#include "latile/latile.h"

#ifndef DLPACK_DLPACK_H_
#define DLPACK_DLPACK_H_

#define DLPACK_MAJOR_VERSION 1 /* changes only when the structures do */
#define DLPACK_MINOR_VERSION 1

#define DLPACK_FLAG_BITMASK_READ_ONLY (1UL << 0UL)
#define DLPACK_FLAG_BITMASK_IS_COPIED (1UL << 1UL)

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  uint32_t major, minor;
} DLPackVersion;

#ifdef __cplusplus
typedef enum : int32_t {
#else
typedef enum {
#endif
  kDLCPU = 1,
  kDLCUDA = 2,
  kDLCUDAHost = 3,
  kDLOpenCL = 4,
  kDLVulkan = 7,
  kDLMetal = 8,
  kDLVPI = 9,
  kDLROCM = 10,
  kDLROCMHost = 11,
  kDLExtDev = 12,
  kDLCUDAManaged = 13,
  kDLOneAPI = 14,
  kDLWebGPU = 15,
  kDLHexagon = 16,
  kDLMAIA = 17
} DLDeviceType;

typedef struct {
  DLDeviceType device_type;
  int32_t device_id;
} DLDevice;

typedef enum {
  kDLInt = 0U,
  kDLUInt = 1U,
  kDLFloat = 2U,
  kDLOpaqueHandle = 3U,
  kDLBfloat = 4U,
  kDLComplex = 5U,
  kDLBool = 6U
} DLDataTypeCode;

typedef struct {
  uint8_t code, bits;
  uint16_t lanes;
} DLDataType;

typedef struct {
  void* data; /* of the device; the first element is at data + byte_offset */
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t* shape;
  int64_t* strides; /* in elements; NULL: contiguous, the last axis fastest */
  uint64_t byte_offset;
} DLTensor;

typedef struct DLManagedTensor { /* of DLPack before 1.0 */
  DLTensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(struct DLManagedTensor* self);
} DLManagedTensor;

typedef struct DLManagedTensorVersioned {
  DLPackVersion version;
  void* manager_ctx;
  void (*deleter)(struct DLManagedTensorVersioned* self);
  uint64_t flags; /* DLPACK_FLAG_BITMASK_* */
  DLTensor dl_tensor;
} DLManagedTensorVersioned;

#ifdef __cplusplus
}
#endif
#endif /* DLPACK_DLPACK_H_ */

#ifdef __cplusplus
extern "C" {
#endif

/* Describes `tensor` as the plan's tensor `name`: its type and strides as they are. A contiguous tensor gives a
   description for contiguous ones of any shape. Of another one the innermost axis with stride 1 (and more than one
   element) keeps it; the other strides become -1, given at each run, so that one plan serves every batch and length.
   `strides` has room for tensor->ndim values and must live as long as *described is used. `name` is kept, not copied.
   Statuses: BAD_ARGUMENT (null pointers, negative ndim), BAD_SHAPE (negative extents or strides), BAD_TYPE (an element
   type that latile has not, or lanes other than 1); more than 8 axes: UNSUPPORTED. */
LATILE_API latile_status latile_dlpack_describe(const char* name, const DLTensor* tensor, latile_tensor* described,
                                                int64_t* strides, latile_error* error);

/* The arguments of one run. `tensors` are in the order of latile_plan_desc.tensors, `count` of them. Each must be on
   the plan's device (a host plan also takes pinned host memory), of the plan's type and rank, and of strides that the
   plan was made for. The dimensions follow from the shapes, and all shapes must agree on them. Room that the caller
   gives: data[count], dims[latile_plan_desc.dim_count], and strides for every -1 of the plan's descriptions (ndim *
   count always suffice; NULL when there is none). Sets args->data, args->dims and args->strides to them and leaves the
   other fields. What remains is in latile_run: ranges of dimensions, alignment, overlaps. Allocates nothing unless it
   fails. Statuses: BAD_ARGUMENT, BAD_SHAPE, BAD_TYPE, NO_DEVICE (on another device). */
LATILE_API latile_status latile_dlpack_args(const latile_plan* plan, const DLTensor* const* tensors, size_t count,
                                            latile_args* args, void** data, int64_t* dims, int64_t* strides,
                                            latile_error* error);

/* The tensor inside a capsule of DLPack 1: refuses another major version, whose structure is not known, and, when
   `written` is not 0, a tensor that is marked as read-only. */
LATILE_API latile_status latile_dlpack_tensor(const DLManagedTensorVersioned* managed, int32_t written,
                                              const DLTensor** tensor, latile_error* error);

#ifdef __cplusplus
}
#endif
#endif
