// Owners of the C API's objects, and a plan made for a Problem.
#pragma once
#include "latile/latile.h"
#include "tools/latile/Place.h"
#include "tools/latile/Problem.h"
#include <memory>

namespace latile {

struct ContextRelease {
  void operator()(latile_context* c) const { latile_context_release(c); }
};
struct PlanRelease {
  void operator()(latile_plan* p) const { latile_plan_release(p); }
};
using ContextHandle = std::unique_ptr<latile_context, ContextRelease>;
using PlanHandle = std::unique_ptr<latile_plan, PlanRelease>;

/// threads, flags: as in latile_context_desc. cache: nullptr for the user's, "" for none. Throws UserError.
ContextHandle make_context(int threads, const char* cache = nullptr, std::uint32_t flags = 0);

latile_dtype dtype_of(ElementType);
/// "float32" …
const char* long_name(ElementType);
/// "f32", "float32", "bfloat16" …; throws UserError.
ElementType element_type_named(const std::string&);

/// UserError with the text of a failed call: exit_bad_use for the caller's mistakes, exit_internal for faults.
[[noreturn]] void fail(const latile_error&);

/// What a plan is asked for.
struct PlanRequest {
  std::string op;
  Mode mode = Mode::prefill;
  Place place;
  std::vector<std::pair<std::string, std::string>> options;  ///< head_map, chunk_size, host_isa among them
  struct Dim {
    std::string name;
    std::int64_t min, max;
  };
  std::vector<Dim> dims;
  struct Tensor {
    std::string name;
    ElementType type;
    std::vector<std::int64_t> strides;  ///< -1: given at each run; empty: contiguous
    std::size_t rank;
  };
  std::vector<Tensor> tensors;
};

/// A plan with its dims' and tensors' names kept, so that a run can be built from them.
class Plan {
public:
  Plan(latile_context*, const PlanRequest&);  ///< throws UserError

  /// The shape of tensor i at these dims.
  std::vector<std::int64_t> shape(std::size_t tensor, const std::vector<std::int64_t>& dims) const;
  /// data and strides in the order of the request's tensors; strides (full ones) are read where the request has -1.
  /// scalars: empty for the defaults. Returns when all is written, on a device too. Throws UserError.
  void run(const std::vector<void*>& data, const std::vector<std::vector<std::int64_t>>& strides,
           const std::vector<std::int64_t>& dims, const std::vector<double>& scalars);
  /// The same on a device's stream, without waiting, poisoning or looking at the workspace.
  void begin(const std::vector<void*>& data, const std::vector<std::int64_t>& dims, void* stream);
  const PlanRequest& request() const { return asked; }
  /// What latile_plan_stages says.
  std::string stages() const;
  /// Rows of a chunk that its code was recorded at.
  std::int64_t chunk() const;
  /// The device that the plan's context opened. A device plan's only.
  runtime::Device& device() const;
  /// For timing: the workspace is no longer filled with NaN before each run.
  void keep_workspace() { poison = false; }
  /// Bytes behind the workspace were overwritten in some run.
  bool overran() const { return workspace_overrun; }

private:
  std::size_t workspace_bytes(const std::vector<std::int64_t>& dims, std::size_t& alignment) const;
  void* host_workspace(std::size_t bytes, std::size_t alignment);
  void* device_workspace(std::size_t bytes);

  PlanRequest asked;
  PlanHandle plan;
  std::vector<std::byte> memory;
  std::unique_ptr<DeviceMemory> on_device;
  bool workspace_overrun = false, poison = true;
};

/// The request that a case makes: strides are free where its tensors are not contiguous.
PlanRequest plan_request(const std::string& op, const Case&, const Problem&, const std::string& isa,
                         const Place& place = {});

}  // namespace latile
