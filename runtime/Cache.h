// Compiled plans on disk, shared by processes. An entry is one file, named by the hash of its key:
//   magic, format version, lengths, XXH3-128 of all that follows; then key, facts (JSON), binary.
// It is written under a temporary name, synced, and renamed, so a reader sees a whole entry or none. What is corrupt,
// truncated, foreign, or writable by other users is never loaded. A time stamp says when it was last used; entries used
// longest ago go when the folder has grown over its limit.
#pragma once
#include "runtime/Artifact.h"
#include "runtime/CacheLock.h"
#include <functional>
#include <mutex>
#include <string>

namespace latile::runtime {

/// Changes with the file layout and with the calling convention of kernels; part of every key.
inline constexpr std::uint32_t kCacheFormat = 2;

/// What tells entries apart: the format, the compiler's fingerprint, and the text of a specialisation.
std::string cache_key(const std::string& fingerprint, const std::string& specialisation,
                      std::uint32_t format = kCacheFormat);

class Cache {
public:
  using Log = std::function<void(int level, const std::string& text)>;
  /// `folder` empty: no cache. Nothing is touched before the first use.
  Cache(std::string folder, Log log);

  /// False when there is no usable entry for exactly this key. `again`: what is wrong with it was logged before.
  bool load(const std::string& key, Artifact& artifact, bool again = false) const;
  /// To be held while this key is compiled and stored: other processes wait for it, then find the entry. Waits at most
  /// lock_limit, and not at all where the folder takes no files; then it is not held, and the caller compiles anyway.
  CacheLock lock(const std::string& key);
  /// Best effort: a failure is logged, once.
  void store(const std::string& key, const Artifact& artifact);
  /// Hex digits that name the key's file.
  static std::string digest(const std::string& key);
  /// The folder that contexts use by default; empty when there is none.
  static std::string default_folder();
  std::string path(const std::string& key) const;

  /// Longer than any compilation takes, far shorter than anyone's patience with a process that was stopped.
  std::chrono::milliseconds lock_limit{30'000};

private:
  void make_folder() const;
  bool write(const std::string& key, const Artifact& artifact, std::string& why);

  std::string folder;
  Log log;
  std::mutex mutex;
  bool complained = false, swept = false;
};

/// The key of an entry, read without the rest: what it was compiled from, as JSON. Empty: there is none to be read.
std::string entry_key(const std::string& path);
/// Reads an entry in full: whether it is whole and lies under its key's name. Empty, or why it would not be loaded.
std::string verify_entry(const std::string& path);

}  // namespace latile::runtime
