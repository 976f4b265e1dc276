/* A program of the runtime alone: it makes a context and is told that there is no compiler. */
#include <latile/latile.h>
#include <stdio.h>
#include <string.h>

int main(void) {
  latile_context_desc desc = {sizeof desc, "", 0, NULL, NULL, 0};
  latile_error error = {sizeof error, 0, 0, ""};
  latile_context* context = NULL;
  if (latile_abi() != LATILE_ABI || latile_context_create(&desc, &context, &error) != LATILE_OK) {
    fprintf(stderr, "no context: %s\n", error.text);
    return 1;
  }
  latile_plan_desc plan_desc;
  memset(&plan_desc, 0, sizeof plan_desc);
  plan_desc.size = sizeof plan_desc;
  plan_desc.op = "gated_delta_rule";
  plan_desc.mode = "prefill";
  plan_desc.device.type = LATILE_CPU;
  latile_plan* plan = NULL;
  const latile_status status = latile_plan_create(context, &plan_desc, &plan, &error);
  latile_context_release(context);
  printf("%s\n", error.text);
  return status == LATILE_NO_COMPILER ? 0 : 1;
}
