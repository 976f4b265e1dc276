// Threads that share the items of a launch: the context's own pool, and the caller's team with its barrier.
#pragma once
#include "latile/latile.h"
#include "runtime/Artifact.h"
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace latile::runtime {

/// One kernel over its grid.
struct Launch {
  HostKernel entry = nullptr;
  KernelArguments arguments = {};
  std::int64_t items = 0;
  std::int64_t grain = 1;               ///< items taken at a time
  const std::int64_t* order = nullptr;  ///< of the outermost axis; null: as it comes
  std::int64_t inner = 1;               ///< items per index of the outermost axis
};

/// The launches of one run, in order, and the scratch of its threads. Lives in the caller's workspace.
struct Job {
  const Launch* launches = nullptr;
  int count = 0;
  int parts = 1;  ///< arenas that there are
  char* arenas = nullptr;
  std::size_t arena_stride = 0;
  void* arena(int thread) const { return arenas + static_cast<std::size_t>(thread) * arena_stride; }
};

/// Takes items until there are none left.
void work(const Launch& launch, std::atomic<std::int64_t>& next, void* arena);

/// Spins for a moment, then sleeps. All memory written before wait() in any thread is seen after it in all.
class Barrier {
public:
  explicit Barrier(int threads) : threads(threads) {}
  void wait();

private:
  const int threads;
  alignas(64) std::atomic<int> arrived = 0;
  alignas(64) std::atomic<std::uint32_t> generation = 0;
};

/// Threads of a context, and the calling one. Runs of several callers share them: nobody waits for another's run.
class Pool {
public:
  /// `threads` counts the calling one.
  explicit Pool(int threads);
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;
  int threads() const { return static_cast<int>(workers.size()) + 1; }
  void run(const Job& job);

private:
  struct Open;
  void serve();
  void launch(const Job& job, const Launch& launch);
  Open* joinable() const;

  std::mutex mutex;
  std::condition_variable wake, left;
  Open* open = nullptr;  ///< list of the launches under way, on their callers' stacks
  std::atomic<std::uint32_t> posted = 0;
  bool stopping = false;
  std::vector<std::thread> workers;
};

}  // namespace latile::runtime

/// The caller's threads.
struct latile_team {
  explicit latile_team(int threads) : threads(threads), barrier(threads) {}
  const int threads;
  latile::runtime::Barrier barrier;
  latile::runtime::Job job;
  latile_error error = {sizeof(latile_error), 0, 0, ""};
  alignas(64) std::atomic<std::int64_t> next[2] = {0, 0};
};
