// NVRTC, NVIDIA's compiler for CUDA C++ as a library. Loaded when a kernel in CUDA C++ is first compiled or asked for:
// the file that LATILE_NVRTC names, or else libnvrtc.so.13, .12 or libnvrtc.so where the loader or /usr/local/cuda has
// it. It needs no GPU. From any thread.
#pragma once
#include "runtime/ChosenLibrary.h"
#include <memory>
#include <string>
#include <vector>

namespace latile::nvrtc {

struct Source {
  std::string name;  ///< of the file, in messages
  std::string text;
  int capability = 80;  ///< of the chip that the PTX is for: 90
  std::vector<std::string> options;
};

class Library {
public:
  /// The process's; null with the reason in `why`. The same answer at each call.
  static std::shared_ptr<const Library> get(std::string& why);
  /// Another file from now on, for tests; "" as at the start of the process.
  static void use(const std::string& file);

  /// PTX, which the drivers of `version` and of later versions take. False: `failure` has the compiler's words.
  bool compile(const Source&, std::string& ptx, std::string& failure) const;

  std::string file;     ///< it was loaded from
  std::string version;  ///< "13.0"

private:
  Library() = default;
  static std::shared_ptr<const Library> open(const std::string& file, std::string& why);
  static runtime::ChosenLibrary<Library>& chosen();
  struct Functions;
  std::shared_ptr<const Functions> functions;
  std::string include;  ///< of the toolkit that it belongs to; empty: not found
};

}  // namespace latile::nvrtc
