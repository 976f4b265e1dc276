#include "runtime/CacheLock.h"
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>
#include <utility>

namespace latile::runtime {
namespace {

using Clock = std::chrono::steady_clock;

/// The file may have been removed by its last owner between our open and our lock: then the lock is worth nothing.
bool still_there(int handle, const std::string& path) {
  struct stat ours, theirs;
  return fstat(handle, &ours) == 0 && lstat(path.c_str(), &theirs) == 0 && ours.st_dev == theirs.st_dev &&
         ours.st_ino == theirs.st_ino;
}

std::string owner(int handle) {
  char text[64] = {};
  const ssize_t n = pread(handle, text, sizeof text - 1, 0);
  const std::string name(text, n > 0 ? static_cast<std::size_t>(n) : 0);
  return name.empty() ? "another process" : name.substr(0, name.find('\n'));
}

void sign(int handle) {
  const std::string name = fmt::format("process {}\n", getpid());
  // For people only: a full disk does not matter here.
  if (ftruncate(handle, 0) == 0) [[maybe_unused]]
    const ssize_t n = pwrite(handle, name.data(), name.size(), 0);
}

}  // namespace

CacheLock::CacheLock(CacheLock&& other) noexcept
    : path(std::move(other.path)), handle(std::exchange(other.handle, -1)) {}

CacheLock::~CacheLock() {
  if (handle < 0) return;
  unlink(path.c_str());
  // Said and not left to close(): a child that was forked meanwhile has the file open too.
  flock(handle, LOCK_UN);
  close(handle);
}

CacheLock CacheLock::acquire(const std::string& path, std::chrono::milliseconds limit, std::string& why) {
  const Clock::time_point end = Clock::now() + limit;
  std::chrono::milliseconds nap(1);
  int handle = -1;
  for (;;) {
    if (handle < 0) handle = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (handle < 0) return {};
    if (flock(handle, LOCK_EX | LOCK_NB) == 0) {
      if (still_there(handle, path)) {
        sign(handle);
        return {path, handle};
      }
    } else if (errno == EWOULDBLOCK || errno == EINTR) {
      if (Clock::now() >= end) {
        why = fmt::format("{} has held {} for {} ms", owner(handle), path, limit.count());
        close(handle);
        return {};
      }
      std::this_thread::sleep_for(nap);
      nap = std::min(nap * 2, std::chrono::milliseconds(20));
      if (still_there(handle, path)) continue;
    } else {  // a file system without locks
      close(handle);
      return {};
    }
    close(handle);
    handle = -1;
  }
}

}  // namespace latile::runtime
