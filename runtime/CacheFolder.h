// What lies in a cache's folder, for keeping it small and for people.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace latile::runtime {

inline constexpr const char* kEntryEnding = ".latile";
inline constexpr const char* kLockEnding = ".lock";

struct CacheFile {
  std::string path, digest;
  std::uint64_t bytes = 0;
  std::int64_t used = 0;  ///< when it was last loaded or written, nanoseconds since 1970
};

/// Only files with names as the cache gives them: whatever else lies there belongs to someone else.
struct CacheFolder {
  explicit CacheFolder(const std::string& folder);
  std::uint64_t bytes() const;  ///< of the entries

  std::string problem;  ///< why the folder cannot be listed; empty also where there is none
  bool exists = false;
  std::vector<CacheFile> entries;    ///< the one used longest ago first
  std::vector<CacheFile> leftovers;  ///< temporary files and locks, of processes living or dead
};

/// Removes entries, the ones used longest ago first, until the rest has at most `limit` bytes; never the file `kept`.
/// Gives how many.
std::size_t shrink(const CacheFolder&, std::uint64_t limit, const std::string& kept);

/// Removes what writers that died left behind: leftovers that nobody has touched for a day.
void sweep(const CacheFolder&);

/// Bytes that the entries of a folder may have together: LATILE_CACHE_SIZE, a number with K, M or G behind it (powers
/// of 1024), 0: no limit. 1 GiB where it is not set, or no such number, which `complaint` then says.
std::uint64_t cache_size_limit(std::string& complaint);

}  // namespace latile::runtime
