#include "codegen/Targets.h"
#include "codegen/amdgcn/Targets.h"
#include "codegen/nvptx/Targets.h"

namespace latile {

static std::vector<const simt::Target*> all() {
  std::vector<const simt::Target*> out;
  for (const auto* family : {&nvptx::targets(), &amdgcn::targets()})
    for (const simt::Target& target : *family) out.push_back(&target);
  return out;
}

const simt::Target* find_target(std::string_view name) {
  for (const simt::Target* target : all())
    if (target->name == name) return target;
  return nullptr;
}

std::vector<std::string_view> target_names() {
  std::vector<std::string_view> out;
  for (const simt::Target* target : all()) out.push_back(target->name);
  return out;
}

}  // namespace latile
