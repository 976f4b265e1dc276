// An operator's description as JSON and back, for bundles.
#pragma once
#include "dsl/OperatorInfo.h"
#include <nlohmann/json_fwd.hpp>

namespace latile::runtime {

nlohmann::json info_to_json(const OperatorInfo&);
/// Throws nlohmann::json::exception where a field is missing or of another type.
OperatorInfo info_from_json(const nlohmann::json&);

}  // namespace latile::runtime
