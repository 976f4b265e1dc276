// One process at a time compiles a key; the others wait for what it stores.
#pragma once
#include <chrono>
#include <string>

namespace latile::runtime {

/// A lock on a file, held by the process that has it open. The system releases it when that process ends in whatever
/// way, so nobody waits for the dead; and nobody waits longer than a limit for the living.
class CacheLock {
public:
  CacheLock() = default;
  CacheLock(CacheLock&& other) noexcept;
  CacheLock& operator=(CacheLock&&) = delete;
  ~CacheLock();

  /// Waits for the lock `path`, whose folder exists, for at most `limit`. Not held afterwards: the folder takes no file
  /// (`why` is empty then: the caller goes on without), or the time is over (`why` says whom it waited for).
  static CacheLock acquire(const std::string& path, std::chrono::milliseconds limit, std::string& why);
  bool held() const { return handle >= 0; }

private:
  CacheLock(std::string path, int handle) : path(std::move(path)), handle(handle) {}
  std::string path;
  int handle = -1;
};

}  // namespace latile::runtime
