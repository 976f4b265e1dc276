// Sixteen threads compile at once, and the process is afterwards as it was: signal handlers, masks, stacks.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include "compiler/Compile.h"
#include "latile/latile.hpp"
#include "latile/table.h"
#include "runtime/EmulatedDevice.h"
#include <array>
#include <atomic>
#include <barrier>
#include <cmath>
#include <csignal>
#include <cstring>
#include <doctest/doctest.h>
#include <functional>
#include <optional>
#include <pthread.h>
#include <thread>

using namespace latile;

namespace {

constexpr int kThreads = 16;

void mine(int) {}
void mine_too(int, siginfo_t*, void*) {}

/// Every signal has a handler of the process's own, of both kinds in turn; the destructor puts the old ones back.
class OwnHandlers {
public:
  OwnHandlers() {
    for (int s = 1; s < 32; ++s) {
      if (s == SIGKILL || s == SIGSTOP) continue;
      struct sigaction own = {};
      if (s % 2 == 0) {
        own.sa_handler = mine;
        own.sa_flags = SA_RESTART;
      } else {
        own.sa_sigaction = mine_too;
        own.sa_flags = SA_SIGINFO | SA_ONSTACK;
      }
      sigaddset(&own.sa_mask, SIGUSR1);
      REQUIRE(sigaction(s, &own, &before[static_cast<std::size_t>(s)]) == 0);
    }
    pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    sigaltstack(nullptr, &stack);
  }
  ~OwnHandlers() {
    for (int s = 1; s < 32; ++s)
      if (s != SIGKILL && s != SIGSTOP) sigaction(s, &before[static_cast<std::size_t>(s)], nullptr);
  }
  /// Names of what has changed.
  std::string changed() const {
    std::string list;
    for (int s = 1; s < 32; ++s) {
      if (s == SIGKILL || s == SIGSTOP) continue;
      struct sigaction now = {};
      REQUIRE(sigaction(s, nullptr, &now) == 0);
      const bool own = s % 2 == 0 ? now.sa_handler == mine && (now.sa_flags & SA_RESTART) != 0
                                  : now.sa_sigaction == mine_too && (now.sa_flags & SA_ONSTACK) != 0;
      if (!own || sigismember(&now.sa_mask, SIGUSR1) != 1 || sigismember(&now.sa_mask, SIGUSR2) != 0)
        list += std::string(" ") + sigabbrev_np(s);
    }
    sigset_t mask_now;
    pthread_sigmask(SIG_SETMASK, nullptr, &mask_now);
    for (int s = 1; s < 32; ++s)
      if (sigismember(&mask_now, s) != sigismember(&mask, s)) list += std::string(" mask of ") + sigabbrev_np(s);
    stack_t stack_now;
    sigaltstack(nullptr, &stack_now);
    if (stack_now.ss_sp != stack.ss_sp || stack_now.ss_flags != stack.ss_flags) list += " stack of signals";
    return list;
  }

private:
  std::array<struct sigaction, 32> before{};
  sigset_t mask{};
  stack_t stack{};
};

/// What a thread compiles: its index picks the operator, the type and the sizes.
Specialisation specialisation(int which, const std::string& device) {
  Specialisation s;
  const char* const operators[] = {"simple_gla", "linear_attn"};
  s.op = operators[which % 2];
  s.mode = which % 4 < 2 ? Mode::prefill : Mode::recurrent;
  s.io = which % 3 == 0 ? ElementType::bf16 : ElementType::f32;
  s.extents = {{"K", 16 + 8 * (which / 4)}, {"V", 16}};
  s.chunk = s.mode == Mode::prefill ? 16 : 0;
  s.isa.level = "x86-64-v3";
  s.device = device;
  for (const char* name : {"q", "k", "v", "o"}) s.tensors.push_back({name, s.io, 3});
  return s;
}

Artifact compiled(int which, const std::string& device) {
  const Specialisation s = specialisation(which, device);
  Artifact artifact;
  CompileFailure failure;
  if (!compile(*find_operator(s.op), s, artifact, failure)) throw std::runtime_error(failure.text);
  return artifact;
}

void describe_plan(api::PlanDescription& d, std::int64_t K) {
  d.dim("H", 1, 8).dim("HV", 1, 8).dim("K", K).dim("V", 16).dim("B", 1, 8).dim("T", 0, 1 << 20);
  for (const char* name : {"q", "k", "v", "o"}) d.tensor(name, LATILE_F32);
}

/// f(i) on thread i, all begun together; their mistakes.
std::string on_threads(const std::function<void(int)>& f) {
  std::barrier start(kThreads);
  std::array<std::string, kThreads> errors;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i)
    threads.emplace_back([&, i] {
      start.arrive_and_wait();
      try {
        f(i);
      } catch (const std::exception& e) { errors[static_cast<std::size_t>(i)] = e.what(); }
    });
  for (std::thread& thread : threads) thread.join();
  std::string all;
  for (const std::string& error : errors) all += error;
  return all;
}

}  // namespace

TEST_CASE("sixteen threads compile at once for a host and two devices, and the process's signals are its own") {
  install_compiler();
  runtime::install_emulated_devices();
  const OwnHandlers handlers;
  const char* const devices[] = {"host", "emulated:sm_80", "cuda:sm_90"};
  std::array<std::array<Artifact, 3>, kThreads> together;
  const std::string errors = on_threads([&](int i) {
    for (int d = 0; d < 3; ++d)  // not all on the same one at the same time
      together[static_cast<std::size_t>(i)][static_cast<std::size_t>((i + d) % 3)] = compiled(i, devices[(i + d) % 3]);
  });
  CHECK_MESSAGE(errors.empty(), errors);
  CHECK(handlers.changed() == "");
  for (int i : {0, 1, 2, 7, 15})
    for (int d = 0; d < 3; ++d) {
      const Artifact alone = compiled(i, devices[d]);
      const Artifact& one = together[static_cast<std::size_t>(i)][static_cast<std::size_t>(d)];
      CHECK_MESSAGE(alone.facts_json() == one.facts_json(), i, " ", std::string(devices[d]));
      CHECK_MESSAGE(alone.binary == one.binary, i, " ", std::string(devices[d]));
    }
  CHECK(handlers.changed() == "");
}

TEST_CASE("equal plans are compiled once, different ones beside them, and all run") {
  install_compiler();
  const OwnHandlers handlers;
  const api::Context context(2, "");
  std::atomic<int> compilations = 0, wrong = 0;
  std::array<std::optional<api::Plan>, kThreads> plans;  // code goes with its last plan
  const std::string errors = on_threads([&](int i) {
    // Half of the threads want one plan; the others one each.
    api::PlanDescription description("simple_gla", "prefill");
    const std::int64_t K = i % 2 == 0 ? 24 : 32 + 8 * i;
    describe_plan(description, K);
    api::Plan& plan = plans[static_cast<std::size_t>(i)].emplace(context, description);
    if (i % 2 == 0) compilations += std::strstr(plan.stages(), "\"source\":\"compiler\"") != nullptr;
    // One token of ones: o = V times K numbers scale.
    const std::vector<std::int64_t> dims{1, 1, K, 16, 1, 1};
    std::vector<float> q(static_cast<std::size_t>(K), 1), k = q, v(16, 1), o(16, -1);
    std::vector<std::byte> workspace(plan.workspace(dims) + 16);
    void* start = workspace.data();
    std::size_t room = workspace.size();
    auto* aligned = static_cast<std::byte*>(std::align(16, plan.workspace(dims), start, room));
    const std::vector<void*> data{q.data(), k.data(), v.data(), o.data()};
    plan.run(data, dims, {}, {aligned, plan.workspace(dims)});
    for (float x : o) wrong += !(std::abs(x - std::sqrt(static_cast<float>(K))) < 1e-4F);
  });
  CHECK_MESSAGE(errors.empty(), errors);
  CHECK(compilations == 1);
  CHECK(wrong == 0);
  CHECK(handlers.changed() == "");
}
