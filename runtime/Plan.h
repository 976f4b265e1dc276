// A plan: immutable once made.
#pragma once
#include "runtime/Context.h"
#include "runtime/Program.h"
#include <atomic>

namespace latile::runtime {

/// Checks the arguments of a run, in full, and lays its launches into the caller's workspace. Throws Failure; until it
/// returns nothing but the workspace is written. Allocates nothing unless it throws.
Job prepare(const latile_plan& plan, const latile_args& args);

/// The same for a plan on a device: begins its launches on the run's stream. Without a look into device memory, unless
/// the context checks index tensors there.
void launch(const latile_plan& plan, const latile_args& args);

/// Strides of a tensor in this run, in elements.
void strides_of(const Tensor& tensor, const Extents& extents, const std::int64_t* given, Extents& strides);

}  // namespace latile::runtime

struct latile_plan {
  latile_plan(std::shared_ptr<latile::runtime::Context> context, const latile_plan_desc& desc);

  std::atomic<std::int64_t> references = 1;
  std::shared_ptr<latile::runtime::Context> context;
  latile_device device = {LATILE_CPU, 0};
  latile::runtime::Signature signature;
  std::shared_ptr<const latile::runtime::Code> code;
  latile::runtime::Program program;
  std::string stages;  ///< JSON
};
