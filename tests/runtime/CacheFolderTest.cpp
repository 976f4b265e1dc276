// The folder of a cache: its bound, who goes first, what verify finds, what is nobody's business.
#include "runtime/CacheFolder.h"
#include "runtime/Cache.h"
#include "Toy.h"
#include <algorithm>
#include <cstdlib>
#include <doctest/doctest.h>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <unistd.h>

using namespace latile;
using latile::test::Folder;
using runtime::Cache;
using runtime::CacheFolder;
namespace fs = std::filesystem;

namespace {

struct Limit {
  explicit Limit(const char* text) { setenv("LATILE_CACHE_SIZE", text, 1); }
  ~Limit() { unsetenv("LATILE_CACHE_SIZE"); }
};

std::string key_of(int i) { return runtime::cache_key("c", nlohmann::json({{"i", i}}).dump()); }

Artifact artifact_of(std::size_t bytes) {
  Artifact a;
  a.target = "host";
  a.binary = std::string(bytes, 'x');
  return a;
}

/// Which of the first n keys have an entry.
std::string there(const std::string& folder, int n) {
  std::string list;
  for (int i = 0; i < n; ++i)
    list += fs::exists(folder + "/" + Cache::digest(key_of(i)) + ".latile") ? std::to_string(i) : "-";
  return list;
}

}  // namespace

TEST_CASE("the entries used longest ago go when the folder is over its limit") {
  const Folder folder;
  const Limit limit("40K");
  Cache cache(folder.path, [](int, const std::string&) {});
  std::ofstream(folder.path + "/notes.txt") << std::string(100'000, 'x');  // of somebody else
  const auto store = [&](int i, std::size_t bytes = 9'000) {
    usleep(2'000);  // stamps tell them apart
    cache.store(key_of(i), artifact_of(bytes));
  };
  Artifact read;
  for (int i = 0; i < 4; ++i) store(i);
  CHECK(there(folder.path, 5) == "0123-");
  usleep(2'000);
  CHECK(cache.load(key_of(0), read));  // so that 1 is now the oldest
  store(4);
  CHECK(there(folder.path, 5) == "0-234");
  CHECK(cache.load(key_of(0), read));
  CHECK(!cache.load(key_of(1), read));
  // One that is larger than the limit takes the place of all others, once.
  store(5, 60'000);
  CHECK(there(folder.path, 6) == "-----5");
  store(0);
  CHECK(there(folder.path, 6) == "0-----");
  CHECK(fs::file_size(folder.path + "/notes.txt") == 100'000);
  CHECK(CacheFolder(folder.path).bytes() < 40 * 1024);
}

TEST_CASE("the limit's spelling") {
  std::string complaint;
  const auto limit = [&](const char* text) {
    const Limit set(text);
    complaint.clear();
    return runtime::cache_size_limit(complaint);
  };
  CHECK(runtime::cache_size_limit(complaint) == std::uint64_t{1} << 30);
  CHECK(limit("12345") == 12345);
  CHECK(limit("3K") == 3072);
  CHECK(limit("500M") == std::uint64_t{500} << 20);
  CHECK(limit("2G") == std::uint64_t{2} << 30);
  CHECK(limit("0") == std::numeric_limits<std::uint64_t>::max());
  CHECK(complaint.empty());
  for (const char* bad : {"many", "-1", "1.5G", "2g", "2GB", " 2", "99999999999999999999", "18446744073709551615G"}) {
    CHECK(limit(bad) == std::uint64_t{1} << 30);
    CHECK_MESSAGE(complaint.find(bad) != std::string::npos, complaint);
  }
}

TEST_CASE("verify reads every entry in full") {
  const Folder folder;
  Cache cache(folder.path, [](int, const std::string&) {});
  for (int i = 0; i < 3; ++i) cache.store(key_of(i), artifact_of(5'000));
  CacheFolder found(folder.path);
  REQUIRE(found.entries.size() == 3);
  for (const runtime::CacheFile& file : found.entries) CHECK(runtime::verify_entry(file.path).empty());
  CHECK(runtime::entry_key(found.entries[1].path) == key_of(1));

  const std::string path = found.entries[0].path;
  std::string bytes(fs::file_size(path), '\0');
  std::ifstream(path, std::ios::binary).read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  const auto says = [&](const std::string& content) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << content;
    return runtime::verify_entry(path);
  };
  CHECK(says(bytes.substr(0, 40)) == "it is truncated");
  CHECK(runtime::entry_key(path).empty());
  CHECK(says(bytes.substr(0, bytes.size() - 1)) == "it is truncated");
  std::string flipped = bytes;
  flipped[flipped.size() / 2] ^= 1;
  CHECK(says(flipped) == "its checksum is wrong");
  CHECK(says("#!/bin/sh\nsomething that is longer than the header of an entry\n") == "it is no entry of latile's");
  CHECK(says(bytes).empty());
  fs::copy_file(path, found.entries[1].path, fs::copy_options::overwrite_existing);
  CHECK(runtime::verify_entry(found.entries[1].path) == "it lies under the name of another key");
  CHECK(runtime::verify_entry(folder.path + "/none").starts_with("it cannot be opened"));
}

TEST_CASE("a folder is listed by names as the cache gives them") {
  CHECK(!CacheFolder("/no/such/folder").exists);
  CHECK(CacheFolder("/no/such/folder").problem.empty());
  const Folder folder;
  std::ofstream(folder.path + "/file") << "x";
  CHECK(!CacheFolder(folder.path + "/file").problem.empty());
  const std::string digest = Cache::digest("x");
  for (const std::string& name : {digest + ".latile", digest + ".lock", "." + digest + ".1.2.3.tmp"})
    std::ofstream(folder.path + "/" + name) << "x";
  for (const std::string& name :
       std::vector<std::string>{"library.latile", "x.lock", "a.tmp", digest, "ABCDEF" + digest.substr(6) + ".latile"})
    std::ofstream(folder.path + "/" + name) << "x";
  const CacheFolder found(folder.path);
  CHECK(found.entries.size() == 1);
  CHECK(found.entries[0].digest == digest);
  CHECK(found.leftovers.size() == 2);
}

TEST_CASE("each field of a specialisation and each part of a key tells entries apart") {
  const Specialisation plain = [] {
    Specialisation s;
    s.op = "op";
    s.options = {{"a", "1"}};
    s.extents = {{"K", 8}, {"V", 8}};
    s.tensors = {{"q", ElementType::f32, 3}};
    return s;
  }();
  std::vector<std::string> keys = {runtime::cache_key("compiler", plain.json())};
  const auto differs = [&](const char* what, const std::string& key) {
    INFO(what);
    CHECK(std::find(keys.begin(), keys.end(), key) == keys.end());
    keys.push_back(key);
  };
  const auto changed = [&](const char* what, auto&& change) {
    Specialisation s = plain;
    change(s);
    differs(what, runtime::cache_key("compiler", s.json()));
  };
  differs("format", runtime::cache_key("compiler", plain.json(), runtime::kCacheFormat + 1));
  differs("compiler", runtime::cache_key("compiler 2", plain.json()));
  changed("op", [](Specialisation& s) { s.op = "other"; });
  changed("mode", [](Specialisation& s) { s.mode = Mode::step; });
  changed("option's value", [](Specialisation& s) { s.options[0].second = "2"; });
  changed("option's name", [](Specialisation& s) { s.options[0].first = "b"; });
  changed("another option", [](Specialisation& s) { s.options.emplace_back("b", "1"); });
  changed("extent", [](Specialisation& s) { s.extents["V"] = 16; });
  changed("ratio", [](Specialisation& s) { s.head_ratio = 2; });
  changed("head map", [](Specialisation& s) { s.tiled_heads = true; });
  changed("direction", [](Specialisation& s) { s.reversed = true; });
  changed("history", [](Specialisation& s) { s.every["S"] = 16; });
  changed("history's distance", [](Specialisation& s) { s.every["S"] = 32; });
  changed("io", [](Specialisation& s) { s.io = ElementType::bf16; });
  changed("tensor's name", [](Specialisation& s) { s.tensors[0].name = "k"; });
  changed("tensor's type", [](Specialisation& s) { s.tensors[0].type = ElementType::f16; });
  changed("tensor's unit axis", [](Specialisation& s) { s.tensors[0].unit = 1; });
  changed("another tensor", [](Specialisation& s) { s.tensors.push_back({"k", ElementType::f32, 3}); });
  changed("chunk", [](Specialisation& s) { s.chunk = 32; });
  changed("isa", [](Specialisation& s) { s.isa.level = "avx512"; });
  changed("device", [](Specialisation& s) { s.device = "cuda:sm_90"; });
}
