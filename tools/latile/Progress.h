// One line on standard error that says how far long work is.
#pragma once
#include <mutex>
#include <string>

namespace latile {

class Progress {
public:
  /// forced: also where standard error is no terminal, one line a step.
  Progress(std::size_t total, bool forced);
  ~Progress();
  /// From any thread.
  void step(const std::string& what);
  /// Takes the line away, so that something else can be printed.
  void clear();

private:
  std::mutex lock;
  std::size_t total, done = 0;
  bool terminal, forced, shown = false;
};

}  // namespace latile
