// Kernels written as LLVM IR, compiled for the emulator and run.
#pragma once
#include "runtime/emulator/Emulator.h"
#include "tests/host/Loaded.h"
#include <cstring>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

namespace latile::emulator {

/// Compiles LLVM IR text. A line that ends in `;@tile.load:3` gets that place. Empty result: `failure` says why.
std::string compile_text(const std::string& text, std::string& failure);

/// Text with one piece replaced, which must be there exactly once.
std::string changed(std::string text, const std::string& from, const std::string& to);

class Kernel {
public:
  /// The first kernel of the text; a text that does not compile fails the test.
  explicit Kernel(const std::string& text);

  int threads = 32;
  std::int64_t blocks = 1;
  std::size_t shared = 0;
  Options options;

  Result run(Memory&, std::vector<std::uint64_t> parameters) const;

private:
  std::string name_;
  std::unique_ptr<Loaded> loaded_;
  const EmulatedKernel* kernel_ = nullptr;
};

/// A tensor in host memory that is registered as one of the device.
template <class T> struct Tensor {
  Tensor(Memory& memory, const std::string& name, std::size_t count) : data(count) {
    memory.add(name, data.data(), count * sizeof(T), sizeof(T));
  }
  template <class F>
  Tensor(Memory& memory, const std::string& name, std::size_t count, F fill) : Tensor(memory, name, count) {
    for (std::size_t i = 0; i < count; ++i) data[i] = static_cast<T>(fill(i));
    memory.mark_written(data.data(), count * sizeof(T));
  }
  std::uint64_t address() const { return reinterpret_cast<std::uint64_t>(data.data()); }
  std::vector<T> data;
};

/// All texts of a result, for messages.
std::string texts(const Result&);

float from_bf16(std::uint16_t);
std::uint16_t to_bf16(float);  ///< of values that a bfloat16 holds
std::uint16_t to_f16(float);   ///< of integers up to 2048

}  // namespace latile::emulator
