// Compiled plans on disk, shared by processes. An entry is one file, named by the hash of its key:
//   magic, format version, lengths, XXH3-128 of all that follows; then key, facts (JSON), binary.
// It is written under a temporary name, synced, and renamed, so a reader sees a whole entry or none. What is corrupt,
// truncated, foreign, or writable by other users is never loaded.
#pragma once
#include "runtime/Artifact.h"
#include <functional>
#include <mutex>
#include <string>

namespace latile::runtime {

/// Changes with the file layout and with the calling convention of kernels; part of every key.
inline constexpr std::uint32_t kCacheFormat = 1;

class Cache {
public:
  using Log = std::function<void(int level, const std::string& text)>;
  /// `folder` empty: no cache. Nothing is touched before the first use.
  Cache(std::string folder, Log log);

  /// False when there is no usable entry for exactly this key.
  bool load(const std::string& key, Artifact& artifact) const;
  /// Best effort: a failure is logged, once.
  void store(const std::string& key, const Artifact& artifact);
  /// Hex digits that name the key's file.
  static std::string digest(const std::string& key);
  /// The folder that contexts use by default; empty when there is none.
  static std::string default_folder();
  std::string path(const std::string& key) const;

private:
  bool write(const std::string& key, const Artifact& artifact, std::string& why);
  void sweep();

  std::string folder;
  Log log;
  std::mutex mutex;
  bool complained = false, swept = false;
};

}  // namespace latile::runtime
