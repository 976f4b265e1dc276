// Several processes at one cache: one compiles, nobody waits for the dead, a bad disk costs time and nothing else.
#include "runtime/Cache.h"
#include "Toy.h"
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <doctest/doctest.h>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace latile::test;
using latile::runtime::CacheLock;
using Clock = std::chrono::steady_clock;
namespace api = latile::api;
namespace fs = std::filesystem;

namespace {

/// Plans for these problems in one context, and a run of each. How many were compiled here; -1: something was wrong.
int make_all(const std::string& folder, std::size_t first, std::vector<Problem> problems) {
  try {
    const int before = toy().compilations;
    const api::Context context(1, folder.c_str());
    for (std::size_t i = 0; i < problems.size(); ++i) {
      Problem& p = problems[(first + i) % problems.size()];
      p.make();
      api::PlanDescription description("toy", p.mode);
      p.describe(description);
      const api::Plan plan(context, description);
      auto workspace = workspace_of(plan, p.dims);
      plan.run(p.data, p.dims, p.strides, workspace);
      if (!(p.error() < 1e-5)) return -1;
    }
    return toy().compilations - before;
  } catch (const std::exception&) { return -1; }
}

std::vector<Problem> three_kinds() {
  std::vector<Problem> list(3);
  list[1].final = true;
  list[2].borders = {0, 20};
  return list;
}

/// A child that does this and exits with what it gives. The test program has one thread when it forks.
pid_t child(const std::function<int()>& task) {
  const pid_t pid = fork();
  REQUIRE(pid >= 0);
  if (pid == 0) _exit(task());
  return pid;
}

int result(pid_t pid) {
  int status = 0;
  REQUIRE(waitpid(pid, &status, 0) == pid);
  return WIFEXITED(status) ? static_cast<signed char>(WEXITSTATUS(status)) : -100;
}

std::size_t files_in(const std::string& folder, const std::string& ending) {
  std::size_t count = 0;
  for (const auto& entry : fs::directory_iterator(folder)) count += entry.path().string().ends_with(ending);
  return count;
}

double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// Waits until a condition holds, for at most ten seconds.
bool eventually(const std::function<bool()>& condition) {
  const auto start = Clock::now();
  while (!condition())
    if (since(start) > 10)
      return false;
    else
      usleep(1000);
  return true;
}

}  // namespace

TEST_CASE("sixteen processes on a cold cache compile each kernel once, and all succeed") {
  const Folder folder;
  const std::string cold = folder.path + "/made/by/them";
  toy().delay_ms = 150;
  int gate[2];
  REQUIRE(pipe(gate) == 0);
  std::vector<pid_t> children;
  for (std::size_t i = 0; i < 16; ++i)
    children.push_back(child([&] {
      close(gate[1]);
      char byte;
      while (read(gate[0], &byte, 1) > 0) {}  // until the parent lets go of it: all begin together
      return make_all(cold, i, three_kinds());
    }));
  close(gate[0]);
  usleep(50'000);
  close(gate[1]);
  int compiled = 0;
  for (pid_t pid : children) {
    const int here = result(pid);
    CHECK(here >= 0);
    compiled += here;
  }
  toy().delay_ms = 0;
  CHECK(compiled == 3);
  CHECK(files_in(cold, ".latile") == 3);
  CHECK(files_in(cold, "") == 3);  // no lock and no temporary file is left
}

TEST_CASE("sixteen threads, each with a context of its own or all with one, compile each kernel once") {
  for (const bool shared : {false, true}) {
    const Folder folder;
    const int before = toy().compilations;
    const api::Context one(1, folder.path.c_str());
    std::vector<std::thread> threads;
    std::atomic<int> failures = 0;
    toy().delay_ms = 30;
    for (std::size_t i = 0; i < 16; ++i)
      threads.emplace_back([&, i] {
        try {
          const api::Context own(1, folder.path.c_str());
          std::vector<Problem> problems = three_kinds();
          for (std::size_t k = 0; k < problems.size(); ++k) {
            Problem& p = problems[(k + i) % problems.size()];
            p.make();
            api::PlanDescription description("toy", p.mode);
            p.describe(description);
            const api::Plan plan(shared ? one : own, description);
            auto workspace = workspace_of(plan, p.dims);
            plan.run(p.data, p.dims, p.strides, workspace);
            failures += !(p.error() < 1e-5);
          }
        } catch (const std::exception&) { ++failures; }
      });
    for (std::thread& thread : threads) thread.join();
    toy().delay_ms = 0;
    CHECK(failures == 0);
    CHECK(toy().compilations - before == 3);
    CHECK(files_in(folder.path, "") == 3);
  }
}

TEST_CASE("a process killed while it compiles keeps nobody waiting, and its kernel comes out right") {
  const Folder folder;
  toy().delay_ms = 60'000;
  const pid_t owner = child([&] { return make_all(folder.path, 0, {{}}); });
  REQUIRE(eventually([&] { return files_in(folder.path, ".lock") == 1; }));
  toy().delay_ms = 0;
  const auto start = Clock::now();
  const pid_t waiting = child([&] { return make_all(folder.path, 0, {{}}); });
  usleep(100'000);
  CHECK(waitpid(waiting, nullptr, WNOHANG) == 0);  // it does wait
  kill(owner, SIGKILL);
  CHECK(result(owner) == -100);
  CHECK(result(waiting) == 1);
  CHECK(since(start) < 10);
  CHECK(files_in(folder.path, "") == 1);
  CHECK(make_all(folder.path, 0, {{}}) == 0);
}

TEST_CASE("a writer killed in the middle leaves what is ignored") {
  const Folder folder;
  CHECK(make_all(folder.path, 0, {{}}) == 1);
  const fs::path entry = fs::directory_iterator(folder.path)->path();
  const std::string digest = entry.stem().string();
  // What SIGKILL leaves between two write() calls: half a temporary file, the lock file, no entry.
  fs::rename(entry, folder.path + "/." + digest + ".1.1.0.tmp");
  fs::resize_file(folder.path + "/." + digest + ".1.1.0.tmp", 1000);
  std::ofstream(folder.path + "/" + digest + ".lock") << "process 1\n";
  const auto start = Clock::now();
  CHECK(make_all(folder.path, 0, {{}}) == 1);
  CHECK(since(start) < 5);
  CHECK(make_all(folder.path, 0, {{}}) == 0);
}

TEST_CASE("a lock: one holder, a time-out that names the owner, no wait for the dead") {
  const Folder folder;
  const std::string path = folder.path + "/x.lock";
  std::string why;
  {
    const CacheLock mine = CacheLock::acquire(path, std::chrono::milliseconds(0), why);
    CHECK(mine.held());
    const auto start = Clock::now();
    CHECK(!CacheLock::acquire(path, std::chrono::milliseconds(200), why).held());
    CHECK(since(start) >= 0.2);
    CHECK(since(start) < 2);
    CHECK_MESSAGE(why.find("process " + std::to_string(getpid()) + " has held") == 0, why);
    // A child that inherits the open file does not prolong the lock.
    const pid_t heir = child([] { return usleep(500'000), 0; });
    {
      CacheLock moved = CacheLock::acquire(path + "2", std::chrono::milliseconds(0), why);
      CHECK(moved.held());
    }
    CHECK(result(heir) == 0);
  }
  CHECK(!fs::exists(path));
  why.clear();
  CHECK(CacheLock::acquire(path, std::chrono::milliseconds(0), why).held());

  // Handed from one to the next: never two at a time, though each owner removes the file.
  const std::string counter = folder.path + "/counter";
  std::ofstream(counter) << 0;
  std::vector<pid_t> children;
  for (int i = 0; i < 8; ++i)
    children.push_back(child([&] {
      std::string ignored;
      for (int n = 0; n < 50; ++n) {
        const CacheLock lock = CacheLock::acquire(path, std::chrono::seconds(60), ignored);
        if (!lock.held()) return 1;
        int value = 0;
        std::ifstream(counter) >> value;
        std::ofstream(counter) << value + 1;
      }
      return 0;
    }));
  for (pid_t pid : children) CHECK(result(pid) == 0);
  int value = 0;
  std::ifstream(counter) >> value;
  CHECK(value == 400);

  // A folder that takes no file: at once, without a complaint.
  why.clear();
  CHECK(!CacheLock::acquire("/proc/nothing.lock", std::chrono::seconds(60), why).held());
  CHECK(why.empty());
}

TEST_CASE("a disk that is full loses nothing") {
  const Folder folder;
  SUBCASE("a limit on the size of files") {
    const int made = result(child([&] {
      signal(SIGXFSZ, SIG_IGN);
      const rlimit limit = {1000, 1000};
      if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return -2;
      // The memory file that code is loaded from has the limit too, so this only stores.
      latile::Artifact artifact;
      artifact.target = "host", artifact.binary = std::string(100'000, 'x');
      int complaints = 0;
      latile::runtime::Cache cache(folder.path, [&](int, const std::string&) { ++complaints; });
      const std::string key = latile::runtime::cache_key("c", "{}");
      cache.store(key, artifact);
      cache.store(key, artifact);
      if (complaints != 1 || cache.load(key, artifact)) return -3;
      return files_in(folder.path, "") == 0 ? 0 : -4;
    }));
    CHECK(made == 0);
  }
  SUBCASE("a file system without room") {
    if (mount("latile-test", folder.path.c_str(), "tmpfs", 0, "size=8k") != 0) {
      MESSAGE("skipped: no right to mount");
      return;
    }
    CHECK(make_all(folder.path, 0, three_kinds()) == 3);
    CHECK(make_all(folder.path, 0, three_kinds()) == 3);
    CHECK(files_in(folder.path, "") == 0);
    REQUIRE(umount(folder.path.c_str()) == 0);
  }
}
