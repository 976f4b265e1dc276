#include "runtime/Cache.h"
#include "latile/latile.h"
#include "runtime/CacheFolder.h"
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace latile::runtime {
namespace {

struct Header {
  char magic[8];
  std::uint32_t format;
  std::uint32_t reserved;
  std::uint64_t key, facts, binary;  ///< lengths in bytes
  std::uint64_t low, high;           ///< checksum of the three, and of the fields above
};
static_assert(sizeof(Header) == 56);
constexpr char kMagic[8] = {'l', 'a', 't', 'i', 'l', 'e', 'K', '\n'};
constexpr std::uint64_t kMaxEntry = std::uint64_t{1} << 30;

struct File {
  int handle;
  explicit File(int handle) : handle(handle) {}
  ~File() {
    if (handle >= 0) close(handle);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
};

bool read_all(int file, std::string& bytes) {
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t n = read(file, bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    done += static_cast<std::size_t>(n);
  }
  return true;
}

bool write_all(int file, const char* bytes, std::size_t size) {
  for (std::size_t done = 0; done < size;) {
    const ssize_t n = write(file, bytes + done, size - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    done += static_cast<std::size_t>(n);
  }
  return true;
}

XXH128_hash_t checksum(const Header& header, const char* body, std::size_t size) {
  return XXH3_128bits_withSeed(body, size, XXH3_64bits(&header, offsetof(Header, low)));
}

/// Takes an entry apart; null, or why it is refused. `key` empty: any key.
const char* parse(const std::string& file, const std::string& key, Artifact& artifact, std::string* found = nullptr) {
  Header header;
  if (file.size() < sizeof header) return "it is truncated";
  std::memcpy(&header, file.data(), sizeof header);
  if (std::memcmp(header.magic, kMagic, sizeof kMagic) != 0) return "it is no entry of latile's";
  if (header.format != kCacheFormat || header.reserved != 0) return "it has another format version";
  const std::uint64_t size = file.size() - sizeof header;
  if (header.key > size || header.facts > size || header.binary > size ||
      header.key + header.facts + header.binary != size)
    return "it is truncated";
  const char* body = file.data() + sizeof header;
  const XXH128_hash_t sum = checksum(header, body, size);
  if (sum.low64 != header.low || sum.high64 != header.high) return "its checksum is wrong";
  if (found != nullptr)
    found->assign(body, header.key);
  else if (key.size() != header.key || std::memcmp(key.data(), body, key.size()) != 0)
    return "it has another key";
  Artifact read;
  if (!Artifact::from_json(std::string(body + header.key, header.facts), read)) return "its facts cannot be read";
  read.binary.assign(body + header.key + header.facts, header.binary);
  artifact = std::move(read);
  return nullptr;
}

/// An entry is code: it must come from this user or the system, and no one else may have changed it.
const char* read_trusted(const File& file, std::string& bytes) {
  struct stat facts;
  if (fstat(file.handle, &facts) != 0 || !S_ISREG(facts.st_mode)) return "it is no regular file";
  if (facts.st_uid != geteuid() && facts.st_uid != 0) return "it belongs to another user";
  if ((facts.st_mode & (S_IWGRP | S_IWOTH)) != 0) return "other users may write to it";
  if (facts.st_size < 0 || static_cast<std::uint64_t>(facts.st_size) > kMaxEntry) return "it is too large";
  bytes.resize(static_cast<std::size_t>(facts.st_size));
  return read_all(file.handle, bytes) ? nullptr : "it cannot be read";
}

int open_entry(const std::string& path) { return open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK); }

}  // namespace

std::string cache_key(const std::string& fingerprint, const std::string& specialisation, std::uint32_t format) {
  return nlohmann::json(
             {{"format", format}, {"compiler", fingerprint}, {"specialisation", nlohmann::json::parse(specialisation)}})
      .dump();
}

Cache::Cache(std::string folder, Log log) : folder(std::move(folder)), log(std::move(log)) {}

std::string Cache::digest(const std::string& key) {
  const XXH128_hash_t hash = XXH3_128bits(key.data(), key.size());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

std::string Cache::path(const std::string& key) const { return folder + "/" + digest(key) + kEntryEnding; }

std::string Cache::default_folder() {
  if (const char* given = std::getenv("LATILE_CACHE_DIR")) return given;
  if (const char* base = std::getenv("XDG_CACHE_HOME"); base != nullptr && *base == '/')
    return std::string(base) + "/latile";
  if (const char* home = std::getenv("HOME"); home != nullptr && *home == '/')
    return std::string(home) + "/.cache/latile";
  return {};
}

bool Cache::load(const std::string& key, Artifact& artifact, bool again) const {
  if (folder.empty()) return false;
  const std::string name = path(key);
  const File file(open_entry(name));
  if (file.handle < 0) return false;
  std::string bytes;
  const char* why = read_trusted(file, bytes);
  if (why == nullptr) why = parse(bytes, key, artifact);
  if (why != nullptr) {
    if (!again) log(LATILE_LOG_WARNING, fmt::format("cache entry {} is ignored: {}", name, why));
    return false;
  }
  futimens(file.handle, nullptr);  // used now; a folder that may only be read keeps its old stamps
  return true;
}

void Cache::make_folder() const {
  std::error_code error;
  if (std::filesystem::create_directories(folder, error))
    std::filesystem::permissions(folder, std::filesystem::perms::owner_all, error);
}

CacheLock Cache::lock(const std::string& key) {
  if (folder.empty()) return {};
  make_folder();
  std::string why;
  CacheLock lock = CacheLock::acquire(folder + "/" + digest(key) + kLockEnding, lock_limit, why);
  if (!why.empty()) log(LATILE_LOG_WARNING, why + "; this process compiles without waiting longer");
  return lock;
}

void Cache::store(const std::string& key, const Artifact& artifact) {
  if (folder.empty()) return;
  const std::lock_guard lock(mutex);
  std::string why;
  if (write(key, artifact, why)) {
    const CacheFolder now(folder);
    std::string complaint;
    shrink(now, cache_size_limit(complaint), path(key));
    if (!swept) sweep(now);
    if (!swept && !complaint.empty()) log(LATILE_LOG_WARNING, complaint);
    swept = true;
    return;
  }
  if (!complained)
    log(LATILE_LOG_WARNING,
        fmt::format("compiled plans cannot be kept in {}: {}; each process compiles anew", folder, why));
  complained = true;
}

bool Cache::write(const std::string& key, const Artifact& artifact, std::string& why) {
  const auto failed = [&](const char* what) {
    why = fmt::format("{}: {}", what, std::strerror(errno));
    return false;
  };
  make_folder();
  static std::atomic<unsigned> serial = 0;
  const std::string temporary =
      fmt::format("{}/.{}.{}.{}.{}.tmp", folder, digest(key), getpid(), std::time(nullptr), serial++);
  Header header = {};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  header.format = kCacheFormat;
  const std::string facts = artifact.facts_json();
  header.key = key.size(), header.facts = facts.size(), header.binary = artifact.binary.size();
  const std::string body = key + facts + artifact.binary;
  const XXH128_hash_t sum = checksum(header, body.data(), body.size());
  header.low = sum.low64, header.high = sum.high64;

  const File file(open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (file.handle < 0) return failed("no file can be made");
  // Whatever the caller's umask: an entry that others may write to would be refused on loading.
  const bool written = fchmod(file.handle, 0644) == 0 &&
                       write_all(file.handle, reinterpret_cast<const char*>(&header), sizeof header) &&
                       write_all(file.handle, body.data(), body.size()) && fsync(file.handle) == 0;
  if (!written || rename(temporary.c_str(), path(key).c_str()) != 0) {
    failed("an entry cannot be written");
    unlink(temporary.c_str());
    return false;
  }
  const File directory(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory.handle >= 0) fsync(directory.handle);
  return true;
}

std::string entry_key(const std::string& path) {
  const File file(open_entry(path));
  Header header;
  std::string bytes(sizeof header, '\0');
  if (file.handle < 0 || !read_all(file.handle, bytes)) return {};
  std::memcpy(&header, bytes.data(), sizeof header);
  if (std::memcmp(header.magic, kMagic, sizeof kMagic) != 0 || header.key > kMaxEntry) return {};
  struct stat facts;
  if (fstat(file.handle, &facts) != 0 || header.key > static_cast<std::uint64_t>(facts.st_size)) return {};
  bytes.resize(header.key);
  return read_all(file.handle, bytes) ? bytes : std::string();
}

std::string verify_entry(const std::string& path) {
  const File file(open_entry(path));
  if (file.handle < 0) return fmt::format("it cannot be opened: {}", std::strerror(errno));
  std::string bytes, key;
  Artifact artifact;
  const char* why = read_trusted(file, bytes);
  if (why == nullptr) why = parse(bytes, {}, artifact, &key);
  if (why != nullptr) return why;
  const std::string name = std::filesystem::path(path).filename().string();
  return name == Cache::digest(key) + kEntryEnding ? "" : "it lies under the name of another key";
}

}  // namespace latile::runtime
