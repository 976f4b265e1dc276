/* The C interface from plain C11: the whole way once, and a refusal. */
#include "latile/latile.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void install_toy_compiler(void);

#define CHECK(condition)                                                                                               \
  do {                                                                                                                 \
    if (!(condition)) {                                                                                                \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                                                  \
      return 1;                                                                                                        \
    }                                                                                                                  \
  } while (0)

enum { B = 2, T = 3, H = 1, HV = 2, K = 8, V = 8 };

int main(void) {
  _Static_assert(sizeof(latile_dtype) == 4 && sizeof(latile_device) == 8, "laid out as DLPack's");
  install_toy_compiler();
  CHECK(latile_abi() == LATILE_ABI);
  latile_error error = {sizeof error, 0, 0, ""};
  latile_context_desc context_desc = {sizeof context_desc, "", 2, NULL, NULL, 0};
  latile_context* context = NULL;
  CHECK(latile_context_create(&context_desc, &context, &error) == LATILE_OK);
  CHECK(latile_operator_count(context) == 2);
  CHECK(strstr(latile_operator_json(context, 0), "\"toy\"") != NULL);

  latile_dim dims[] = {{"H", H, H}, {"HV", HV, HV}, {"K", K, K}, {"V", V, V}, {"B", 1, 64}, {"T", 0, 4096}};
  latile_tensor tensors[] = {{"q", LATILE_F32, 0, NULL, 0, 0},
                             {"k", LATILE_F32, 0, NULL, 0, 0},
                             {"v", LATILE_F32, 0, NULL, 0, 0},
                             {"o", LATILE_F32, 0, NULL, 0, 0},
                             {"S.final", LATILE_F32, 0, NULL, 0, 0}};
  latile_plan_desc desc = {sizeof desc, "toy", "prefill", {LATILE_CPU, 0}, NULL, 0, dims, 6, tensors, 5};
  latile_plan* plan = NULL;
  CHECK(latile_plan_create(context, &desc, &plan, &error) == LATILE_OK);
  CHECK(error.status == LATILE_OK && error.text[0] == 0);

  const int64_t actual[] = {H, HV, K, V, B, T};
  int64_t shape[8];
  int32_t rank = 8;
  CHECK(latile_plan_shape(plan, 4, actual, shape, &rank, &error) == LATILE_OK);
  CHECK(rank == 4 && shape[0] == B && shape[1] == HV && shape[2] == K && shape[3] == V);
  rank = 2;
  CHECK(latile_plan_shape(plan, 4, actual, shape, &rank, &error) == LATILE_BAD_ARGUMENT);

  static float q[B * T * H * K], k[B * T * H * K], v[B * T * HV * V], o[B * T * HV * V], state[B * HV * K * V];
  for (int i = 0; i < B * T * H * K; ++i) q[i] = k[i] = 1;
  for (int i = 0; i < B * T * HV * V; ++i) v[i] = (float)(i % V);
  void* data[] = {q, k, v, o, state};
  size_t bytes = 0, alignment = 0;
  CHECK(latile_plan_workspace(plan, actual, &bytes, &alignment, &error) == LATILE_OK);
  void* workspace = malloc(bytes);
  CHECK(workspace != NULL);
  const double scalars[] = {0.5, 0};
  latile_args args = {sizeof args, data, actual, NULL, scalars, workspace, bytes, NULL};
  CHECK(latile_run(plan, &args, &error) == LATILE_OK);
  for (int b = 0; b < B; ++b)
    for (int t = 0; t < T; ++t)
      for (int j = 0; j < V; ++j) CHECK(o[((b * T + t) * HV + 1) * V + j] == 0.5f * K * (float)((t + 1) * j));
  CHECK(state[V - 1] == (float)(T * (V - 1)));

  latile_team* team = NULL;
  CHECK(latile_team_create(1, &team, &error) == LATILE_OK);
  CHECK(latile_run_part(plan, &args, team, 0, &error) == LATILE_OK);
  latile_team_release(team);

  data[1] = NULL;
  CHECK(latile_run(plan, &args, &error) == LATILE_BAD_ARGUMENT);
  CHECK(error.status == LATILE_BAD_ARGUMENT && strstr(error.text, "tensor 'k' is a null pointer") != NULL);
  dims[2].min = dims[2].max = 640;
  latile_plan* refused = NULL;
  CHECK(latile_plan_create(context, &desc, &refused, &error) == LATILE_BAD_SHAPE && refused == NULL);
  puts(error.text);
  free(workspace);
  latile_plan_release(plan);
  latile_context_release(context);
  return 0;
}
