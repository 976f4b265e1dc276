#include "runtime/Plan.h"
#include "runtime/Describe.h"
#include <chrono>
#include <nlohmann/json.hpp>

using namespace latile::runtime;

latile_plan::latile_plan(std::shared_ptr<Context> shared, const latile_plan_desc& desc)
    : context(std::move(shared)), device(desc.device) {
  const auto start = std::chrono::steady_clock::now();
  const auto elapsed = [&] {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  };
  const std::shared_ptr<Device> on = context->device(device);
  const double opening = elapsed();
  Described described = describe(context->compiler(), desc, context->isa, on ? on->target() : "");
  signature = std::move(described.signature);
  const double describing = elapsed() - opening;

  const auto fits = [&](const Code& candidate) {
    std::string why;
    program = Program::bind(candidate, signature, context->thread_limit(), why);
    return why;
  };
  Context::Found found = context->find(described.specialisation, on, fits);
  code = std::move(found.code);
  if (program.kernels.empty())
    if (const std::string why = fits(*code); !why.empty()) fail(LATILE_INTERNAL, "{}: {}", signature.op, why);

  nlohmann::ordered_json times = nlohmann::ordered_json::array();
  if (on) times.push_back({{"stage", "open device"}, {"ms", opening}});
  times.push_back({{"stage", "describe"}, {"ms", describing}});
  for (const latile::StageTime& stage : found.stages) times.push_back({{"stage", stage.stage}, {"ms", stage.ms}});
  nlohmann::ordered_json kernels = nlohmann::ordered_json::array();
  for (const BoundKernel& kernel : program.kernels)
    if (program.on_device)
      kernels.push_back({{"name", kernel.symbol},
                         {"threads", kernel.threads},
                         {"shared_bytes", kernel.shared_bytes},
                         {"registers", kernel.on_device.registers},
                         {"local_bytes", kernel.on_device.local_bytes}});
  stages = nlohmann::ordered_json({{"source", found.source},
                                   {"target", code->artifact.target},
                                   {"chunk", code->artifact.chunk},
                                   {"key", found.key},
                                   {"total_ms", elapsed()},
                                   {"stages", times},
                                   {"kernels", kernels}})
               .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}
