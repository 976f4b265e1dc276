#include "tools/latile/Plan.h"
#include "runtime/Failure.h"
#include "runtime/Plan.h"
#include "tools/latile/Recording.h"
#include "tools/latile/UserError.h"
#include <algorithm>
#include <cstring>
#include <fmt/format.h>

namespace latile {
namespace {

latile_error no_error() {
  latile_error e{};
  e.size = sizeof e;
  return e;
}

}  // namespace

void fail(const latile_error& e) {
  const bool user = e.status != LATILE_INTERNAL && e.status != LATILE_DRIVER && e.status != LATILE_OUT_OF_MEMORY;
  throw UserError(e.text, user ? exit_bad_use : exit_internal);
}

ContextHandle make_context(int threads, const char* cache, std::uint32_t flags) {
  latile_context_desc desc{};
  desc.size = sizeof desc;
  desc.cache_dir = cache;
  desc.host_threads = threads;
  desc.flags = flags;
  latile_error error = no_error();
  latile_context* context = nullptr;
  if (latile_context_create(&desc, &context, &error) != LATILE_OK) fail(error);
  return ContextHandle(context);
}

latile_dtype dtype_of(ElementType type) {
  switch (type) {
  case ElementType::f32: return LATILE_F32;
  case ElementType::f16: return LATILE_F16;
  case ElementType::bf16: return LATILE_BF16;
  case ElementType::i32: return LATILE_I32;
  case ElementType::i64: return LATILE_I64;
  case ElementType::f64: return LATILE_TYPE(2, 64);
  }
  return {};
}

const char* long_name(ElementType type) {
  switch (type) {
  case ElementType::f32: return "float32";
  case ElementType::f16: return "float16";
  case ElementType::bf16: return "bfloat16";
  case ElementType::i32: return "int32";
  case ElementType::i64: return "int64";
  case ElementType::f64: return "float64";
  }
  return "";
}

ElementType element_type_named(const std::string& word) {
  for (ElementType t : {ElementType::f32, ElementType::f16, ElementType::bf16})
    if (word == name(t) || word == long_name(t)) return t;
  throw UserError(fmt::format("unknown element type '{}'; f32, f16 and bf16 are offered", word));
}

Plan::Plan(latile_context* context, const PlanRequest& request) : asked(request) {
  std::vector<latile_option> options;
  for (const auto& [key, value] : asked.options) options.push_back({key.c_str(), value.c_str()});
  std::vector<latile_dim> dims;
  for (const auto& d : asked.dims) dims.push_back({d.name.c_str(), d.min, d.max});
  std::vector<latile_tensor> tensors;
  for (const auto& t : asked.tensors)
    tensors.push_back({t.name.c_str(), dtype_of(t.type), static_cast<std::int32_t>(t.strides.size()),
                       t.strides.empty() ? nullptr : t.strides.data(), 0, 0});
  latile_plan_desc desc{};
  desc.size = sizeof desc;
  desc.op = asked.op.c_str();
  desc.mode = name(asked.mode);
  desc.device = asked.place.id;
  desc.options = options.data(), desc.option_count = options.size();
  desc.dims = dims.data(), desc.dim_count = dims.size();
  desc.tensors = tensors.data(), desc.tensor_count = tensors.size();
  latile_error error = no_error();
  latile_plan* made = nullptr;
  if (latile_plan_create(context, &desc, &made, &error) != LATILE_OK) fail(error);
  plan.reset(made);
}

std::vector<std::int64_t> Plan::shape(std::size_t tensor, const std::vector<std::int64_t>& dims) const {
  std::int64_t shape[8];
  std::int32_t rank = 8;
  latile_error error = no_error();
  if (latile_plan_shape(plan.get(), tensor, dims.data(), shape, &rank, &error) != LATILE_OK) fail(error);
  return {shape, shape + rank};
}

namespace {

constexpr std::size_t fence = 256;

template <class Call> void run_in_graph(const Place& place, latile_args& args, Call&& call) {
  try {
    Recording recording(static_cast<runtime::cuda::CudaDevice&>(*place.device));
    args.stream = recording.stream;
    recording.record(1, call);
    recording.replay();
  } catch (const runtime::Failure& failure) { throw UserError(failure.text, exit_internal); }
}

}  // namespace

std::size_t Plan::workspace_bytes(const std::vector<std::int64_t>& dims, std::size_t& alignment) const {
  latile_error error = no_error();
  std::size_t bytes = 0;
  if (latile_plan_workspace(plan.get(), dims.data(), &bytes, &alignment, &error) != LATILE_OK) fail(error);
  return bytes;
}

void* Plan::host_workspace(std::size_t bytes, std::size_t alignment) {
  const std::size_t room = bytes + alignment + fence;
  const bool fresh = memory.size() < room;
  if (fresh) memory.resize(room);
  if (poison || fresh) std::memset(memory.data(), 0xff, memory.size());  // a read of what nothing wrote gives NaN
  return memory.data() + (alignment - reinterpret_cast<std::uintptr_t>(memory.data()) % alignment) % alignment;
}

/// Of exactly this size when it is watched: what lies behind it is the fence.
void* Plan::device_workspace(std::size_t bytes) {
  if (!on_device || (poison ? on_device->size() != bytes : on_device->size() < bytes))
    on_device = std::make_unique<DeviceMemory>(asked.place.device, bytes);
  else if (poison)
    on_device->poison();
  return on_device->data();
}

void Plan::run(const std::vector<void*>& data, const std::vector<std::vector<std::int64_t>>& strides,
               const std::vector<std::int64_t>& dims, const std::vector<double>& scalars) {
  std::vector<std::int64_t> free_strides;
  for (std::size_t i = 0; i < asked.tensors.size(); ++i)
    for (std::size_t d = 0; d < asked.tensors[i].strides.size(); ++d)
      if (asked.tensors[i].strides[d] == -1) free_strides.push_back(strides[i][d]);
  std::size_t alignment = 1;
  latile_args args{};
  args.size = sizeof args;
  args.data = data.data();
  args.dims = dims.data();
  args.strides = free_strides.empty() ? nullptr : free_strides.data();
  args.scalars = scalars.empty() ? nullptr : scalars.data();
  args.workspace_size = workspace_bytes(dims, alignment);
  args.workspace =
      asked.place.host() ? host_workspace(args.workspace_size, alignment) : device_workspace(args.workspace_size);
  latile_error error = no_error();
  const auto call = [&] {
    if (latile_run(plan.get(), &args, &error) != LATILE_OK) fail(error);
  };
  if (asked.place.graph)
    run_in_graph(asked.place, args, call);
  else
    call();
  if (!asked.place.host()) {
    asked.place.wait();
    workspace_overrun |= poison && on_device->overran();
    return;
  }
  const auto* end = static_cast<const std::byte*>(args.workspace) + args.workspace_size;
  workspace_overrun |= std::any_of(end, end + fence, [](std::byte b) { return b != std::byte{0xff}; });
}

void Plan::begin(const std::vector<void*>& data, const std::vector<std::int64_t>& dims, void* stream) {
  latile_args args{};
  args.size = sizeof args;
  args.data = data.data(), args.dims = dims.data(), args.stream = stream;
  args.workspace = on_device->data(), args.workspace_size = on_device->size();
  latile_error error = no_error();
  if (latile_run(plan.get(), &args, &error) != LATILE_OK) fail(error);
}

std::int64_t Plan::chunk() const { return plan->code->artifact.chunk; }

runtime::Device& Plan::device() const { return *plan->code->device; }

std::string Plan::stages() const {
  const char* text = latile_plan_stages(plan.get());
  return text ? text : "{}";
}

PlanRequest plan_request(const std::string& op, const Case& c, const Problem& p, const std::string& isa,
                         const Place& place) {
  constexpr std::int64_t most = std::int64_t{1} << 30;
  PlanRequest request;
  request.op = op;
  request.mode = c.mode;
  request.place = place;
  request.options = c.options;
  if (c.tiled_heads) request.options.emplace_back("head_map", "tiled");
  if (c.reversed) request.options.emplace_back("reverse", "true");
  if (c.chunk) request.options.emplace_back("chunk_size", std::to_string(c.chunk));
  if (!isa.empty()) request.options.emplace_back("host_isa", isa);
  for (const auto& [name, value] : p.dims) {
    const bool one = c.mode == Mode::step && name == "T" && !c.ragged_bits;
    const bool range = !one && (name == "T" || name == "N" || name == "slots" || name.ends_with(".states") ||
                                (name == "B" && !c.ragged_bits));
    request.dims.push_back({name,
                            name.ends_with(".states") ? 1
                            : range                   ? 0
                            : one                     ? 1
                                                      : value,
                            range ? most
                            : one ? 1
                                  : value});
  }
  for (const Problem::Entry& e : p.entries) {
    const HostTensor& t = e.tensor;
    PlanRequest::Tensor asked{t.name, t.type, {}, t.shape.size()};
    if (t.strides != dense_strides(t.shape) || c.prefill)
      for (std::int64_t s : t.strides) asked.strides.push_back(s == 1 ? 1 : -1);
    request.tensors.push_back(std::move(asked));
  }
  return request;
}

}  // namespace latile
