#include "codegen/host/Host.h"
#include "lld/Common/Driver.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <mutex>
#include <thread>
#include <unistd.h>

LLD_HAS_DRIVER(elf)

namespace latile::host {

namespace {

/// What is written to a pipe, read by a thread of its own that takes none of the process's signals.
class Collector {
public:
  Collector() {
    if (pipe2(ends, O_CLOEXEC) != 0) return;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    reader = std::thread([this] {
      char bytes[1 << 16];
      for (ssize_t n; (n = read(ends[0], bytes, sizeof bytes)) != 0;) {
        if (n > 0)
          text.append(bytes, static_cast<std::size_t>(n));
        else if (errno != EINTR)
          return;
      }
    });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  ~Collector() {
    (void)all();
    if (ends[0] >= 0) close(ends[0]);
  }
  bool is_open() const { return ends[1] >= 0; }
  std::string path() const { return "/proc/self/fd/" + std::to_string(ends[1]); }
  /// To be called when everybody else has closed the pipe.
  std::string all() {
    if (ends[1] >= 0) close(ends[1]);
    ends[1] = -1;
    if (reader.joinable()) reader.join();
    return std::move(text);
  }

private:
  int ends[2] = {-1, -1};
  std::thread reader;
  std::string text;
};

}  // namespace

bool link_shared(const std::string& object, std::string& shared, std::string& failure) {
  llvm::SmallString<128> in;
  int fd = -1;
  if (llvm::sys::fs::createTemporaryFile("latile", "o", fd, in)) {
    failure = "no temporary file can be written for the linker";
    return false;
  }
  llvm::scope_exit clean([&] { llvm::sys::fs::remove(in); });
  {
    llvm::raw_fd_ostream file(fd, true);
    file << object;
    file.close();
    if (file.has_error()) {
      failure = "writing " + in.str().str() + " failed: " + file.error().message();
      file.clear_error();
      return false;
    }
  }
  static std::mutex one_at_a_time;  // lld keeps its state in globals
  std::lock_guard lock(one_at_a_time);
  // Beside a regular file lld writes a temporary one, and for its removal LLVM takes over the process's signals. Into a
  // pipe it writes what it has in memory. Threads of lld's own would stay when it is done.
  Collector output;
  if (!output.is_open()) {
    failure = "no pipe can be opened for the linker";
    return false;
  }
  const std::string out = output.path();
  std::string messages;
  llvm::raw_string_ostream stream(messages);
  const char* arguments[] = {"ld.lld", "-shared",    "--no-undefined",  "-z",
                             "now",    "-Bsymbolic", "--build-id=none", "--threads=1",
                             "-o",     out.c_str(),  in.c_str()};
  lld::Result result = lld::lldMain(arguments, stream, stream, {{lld::Gnu, &lld::elf::link}});
  shared = output.all();
  if (result.retCode != 0) {
    failure = "lld: " + messages;
    return false;
  }
  if (shared.empty()) {
    failure = "lld left no output";
    return false;
  }
  return true;
}

}  // namespace latile::host
