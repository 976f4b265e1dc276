/* latile.h: the C interface of latile. C11, no dependency; also a C++ header.
 *
 * The way through it: a context (latile_context_create), a plan made once for an operator, its options, tensor types
 * and ranges of dimensions (latile_plan_create compiles it or takes it from the cache), and any number of runs on the
 * caller's pointers and workspace (latile_run, or latile_run_part on the caller's own threads). A run allocates
 * nothing, waits for no other run, and looks up no name.
 *
 * Errors: every function that can fail returns a latile_status and fills the latile_error that the caller passes (which
 * may be NULL). Nothing is thrown, printed or kept in thread-local storage. On failure nothing has been written: not to
 * a tensor, not to an output parameter.
 *
 * Threads: a context may be used by any number of threads at once. A plan is immutable; any number of threads may run
 * it at once, each run with its own workspace and its own outputs.
 *
 * Growth: a structure that begins with `size` grows at its end in later versions. Set `size` to sizeof the structure.
 * A larger structure from a newer header is accepted while the part that this library does not know is all zero. The
 * small ones without `size` (option, dim, tensor, dtype, device) never change.
 */
#ifndef LATILE_H
#define LATILE_H
#include <stddef.h>
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif

#if defined(LATILE_SHARED)
#define LATILE_API __attribute__((visibility("default")))
#else
#define LATILE_API
#endif

#define LATILE_ABI 1u /* changes only when a caller must be compiled again */

/* Status codes. An int32_t and not an enum: its width is part of the ABI. The numbers never change. */
typedef int32_t latile_status;
#define LATILE_OK 0
#define LATILE_BAD_ARGUMENT                                                                                            \
  1                            /* null or misaligned pointer, size field, unknown or missing name, wrong rank, overlap \
                                */
#define LATILE_BAD_SHAPE 2     /* a dimension, stride, index or length out of range or in disagreement */
#define LATILE_BAD_TYPE 3      /* an element type that the tensor does not take */
#define LATILE_UNSUPPORTED 4   /* understood, but not offered: refused by name */
#define LATILE_NO_DEVICE 5     /* no such device, or it lacks what the plan needs */
#define LATILE_NO_COMPILER 6   /* the runtime alone is linked, without the compiler */
#define LATILE_OUT_OF_MEMORY 7 /* of the library itself, never of a run */
#define LATILE_BAD_FILE 8      /* a file that cannot be read as what it should be */
#define LATILE_DRIVER 9        /* a device driver's error; see driver_code */
#define LATILE_INTERNAL 10     /* a fault of latile */

/* What went wrong. Set `size`; the call sets the rest: on success status = LATILE_OK and an empty text. */
typedef struct latile_error {
  size_t size;
  latile_status status;
  int32_t driver_code; /* of the driver, for LATILE_DRIVER; else 0 */
  char text[496];      /* one sentence, UTF-8, terminated; names operator, tensor, dimension, value, limit and remedy */
} latile_error;

typedef struct latile_context latile_context;
typedef struct latile_plan latile_plan;
typedef struct latile_team latile_team;

/* Element type: laid out as DLDataType (code 0: int, 2: float, 4: bfloat), lanes always 1. */
typedef struct latile_dtype {
  uint8_t code, bits;
  uint16_t lanes;
} latile_dtype;

/* Device: laid out as DLDevice. Offered: {LATILE_CPU, 0}; {LATILE_CUDA, n}, the n-th device of the CUDA driver (12.0 or
   newer, compute capability 8.0 or newer), in its primary context, the one that the CUDA runtime API uses;
   {LATILE_EMULATED, 80}: a GPU's code run lane by lane on the CPU, in host memory, for tests. */
typedef struct latile_device {
  int32_t type, id;
} latile_device;

#ifdef __cplusplus
#define LATILE_TYPE(code, bits) (latile_dtype{code, bits, 1})
#else
#define LATILE_TYPE(code, bits) ((latile_dtype){code, bits, 1})
#endif
#define LATILE_F32 LATILE_TYPE(2, 32)
#define LATILE_F16 LATILE_TYPE(2, 16)
#define LATILE_BF16 LATILE_TYPE(4, 16)
#define LATILE_I32 LATILE_TYPE(0, 32)
#define LATILE_I64 LATILE_TYPE(0, 64)
enum { LATILE_CPU = 1, LATILE_CUDA = 2, LATILE_VULKAN = 7, LATILE_ROCM = 10, LATILE_EMULATED = 12, LATILE_ONEAPI = 14 };

/* ---- context ------------------------------------------------------------------------------------------------- */

enum { LATILE_LOG_ERROR = 0, LATILE_LOG_WARNING = 1, LATILE_LOG_INFO = 2 };

/* Runs on a device copy cu_seqlens and index tensors to the host and check their contents, as host runs always do. They
   then wait for the stream: for finding faults, and not while a graph is captured. */
#define LATILE_CHECK_DEVICE_INDICES 1u

typedef struct latile_context_desc {
  size_t size;
  /* Folder of compiled plans, made when missing. NULL: $LATILE_CACHE_DIR if set, else $XDG_CACHE_HOME/latile, else
     ~/.cache/latile. "": no cache on disk. Processes that need the same plan at the same time wait for the one that
     compiles it. When the entries have more bytes than $LATILE_CACHE_SIZE (such as 500M or 2G; 0: no limit; default
     1G), those used longest ago are removed. A folder that is missing, full or read-only costs time, never a plan.
     Entries that are corrupt, foreign, or writable by other users are ignored. */
  const char* cache_dir;
  /* Threads of latile_run on the host, the calling one counted: the context keeps host_threads - 1 of its own. 0 or 1:
     latile_run uses the calling thread alone (bring more with latile_run_part). -1: one for each CPU that the process
     may use. At most 1024. */
  int32_t host_threads;
  /* Called with level LATILE_LOG_* for what is no error of a call (an unusable cache entry). From any thread that
     calls into the context; NULL: silent. */
  void (*log)(void* user, int32_t level, const char* text);
  void* log_user;
  uint32_t flags; /* LATILE_CHECK_DEVICE_INDICES or 0 */
} latile_context_desc;

/* LATILE_ABI of the library. Compare it with the header's before anything else when the library is loaded by name. */
LATILE_API uint32_t latile_abi(void);

/* Makes a context. `desc` may be NULL: all defaults. Environment: LATILE_CACHE_DIR as above; LATILE_HOST_ISA names a
   lower instruction set level than the CPU's: x86-64-v3, avx512, avx512bf16 or amx; LATILE_CUDA_DRIVER another file
   than libcuda.so.1 as the CUDA driver, which is loaded when the first plan for a CUDA device is made. */
LATILE_API latile_status latile_context_create(const latile_context_desc* desc, latile_context** context,
                                               latile_error* error);
/* Gives the caller's reference back; NULL does nothing. Plans keep of the context what they need. */
LATILE_API void latile_context_release(latile_context* context);

/* Number of operators; 0 when `context` is NULL or no compiler is linked. */
LATILE_API size_t latile_operator_count(const latile_context* context);
/* The operator's row as a JSON object: name, modes, dims, tensors (with the option that brings them in, if any),
   scalars with their defaults, options with their values. Lives as long as the context. NULL: no such index. */
LATILE_API const char* latile_operator_json(const latile_context* context, size_t index);

/* ---- bundles: compiled plans in a file, as the command `latile bundle` writes them ----------------------------- */

/* Reads a bundle, from which this context's plans are then made, the bundle opened last first, before the cache is
   looked into and the compiler asked. In a program without a compiler latile_plan_create takes what the bundles have:
   the same operator, mode, options, bound tensors, types, inner dimensions and ratio of heads, for this device; on the
   host the code of the highest level that this CPU has, on CUDA that of the latest chip up to the device's. Header and
   index are checked now, each kernel's checksum when it is loaded. A bundle is code: open only what you would run.
   Statuses: BAD_FILE (missing, damaged, or of a version that this library does not read), OUT_OF_MEMORY. */
LATILE_API latile_status latile_bundle_open(latile_context* context, const char* path, latile_error* error);
/* Bundles that the context has, in the order in which they were opened. */
LATILE_API size_t latile_bundle_count(const latile_context* context);
/* What a bundle has, as a JSON object: file, format, writer, plans (each with op, mode, target, options, dims,
   head_ratio, io, tensors, kernels, bytes). Lives as long as the context. NULL: no such index. */
LATILE_API const char* latile_bundle_json(const latile_context* context, size_t index);

/* ---- plan ---------------------------------------------------------------------------------------------------- */

/* An option of the operator, {"beta", "sigmoid"} (flags: "true" or "false"), or one that every operator has:
     head_map    grouped (default) | tiled    value head hv reads key head hv div (HV/H), or hv mod H
     reverse     false (default) | true           the scan runs from the last token of each sequence to the first: the
                 same as flipping the tokens of each sequence of every input, running, and flipping the outputs, bit for
                 bit; states are as they are. Not in mode step
     chunk_size  auto (default) | 16 | 32 | 64    rows of a chunk in mode prefill
     host_isa    native (default) | a level as in LATILE_HOST_ISA that this CPU has */
typedef struct latile_option {
  const char *name, *value;
} latile_option;

/* A dimension and the range that runs will give it, 0 <= min <= max. Known names: the operator's own, and
     B      batch, of dense plans (ragged ones: 1, may be left out)
     T      tokens of a sequence; of a ragged plan: tokens of all sequences together. Mode step: 1, may be left out
     N      number of sequences: required by ragged plans; in dense ones equal to B, may be left out
     slots  length of a state pool: required when an index tensor is listed
     S.every   of a carry S with a history: tokens between two of its states, fixed (min == max); in mode prefill a
               multiple of the chunk (16 where chunk_size is auto)
     S.states  columns of S.history_index and of an S.initial_index with two axes: at least 1
   Head dimensions (H, HV) are at least 1 and may be ranges, but the ratio HV/H must be the same at both ends and in
   every run. Inner dimensions (K, V) are 8 to 512 and fixed: min == max. */
typedef struct latile_dim {
  const char* name;
  int64_t min, max;
} latile_dim;

/* How a tensor will look when the plan runs. Names and shapes (outermost axis first):
     sequences and outputs            q            [B, T (x rate), heads, inner...]    ragged: B = 1
     parameters                       A_log        [heads, inner...]
     state of a carry S, read         S.initial    [N, heads, inner...], or [slots, heads, inner...] with an index
                                      S.initial_index [N]   int32 or int64: slot of each sequence, -1: start from zero
     state of a carry S, written      S.final, S.final_index likewise;                      -1: do not write
     states on the way, written       S.history         [slots, heads, inner...], always with
                                      S.history_index   [N, S.states]: the slot of S after (m + 1) * S.every tokens of
                                      sequence n, for each m with so many tokens;         -1: not kept. Not in mode step
     tokens that were accepted        accepted     [N]  int32 or int64, 1 to S.states. With it S.initial_index is
                                      [N, S.states], and n starts from S.initial_index[n, accepted[n] - 1]
     borders of a ragged batch        cu_seqlens   [N + 1]  int32 or int64: 0 first, never decreasing, at most T last
   Sequences, parameters and outputs are required unless the operator calls them optional; states and cu_seqlens are
   optional. What is not listed is absent: no S.initial starts every sequence from zero. In mode step a sequence whose
   indices are all -1 is absent: its states are not touched and its output row is zero. There must be at least one
   carry index for that.
   Types: sequences, outputs: one of f32, f16, bf16 for all (io); those that the operator marks `any`: that type or f32;
   states: f32, bf16 or the io type.
   S.initial, S.final and S.history may be one memory (in place, same type and strides). Then a slot that a sequence
   writes is read by no other. No two states go to one slot. Nothing else that is written may overlap.
   Speculative decoding: S.every = 1 in mode recurrent with one table of slots as S.history_index of a run and, with the
   count of tokens that were then accepted, as S.initial_index of the next. */
typedef struct latile_tensor {
  const char* name;
  latile_dtype type;
  int32_t ndim;           /* its rank, or 0: contiguous in the order above (then strides is not read) */
  const int64_t* strides; /* ndim of them, in elements, outermost first; -1: given at each run; NULL: contiguous */
  uint32_t alignment;     /* bytes that every pointer keeps: a power of two up to 4096; 0: the element's size */
  uint32_t flags;         /* 0 */
} latile_tensor;

typedef struct latile_plan_desc {
  size_t size;
  const char* op;   /* "gated_delta_rule" */
  const char* mode; /* "prefill": chunks; "recurrent": token by token; "step": one token a sequence (decode) */
  latile_device device;
  const latile_option* options;
  size_t option_count;
  const latile_dim* dims;
  size_t dim_count;
  const latile_tensor* tensors;
  size_t tensor_count;
} latile_plan_desc;

/* Makes a plan: checks all of `desc`, then takes the code from the context, from the cache on disk, or compiles it.
   Statuses: BAD_ARGUMENT, BAD_SHAPE, BAD_TYPE, UNSUPPORTED for what `desc` says; NO_DEVICE; NO_COMPILER;
   OUT_OF_MEMORY; INTERNAL. */
LATILE_API latile_status latile_plan_create(latile_context* context, const latile_plan_desc* desc, latile_plan** plan,
                                            latile_error* error);
LATILE_API void latile_plan_retain(latile_plan* plan);
/* Gives one reference back; NULL does nothing. No run of the plan may be under way on the last one. */
LATILE_API void latile_plan_release(latile_plan* plan);

/* In the queries and in a run, `dims` has one value for each latile_plan_desc.dims, in that order. */

/* Workspace of a run at `dims`: bytes and the alignment that its pointer needs. Never smaller for larger dims, so the
   query at the maximum serves every run. */
LATILE_API latile_status latile_plan_workspace(const latile_plan* plan, const int64_t* dims, size_t* bytes,
                                               size_t* alignment, latile_error* error);
/* Shape of latile_plan_desc.tensors[tensor] at `dims`. `shape` has room for *ndim values on entry (8 always suffice);
 *ndim is the rank afterwards. */
LATILE_API latile_status latile_plan_shape(const latile_plan* plan, size_t tensor, const int64_t* dims, int64_t* shape,
                                           int32_t* ndim, latile_error* error);
/* The most threads that can share a run at `dims` and that its workspace has room for; 0 when `dims` are bad. */
LATILE_API int32_t latile_plan_parts(const latile_plan* plan, const int64_t* dims);
/* Where the plan's code came from and how long that took, as JSON; lives as long as the plan:
   {"source": "memory" | "bundle" | "cache" | "compiler", "target": "...", "key": "...", "total_ms": 1.5,
    "stages": [{"stage": "lookup", "ms": 0.2}, ...], "kernels": [...]}
   kernels: of a plan on a device, each with name, threads and shared_bytes of a block, registers and local_bytes of a
   thread. */
LATILE_API const char* latile_plan_stages(const latile_plan* plan);

/* ---- run ----------------------------------------------------------------------------------------------------- */

typedef struct latile_args { /* one run; nothing here is kept */
  size_t size;
  void* const* data;      /* in the order of latile_plan_desc.tensors; a tensor without elements may be NULL */
  const int64_t* dims;    /* in the order of latile_plan_desc.dims */
  const int64_t* strides; /* the -1 ones, in order, in elements, not negative; NULL when there are none. Of a written
                             tensor no two elements may share an address; of a read one a stride may be 0 */
  const double* scalars;  /* in the operator's order, finite; NULL: the defaults (scale: K^-1/2) */
  void* workspace;
  size_t workspace_size; /* at least what latile_plan_workspace says at these dims */
  void* stream;          /* CUDA: a CUstream (cudaStream_t) of the plan's device, NULL its default one. Others: NULL */
} latile_args;

/* Runs the plan. On the host: on the calling thread and those of the context's pool that are free, and returns when all
   is written. Results are the same to the bit for every number of threads. Everything, the contents of cu_seqlens and
   index tensors too, is checked before anything is written. A run with no sequence does nothing.
   On a device: pointers and workspace are the device's; the plan's kernels are begun on the stream in order, and the
   call returns without waiting. It allocates no memory and reads none of the device's, so it can be captured in a CUDA
   graph; what it cannot see it does not check: cu_seqlens and index tensors must hold what this header says, or the
   kernels read and write outside the tensors. Statuses: DRIVER for what the driver refuses. */
LATILE_API latile_status latile_run(const latile_plan* plan, const latile_args* args, latile_error* error);

/* A group of the caller's threads that run a plan together. 1 to 1024 threads. */
LATILE_API latile_status latile_team_create(int32_t threads, latile_team** team, latile_error* error);
LATILE_API void latile_team_release(latile_team* team);

/* Runs a host plan on the caller's own threads: every thread of the team makes this call once, with its own index from
   0 and the same plan and arguments (thread 0's are used). They wait for one another inside; when the call returns in
   any of them, all is written. All get the same status. One run at a time on a team. A null plan, args or team or an
   index outside the team fails in that thread at once, without waiting for the others. Threads beyond
   latile_plan_parts only wait. */
LATILE_API latile_status latile_run_part(const latile_plan* plan, const latile_args* args, latile_team* team,
                                         int32_t thread, latile_error* error);

#ifdef __cplusplus
}
#endif
#endif
