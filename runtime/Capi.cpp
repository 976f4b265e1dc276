// The C border: null checks, exceptions to statuses, reference counts. See include/latile/latile.h.
#include "latile/latile.h"
#include "runtime/Context.h"
#include "runtime/Failure.h"
#include "runtime/Plan.h"
#include <memory>

using namespace latile::runtime;

namespace {

constexpr std::int32_t kMaxTeam = 1024;

void need(const void* pointer, const char* name) {
  if (pointer == nullptr) fail(LATILE_BAD_ARGUMENT, "{} is null", name);
}

}  // namespace

extern "C" {

uint32_t latile_abi(void) { return LATILE_ABI; }

latile_status latile_context_create(const latile_context_desc* desc, latile_context** context, latile_error* error) {
  return guarded(error, [&] {
    need(context, "context");
    latile_context_desc given = {};
    if (desc != nullptr) {
      check_size(desc, desc->size, sizeof given, "latile_context_desc");
      given = *desc;
    }
    auto made = std::make_unique<latile_context>();
    made->self = std::make_shared<Context>(given);
    *context = made.release();
  });
}

void latile_context_release(latile_context* context) { delete context; }

size_t latile_operator_count(const latile_context* context) {
  return context == nullptr ? 0 : context->self->operators().size();
}

const char* latile_operator_json(const latile_context* context, size_t index) {
  if (context == nullptr || index >= context->self->operators().size()) return nullptr;
  const char* text = nullptr;
  guarded(nullptr, [&] { text = context->self->operator_json(index).c_str(); });
  return text;
}

latile_status latile_bundle_open(latile_context* context, const char* path, latile_error* error) {
  return guarded(error, [&] {
    need(context, "context");
    need(path, "path");
    context->self->add_bundle(path);
  });
}

size_t latile_bundle_count(const latile_context* context) {
  return context == nullptr ? 0 : context->self->bundles.count();
}

const char* latile_bundle_json(const latile_context* context, size_t index) {
  return context == nullptr ? nullptr : context->self->bundle_json(index);
}

latile_status latile_plan_create(latile_context* context, const latile_plan_desc* desc, latile_plan** plan,
                                 latile_error* error) {
  return guarded(error, [&] {
    need(context, "context");
    need(desc, "latile_plan_desc");
    need(plan, "plan");
    auto made = std::make_unique<latile_plan>(context->self, *desc);
    *plan = made.release();
  });
}

void latile_plan_retain(latile_plan* plan) {
  if (plan != nullptr) plan->references.fetch_add(1, std::memory_order_relaxed);
}

void latile_plan_release(latile_plan* plan) {
  if (plan != nullptr && plan->references.fetch_sub(1, std::memory_order_acq_rel) == 1) delete plan;
}

latile_status latile_plan_workspace(const latile_plan* plan, const int64_t* dims, size_t* bytes, size_t* alignment,
                                    latile_error* error) {
  return guarded(error, [&] {
    need(plan, "plan");
    plan->signature.check_dims(dims);
    const std::size_t total = plan->program.layout(plan->signature, dims).total;
    if (bytes != nullptr) *bytes = total;
    if (alignment != nullptr) *alignment = plan->program.workspace_alignment();
  });
}

latile_status latile_plan_shape(const latile_plan* plan, size_t tensor, const int64_t* dims, int64_t* shape,
                                int32_t* ndim, latile_error* error) {
  return guarded(error, [&] {
    need(plan, "plan");
    need(shape, "shape");
    need(ndim, "ndim");
    const Signature& signature = plan->signature;
    if (tensor >= signature.tensors.size())
      fail(LATILE_BAD_ARGUMENT, "{}: there is no tensor {}; the plan has {}", signature.op, tensor,
           signature.tensors.size());
    const Tensor& asked = signature.tensors[tensor];
    signature.check_dims(dims);
    if (*ndim < asked.rank())
      fail(LATILE_BAD_ARGUMENT, "{}: tensor '{}' has rank {}, but *ndim says that shape has room for {}", signature.op,
           asked.name, asked.rank(), *ndim);
    Extents extents;
    signature.shape(asked, dims, extents);
    std::copy_n(extents.begin(), asked.rank(), shape);
    *ndim = asked.rank();
  });
}

int32_t latile_plan_parts(const latile_plan* plan, const int64_t* dims) {
  int32_t parts = 0;
  guarded(nullptr, [&] {
    need(plan, "plan");
    plan->signature.check_dims(dims);
    parts = plan->program.layout(plan->signature, dims).parts;
  });
  return parts;
}

const char* latile_plan_stages(const latile_plan* plan) { return plan == nullptr ? nullptr : plan->stages.c_str(); }

latile_status latile_run(const latile_plan* plan, const latile_args* args, latile_error* error) {
  return guarded(error, [&] {
    need(plan, "plan");
    need(args, "latile_args");
    if (plan->program.on_device)
      launch(*plan, *args);
    else
      plan->context->pool.run(prepare(*plan, *args));
  });
}

latile_status latile_team_create(int32_t threads, latile_team** team, latile_error* error) {
  return guarded(error, [&] {
    need(team, "team");
    if (threads < 1 || threads > kMaxTeam)
      fail(LATILE_BAD_ARGUMENT, "a team of {} threads cannot be made; give 1 to {}", threads, kMaxTeam);
    *team = new latile_team(threads);
  });
}

void latile_team_release(latile_team* team) { delete team; }

latile_status latile_run_part(const latile_plan* plan, const latile_args* args, latile_team* team, int32_t thread,
                              latile_error* error) {
  const latile_status entered = guarded(error, [&] {
    need(plan, "plan");
    need(args, "latile_args");
    need(team, "team");
    if (plan->program.on_device)
      fail(LATILE_UNSUPPORTED, "{}: a plan on a device takes no team of threads; call latile_run", plan->signature.op);
    if (thread < 0 || thread >= team->threads)
      fail(LATILE_BAD_ARGUMENT, "thread {} is not in the team; its threads are 0 to {}", thread, team->threads - 1);
  });
  if (entered != LATILE_OK) return entered;

  if (thread == 0) {
    guarded(&team->error, [&] { team->job = prepare(*plan, *args); });
    team->next[0].store(0, std::memory_order_relaxed);
  }
  team->barrier.wait();
  const latile_status status = team->error.status;
  if (status != LATILE_OK) {
    fill(error, status, team->error.text);
    team->barrier.wait();  // before thread 0 may use the team's error again
    return status;
  }
  // A copy: thread 0 may begin the next run as soon as the last barrier is passed.
  const Job job = team->job;
  for (int i = 0; i < job.count; ++i) {
    if (thread == 0) team->next[(i + 1) % 2].store(0, std::memory_order_relaxed);
    if (thread < job.parts) work(job.launches[i], team->next[i % 2], job.arena(thread));
    team->barrier.wait();
  }
  if (job.count == 0) team->barrier.wait();
  return LATILE_OK;
}

}  // extern "C"
