#include "compiler/interpreter/Memory.h"
#include "compiler/interpreter/Loops.h"
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace latile::interpreter {
namespace {

double half_to_double(std::uint16_t half) {
  const int exponent = half >> 10 & 31;
  const double mantissa = half & 1023;
  const double magnitude = exponent == 31  ? (mantissa == 0 ? std::numeric_limits<double>::infinity() : std::nan(""))
                           : exponent == 0 ? std::ldexp(mantissa, -24)
                                           : std::ldexp(mantissa + 1024, exponent - 25);
  return (half & 0x8000) != 0 ? -magnitude : magnitude;
}

/// `x` is a float16 value.
std::uint16_t double_to_half(double x) {
  const std::uint16_t sign = std::signbit(x) ? 0x8000 : 0;
  if (std::isnan(x)) return 0x7e00;
  x = std::fabs(x);
  if (std::isinf(x)) return sign | 0x7c00;
  if (x < 0x1p-14) return sign | static_cast<std::uint16_t>(x * 0x1p24);
  const int exponent = std::ilogb(x);
  return static_cast<std::uint16_t>(sign | (exponent + 14) << 10) +
         static_cast<std::uint16_t>(std::ldexp(x, 10 - exponent));
}

template <class T> T fetch(const char* address) {
  T value;
  std::memcpy(&value, address, sizeof value);
  return value;
}

double load_element(ElementType type, const char* address) {
  switch (type) {
  case ElementType::f64: return fetch<double>(address);
  case ElementType::f32: return fetch<float>(address);
  case ElementType::bf16: return std::bit_cast<float>(static_cast<std::uint32_t>(fetch<std::uint16_t>(address)) << 16);
  case ElementType::f16: return half_to_double(fetch<std::uint16_t>(address));
  case ElementType::i32: return fetch<std::int32_t>(address);
  case ElementType::i64: return static_cast<double>(fetch<std::int64_t>(address));
  }
  return 0;
}

void store_element(ElementType type, char* address, double value) {
  const auto put = [&](auto x) { std::memcpy(address, &x, sizeof x); };
  switch (type) {
  case ElementType::f64: return put(value);
  case ElementType::f32: return put(static_cast<float>(value));
  case ElementType::bf16:
    return put(
        static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(static_cast<float>(round_to(type, value))) >> 16));
  case ElementType::f16: return put(double_to_half(round_to(type, value)));
  case ElementType::i32: return put(static_cast<std::int32_t>(value));
  case ElementType::i64: return put(static_cast<std::int64_t>(value));
  }
}

}  // namespace

void Report::add_once(const std::string& key, const std::string& sentence) {
  const std::lock_guard lock(mutex_);
  if (sentences_.size() < 100 && seen_.emplace(key, true).second) sentences_.push_back(sentence);
}

std::size_t bytes(ElementType type) {
  return type == ElementType::f64 || type == ElementType::i64   ? 8
         : type == ElementType::f32 || type == ElementType::i32 ? 4
                                                                : 2;
}

bool Memory::locate(const std::int64_t* indices, int count, const Access& access, const char* verb,
                    std::int64_t& offset) const {
  offset = 0;
  for (int axis = 0; axis < count; ++axis) {
    if (indices[axis] < 0 || indices[axis] >= shape[axis]) {
      access.report.add(access.place + " " + verb + " '" + name + "' out of bounds: index " +
                        std::to_string(indices[axis]) + " on axis " + std::to_string(axis) + " of extent " +
                        std::to_string(shape[axis]));
      return false;
    }
    offset += indices[axis] * strides[axis];
  }
  return true;
}

void Memory::read(double* out, std::int64_t offset, std::int64_t rows, std::int64_t cols, std::int64_t row_stride,
                  std::int64_t col_stride, const Access& access) const {
  const auto width = static_cast<std::int64_t>(bytes(type));
  for (std::int64_t i = 0; i < rows; ++i) {
    const char* row = data + (offset + i * row_stride) * width;
    double* to = out + i * cols;
    if (type == ElementType::f64 && col_stride == 1)
      std::memcpy(to, row, static_cast<std::size_t>(cols) * sizeof(double));
    else if (type == ElementType::f32)
      for (std::int64_t j = 0; j < cols; ++j) to[j] = fetch<float>(row + j * col_stride * 4);
    else
      for (std::int64_t j = 0; j < cols; ++j) to[j] = load_element(type, row + j * col_stride * width);
    if (shadow)
      for (std::int64_t j = 0; j < cols; ++j) watch(offset + i * row_stride + j * col_stride, false, access);
  }
  if (declared != type) round_all(declared, out, rows * cols);
}

void Memory::write(const double* in, std::int64_t in_row_stride, std::int64_t in_col_stride, std::int64_t offset,
                   std::int64_t rows, std::int64_t cols, std::int64_t row_stride, std::int64_t col_stride,
                   const Access& access) const {
  const auto width = static_cast<std::int64_t>(bytes(type));
  const bool rounds = declared != type && declared != ElementType::f64;
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < cols; ++j) {
      const std::int64_t at = offset + i * row_stride + j * col_stride;
      if (shadow) watch(at, true, access);
      const double value = in[i * in_row_stride + j * in_col_stride];
      store_element(type, data + at * width, rounds ? round_to(declared, value) : value);
    }
}

std::int64_t Memory::read_integer(std::int64_t offset, const Access& access) const {
  if (shadow) watch(offset, false, access);
  const char* address = data + offset * static_cast<std::int64_t>(bytes(type));
  return type == ElementType::i32 ? fetch<std::int32_t>(address) : fetch<std::int64_t>(address);
}

std::string Memory::element(std::int64_t offset) const {
  // The indices whose strides lead to the offset; a tensor that overlaps itself names one of several.
  std::vector<std::size_t> order(shape.size());
  for (std::size_t axis = 0; axis < order.size(); ++axis) order[axis] = axis;
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::abs(strides[a]) != std::abs(strides[b]) ? std::abs(strides[a]) > std::abs(strides[b]) : a < b;
  });
  std::vector<std::int64_t> index(shape.size(), 0);
  for (std::size_t axis : order)
    if (strides[axis] != 0) {
      index[axis] = std::clamp<std::int64_t>(offset / strides[axis], 0, shape[axis] - 1);
      offset -= index[axis] * strides[axis];
    }
  std::string text = "'" + name + "'[";
  for (std::size_t axis = 0; axis < index.size(); ++axis) text += (axis != 0 ? ", " : "") + std::to_string(index[axis]);
  return text + "]";
}

void Memory::watch(std::int64_t offset, bool writes, const Access& access) const {
  auto& cell = shadow->at(data + offset * static_cast<std::int64_t>(bytes(type)));
  const auto other_wrote = cell.write_launch == access.launch && cell.writer != 0 && cell.writer != access.program;
  const auto other_read = cell.read_launch == access.launch && cell.reader != 0 && cell.reader != access.program;
  // One op and one tensor have one sentence of a kind, about the first element.
  const auto tell = [&](const char* verb, const char* what) {
    access.report.add_once(access.place + name + what, access.place + " " + verb + " " + element(offset) + what);
  };
  if (writes) {
    if (other_wrote)
      tell("writes", ", which another program of the same launch writes");
    else if (other_read)
      tell("writes", ", which another program of the same launch reads");
    cell.write_launch = access.launch;
    cell.writer = access.program;
    cell.initialised = true;
    return;
  }
  if (!cell.initialised)
    tell("reads", ", which nothing has written");
  else if (other_wrote)
    tell("reads", ", which another program of the same launch writes");
  // Several readers: keep one that is not the writer, so that a program's own read hides nobody else's.
  if (!other_read) {
    cell.read_launch = access.launch;
    cell.reader = access.program;
  }
}

bool span(const Memory& memory, std::uintptr_t& begin, std::uintptr_t& end) {
  std::int64_t low = 0, high = 0;
  for (std::size_t axis = 0; axis < memory.shape.size(); ++axis) {
    if (memory.shape[axis] == 0) return false;
    const std::int64_t reach = (memory.shape[axis] - 1) * memory.strides[axis];
    (reach < 0 ? low : high) += reach;
  }
  const auto width = static_cast<std::int64_t>(bytes(memory.type));
  const auto base = reinterpret_cast<std::uintptr_t>(memory.data);
  begin = base + static_cast<std::uintptr_t>(low * width);
  end = base + static_cast<std::uintptr_t>((high + 1) * width);
  return true;
}

std::vector<std::unique_ptr<Shadow>> make_shadows(std::vector<Memory*>& memories,
                                                  const std::vector<bool>& initialised) {
  struct Range {
    std::uintptr_t begin, end;
    std::size_t which;
  };
  std::vector<Range> ranges;
  for (std::size_t i = 0; i < memories.size(); ++i) {
    Range range{0, 0, i};
    if (span(*memories[i], range.begin, range.end)) ranges.push_back(range);
  }
  std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) { return a.begin < b.begin; });
  std::vector<std::unique_ptr<Shadow>> shadows;
  for (const auto& range : ranges) {
    if (shadows.empty() || range.begin >= shadows.back()->end) {
      shadows.push_back(std::make_unique<Shadow>());
      shadows.back()->begin = range.begin;
      shadows.back()->granule = 8;
    }
    auto& shadow = *shadows.back();
    shadow.end = std::max(shadow.end, range.end);
    shadow.granule = std::min(shadow.granule, bytes(memories[range.which]->type));
    memories[range.which]->shadow = &shadow;
  }
  for (auto& shadow : shadows)
    shadow->cells.resize((shadow->end - shadow->begin + shadow->granule - 1) / shadow->granule);
  for (const auto& range : ranges) {
    const auto& memory = *memories[range.which];
    if (!initialised[range.which]) continue;
    std::vector<std::int64_t> index(memory.shape.size(), 0);
    for (bool more = true; more;) {
      std::int64_t offset = 0;
      for (std::size_t axis = 0; axis < index.size(); ++axis) offset += index[axis] * memory.strides[axis];
      memory.shadow->at(memory.data + offset * static_cast<std::int64_t>(bytes(memory.type))).initialised = true;
      more = false;
      for (std::size_t axis = index.size(); axis-- > 0 && !more;)
        if (++index[axis] < memory.shape[axis])
          more = true;
        else
          index[axis] = 0;
    }
  }
  return shadows;
}

}  // namespace latile::interpreter
