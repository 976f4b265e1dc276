// Threads: the context's pool, a team of foreign threads, many callers at once; the same bits from all of them.
#include "Toy.h"
#include <condition_variable>
#include <cstring>
#include <deque>
#include <doctest/doctest.h>
#include <functional>
#include <future>
#include <mutex>
#include <thread>

using namespace latile::test;
using latile::api::Context;
using latile::api::Plan;
using latile::api::PlanDescription;
using latile::api::Team;

namespace {

/// An engine's own pool, which knows nothing of latile.
class ForeignPool {
public:
  explicit ForeignPool(int threads) {
    for (int i = 0; i < threads; ++i)
      workers.emplace_back([this, i] {
        for (;;) {
          std::function<void(int)> task;
          {
            std::unique_lock lock(mutex);
            wake.wait(lock, [&] { return stopping || tasks[static_cast<std::size_t>(i)].size() > 0; });
            if (tasks[static_cast<std::size_t>(i)].empty()) return;
            task = std::move(tasks[static_cast<std::size_t>(i)].front());
            tasks[static_cast<std::size_t>(i)].pop_front();
          }
          task(i);
        }
      });
  }
  ~ForeignPool() {
    {
      const std::lock_guard lock(mutex);
      stopping = true;
    }
    wake.notify_all();
    for (std::thread& worker : workers) worker.join();
  }
  /// Runs task(i) on every thread i and waits for all.
  void everywhere(const std::function<void(int)>& task) {
    std::vector<std::promise<void>> done(workers.size());
    {
      const std::lock_guard lock(mutex);
      for (std::size_t i = 0; i < workers.size(); ++i)
        tasks[i].push_back([&, i](int thread) {
          task(thread);
          done[i].set_value();
        });
    }
    wake.notify_all();
    for (auto& each : done) each.get_future().wait();
  }

private:
  std::mutex mutex;
  std::condition_variable wake;
  std::deque<std::function<void(int)>> tasks[16];
  bool stopping = false;
  std::vector<std::thread> workers;
};

Problem problem(bool cut = false) {
  Problem p;
  if (cut)
    p.B = 5, p.T = 70, p.options = {{"cut", "true"}};
  else
    p.borders = {0, 1, 90, 93, 93, 120}, p.T = 120, p.initial = p.final = true;
  p.make();
  return p;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

}  // namespace

TEST_CASE("a team of foreign threads, larger or smaller than the work, gives the same bits as one thread") {
  for (bool cut : {false, true}) {
    Context context(0, "");
    Problem alone = problem(cut);
    PlanDescription description("toy", "prefill");
    alone.describe(description);
    const Plan plan(context, description);
    auto workspace = workspace_of(plan, alone.dims);
    plan.run(alone.data, alone.dims, alone.strides, workspace);
    for (int threads : {1, 2, 5, 12}) {
      ForeignPool pool(threads);
      const Team team(threads);
      for (int repetition = 0; repetition < 20; ++repetition) {
        Problem p = problem(cut);
        auto scratch = workspace_of(plan, p.dims);
        std::atomic<int> failed = 0;
        pool.everywhere([&](int thread) {
          try {
            plan.run_part(p.data, p.dims, p.strides, scratch, team, thread);
          } catch (const latile::api::Error&) { ++failed; }
        });
        REQUIRE(failed == 0);
        REQUIRE(same_bits(p.o, alone.o));
        REQUIRE(same_bits(p.S1, alone.S1));
      }
      // Bad arguments reach every thread, nothing is written, and the team is fit for the next run.
      Problem p = problem(cut);
      auto scratch = workspace_of(plan, p.dims);
      p.dims[4] = -1;
      std::atomic<int> refused = 0;
      pool.everywhere([&](int thread) {
        try {
          plan.run_part(p.data, p.dims, p.strides, scratch, team, thread);
        } catch (const latile::api::Error& error) {
          refused += error.status() == LATILE_BAD_SHAPE && std::strstr(error.what(), "dimension B is -1") != nullptr;
        }
      });
      CHECK(refused == threads);
      CHECK(p.untouched());
    }
  }
}

TEST_CASE("an index outside the team fails at once") {
  Context context(0, "");
  Problem p = problem();
  PlanDescription description("toy", "prefill");
  p.describe(description);
  const Plan plan(context, description);
  auto workspace = workspace_of(plan, p.dims);
  const Team team(2);
  for (int thread : {-1, 2})
    CHECK_THROWS_WITH(plan.run_part(p.data, p.dims, p.strides, workspace, team, thread),
                      doctest::Contains("is not in the team; its threads are 0 to 1"));
}

TEST_CASE("many threads make and run plans on one context with one pool") {
  const Folder folder;
  Context context(4, folder.path.c_str());
  const Problem expected = [] {
    Context alone(1, "");
    Problem p = problem();
    PlanDescription description("toy", "prefill");
    p.describe(description);
    const Plan plan(alone, description);
    auto workspace = workspace_of(plan, p.dims);
    plan.run(p.data, p.dims, p.strides, workspace);
    return p;
  }();
  const int before = toy().compilations;
  std::atomic<int> wrong = 0;
  std::vector<std::thread> callers;
  for (int c = 0; c < 6; ++c)
    callers.emplace_back([&] {
      Problem p = problem();
      PlanDescription description("toy", "prefill");
      p.describe(description);
      const Plan plan(context, description);
      auto workspace = workspace_of(plan, p.dims);
      for (int i = 0; i < 50; ++i) {
        plan.run(p.data, p.dims, p.strides, workspace);
        wrong += !same_bits(p.o, expected.o) || !same_bits(p.S1, expected.S1);
      }
    });
  for (std::thread& caller : callers) caller.join();
  CHECK(wrong == 0);
  CHECK(toy().compilations == before + 1);
}

TEST_CASE("a plan outlives its context; references count") {
  latile_plan* plan = nullptr;
  Problem p = problem();
  {
    Context context(3, "");
    PlanDescription description("toy", "prefill");
    p.describe(description);
    const latile_plan_desc desc = description.get();
    REQUIRE(latile_plan_create(context.get(), &desc, &plan, nullptr) == LATILE_OK);
  }
  latile_plan_retain(plan);
  latile_plan_release(plan);
  std::size_t bytes = 0, alignment = 0;
  REQUIRE(latile_plan_workspace(plan, p.dims.data(), &bytes, &alignment, nullptr) == LATILE_OK);
  CHECK(alignment == 16);
  std::vector<std::byte> workspace(bytes);
  const latile_args args = {sizeof args, p.data.data(),    p.dims.data(),    p.strides.data(),
                            nullptr,     workspace.data(), workspace.size(), nullptr};
  CHECK(latile_run(plan, &args, nullptr) == LATILE_OK);
  CHECK(p.error() < 1e-4);
  latile_plan_release(plan);
}
