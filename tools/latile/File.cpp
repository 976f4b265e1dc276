#include "tools/latile/File.h"
#include "tools/latile/UserError.h"
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

namespace latile {
namespace {

[[noreturn]] void cannot_write(const std::string& path, int code) {
  throw UserError(fmt::format("{}: cannot be written: {}", path, std::strerror(code)));
}

/// A file under a temporary name until commit(); otherwise it goes with the object.
class Replacement {
public:
  Replacement(std::string target, const std::string& content) : path(std::move(target)), temporary(path + ".XXXXXX") {
    struct stat info{};
    // rename() onto a folder fails only at the end, when other files may be in place already.
    if (::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) cannot_write(path, EISDIR);
    const int file = ::mkstemp(temporary.data());
    if (file < 0) cannot_write(path, errno);
    const mode_t mask = ::umask(0);
    ::umask(mask);
    const bool good = write_all(file, content) && ::fchmod(file, 0666 & ~mask) == 0 && ::fsync(file) == 0;
    const int code = errno;
    if (::close(file) == 0 && good) return;
    ::unlink(temporary.c_str());
    cannot_write(path, good ? errno : code);
  }
  Replacement(Replacement&& other) noexcept
      : path(std::move(other.path)), temporary(std::exchange(other.temporary, {})) {}
  ~Replacement() {
    if (!temporary.empty()) ::unlink(temporary.c_str());
  }
  void commit() {
    if (::rename(temporary.c_str(), path.c_str()) != 0) cannot_write(path, errno);
    temporary.clear();
  }

private:
  static bool write_all(int file, const std::string& content) {
    for (std::size_t done = 0; done < content.size();) {
      const ssize_t n = ::write(file, content.data() + done, content.size() - done);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return false;
      done += static_cast<std::size_t>(n);
    }
    return true;
  }
  std::string path, temporary;
};

}  // namespace

InputFile::InputFile(std::string name) : path(std::move(name)) {
  handle = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (handle < 0) refuse(fmt::format("cannot be opened: {}", std::strerror(errno)));
  struct stat info{};
  if (::fstat(handle, &info) != 0 || !S_ISREG(info.st_mode)) {
    ::close(handle);
    refuse("is not a regular file");
  }
  bytes = static_cast<std::uint64_t>(info.st_size);
}

InputFile::~InputFile() { ::close(handle); }

void InputFile::read(std::uint64_t offset, void* data, std::size_t count) const {
  for (std::size_t done = 0; done < count;) {
    const ssize_t n = ::pread(handle, static_cast<char*>(data) + done, count - done, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) refuse(fmt::format("cannot be read: {}", std::strerror(errno)));
    if (n == 0) refuse("cannot be read to its end");
    done += static_cast<std::size_t>(n);
  }
}

void InputFile::refuse(const std::string& why) const { throw UserError(fmt::format("{}: {}", path, why)); }

std::string read_file(const std::string& path) {
  const InputFile file(path);
  std::string text(file.size(), '\0');
  file.read(0, text.data(), text.size());
  return text;
}

void write_files(const std::vector<std::pair<std::string, std::string>>& files) {
  std::vector<Replacement> all;
  all.reserve(files.size());
  for (const auto& [path, content] : files) all.emplace_back(path, content);
  for (Replacement& file : all) file.commit();
}

void write_file(const std::string& path, const std::string& content) { write_files({{path, content}}); }

}  // namespace latile
