// A strided tensor in this process's memory, and its elements as numbers.
#pragma once
#include "dsl/OperatorInfo.h"
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace latile {

/// One element as a double. `data` need not be aligned.
double load_element(const void* data, ElementType);
/// Rounds to the type, nearest even.
void store_element(void* data, ElementType, double value);

std::vector<std::int64_t> dense_strides(const std::vector<std::int64_t>& shape);
std::int64_t element_count(const std::vector<std::int64_t>& shape);

struct HostTensor {
  std::string name;
  ElementType type = ElementType::f32;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;  ///< in elements; no two indices share an element
  std::vector<std::byte> bytes;

  HostTensor() = default;
  /// Dense, outermost axis first. Memory is zero.
  HostTensor(std::string name, ElementType, std::vector<std::int64_t> shape);
  /// With given strides, as large as they need.
  HostTensor(std::string name, ElementType, std::vector<std::int64_t> shape, std::vector<std::int64_t> strides);

  std::int64_t count() const { return element_count(shape); }
  /// Offset in elements of the flat index i, counted over `shape` with the last axis fastest.
  std::int64_t offset(std::int64_t i) const;
  double get(std::int64_t i) const;
  void set(std::int64_t i, double value);
  /// Appends the elements without gaps, the last axis fastest.
  void append_dense(std::string& to) const;
  /// Every byte 0xff: NaN in each float type, -1 in each integer type. Gaps between elements included.
  void poison();
};

}  // namespace latile
