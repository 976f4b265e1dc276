#include "compiler/Specialisation.h"
#include <algorithm>
#include <nlohmann/json.hpp>

namespace latile {

const char* name(Mode mode) {
  switch (mode) {
  case Mode::prefill: return "prefill";
  case Mode::recurrent: return "recurrent";
  case Mode::step: return "step";
  }
  return "?";
}

const BoundTensor* Specialisation::tensor(const std::string& wanted) const {
  for (const BoundTensor& candidate : tensors)
    if (candidate.name == wanted) return &candidate;
  return nullptr;
}

std::string Specialisation::json() const {
  // nlohmann::json objects are ordered by key, so only the options need sorting here.
  auto sorted = options;
  std::sort(sorted.begin(), sorted.end());
  nlohmann::json bound = nlohmann::json::array();
  for (const BoundTensor& t : tensors)
    bound.push_back({{"name", t.name}, {"type", latile::name(t.type)}, {"unit", t.unit}});
  nlohmann::json text = {{"op", op},
                         {"mode", latile::name(mode)},
                         {"options", sorted},
                         {"extents", extents},
                         {"head_ratio", head_ratio},
                         {"tiled_heads", tiled_heads},
                         {"reversed", reversed},
                         {"every", every},
                         {"io", latile::name(io)},
                         {"tensors", bound},
                         {"chunk", chunk},
                         {"isa", isa.level}};
  if (device != "host") text["device"] = device;
  return text.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace latile
