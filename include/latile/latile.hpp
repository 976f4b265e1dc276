// latile.hpp: owners for the C interface (latile.h, which documents every field) and exceptions for its statuses.
// Header only, C++20. Nothing here allocates or throws in a run that succeeds.
//
//   latile::api::Context context;
//   latile::api::PlanDescription d("gated_delta_rule", "prefill");
//   d.dim("H", 8).dim("HV", 8).dim("K", 128).dim("V", 128).dim("B", 1, 64).dim("T", 0, 1 << 20);
//   d.tensor("q", LATILE_BF16).tensor("k", LATILE_BF16) ...
//   latile::api::Plan plan(context, d);
//   plan.run(data, dims, {}, workspace);      // data and dims in the order in which they were described
#pragma once
#include "latile/latile.h"
#include <deque>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace latile::api {

/// A call that failed: what() is the sentence, status() one of LATILE_*.
class Error : public std::runtime_error {
public:
  explicit Error(const latile_error& error) : std::runtime_error(error.text), code(error.status) {}
  latile_status status() const noexcept { return code; }

private:
  latile_status code;
};

namespace detail {
template <class Call> void checked(Call&& call) {
  latile_error error = {sizeof(latile_error), LATILE_OK, 0, {}};
  if (call(&error) != LATILE_OK) throw Error(error);
}
struct Release {
  void operator()(latile_context* context) const noexcept { latile_context_release(context); }
  void operator()(latile_plan* plan) const noexcept { latile_plan_release(plan); }
  void operator()(latile_team* team) const noexcept { latile_team_release(team); }
};
}  // namespace detail

class Context {
public:
  /// host_threads as in latile_context_desc; cache_dir nullptr: the user's default, "": none.
  explicit Context(std::int32_t host_threads = -1, const char* cache_dir = nullptr) {
    create({sizeof(latile_context_desc), cache_dir, host_threads, nullptr, nullptr, 0});
  }
  explicit Context(const latile_context_desc& description) { create(description); }
  latile_context* get() const noexcept { return handle.get(); }

  /// As latile_bundle_open.
  void open_bundle(const char* path) {
    detail::checked([&](latile_error* error) { return latile_bundle_open(get(), path, error); });
  }
  /// JSON rows of the operator table.
  std::vector<std::string> operators() const {
    std::vector<std::string> rows;
    for (std::size_t i = 0; i < latile_operator_count(get()); ++i)
      if (const char* row = latile_operator_json(get(), i)) rows.emplace_back(row);
    return rows;
  }

private:
  void create(const latile_context_desc& description) {
    latile_context* made = nullptr;
    detail::checked([&](latile_error* error) { return latile_context_create(&description, &made, error); });
    handle.reset(made);
  }
  std::unique_ptr<latile_context, detail::Release> handle;
};

/// A latile_plan_desc that owns its names. Order of calls is order of dims and tensors in a run.
class PlanDescription {
public:
  PlanDescription(std::string op, std::string mode) : op(std::move(op)), mode(std::move(mode)) {}

  PlanDescription& option(std::string name, std::string value) {
    options.push_back({keep(std::move(name)), keep(std::move(value))});
    return *this;
  }
  PlanDescription& dim(std::string name, std::int64_t value) { return dim(std::move(name), value, value); }
  PlanDescription& dim(std::string name, std::int64_t min, std::int64_t max) {
    dims.push_back({keep(std::move(name)), min, max});
    return *this;
  }
  /// strides: in elements, outermost first, -1 for those given at run; empty: contiguous.
  PlanDescription& tensor(std::string name, latile_dtype type, std::vector<std::int64_t> strides = {},
                          std::uint32_t alignment = 0) {
    const auto rank = static_cast<std::int32_t>(strides.size());
    const std::int64_t* first = strides.empty() ? nullptr : kept_strides.emplace_back(std::move(strides)).data();
    tensors.push_back({keep(std::move(name)), type, rank, first, alignment, 0});
    return *this;
  }
  /// Where the plan will run; the host unless this is called.
  PlanDescription& device(std::int32_t type, std::int32_t id) {
    where = {type, id};
    return *this;
  }
  /// Valid until this object changes or goes.
  latile_plan_desc get() const {
    return {sizeof(latile_plan_desc), op.c_str(),  mode.c_str(), where,          options.data(),
            options.size(),           dims.data(), dims.size(),  tensors.data(), tensors.size()};
  }

  PlanDescription(const PlanDescription&) = delete;
  PlanDescription& operator=(const PlanDescription&) = delete;

private:
  // A deque never moves its elements, so that pointers into them last.
  const char* keep(std::string text) { return texts.emplace_back(std::move(text)).c_str(); }

  std::string op, mode;
  latile_device where{LATILE_CPU, 0};
  std::deque<std::string> texts;
  std::deque<std::vector<std::int64_t>> kept_strides;
  std::vector<latile_option> options;
  std::vector<latile_dim> dims;
  std::vector<latile_tensor> tensors;
};

/// A group of the caller's threads, for Plan::run_part.
class Team {
public:
  explicit Team(std::int32_t threads) {
    latile_team* made = nullptr;
    detail::checked([&](latile_error* error) { return latile_team_create(threads, &made, error); });
    handle.reset(made);
  }
  latile_team* get() const noexcept { return handle.get(); }

private:
  std::unique_ptr<latile_team, detail::Release> handle;
};

class Plan {
public:
  Plan(const Context& context, const PlanDescription& description) : Plan(context, description.get()) {}
  Plan(const Context& context, const latile_plan_desc& description) {
    latile_plan* made = nullptr;
    detail::checked([&](latile_error* error) { return latile_plan_create(context.get(), &description, &made, error); });
    handle.reset(made);
  }
  latile_plan* get() const noexcept { return handle.get(); }

  std::size_t workspace(std::span<const std::int64_t> dims) const {
    std::size_t bytes = 0;
    detail::checked(
        [&](latile_error* error) { return latile_plan_workspace(get(), dims.data(), &bytes, nullptr, error); });
    return bytes;
  }
  std::vector<std::int64_t> shape(std::size_t tensor, std::span<const std::int64_t> dims) const {
    std::vector<std::int64_t> shape(8);
    std::int32_t rank = 8;
    detail::checked(
        [&](latile_error* error) { return latile_plan_shape(get(), tensor, dims.data(), shape.data(), &rank, error); });
    shape.resize(static_cast<std::size_t>(rank));
    return shape;
  }
  std::int32_t parts(std::span<const std::int64_t> dims) const noexcept {
    return latile_plan_parts(get(), dims.data());
  }
  const char* stages() const noexcept { return latile_plan_stages(get()); }

  /// strides: the -1 ones; scalars: null for the defaults; stream: of a device.
  void run(std::span<void* const> data, std::span<const std::int64_t> dims, std::span<const std::int64_t> strides,
           std::span<std::byte> workspace, const double* scalars = nullptr, void* stream = nullptr) const {
    latile_args args = arguments(data, dims, strides, workspace, scalars);
    args.stream = stream;
    detail::checked([&](latile_error* error) { return latile_run(get(), &args, error); });
  }
  /// Called by every thread of the team with its own index and otherwise the same.
  void run_part(std::span<void* const> data, std::span<const std::int64_t> dims, std::span<const std::int64_t> strides,
                std::span<std::byte> workspace, const Team& team, std::int32_t thread,
                const double* scalars = nullptr) const {
    const latile_args args = arguments(data, dims, strides, workspace, scalars);
    detail::checked([&](latile_error* error) { return latile_run_part(get(), &args, team.get(), thread, error); });
  }

private:
  static latile_args arguments(std::span<void* const> data, std::span<const std::int64_t> dims,
                               std::span<const std::int64_t> strides, std::span<std::byte> workspace,
                               const double* scalars) {
    return {sizeof(latile_args), data.data(),      dims.data(), strides.empty() ? nullptr : strides.data(), scalars,
            workspace.data(),    workspace.size(), nullptr};
  }
  std::unique_ptr<latile_plan, detail::Release> handle;
};

}  // namespace latile::api
