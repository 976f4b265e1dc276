// Tensors in memory as a program sees them: typed, strided, bounded, and under the sanitizer watched.
#pragma once
#include "dsl/OperatorInfo.h"
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

namespace latile::interpreter {

/// Sentences of one interpretation, each once, at most 100.
class Report {
public:
  void add(const std::string& sentence) { add_once(sentence, sentence); }
  /// Only the first sentence of those with one key.
  void add_once(const std::string& key, const std::string& sentence);
  std::vector<std::string> take() { return std::move(sentences_); }
  bool empty() const { return sentences_.empty(); }

private:
  std::mutex mutex_;
  std::vector<std::string> sentences_;
  std::unordered_map<std::string, bool> seen_;
};

/// What happened to each element of a range of bytes that one or several (overlapping) tensors cover. Programs and
/// launches are counted from 1; 0 is nobody.
struct Shadow {
  struct Cell {
    std::uint32_t write_launch = 0, writer = 0, read_launch = 0, reader = 0;
    bool initialised = false;
  };
  std::uintptr_t begin = 0, end = 0;
  std::size_t granule = 1;  ///< bytes a cell
  std::vector<Cell> cells;
  Cell& at(const void* address) { return cells[(reinterpret_cast<std::uintptr_t>(address) - begin) / granule]; }
};

/// Who accesses memory, for the report.
struct Access {
  const std::string& place;
  std::uint32_t launch = 0, program = 0;
  Report& report;
};

struct Memory {
  std::string name;
  char* data = nullptr;
  ElementType type = ElementType::f64;      ///< of the memory
  ElementType declared = ElementType::f64;  ///< what values are rounded to on the way; f64: nothing
  std::vector<std::int64_t> shape, strides;
  int leading = 0;  ///< axes that a load or store indexes
  Shadow* shadow = nullptr;

  /// Element offset of the leading indices; false, with a sentence, when one lies outside.
  bool locate(const std::int64_t* indices, int count, const Access&, const char* verb, std::int64_t& offset) const;
  /// `rows` by `cols` elements from `offset`, into dense `out`.
  void read(double* out, std::int64_t offset, std::int64_t rows, std::int64_t cols, std::int64_t row_stride,
            std::int64_t col_stride, const Access&) const;
  void write(const double* in, std::int64_t in_row_stride, std::int64_t in_col_stride, std::int64_t offset,
             std::int64_t rows, std::int64_t cols, std::int64_t row_stride, std::int64_t col_stride,
             const Access&) const;
  std::int64_t read_integer(std::int64_t offset, const Access&) const;

private:
  void watch(std::int64_t offset, bool writes, const Access&) const;
  std::string element(std::int64_t offset) const;
};

std::size_t bytes(ElementType);
/// The lowest and the past-the-end byte of a tensor; false when it has no element.
bool span(const Memory&, std::uintptr_t& begin, std::uintptr_t& end);
/// Gives every memory its shadow, one for each group of overlapping tensors. Elements of a memory
/// with `initialised` hold a value from the start.
std::vector<std::unique_ptr<Shadow>> make_shadows(std::vector<Memory*>& memories, const std::vector<bool>& initialised);

}  // namespace latile::interpreter
