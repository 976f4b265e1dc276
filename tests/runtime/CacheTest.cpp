// The cache on disk: what is found again, what is refused, what a bad folder costs.
#include "Toy.h"
#include <cstdlib>
#include <cstring>
#include <doctest/doctest.h>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <unistd.h>

using namespace latile::test;
using latile::api::Context;
using latile::api::Plan;
using latile::api::PlanDescription;
namespace fs = std::filesystem;

namespace {

struct Made {
  std::string source, key;
  double error, ms;
  int complaints = 0;
};

/// A plan in a context of its own, as in a new process, and a run of it.
Made make(const std::string& folder, Problem p = {}) {
  Made made;
  const latile_context_desc desc = {sizeof desc,
                                    folder.c_str(),
                                    1,
                                    [](void* user, std::int32_t, const char*) { ++*static_cast<int*>(user); },
                                    &made.complaints,
                                    0};
  const Context context(desc);
  p.make();
  PlanDescription description("toy", p.mode);
  p.describe(description);
  const Plan plan(context, description);
  auto workspace = workspace_of(plan, p.dims);
  plan.run(p.data, p.dims, p.strides, workspace);
  const auto stages = nlohmann::json::parse(plan.stages());
  made.source = stages["source"], made.key = stages["key"], made.ms = stages["total_ms"], made.error = p.error();
  return made;
}

fs::path only_entry(const std::string& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder)) files.push_back(entry.path());
  REQUIRE(files.size() == 1);
  return files[0];
}

std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

}  // namespace

TEST_CASE("a second process has the plan from the cache in under 20 ms") {
  const Folder folder;
  const std::string deep = folder.path + "/not/there/yet";
  CHECK(make(deep).source == "compiler");
  double fastest = 1e9;
  for (int i = 0; i < 5; ++i) {
    const Made again = make(deep);
    CHECK(again.source == "cache");
    CHECK(again.error < 1e-5);
    fastest = std::min(fastest, again.ms);
  }
  MESSAGE("cache hit: ", fastest, " ms");
  CHECK(fastest < 20);
  CHECK(only_entry(deep).filename().string().size() == 32 + 7);
}

TEST_CASE("an entry that is damaged anywhere is ignored and replaced") {
  const Folder folder;
  make(folder.path);
  const fs::path entry = only_entry(folder.path);
  const std::string good = read(entry);
  const auto check = [&](const std::string& bytes, bool complains = true) {
    write(entry, bytes);
    const Made made = make(folder.path);
    CHECK(made.source == "compiler");
    CHECK(made.error < 1e-5);
    CHECK(made.complaints == (complains ? 1 : 0));
    CHECK(read(entry) == good);
    CHECK(make(folder.path).source == "cache");
  };
  for (std::size_t length :
       {std::size_t{0}, std::size_t{7}, std::size_t{55}, std::size_t{56}, good.size() / 2, good.size() - 1})
    check(good.substr(0, length));
  check(good + "x");
  std::vector<std::size_t> places = {0, 8, 12, 16, 24, 32, 40, 48, 55, 56, good.size() - 1};
  for (std::size_t at = 60; at < good.size(); at += good.size() / 13) places.push_back(at);
  for (std::size_t at : places) {
    std::string flipped = good;
    flipped[at] = static_cast<char>(flipped[at] ^ (1 << (at % 8)));
    check(flipped);
  }
  check("#!/bin/sh\n");
  check(std::string(100, '\xff'));
}

TEST_CASE("an entry of another key under this name is refused") {
  const Folder folder;
  make(folder.path);
  const fs::path entry = only_entry(folder.path);
  Problem other;
  other.final = true;
  const Made second = make(folder.path, other);
  CHECK(second.source == "compiler");
  fs::copy_file(entry, folder.path + "/" + second.key + ".latile", fs::copy_options::overwrite_existing);
  const Made made = make(folder.path, other);
  CHECK(made.source == "compiler");
  CHECK(made.error < 1e-5);
}

TEST_CASE("an entry that others may write to, or that is a link, is not loaded") {
  const Folder folder;
  make(folder.path);
  const fs::path entry = only_entry(folder.path);
  REQUIRE(chmod(entry.c_str(), 0664) == 0);
  CHECK(make(folder.path).source == "compiler");
  CHECK(make(folder.path).source == "cache");
  fs::rename(entry, folder.path + "/aside");
  fs::create_symlink(folder.path + "/aside", entry);
  CHECK(make(folder.path).source == "compiler");
  CHECK(make(folder.path).source == "cache");
}

TEST_CASE("each part of the key tells plans apart") {
  const Folder folder;
  std::vector<std::string> keys = {make(folder.path).key};
  const auto differs = [&](const char* what, const Problem& p) {
    const std::string key = make(folder.path, p).key;
    INFO(what);
    CHECK(std::find(keys.begin(), keys.end(), key) == keys.end());
    keys.push_back(key);
  };
  Problem p;
  p.mode = "recurrent", differs("mode", p), p = {};
  p.K = 16, differs("K", p), p = {};
  p.HV = 2, differs("ratio", p), p = {};
  p.tiled = true, differs("head map", p), p = {};
  p.final = true, differs("tensors", p), p = {};
  p.borders = {0, 20}, differs("ragged", p);
  p.wide_index = true, differs("type", p), p = {};
  p.options = {{"cut", "true"}}, differs("option", p), p = {};
  p.options = {{"chunk_size", "16"}}, differs("chunk", p), p = {};
  if (make(folder.path, p).key != "") p.options = {{"host_isa", "x86-64-v3"}};
  latile::HostIsa native = latile::HostIsa::native();
  if (native.level != "x86-64-v3") differs("isa", p);
  p = {};
  toy().version = "toy 2", differs("compiler", p), toy().version = "toy 1";

  // And what shapes no code does not.
  const auto same = [&](const Problem& q) { CHECK(make(folder.path, q).key == keys[0]); };
  p.B = 3, p.T = 7, p.H = 1, p.HV = 2, same(p), p = {};
  p.options = {{"cut", "0"}, {"form", "plain"}, {"n", "01"}, {"bound", "0.50"}}, same(p);
}

TEST_CASE("a read-only or absurd folder costs time, never a plan") {
  const auto twice = [](const std::string& folder) {
    for (int i = 0; i < 2; ++i) {
      const Made made = make(folder);
      CHECK(made.source == "compiler");
      CHECK(made.error < 1e-5);
      CHECK(made.complaints == 1);
    }
  };
  const Folder folder;
  const std::string file = folder.path + "/file";
  write(file, "x");
  twice(file);
  twice(file + "/below");
  twice("/proc/latile");
  REQUIRE(chmod(folder.path.c_str(), 0555) == 0);
  const uid_t user = geteuid();
  make("");                                     // with the build folder still readable
  if (user == 0) REQUIRE(seteuid(65534) == 0);  // root writes everywhere
  twice(folder.path);
  if (user == 0) REQUIRE(seteuid(user) == 0);
}

TEST_CASE("leftovers of writers that died go after a day, those of living ones stay") {
  const Folder folder;
  write(folder.path + "/.dead.1.1.0.tmp", "x");
  write(folder.path + "/.living.2.2.0.tmp", "x");
  fs::last_write_time(folder.path + "/.dead.1.1.0.tmp", fs::file_time_type::clock::now() - std::chrono::hours(25));
  make(folder.path);
  CHECK(!fs::exists(folder.path + "/.dead.1.1.0.tmp"));
  CHECK(fs::exists(folder.path + "/.living.2.2.0.tmp"));
}

TEST_CASE("a cached library that does not serve the plan is replaced") {
  const Folder folder;
  toy().defect = "no symbol";
  CHECK_THROWS_WITH(make(folder.path), doctest::Contains("there is no kernel nothing in the code"));
  toy().defect = "no library";
  CHECK_THROWS_WITH(make(folder.path), doctest::Contains("the code cannot be loaded"));
  toy().defect = "unknown dim";
  CHECK_THROWS_WITH(make(folder.path), doctest::Contains("reads dimension Q"));
  toy().defect = "fails";
  CHECK_THROWS_WITH(make(folder.path), "toy: a fault of the compiler");
  toy().defect = "";
  CHECK(fs::is_empty(folder.path));
}

TEST_CASE("the default folder follows the environment") {
  const Folder folder;
  setenv("LATILE_CACHE_DIR", folder.path.c_str(), 1);
  {
    const Context context(1);
    Problem p;
    p.make();
    PlanDescription description("toy", "prefill");
    p.describe(description);
    const Plan plan(context, description);
    only_entry(folder.path);
    // A second plan of the same kind shares the first one's code.
    const Plan again(context, description);
    CHECK(nlohmann::json::parse(again.stages())["source"] == "memory");
  }
  unsetenv("LATILE_CACHE_DIR");
}
