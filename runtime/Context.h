// What plans share: cache, pool, loaded code, the level of the CPU.
#pragma once
#include "runtime/Bundle.h"
#include "runtime/Cache.h"
#include "runtime/Compiler.h"
#include "runtime/Failure.h"
#include "runtime/Program.h"
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace latile::runtime {

class Context {
public:
  explicit Context(const latile_context_desc& desc);

  /// Code for a specialisation and where it came from.
  struct Found {
    std::shared_ptr<const Code> code;
    const char* source = "";  ///< "memory", "bundle", "cache", "compiler"
    std::string key;          ///< its digest
    std::vector<StageTime> stages;
  };
  /// `fits` says whether code can serve the plan (empty) or why not; a cache entry that does not is replaced.
  /// `device`: null for the host.
  Found find(const Specialisation& specialisation, const std::shared_ptr<Device>& device,
             const std::function<std::string(const Code&)>& fits);

  const std::vector<std::string>& operators() const { return names; }
  const std::string& operator_json(std::size_t index);
  /// What describes plans: the process's compiler, or without one the context's bundles. Throws NO_COMPILER when there
  /// is neither.
  Compiler& compiler();
  /// Throws BAD_FILE.
  void add_bundle(const std::string& path);
  /// Null: no such bundle. Lives as long as the context.
  const char* bundle_json(std::size_t index);
  void say(int level, const std::string& text) const;
  /// The most threads that a run is shared by: the pool's, or without one what a caller may bring.
  int thread_limit() const;

  /// The device, made at its first use and kept; null for the host. Throws NO_DEVICE.
  std::shared_ptr<Device> device(latile_device which);
  bool checks_device_indices() const { return check_indices; }

  const HostIsa isa;
  Pool pool;
  Bundles bundles;

private:
  /// One key's code; the mutex makes a second plan of the same key wait for the first one's compilation.
  struct Entry {
    std::mutex mutex;
    std::weak_ptr<const Code> code;
  };
  std::shared_ptr<Entry> entry(const std::string& key);

  void (*log)(void*, std::int32_t, const char*);
  void* log_user;
  Compiler* installed;
  Cache cache;
  std::vector<std::string> names;
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<Entry>> entries;
  std::vector<std::unique_ptr<std::string>> rows;
  std::vector<std::unique_ptr<std::string>> bundle_texts;
  bool check_indices;
  std::mutex device_mutex;
  std::map<std::pair<std::int32_t, std::int32_t>, std::shared_ptr<Device>> devices;
};

}  // namespace latile::runtime

struct latile_context {
  std::shared_ptr<latile::runtime::Context> self;
};
