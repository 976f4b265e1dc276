/* Kernels of the operator that the runtime's tests compile: linear attention token by token, and a pair with a
   workspace. Built as a shared object, as the host compiler would leave it. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

typedef struct {
  void* const* pointers;
  const int64_t* integers;
  const double* scalars;
} arguments;

typedef struct {
  char* data;
  const int64_t* stride;
} view;

enum { RAGGED = 1, INITIAL = 2, INITIAL_INDEX = 4, FINAL = 8, FINAL_INDEX = 16, WIDE = 32, TILED = 64 };
enum { ARENA = 8192 };

static view next(void* const** pointers, const int64_t** integers, int rank) {
  view v = {(char*)*(*pointers)++, *integers};
  *integers += rank;
  return v;
}

static int64_t at(view v, int64_t i, int wide) {
  return wide ? ((const int64_t*)(const void*)v.data)[i * v.stride[0]]
              : ((const int32_t*)(const void*)v.data)[i * v.stride[0]];
}

static float* element(view v, int64_t a, int64_t b, int64_t c, int64_t d) {
  return (float*)(void*)v.data + a * v.stride[0] + b * v.stride[1] + c * v.stride[2] + d * v.stride[3];
}

/* Fills the arena with the item's number and says at the end whether it is still there: two threads on one arena
   would show. The state lives behind it. */
static int64_t* mark(void* arena, int64_t item) {
  int64_t* words = arena;
  for (int i = 0; i < 64; ++i) words[i] = item;
  return words;
}
static int intact(const int64_t* words, int64_t item) {
  for (int i = 0; i < 64; ++i)
    if (words[i] != item) return 0;
  return 1;
}

/* views: [cu_seqlens] q k v [S.initial [index]] [S.final [index]] o; dims: T N H HV K V; scalars: scale */
static void scan(const arguments* a, int64_t item, void* arena, int flags) {
  void* const* p = a->pointers;
  const int64_t* n = a->integers;
  const int wide = (flags & WIDE) != 0;
  view borders = {0}, initial = {0}, initial_index = {0}, final = {0}, final_index = {0};
  if (flags & RAGGED) borders = next(&p, &n, 1);
  view q = next(&p, &n, 4), k = next(&p, &n, 4), v = next(&p, &n, 4);
  if (flags & INITIAL) initial = next(&p, &n, 4);
  if (flags & INITIAL_INDEX) initial_index = next(&p, &n, 1);
  if (flags & FINAL) final = next(&p, &n, 4);
  if (flags & FINAL_INDEX) final_index = next(&p, &n, 1);
  view o = next(&p, &n, 4);
  const int64_t T = n[0], H = n[2], HV = n[3], K = n[4], V = n[5];
  const int64_t sequence = item / HV, hv = item % HV;
  const int64_t h = flags & TILED ? hv % H : hv / (HV / H);
  const double scale = a->scalars[0];
  int64_t* words = mark(arena, item);
  float* S = (float*)(void*)(words + 64);

  int64_t b = sequence, begin = 0, end = T;
  if (flags & RAGGED) b = 0, begin = at(borders, sequence, wide), end = at(borders, sequence + 1, wide);
  const int64_t from = flags & INITIAL_INDEX ? at(initial_index, sequence, wide) : sequence;
  const int64_t to = flags & FINAL_INDEX ? at(final_index, sequence, wide) : sequence;
  for (int64_t i = 0; i < K; ++i)
    for (int64_t j = 0; j < V; ++j)
      S[i * V + j] = (flags & INITIAL) && from >= 0 ? *element(initial, from, hv, i, j) : 0;
  for (int64_t t = begin; t < end; ++t) {
    for (int64_t i = 0; i < K; ++i)
      for (int64_t j = 0; j < V; ++j) S[i * V + j] += *element(k, b, t, h, i) * *element(v, b, t, hv, j);
    for (int64_t j = 0; j < V; ++j) {
      float sum = 0;
      for (int64_t i = 0; i < K; ++i) sum += *element(q, b, t, h, i) * S[i * V + j];
      *element(o, b, t, hv, j) = intact(words, item) ? (float)scale * sum : NAN;
    }
  }
  for (int64_t i = 0; i < K && (flags & FINAL) && to >= 0; ++i)
    for (int64_t j = 0; j < V; ++j) *element(final, to, hv, i, j) = S[i * V + j];
}

#define KERNEL(f)                                                                                                      \
  void toy_scan_##f(const arguments* a, int64_t item, void* arena) { scan(a, item, arena, f); }
#define FOUR(a, b, c, d) KERNEL(a) KERNEL(b) KERNEL(c) KERNEL(d)
/* Dense and ragged; no states, final alone, both, both with indices of either width, tiled heads. */
FOUR(0, 1, 8, 9)
FOUR(10, 11, 30, 31)
FOUR(62, 63, 64, 65)
FOUR(74, 75, 33, 41)
FOUR(43, 14, 15, 47)
FOUR(26, 27, 59, 24)

/* grid chunks, HV; views: v workspace.T [chunks, HV, C, 1]; dims: T HV V chunks B */
void toy_sums(const arguments* a, int64_t item, void* arena) {
  void* const* p = a->pointers;
  const int64_t* n = a->integers;
  view v = next(&p, &n, 4), sums = next(&p, &n, 4);
  const int64_t T = n[0], HV = n[1], V = n[2], per_row = (T + 15) / 16;
  const int64_t chunk = item / HV, hv = item % HV, b = chunk / per_row, first = chunk % per_row * 16;
  int64_t* words = mark(arena, item);
  for (int64_t r = 0; r < 16 && first + r < T; ++r) {
    float sum = 0;
    for (int64_t j = 0; j < V; ++j) sum += *element(v, b, first + r, hv, j);
    *element(sums, chunk, hv, r, 0) = intact(words, item) ? sum : NAN;
  }
}

/* grid N, HV; views: v workspace.T o; dims: T HV V; o = v * the row's sum, read from the other head end first */
void toy_products(const arguments* a, int64_t item, void* arena) {
  void* const* p = a->pointers;
  const int64_t* n = a->integers;
  view v = next(&p, &n, 4), sums = next(&p, &n, 4), o = next(&p, &n, 4);
  const int64_t T = n[0], HV = n[1], V = n[2], per_row = (T + 15) / 16, b = item / HV, hv = item % HV;
  int64_t* words = mark(arena, item);
  for (int64_t t = T - 1; t >= 0; --t)
    for (int64_t j = 0; j < V; ++j)
      *element(o, b, t, hv, j) =
          intact(words, item) ? *element(v, b, t, hv, j) * *element(sums, b * per_row + t / 16, hv, t % 16, 0) : NAN;
}
