#include "tools/latile/HostTensor.h"
#include <bit>
#include <cmath>
#include <cstring>
#include <utility>

namespace latile {
namespace {

float half_to_float(std::uint16_t h) {
  const int exponent = (h >> 10) & 31, mantissa = h & 1023;
  const float sign = (h >> 15) ? -1.0f : 1.0f;
  if (exponent == 31) return mantissa ? std::nanf("") : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(mantissa), -24);
  return sign * std::ldexp(static_cast<float>(mantissa + 1024), exponent - 25);
}

std::uint16_t double_to_half(double x) {
  const std::uint16_t sign = std::signbit(x) ? 0x8000 : 0;
  if (std::isnan(x)) return 0x7e00;
  if (x == 0) return sign;
  const double a = std::fabs(x);
  if (a >= 65520.0) return sign | 0x7c00;  // halfway to the next after the largest rounds to infinity
  int exponent = 0;
  std::frexp(a, &exponent);
  const int place = std::max(exponent - 11, -24);  // weight of the last bit kept
  const auto units = static_cast<std::uint32_t>(std::nearbyint(std::ldexp(a, -place)));
  if (place == -24) return static_cast<std::uint16_t>(sign | units);  // subnormal, or the carry into the first normal
  return static_cast<std::uint16_t>(sign | (static_cast<std::uint32_t>(place + 24) * 1024 + units));
}

std::uint16_t double_to_bfloat(double x) {
  if (std::isnan(x)) return 0x7fc0;
  // Rounding through float32 may round twice; the float is first made odd where it was inexact, which prevents that.
  float f = static_cast<float>(x);
  auto bits = std::bit_cast<std::uint32_t>(f);
  if (std::isfinite(f) && static_cast<double>(f) != x) {
    if (std::fabs(static_cast<double>(f)) > std::fabs(x)) --bits;
    bits |= 1u;
  }
  if ((bits & 0x7f800000u) == 0x7f800000u) return static_cast<std::uint16_t>(bits >> 16);
  return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

template <class T> T read(const void* p) {
  T value;
  std::memcpy(&value, p, sizeof value);
  return value;
}
template <class T> void write(void* p, T value) { std::memcpy(p, &value, sizeof value); }

std::size_t span_bytes(const std::vector<std::int64_t>& shape, const std::vector<std::int64_t>& strides,
                       ElementType t) {
  if (element_count(shape) == 0) return 0;
  std::int64_t last = 0;
  for (std::size_t d = 0; d < shape.size(); ++d) last += (shape[d] - 1) * strides[d];
  return static_cast<std::size_t>(last + 1) * size(t);
}

}  // namespace

double load_element(const void* p, ElementType type) {
  switch (type) {
  case ElementType::f32: return read<float>(p);
  case ElementType::f64: return read<double>(p);
  case ElementType::f16: return half_to_float(read<std::uint16_t>(p));
  case ElementType::bf16: return std::bit_cast<float>(static_cast<std::uint32_t>(read<std::uint16_t>(p)) << 16);
  case ElementType::i32: return read<std::int32_t>(p);
  case ElementType::i64: return static_cast<double>(read<std::int64_t>(p));
  }
  return 0;
}

void store_element(void* p, ElementType type, double x) {
  switch (type) {
  case ElementType::f32: return write(p, static_cast<float>(x));
  case ElementType::f64: return write(p, x);
  case ElementType::f16: return write(p, double_to_half(x));
  case ElementType::bf16: return write(p, double_to_bfloat(x));
  case ElementType::i32: return write(p, static_cast<std::int32_t>(x));
  case ElementType::i64: return write(p, static_cast<std::int64_t>(x));
  }
}

std::int64_t element_count(const std::vector<std::int64_t>& shape) {
  std::int64_t n = 1;
  for (std::int64_t d : shape) n *= d;
  return n;
}

std::vector<std::int64_t> dense_strides(const std::vector<std::int64_t>& shape) {
  std::vector<std::int64_t> strides(shape.size());
  std::int64_t step = 1;
  for (std::size_t d = shape.size(); d-- > 0; step *= std::max<std::int64_t>(shape[d], 1)) strides[d] = step;
  return strides;
}

HostTensor::HostTensor(std::string n, ElementType t, std::vector<std::int64_t> s)
    : HostTensor(std::move(n), t, s, dense_strides(s)) {}

HostTensor::HostTensor(std::string n, ElementType t, std::vector<std::int64_t> s, std::vector<std::int64_t> st)
    : name(std::move(n)), type(t), shape(std::move(s)), strides(std::move(st)), bytes(span_bytes(shape, strides, t)) {}

std::int64_t HostTensor::offset(std::int64_t i) const {
  std::int64_t at = 0;
  for (std::size_t d = shape.size(); d-- > 0;) at += (i % shape[d]) * strides[d], i /= shape[d];
  return at;
}

double HostTensor::get(std::int64_t i) const {
  return load_element(bytes.data() + static_cast<std::size_t>(offset(i)) * size(type), type);
}

void HostTensor::set(std::int64_t i, double value) {
  store_element(bytes.data() + static_cast<std::size_t>(offset(i)) * size(type), type, value);
}

void HostTensor::append_dense(std::string& to) const {
  const auto* data = reinterpret_cast<const char*>(bytes.data());
  if (strides == dense_strides(shape)) {
    to.append(data, bytes.size());
    return;
  }
  const std::size_t element = size(type);
  for (std::int64_t i = 0, n = count(); i < n; ++i)
    to.append(data + static_cast<std::size_t>(offset(i)) * element, element);
}

void HostTensor::poison() {
  if (!bytes.empty()) std::memset(bytes.data(), 0xff, bytes.size());
}

}  // namespace latile
