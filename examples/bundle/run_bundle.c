/* Runs a prompt and then token after token from a bundle, linked to liblatile_runtime alone: no LLVM, no compiler.
 *
 *     latile bundle gated_delta_rule --dtype f32 --shapes K=64,V=64 --targets host,sm_80,sm_90 -o gdn.bundle
 *     run_bundle gdn.bundle [host | cuda]
 *
 * Compares what comes out with the definition, computed here in double, and exits with 1 when it is not that. */
#include "latile/latile.h"
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { B = 2, PROMPT = 100, STEPS = 20, TOKENS = PROMPT + STEPS, H = 2, K = 64, V = 64, BINDINGS = 8 };

static latile_error error = {sizeof(latile_error), 0, 0, ""};

static void must(int good) {
  if (good) return;
  fprintf(stderr, "%s\n", error.text);
  exit(2);
}

/* ---- memory of the place that computes: malloc, or the CUDA driver's ------------------------------------------ */

static int on_cuda;
static int (*cuMemAlloc)(unsigned long long*, size_t);
static int (*cuMemcpyHtoD)(unsigned long long, const void*, size_t);
static int (*cuMemcpyDtoH)(void*, unsigned long long, size_t);

static void* function(void* library, const char* name) {
  void* found = library ? dlsym(library, name) : NULL;
  if (found == NULL) snprintf(error.text, sizeof error.text, "no CUDA driver with %s", name);
  must(found != NULL);
  return found;
}

static void start_cuda(void) {
  void* library = dlopen("libcuda.so.1", RTLD_NOW);
  int (*init)(unsigned);
  int (*retain)(void**, int);
  int (*set)(void*);
  *(void**)&init = function(library, "cuInit");
  *(void**)&retain = function(library, "cuDevicePrimaryCtxRetain");
  *(void**)&set = function(library, "cuCtxSetCurrent");
  *(void**)&cuMemAlloc = function(library, "cuMemAlloc_v2");
  *(void**)&cuMemcpyHtoD = function(library, "cuMemcpyHtoD_v2");
  *(void**)&cuMemcpyDtoH = function(library, "cuMemcpyDtoH_v2");
  void* context = NULL;
  strcpy(error.text, "the CUDA driver does not start");
  must(init(0) == 0 && retain(&context, 0) == 0 && set(context) == 0);
}

static void* allocate(size_t bytes) {
  unsigned long long address = 0;
  if (!on_cuda) return aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  must(cuMemAlloc(&address, bytes) == 0);
  return (void*)(size_t)address;
}
static void to_place(void* to, const void* from, size_t bytes) {
  if (on_cuda)
    must(cuMemcpyHtoD((unsigned long long)(size_t)to, from, bytes) == 0);
  else
    memcpy(to, from, bytes);
}
static void from_place(void* to, const void* from, size_t bytes) { /* waits for the default stream */
  if (on_cuda)
    must(cuMemcpyDtoH(to, (unsigned long long)(size_t)from, bytes) == 0);
  else
    memcpy(to, from, bytes);
}

/* ---- the definition ------------------------------------------------------------------------------------------- */

static float q[B * TOKENS * H * K], k[B * TOKENS * H * K], v[B * TOKENS * H * V], g[B * TOKENS * H],
    beta[B * TOKENS * H];
static float o[B * TOKENS * H * V], zero[B * H * K * V];
static double expected[B * TOKENS * H * V];

static float uniform(void) {
  static unsigned state = 1;
  state = state * 1664525u + 1013904223u;
  return (float)(state >> 8) / (float)(1 << 24) - 0.5f;
}

/* [B, TOKENS, H]: S = e^g S, S += k (beta (v - S'k))', o = S' q K^-1/2 */
static void define(void) {
  static double S[K][V];
  for (int row = 0; row < B * TOKENS * H; ++row) {
    double norm = 0;
    for (int i = 0; i < K; ++i) {
      q[row * K + i] = 4 * uniform(), k[row * K + i] = uniform();
      norm += (double)k[row * K + i] * k[row * K + i];
    }
    for (int i = 0; i < K; ++i) k[row * K + i] = (float)(k[row * K + i] / sqrt(norm));
    for (int j = 0; j < V; ++j) v[row * V + j] = 4 * uniform();
    g[row] = -0.1f * (uniform() + 0.5f), beta[row] = uniform() + 0.5f;
  }
  for (int b = 0; b < B; ++b)
    for (int h = 0; h < H; ++h) {
      memset(S, 0, sizeof S);
      for (int t = 0; t < TOKENS; ++t) {
        const int row = (b * TOKENS + t) * H + h;
        for (int j = 0; j < V; ++j) {
          double found = 0, sum = 0;
          for (int i = 0; i < K; ++i) found += k[row * K + i] * (S[i][j] *= exp((double)g[row]));
          for (int i = 0; i < K; ++i) {
            S[i][j] += k[row * K + i] * beta[row] * (v[row * V + j] - found);
            sum += q[row * K + i] * S[i][j];
          }
          expected[row * V + j] = sum / sqrt((double)K);
        }
      }
    }
}

/* ---- plans ---------------------------------------------------------------------------------------------------- */

static const int widths[] = {K, K, V, 1, 1, V}; /* of one head's row */

static latile_plan* plan_for(latile_context* context, const char* mode, int32_t device) {
  const latile_dim dims[] = {
      {"H", 1, 1 << 20}, {"HV", 1, 1 << 20}, {"K", K, K},
      {"V", V, V},       {"B", 0, 1 << 20},  {"T", strcmp(mode, "step") ? 0 : 1, strcmp(mode, "step") ? 1 << 20 : 1}};
  const latile_tensor tensors[BINDINGS] = {
      {"q", LATILE_F32, 0, NULL, 0, 0},         {"k", LATILE_F32, 0, NULL, 0, 0},      {"v", LATILE_F32, 0, NULL, 0, 0},
      {"g", LATILE_F32, 0, NULL, 0, 0},         {"beta", LATILE_F32, 0, NULL, 0, 0},   {"o", LATILE_F32, 0, NULL, 0, 0},
      {"S.initial", LATILE_F32, 0, NULL, 0, 0}, {"S.final", LATILE_F32, 0, NULL, 0, 0}};
  const latile_plan_desc desc = {sizeof desc, "gated_delta_rule", mode, {device, 0}, NULL, 0, dims, 6, tensors,
                                 BINDINGS};
  latile_plan* plan = NULL;
  must(latile_plan_create(context, &desc, &plan, &error) == LATILE_OK);
  printf("%s: %s\n", mode, latile_plan_stages(plan));
  return plan;
}

/* Rows first .. first + count of every sequence, packed as the plan wants them; 1: there, 0: back. */
static void pack(float* packed, float* rows, int width, int first, int count, int there) {
  for (int b = 0; b < B; ++b) {
    float* of_all = rows + ((size_t)b * TOKENS + (size_t)first) * H * (size_t)width;
    float* of_few = packed + (size_t)b * (size_t)count * H * (size_t)width;
    const size_t bytes = (size_t)count * H * (size_t)width * sizeof(float);
    memcpy(there ? of_few : of_all, there ? of_all : of_few, bytes);
  }
}

static void run(const latile_plan* plan, void* const data[BINDINGS], void* workspace, size_t room, int first,
                int count) {
  static float packed[B * TOKENS * H * K];
  float* const rows[] = {q, k, v, g, beta, o};
  const size_t lines = (size_t)B * (size_t)count * H * sizeof(float);
  for (int i = 0; i < 5; ++i) {
    pack(packed, rows[i], widths[i], first, count, 1);
    to_place(data[i], packed, lines * (size_t)widths[i]);
  }
  const int64_t dims[] = {H, H, K, V, B, count};
  const latile_args args = {sizeof args, data, dims, NULL, NULL, workspace, room, NULL};
  must(latile_run(plan, &args, &error) == LATILE_OK);
  from_place(packed, data[5], lines * V);
  pack(packed, o, V, first, count, 0);
}

int main(int argc, char** argv) {
  if (argc < 2) return fprintf(stderr, "usage: run_bundle FILE [host | cuda]\n"), 2;
  on_cuda = argc > 2 && strcmp(argv[2], "cuda") == 0;
  if (on_cuda) start_cuda();
  latile_context_desc context_desc = {sizeof context_desc, "", -1, NULL, NULL, 0};
  latile_context* context = NULL;
  must(latile_context_create(&context_desc, &context, &error) == LATILE_OK);
  must(latile_bundle_open(context, argv[1], &error) == LATILE_OK);
  const int32_t device = on_cuda ? LATILE_CUDA : LATILE_CPU;
  latile_plan *prefill = plan_for(context, "prefill", device), *step = plan_for(context, "step", device);

  define();
  void* data[BINDINGS];
  for (int i = 0; i < 6; ++i) data[i] = allocate(sizeof(float) * B * PROMPT * H * (size_t)widths[i]);
  data[6] = data[7] = allocate(sizeof zero); /* the state, updated in place */
  to_place(data[6], zero, sizeof zero);
  size_t room = 0, bytes = 0;
  const int64_t largest[] = {H, H, K, V, B, PROMPT}, token[] = {H, H, K, V, B, 1};
  must(latile_plan_workspace(prefill, largest, &room, NULL, &error) == LATILE_OK);
  must(latile_plan_workspace(step, token, &bytes, NULL, &error) == LATILE_OK);
  if (bytes > room) room = bytes;
  void* workspace = allocate(room);

  run(prefill, data, workspace, room, 0, PROMPT);
  for (int t = PROMPT; t < TOKENS; ++t) run(step, data, workspace, room, t, 1);

  double difference = 0, size = 0;
  for (int i = 0; i < B * TOKENS * H * V; ++i)
    difference += (o[i] - expected[i]) * (o[i] - expected[i]), size += expected[i] * expected[i];
  const double ratio = sqrt(difference / size);
  printf("%d tokens of prompt, %d steps: RMS ratio to the definition %.2e\n", PROMPT, STEPS, ratio);
  latile_plan_release(prefill);
  latile_plan_release(step);
  latile_context_release(context);
  return ratio < 5e-3 ? 0 : 1;
}
