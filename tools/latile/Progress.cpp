#include "tools/latile/Progress.h"
#include <cstdio>
#include <fmt/format.h>
#include <unistd.h>

namespace latile {

Progress::Progress(std::size_t total, bool forced) : total(total), terminal(::isatty(2) != 0), forced(forced) {}

Progress::~Progress() { clear(); }

void Progress::step(const std::string& what) {
  const std::lock_guard guard(lock);
  ++done;
  if (terminal) {
    fmt::print(stderr, "\r\x1b[K[{}/{}] {}", done, total, what.substr(0, 70));
    shown = true;
  } else if (forced) {
    fmt::print(stderr, "[{}/{}] {}\n", done, total, what);
  }
  std::fflush(stderr);
}

void Progress::clear() {
  if (shown) fmt::print(stderr, "\r\x1b[K");
  shown = false;
}

}  // namespace latile
