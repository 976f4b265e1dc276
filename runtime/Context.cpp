#include "runtime/Context.h"
#include "runtime/Describe.h"
#include "runtime/HostIsa.h"
#include <algorithm>
#include <atomic>
#include <chrono>
#include <sched.h>
#include <thread>

namespace latile {
namespace {
std::atomic<Compiler*> the_compiler = nullptr;
}
void set_compiler(Compiler* compiler) { the_compiler = compiler; }
Compiler* installed_compiler() { return the_compiler; }
}  // namespace latile

namespace latile::runtime {
namespace {

constexpr std::int32_t kMaxThreads = 1024;

int usable_cpus() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

int pool_threads(std::int32_t wanted) {
  if (wanted < -1 || wanted > kMaxThreads)
    fail(LATILE_BAD_ARGUMENT, "latile_context_desc.host_threads is {}; give -1 (one a CPU) to {}", wanted, kMaxThreads);
  return wanted == -1 ? std::min(usable_cpus(), static_cast<int>(kMaxThreads)) : std::max(1, static_cast<int>(wanted));
}

class Stopwatch {
public:
  double lap() {
    const auto now = std::chrono::steady_clock::now();
    const double ms = std::chrono::duration<double, std::milli>(now - last).count();
    last = now;
    return ms;
  }

private:
  std::chrono::steady_clock::time_point last = std::chrono::steady_clock::now();
};

}  // namespace

Context::Context(const latile_context_desc& desc)
    : isa(HostIsa::native()), pool(pool_threads(desc.host_threads)), log(desc.log), log_user(desc.log_user),
      installed(installed_compiler()), cache(desc.cache_dir != nullptr ? desc.cache_dir : Cache::default_folder(),
                                             [this](int level, const std::string& text) { say(level, text); }),
      check_indices((desc.flags & LATILE_CHECK_DEVICE_INDICES) != 0) {
  if ((desc.flags & ~LATILE_CHECK_DEVICE_INDICES) != 0)
    fail(LATILE_UNSUPPORTED, "latile_context_desc.flags is {:#x}; only {:#x} is known", desc.flags,
         LATILE_CHECK_DEVICE_INDICES);
  if (const std::string complaint = host_isa_complaint(); !complaint.empty()) say(LATILE_LOG_WARNING, complaint);
  if (installed != nullptr) names = installed->operators();
  rows.resize(names.size());
}

std::shared_ptr<Device> Context::device(latile_device which) {
  if (which.type == LATILE_CPU) {
    if (which.id == 0) return nullptr;
    fail(LATILE_NO_DEVICE, "there is no CPU device {}; the host is {{LATILE_CPU, 0}}", which.id);
  }
  const std::lock_guard lock(device_mutex);
  std::shared_ptr<Device>& slot = devices[{which.type, which.id}];
  if (!slot) slot = find_device(which);
  return slot;
}

void Context::say(int level, const std::string& text) const {
  if (log != nullptr) log(log_user, level, text.c_str());
}

int Context::thread_limit() const { return pool.threads() > 1 ? pool.threads() : usable_cpus(); }

Compiler& Context::compiler() {
  if (installed != nullptr) return *installed;
  if (!bundles.empty()) return bundles;
  fail(LATILE_NO_COMPILER, "no compiler is linked into this program; open a bundle (latile_bundle_open), or link "
                           "liblatile and not the runtime alone");
}

const std::string& Context::operator_json(std::size_t index) {
  {
    const std::lock_guard lock(mutex);
    if (rows[index]) return *rows[index];
  }
  auto made = std::make_unique<std::string>(runtime::operator_json(operator_row(compiler(), names[index])));
  const std::lock_guard lock(mutex);
  if (!rows[index]) rows[index] = std::move(made);
  return *rows[index];
}

void Context::add_bundle(const std::string& path) {
  auto bundle = std::make_shared<const Bundle>(path);
  const std::lock_guard lock(mutex);
  bundle_texts.push_back(std::make_unique<std::string>(bundle->text()));
  bundles.add(std::move(bundle));
}

const char* Context::bundle_json(std::size_t index) {
  const std::lock_guard lock(mutex);
  return index < bundle_texts.size() ? bundle_texts[index]->c_str() : nullptr;
}

std::shared_ptr<Context::Entry> Context::entry(const std::string& key) {
  const std::lock_guard lock(mutex);
  // Entries whose code is gone are dropped now and then, so that a process that makes many plans does not collect keys.
  if (entries.size() >= 64)
    std::erase_if(entries,
                  [](const auto& each) { return each.second.use_count() == 1 && each.second->code.expired(); });
  std::shared_ptr<Entry>& slot = entries[key];
  if (!slot) slot = std::make_shared<Entry>();
  return slot;
}

Context::Found Context::find(const Specialisation& specialisation, const std::shared_ptr<Device>& device,
                             const std::function<std::string(const Code&)>& fits) {
  Stopwatch watch;
  Found found;
  const std::string key = cache_key(compiler().fingerprint(specialisation), specialisation.json());
  found.key = Cache::digest(key);
  // Two devices of one target share an entry of the cache, but each has loaded the code for itself.
  const std::shared_ptr<Entry> shared =
      entry(device ? fmt::format("{} {}", key, static_cast<void*>(device.get())) : key);
  const std::lock_guard lock(shared->mutex);
  found.source = "memory";
  found.code = shared->code.lock();
  found.stages.push_back({"lookup", watch.lap()});
  if (found.code) return found;

  const auto adopt = [&](Artifact&& artifact) -> std::string {
    auto code = std::make_shared<Code>();
    std::string why;
    // Of a bundle, PTX for an earlier chip may come (Bundles::find).
    const bool earlier = std::string_view(found.source) == "bundle" && artifact.target.starts_with("cuda:") && device &&
                         device->target().starts_with("cuda:");
    if (artifact.target.starts_with("host") ? device != nullptr
                                            : !earlier && (!device || artifact.target != device->target()))
      return fmt::format("it is for {}, not for {}", artifact.target, device ? device->target() : "the host");
    if (device) {
      code->device = device;
      try {
        code->device_module = device->load(artifact);
      } catch (const Failure& failure) {
        // Of a driver that refuses fresh code the caller gets to know its own words.
        if (std::string_view(found.source) != "cache") throw;
        why = failure.text;
      }
    } else {
      code->module = Module::load(artifact.binary, why);
    }
    artifact.binary.clear();
    code->artifact = std::move(artifact);
    if (why.empty()) why = fits(*code);
    found.stages.push_back({"load", watch.lap()});
    if (why.empty()) shared->code = found.code = std::move(code);
    return why;
  };

  found.source = "bundle";
  if (std::unique_ptr<Artifact> bundled = bundles.find(specialisation)) {
    found.stages.push_back({"read bundle", watch.lap()});
    if (const std::string why = adopt(std::move(*bundled)); !why.empty())
      fail(LATILE_BAD_FILE, "{}: the code of a bundle cannot be used: {}; write the bundle again", specialisation.op,
           why);
    return found;
  }

  const auto from_cache = [&](bool again) {
    found.source = "cache";
    Artifact artifact;
    const bool cached = cache.load(key, artifact, again);
    found.stages.push_back({"read cache", watch.lap()});
    if (!cached) return false;
    const std::string why = adopt(std::move(artifact));
    if (!why.empty() && !again)
      say(LATILE_LOG_WARNING, fmt::format("cache entry {} is ignored: {}", cache.path(key), why));
    return why.empty();
  };
  // Without a compiler there is nothing that could vouch for what a cache has.
  if (installed != nullptr && from_cache(false)) return found;
  // Of processes that start together one compiles, and the others find what it has stored.
  const CacheLock turn = installed != nullptr ? cache.lock(key) : CacheLock();
  found.stages.push_back({"wait for other processes", watch.lap()});
  if (installed != nullptr && from_cache(true)) return found;

  found.source = "compiler";
  CompileFailure failure;
  Artifact artifact;
  if (!compiler().compile(specialisation, artifact, failure))
    fail(failure.user_error ? LATILE_BAD_ARGUMENT : LATILE_INTERNAL, "{}", failure.text);
  found.stages.insert(found.stages.end(), artifact.stages.begin(), artifact.stages.end());
  watch.lap();
  Artifact to_store = artifact;
  if (const std::string why = adopt(std::move(artifact)); !why.empty())
    fail(LATILE_INTERNAL, "{}: the compiled code cannot be used: {}", specialisation.op, why);
  cache.store(key, to_store);
  found.stages.push_back({"write cache", watch.lap()});
  return found;
}

}  // namespace latile::runtime
