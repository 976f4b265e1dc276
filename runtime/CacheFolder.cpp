#include "runtime/CacheFolder.h"
#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fmt/format.h>
#include <limits>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>

namespace latile::runtime {
namespace {

constexpr std::int64_t kStaleSeconds = 24 * 3600, kNanoseconds = 1'000'000'000;
constexpr std::uint64_t kDefaultLimit = std::uint64_t{1} << 30;

bool is_digest(std::string_view name) {
  return name.size() == 32 && name.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

}  // namespace

CacheFolder::CacheFolder(const std::string& folder) {
  std::error_code error;
  std::filesystem::directory_iterator at(folder, error);
  if (error) {
    if (error != std::errc::no_such_file_or_directory) problem = error.message(), exists = true;
    return;
  }
  exists = true;
  for (const std::filesystem::directory_iterator end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    const bool entry = name.ends_with(kEntryEnding) && is_digest(std::string_view(name).substr(0, name.find('.')));
    const bool lock = name.ends_with(kLockEnding) && is_digest(std::string_view(name).substr(0, name.find('.')));
    const bool temporary = name.starts_with('.') && name.ends_with(".tmp");
    struct stat facts;
    if ((!entry && !lock && !temporary) || lstat(at->path().c_str(), &facts) != 0) continue;
    CacheFile file{at->path().string(), temporary ? std::string() : name.substr(0, 32),
                   static_cast<std::uint64_t>(facts.st_size),
                   std::int64_t{facts.st_mtim.tv_sec} * kNanoseconds + facts.st_mtim.tv_nsec};
    (entry ? entries : leftovers).push_back(std::move(file));
  }
  if (error) problem = error.message();
  std::sort(entries.begin(), entries.end(), [](const CacheFile& a, const CacheFile& b) { return a.used < b.used; });
}

std::uint64_t CacheFolder::bytes() const {
  std::uint64_t sum = 0;
  for (const CacheFile& file : entries) sum += file.bytes;
  return sum;
}

std::size_t shrink(const CacheFolder& folder, std::uint64_t limit, const std::string& kept) {
  std::uint64_t sum = folder.bytes();
  std::size_t removed = 0;
  for (const CacheFile& file : folder.entries) {
    if (sum <= limit) break;
    if (file.path == kept) continue;
    // One that another process removed at the same time takes no room either.
    sum -= file.bytes;
    removed += unlink(file.path.c_str()) == 0;
  }
  return removed;
}

void sweep(const CacheFolder& folder) {
  for (const CacheFile& file : folder.leftovers)
    if (file.used / kNanoseconds + kStaleSeconds < std::int64_t{std::time(nullptr)}) unlink(file.path.c_str());
}

std::uint64_t cache_size_limit(std::string& complaint) {
  const char* given = std::getenv("LATILE_CACHE_SIZE");
  if (given == nullptr || *given == 0) return kDefaultLimit;
  const std::string_view text = given;
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  const int shift = unit.empty() ? 0 : unit == "K" ? 10 : unit == "M" ? 20 : unit == "G" ? 30 : -1;
  if (error != std::errc() || shift < 0 || value > std::numeric_limits<std::uint64_t>::max() >> shift) {
    complaint = fmt::format("LATILE_CACHE_SIZE is '{}', which is no number of bytes such as 500M or 2G; ignored", text);
    return kDefaultLimit;
  }
  return value == 0 ? std::numeric_limits<std::uint64_t>::max() : value << shift;
}

}  // namespace latile::runtime
