// The commands cache and bundle.
#include "runtime/Cache.h"
#include "tests/tool/Command.h"
#include "tools/latile/Plan.h"
#include <cstdlib>
#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

using namespace latile;
namespace fs = std::filesystem;

namespace {

PlanRequest request(ElementType io) {
  PlanRequest r;
  r.op = "simple_gla";
  r.dims = {{"H", 1, 8}, {"HV", 1, 8}, {"K", 32, 32}, {"V", 32, 32}, {"B", 1, 8}, {"T", 0, 1 << 20}};
  for (const char* name : {"q", "k", "v", "o"}) r.tensors.push_back({name, io, {}, 4});
  r.tensors.push_back({"g", ElementType::f32, {}, 3});
  return r;
}

}  // namespace

TEST_CASE("cache: info, verify, clear") {
  const Folder folder;
  const std::string dir = folder.file("cache");
  Outcome o = command({"cache", "info", "--dir", dir});
  CHECK(o.code == 0);
  CHECK(has(o.out, "does not exist yet"));
  {
    const ContextHandle context = make_context(1, dir.c_str());
    for (ElementType io : {ElementType::f32, ElementType::bf16}) Plan(context.get(), request(io));
  }
  put(dir + "/notes.txt", "mine");
  o = command({"cache", "info", "--dir", dir, "--json", "--entries"});
  REQUIRE(o.code == 0);
  const auto j = nlohmann::json::parse(o.out);
  CHECK(j["entries"] == 2);
  CHECK(j["bytes"].get<int>() > 4000);
  CHECK(j["list"][0]["op"] == "simple_gla");
  CHECK(has(j["list"][1]["target"].get<std::string>(), "host:"));
  o = command({"cache", "verify", "--dir", dir});
  CHECK(o.code == 0);
  CHECK(has(o.out, "2 of 2 entries are whole"));
  const std::string bad = j["list"][0]["file"];
  std::string bytes = content(bad);
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 8);
  put(bad, bytes);
  o = command({"cache", "verify", "--dir", dir});
  CHECK(o.code == 1);
  CHECK(has(o.out, bad + ": its checksum is wrong"));
  o = command({"cache", "verify", "--remove", "--dir", dir});
  CHECK(o.code == 1);
  CHECK(!fs::exists(bad));
  o = command({"cache", "clear", "--dir", dir});
  CHECK(o.code == 0);
  CHECK(has(o.out, "1 entries removed"));
  CHECK(content(dir + "/notes.txt") == "mine");
  CHECK(command({"cache"}).code == 2);
  o = command({"cache", "info", "--dir", dir + "/notes.txt"});
  CHECK(o.code == 2);
  CHECK(has(o.err, "cannot be listed"));
}

TEST_CASE("bundle: each target, and what is refused before anything is written") {
  const Folder folder;
  const std::string file = folder.file("b");
  Outcome o = command({"bundle", "hgrn", "retention", "--targets", "host:x86-64-v3", "--shapes", "K=32,V=48,ratio=2",
                       "--batches", "dense", "--mode", "step", "--dtype", "f32,bf16", "-o", file});
  // hgrn has neither K nor V.
  CHECK(o.code == 2);
  CHECK(has(o.err, "hgrn has no inner dimension 'K'"));
  CHECK(!folder.has("b"));
  o = command({"bundle", "retention", "--targets", "host:x86-64-v3", "--shapes", "K=32,V=48,ratio=2", "K=64,V=64",
               "--batches", "dense", "--mode", "step", "--dtype", "f32,bf16", "--pool", "i64", "-o", file});
  CHECK_MESSAGE(o.code == 0, o.err);
  CHECK(has(o.out, "4 plans"));
  o = command({"bundle", "inspect", file, "--json"});
  REQUIRE(o.code == 0);
  const auto j = nlohmann::json::parse(o.out);
  CHECK(j["plans"].size() == 4);
  CHECK(j["plans"][0]["dims"]["V"] == 48);
  CHECK(j["plans"][0]["head_ratio"] == 2);
  CHECK(j["plans"][0]["target"] == "host:x86-64-v3");
  const auto refused = [&](std::vector<std::string> words, const std::string& part) {
    words.insert(words.begin(), "bundle");
    const Outcome said = command(words);
    CHECK(said.code == 2);
    CHECK_MESSAGE(has(said.err, part), said.err);
  };
  const std::string kept = content(file);
  refused({}, "needs an operator");
  refused({"gla"}, "needs a file");
  refused({"glaa", "-o", file}, "did you mean 'gla'");
  refused({"gla", "-o", file, "--targets", "toaster"}, "--targets has 'toaster'");
  refused({"gla", "-o", file, "--shapes", "K"}, "NAME=VALUE");
  refused({"gla", "-o", file, "--shapes", "K=4"}, "below the limit of 8");
  refused({"gla", "-o", file, "--option", "speed=high"}, "speed");
  refused({"gla", "-o", folder.file("none/b"), "--mode", "step", "--targets", "host:x86-64-v3"}, "cannot be written");
  refused({"inspect", folder.file("none")}, "cannot be opened");
  put(file, kept.substr(0, kept.size() - 10));
  refused({"inspect", file}, "is truncated");
}
