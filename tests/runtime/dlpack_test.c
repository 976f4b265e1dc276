/* DLPack tensors from plain C11: a plan described by them, runs on them, and what does not fit. */
#include "latile/dlpack.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void install_toy_compiler(void);

#define CHECK(condition)                                                                                               \
  do {                                                                                                                 \
    if (!(condition)) {                                                                                                \
      fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #condition, error.text);                                  \
      exit(1);                                                                                                         \
    }                                                                                                                  \
  } while (0)

enum { B = 2, T = 3, H = 1, HV = 2, K = 8, V = 8, PAD = 4, COUNT = 5 };

static latile_error error = {sizeof(latile_error), 0, 0, ""};

/* q is a slice of rows that are K + PAD wide, behind an offset; the others are contiguous. */
static float q[8 + B * T * H * (K + PAD)], k[B * T * H * K], v[B * T * HV * V], o[B * T * HV * V];
static float state[B * HV * K * V];
static int64_t shape_q[] = {B, T, H, K}, shape_v[] = {B, T, HV, V}, shape_s[] = {B, HV, K, V};
static int64_t strides_q[] = {T * H * (K + PAD), H*(K + PAD), 777, 1};
static int64_t strides_k[] = {T * H * K, H* K, -5, 1}; /* of an axis of one element: anything */

#define CPU {kDLCPU, 0}
#define FLOAT {kDLFloat, 32, 1}
static DLTensor tq = {q, CPU, 4, FLOAT, shape_q, strides_q, 8 * sizeof(float)};
static DLTensor tk = {k, CPU, 4, FLOAT, shape_q, strides_k, 0};
static DLTensor tv = {v, CPU, 4, FLOAT, shape_v, NULL, 0};
static DLTensor to = {o, CPU, 4, FLOAT, shape_v, NULL, 0};
static DLTensor ts = {state, CPU, 4, FLOAT, shape_s, NULL, 0};
static const DLTensor* const all[COUNT] = {&tq, &tk, &tv, &to, &ts};

static latile_plan* plan;
static latile_args args = {sizeof(latile_args), NULL, NULL, NULL, NULL, NULL, 0, NULL};
static void* data[COUNT];
static int64_t dims[7], strides[8 * COUNT];

static void refused(latile_status status, const char* part) {
  const latile_status got = latile_dlpack_args(plan, all, COUNT, &args, data, dims, strides, &error);
  if (got != status || error.status != status || strstr(error.text, part) == NULL) {
    fprintf(stderr, "wanted status %d and '%s', got %d: %s\n", (int)status, part, (int)got, error.text);
    exit(1);
  }
}

/* One field of a tensor is wrong for one call. */
#define WRONG(field, value, status, part)                                                                              \
  do {                                                                                                                 \
    const DLTensor kept_q = tq, kept_k = tk, kept_v = tv, kept_o = to, kept_s = ts;                                    \
    field = value;                                                                                                     \
    refused(status, part);                                                                                             \
    tq = kept_q, tk = kept_k, tv = kept_v, to = kept_o, ts = kept_s;                                                   \
  } while (0)

static void describe_refused(DLTensor tensor, latile_status status, const char* part) {
  latile_tensor described = {"untouched", LATILE_F32, 0, NULL, 0, 0};
  int64_t room[8];
  const latile_status got = latile_dlpack_describe("q", &tensor, &described, room, &error);
  if (got != status || strstr(error.text, part) == NULL || strcmp(described.name, "untouched") != 0) {
    fprintf(stderr, "wanted status %d and '%s', got %d: %s\n", (int)status, part, (int)got, error.text);
    exit(1);
  }
}

int main(void) {
  /* The ABI, as DLPack writes it down for 64-bit machines. */
  _Static_assert(sizeof(DLTensor) == 48 && offsetof(DLTensor, device) == 8 && offsetof(DLTensor, ndim) == 16 &&
                     offsetof(DLTensor, dtype) == 20 && offsetof(DLTensor, shape) == 24 &&
                     offsetof(DLTensor, byte_offset) == 40,
                 "DLTensor");
  _Static_assert(sizeof(DLManagedTensorVersioned) == 80 && offsetof(DLManagedTensorVersioned, manager_ctx) == 8 &&
                     offsetof(DLManagedTensorVersioned, flags) == 24 &&
                     offsetof(DLManagedTensorVersioned, dl_tensor) == 32,
                 "DLManagedTensorVersioned");
  _Static_assert(sizeof(DLManagedTensor) == 64, "DLManagedTensor");

  install_toy_compiler();
  latile_context_desc context_desc = {sizeof context_desc, "", 1, NULL, NULL, 0};
  latile_context* context = NULL;
  CHECK(latile_context_create(&context_desc, &context, &error) == LATILE_OK);

  static const char* const names[COUNT] = {"q", "k", "v", "o", "S.final"};
  latile_tensor tensors[COUNT];
  int64_t room[COUNT][8];
  for (int i = 0; i < COUNT; ++i)
    CHECK(latile_dlpack_describe(names[i], all[i], &tensors[i], room[i], &error) == LATILE_OK);
  CHECK(tensors[0].ndim == 4 && room[0][0] == -1 && room[0][1] == -1 && room[0][2] == -1 && room[0][3] == 1);
  CHECK(tensors[1].ndim == 0 && tensors[1].strides == NULL && tensors[4].type.bits == 32);

  latile_dim ranges[] = {{"H", 1, 8},  {"HV", 2, 16},  {"K", K, K}, {"V", V, V},
                         {"B", 0, 64}, {"T", 0, 4096}, {"N", 0, 64}};
  latile_plan_desc desc = {sizeof desc, "toy", "prefill", {LATILE_CPU, 0}, NULL, 0, ranges, 7, tensors, COUNT};
  CHECK(latile_plan_create(context, &desc, &plan, &error) == LATILE_OK);

  /* A run: the dimensions follow from the shapes. */
  CHECK(latile_dlpack_args(plan, all, COUNT, &args, data, dims, strides, &error) == LATILE_OK);
  CHECK(dims[0] == H && dims[1] == HV && dims[2] == K && dims[3] == V && dims[4] == B && dims[5] == T && dims[6] == B);
  CHECK(data[0] == q + 8 && data[1] == k && args.data == data && args.dims == dims && args.strides == strides);
  CHECK(strides[0] == T * H * (K + PAD) && strides[1] == H * (K + PAD) && strides[2] == 777);
  for (int i = 0; i < 8 + B * T * H * (K + PAD); ++i) q[i] = -1000;
  for (int row = 0; row < B * T * H; ++row)
    for (int i = 0; i < K; ++i) q[8 + row * (K + PAD) + i] = k[row * K + i] = 1;
  for (int i = 0; i < B * T * HV * V; ++i) v[i] = (float)(i % V);
  CHECK(latile_plan_workspace(plan, dims, &args.workspace_size, NULL, &error) == LATILE_OK);
  args.workspace = malloc(args.workspace_size);
  const double scalars[] = {0.5, 0};
  args.scalars = scalars;
  CHECK(latile_run(plan, &args, &error) == LATILE_OK);
  for (int row = 0; row < B * T * HV; ++row)
    for (int j = 0; j < V; ++j) CHECK(o[row * V + j] == 0.5f * K * (float)((row / HV % T + 1) * j));

  /* Another batch and length, contiguous by NULL, in pinned memory. */
  shape_q[1] = shape_v[1] = 2, shape_q[0] = shape_v[0] = shape_s[0] = 1;
  tq.strides = NULL, tq.device.device_type = kDLCUDAHost;
  CHECK(latile_dlpack_args(plan, all, COUNT, &args, data, dims, strides, &error) == LATILE_OK);
  CHECK(dims[4] == 1 && dims[5] == 2 && dims[6] == 1 && strides[0] == 2 * K && strides[1] == K && strides[2] == K);
  CHECK(latile_run(plan, &args, &error) == LATILE_OK);

  /* What does not fit. */
  WRONG(tv.device.device_type, kDLCUDA, LATILE_NO_DEVICE,
        "tensor 'v' is on device (type 2, id 0), the plan on (type 1");
  WRONG(tv.device.device_id, 1, LATILE_NO_DEVICE, "tensor 'v' is on device (type 1, id 1)");
  WRONG(tk.dtype.bits, 16, LATILE_BAD_TYPE, "tensor 'k' has the type (code 2, bits 16), the plan was made for f32");
  WRONG(tk.dtype.lanes, 4, LATILE_BAD_TYPE, "lanes 4");
  WRONG(tk.dtype.code, kDLComplex, LATILE_BAD_TYPE, "code 5");
  WRONG(to.ndim, 3, LATILE_BAD_SHAPE, "tensor 'o' has 3 axes; it needs 4");
  WRONG(to.ndim, 9, LATILE_UNSUPPORTED, "9 axes");
  WRONG(to.ndim, -1, LATILE_BAD_ARGUMENT, "ndim is -1");
  WRONG(to.shape, NULL, LATILE_BAD_ARGUMENT, "shape is null");
  int64_t other[] = {1, 2, HV, V + 1}, longer[] = {1, 3, HV, V}, negative[] = {1, -2, HV, V};
  WRONG(to.shape, other, LATILE_BAD_SHAPE, "dimension V is 9 by tensor 'o' and 8 by one before it");
  WRONG(to.shape, longer, LATILE_BAD_SHAPE, "dimension T is 3 by tensor 'o' and 2");
  WRONG(to.shape, negative, LATILE_BAD_SHAPE, "extent -2 of axis 1");
  int64_t padded[] = {100, 20, V, 1}, backwards[] = {100, -20, V, 1}, turned[] = {2 * K, K, K, 2};
  WRONG(tv.strides, padded, LATILE_BAD_SHAPE, "tensor 'v' is not contiguous");
  WRONG(tv.strides, backwards, LATILE_BAD_SHAPE, "stride -20 of axis 1 is negative");
  WRONG(tq.strides, turned, LATILE_BAD_SHAPE, "tensor 'q': stride 2 of axis 3 (K), the plan was made for 1");
  CHECK(latile_dlpack_args(plan, all, COUNT - 1, &args, data, dims, strides, &error) == LATILE_BAD_ARGUMENT);
  CHECK(latile_dlpack_args(plan, all, COUNT, &args, data, dims, NULL, &error) == LATILE_BAD_ARGUMENT);
  const DLTensor* const missing[COUNT] = {&tq, &tk, NULL, &to, &ts};
  CHECK(latile_dlpack_args(plan, missing, COUNT, &args, data, dims, strides, &error) == LATILE_BAD_ARGUMENT);
  CHECK(strstr(error.text, "tensor 'v' is null") != NULL);
  CHECK(latile_dlpack_args(plan, all, COUNT, &args, data, dims, strides, &error) == LATILE_OK);

  DLTensor bad = tv;
  bad.dtype.code = kDLUInt;
  describe_refused(bad, LATILE_BAD_TYPE, "tensor 'q' has the type (code 1");
  bad = tv, bad.strides = backwards;
  describe_refused(bad, LATILE_BAD_SHAPE, "stride -20");
  bad = tv, bad.ndim = 9;
  describe_refused(bad, LATILE_UNSUPPORTED, "9 axes");

  /* Capsules. */
  DLManagedTensorVersioned managed = {{1, 7}, NULL, NULL, DLPACK_FLAG_BITMASK_READ_ONLY, tq};
  const DLTensor* inside = NULL;
  CHECK(latile_dlpack_tensor(&managed, 0, &inside, &error) == LATILE_OK && inside == &managed.dl_tensor);
  CHECK(latile_dlpack_tensor(&managed, 1, &inside, &error) == LATILE_BAD_ARGUMENT);
  managed.version.major = 2;
  CHECK(latile_dlpack_tensor(&managed, 0, &inside, &error) == LATILE_UNSUPPORTED);
  CHECK(strstr(error.text, "DLPack 2.7") != NULL);

  free(args.workspace);
  latile_plan_release(plan);
  latile_context_release(context);
  return 0;
}
