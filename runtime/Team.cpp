#include "runtime/Team.h"
#include <algorithm>
#include <csignal>

namespace latile::runtime {
namespace {

/// Some tens of microseconds: longer than the gap between two layers' runs, shorter than a scheduler's slice.
constexpr int kSpins = 1000;

void relax() { __builtin_ia32_pause(); }

}  // namespace

void work(const Launch& launch, std::atomic<std::int64_t>& next, void* arena) {
  for (;;) {
    const std::int64_t first = next.fetch_add(launch.grain, std::memory_order_relaxed);
    if (first >= launch.items) return;
    const std::int64_t last = std::min(first + launch.grain, launch.items);
    for (std::int64_t i = first; i < last; ++i) {
      const std::int64_t item =
          launch.order == nullptr ? i : launch.order[i / launch.inner] * launch.inner + i % launch.inner;
      launch.entry(&launch.arguments, item, arena);
    }
  }
}

void Barrier::wait() {
  const std::uint32_t mine = generation.load(std::memory_order_acquire);
  if (arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == threads) {
    arrived.store(0, std::memory_order_relaxed);
    generation.fetch_add(1, std::memory_order_release);
    generation.notify_all();
    return;
  }
  for (int i = 0; i < kSpins; ++i) {
    if (generation.load(std::memory_order_acquire) != mine) return;
    relax();
  }
  while (generation.load(std::memory_order_acquire) == mine) generation.wait(mine, std::memory_order_acquire);
}

/// One launch under way. Everything but `next` is guarded by the pool's mutex.
struct Pool::Open {
  const Job* job;
  const Launch* launch;
  Open* following = nullptr;
  int joined = 1;               ///< threads that ever took part, the caller included: each has its own arena
  std::atomic<int> inside = 0;  ///< workers at it now; changed under the mutex
  alignas(64) std::atomic<std::int64_t> next = 0;
};

Pool::Pool(int threads) {
  // The caller's signals are the caller's: the workers take none.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    for (int i = 1; i < threads; ++i) workers.emplace_back([this] { serve(); });
  } catch (...) {
    // Fewer threads than asked for is a slower pool, not an error.
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Pool::~Pool() {
  {
    const std::lock_guard lock(mutex);
    stopping = true;
    posted.fetch_add(1, std::memory_order_release);
  }
  wake.notify_all();
  for (std::thread& worker : workers) worker.join();
}

void Pool::run(const Job& job) {
  for (int i = 0; i < job.count; ++i) launch(job, job.launches[i]);
}

void Pool::launch(const Job& job, const Launch& launch) {
  Open mine{&job, &launch};
  if (launch.items <= 1 || job.parts <= 1 || workers.empty()) {
    work(launch, mine.next, job.arena(0));
    return;
  }
  {
    const std::lock_guard lock(mutex);
    mine.following = open;
    open = &mine;
    posted.fetch_add(1, std::memory_order_release);
  }
  wake.notify_all();
  work(launch, mine.next, job.arena(0));
  {
    const std::lock_guard lock(mutex);
    Open** link = &open;
    while (*link != &mine) link = &(*link)->following;
    *link = mine.following;
  }
  for (int i = 0; i < kSpins; ++i) {
    if (mine.inside.load(std::memory_order_acquire) == 0) return;
    relax();
  }
  std::unique_lock lock(mutex);
  left.wait(lock, [&] { return mine.inside.load(std::memory_order_acquire) == 0; });
}

Pool::Open* Pool::joinable() const {
  for (Open* each = open; each != nullptr; each = each->following)
    if (each->joined < each->job->parts && each->next.load(std::memory_order_relaxed) < each->launch->items)
      return each;
  return nullptr;
}

void Pool::serve() {
  std::uint32_t seen = 0;
  for (;;) {
    for (int i = 0; i < kSpins && posted.load(std::memory_order_acquire) == seen; ++i) relax();
    std::unique_lock lock(mutex);
    wake.wait(lock, [&] { return posted.load(std::memory_order_relaxed) != seen; });
    seen = posted.load(std::memory_order_relaxed);
    if (stopping) return;
    while (Open* each = joinable()) {
      const int thread = each->joined++;
      ++each->inside;
      lock.unlock();
      work(*each->launch, each->next, each->job->arena(thread));
      lock.lock();
      // The last touch of `each`: its owner may go as soon as it reads 0.
      if (each->inside.fetch_sub(1, std::memory_order_acq_rel) == 1) left.notify_all();
    }
  }
}

}  // namespace latile::runtime
