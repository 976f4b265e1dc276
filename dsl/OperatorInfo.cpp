#include "dsl/OperatorInfo.h"

namespace latile {

const char* name(ElementType t) {
  static const char* const names[] = {"f32", "f16", "bf16", "i32", "i64", "f64"};
  return names[static_cast<int>(t)];
}
std::size_t size(ElementType t) {
  static constexpr std::size_t sizes[] = {4, 2, 2, 4, 8, 8};
  return sizes[static_cast<int>(t)];
}

const TensorInfo* OperatorInfo::tensor(const std::string& n) const {
  for (auto& t : tensors)
    if (t.name == n) return &t;
  return nullptr;
}
const DimInfo* OperatorInfo::dim(const std::string& n) const {
  for (auto& d : dims)
    if (d.name == n) return &d;
  return nullptr;
}

}  // namespace latile
