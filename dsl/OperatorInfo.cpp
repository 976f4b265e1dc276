#include "dsl/OperatorInfo.h"

namespace latile {

const char* name(ElementType type) {
  switch (type) {
  case ElementType::f32: return "f32";
  case ElementType::f16: return "f16";
  case ElementType::bf16: return "bf16";
  case ElementType::i32: return "i32";
  case ElementType::i64: return "i64";
  case ElementType::f64: return "f64";
  }
  return "?";
}

std::size_t size(ElementType type) {
  switch (type) {
  case ElementType::f16:
  case ElementType::bf16: return 2;
  case ElementType::f32:
  case ElementType::i32: return 4;
  case ElementType::i64:
  case ElementType::f64: return 8;
  }
  return 0;
}

const TensorInfo* OperatorInfo::tensor(const std::string& wanted) const {
  for (const TensorInfo& candidate : tensors)
    if (candidate.name == wanted) return &candidate;
  return nullptr;
}

const DimInfo* OperatorInfo::dim(const std::string& wanted) const {
  for (const DimInfo& candidate : dims)
    if (candidate.name == wanted) return &candidate;
  return nullptr;
}

}  // namespace latile
