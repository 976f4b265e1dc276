#include "latile/table.h"
#include "tests/tool/Command.h"
#include <algorithm>
#include <doctest/doctest.h>
#include <nlohmann/json.hpp>
#include <sstream>

using namespace latile;

namespace {

/// Its chunk body forgets the decay inside a chunk.
void forgetful(Operator& op) {
  auto [H] = op.heads("H");
  auto [K, V] = op.dims("K", "V");
  auto q = op.sequence("q", {H, K}), k = op.sequence("k", {H, K}), v = op.sequence("v", {H, V});
  auto g = op.gate("g", {H});
  auto o = op.output("o", {H, V});
  auto S = op.carry("S", {H, K, V});
  op.reference([&](Token) {
    S = exp2(g) * S + outer(k, v);
    o = dot(q, S);
  });
  op.chunk([&](Chunk) {
    Tile G = cumsum(g), Gl = last(G);
    o = exp2(G) * dot(q, S) + dot(masked(dot(q, k.T()), lower), v);
    S = exp2(Gl) * S + dot((exp2(Gl - G) * k).T(), v);
  });
}

/// A dot whose inner extents differ.
void mistaken(Operator& op) {
  auto [H] = op.heads("H");
  auto [K, V] = op.dims("K", "V");
  auto q = op.sequence("q", {H, K}), v = op.sequence("v", {H, V});
  auto o = op.output("o", {H, V});
  op.reference([&](Token) { o = dot(q, v); });
}

}  // namespace

TEST_CASE("check passes what is right, and fails what is wrong") {
  const Outcome right = command({"check", "simple_gla", "--quick", "--dtype", "f32"});
  CHECK(right.code == 0);
  CHECK(has(right.out, "cases passed"));
  CHECK(right.err.empty());

  register_operator({"forgetful", forgetful, "a wrong chunk body", 5e-3, 5e-3});
  const Outcome wrong = command({"check", "forgetful", "--quick", "--dtype", "f32"});
  CHECK(wrong.code == 1);
  CHECK(has(wrong.out, "FAILED"));
  const Outcome json = command({"check", "forgetful", "--quick", "--dtype", "f32", "--json", "--seed", "3"});
  CHECK(json.code == 1);
  const auto object = nlohmann::json::parse(json.out);
  CHECK(object["failed"] > 0);
  CHECK(object["seed"] == 3);
  bool recurrent_passed = false;
  for (const auto& c : object["cases"])
    if (c["case"].get<std::string>().starts_with("recurrent")) recurrent_passed = c["passed"];
  CHECK(recurrent_passed);
}

TEST_CASE("a mistake in a definition is named with its line") {
  register_operator({"mistaken", mistaken, "a dot of wrong extents", 5e-3, 5e-3});
  const Outcome check = command({"check", "mistaken"});
  CHECK(check.code == 2);
  CHECK_MESSAGE(has(check.err, "command_test.cpp:"), check.err);
  CHECK(has(check.err, "mistaken"));
}

TEST_CASE("check: three types, another seed, every level of this CPU") {
  const Outcome all = command({"check", "linear_attn", "--quick", "--dtype", "f16,bfloat16", "--seed", "9"});
  CHECK(all.code == 0);
  CHECK(has(all.out, "float16 tensors"));
  CHECK(has(all.out, "bfloat16 tensors"));
  const Outcome low =
      command({"check", "linear_attn", "--quick", "--dtype", "f32", "--isa", "x86-64-v3", "--progress"});
  CHECK(low.code == 0);
  CHECK(has(low.err, "[1/"));
}

TEST_CASE("list names operators, tensors and options") {
  const Outcome text = command({"list"});
  CHECK(text.code == 0);
  for (const char* word : {"gated_delta_rule", "linear_attn", "simple_gla", "A_log", "qk_l2norm"})
    CHECK(has(text.out, word));
  const auto rows = nlohmann::json::parse(command({"list", "gated_delta_rule", "--json"}).out);
  CHECK(rows.size() == 1);
  CHECK(rows[0]["tensors"].size() >= 7);
}

TEST_CASE("doctor finds this machine able") {
  const auto object = nlohmann::json::parse(command({"doctor", "--json"}).out);
  CHECK(has(object["compile"].get<std::string>(), " ms for host"));
  CHECK(object.contains("cpu"));
}

TEST_CASE("compile writes every stage") {
  const Folder folder;
  const std::vector<std::string> small{"compile", "gated_delta_rule", "--dim", "K=16", "--dim", "V=32"};
  const auto with = [&](std::initializer_list<std::string> more) {
    std::vector<std::string> words = small;
    words.insert(words.end(), more);
    return command(words);
  };
  CHECK(has(with({}).out, "tile.scan"));
  CHECK(has(with({"--mode", "step", "--dtype", "bf16"}).out, "tile.program"));
  CHECK(has(with({"--emit", "kernel", "--ragged", "--stateless"}).out, "tile.kernel"));
  CHECK(has(with({"--emit", "llvm", "--option", "beta=sigmoid"}).out, "define"));
  CHECK(has(with({"--emit", "asm", "--isa", "x86-64-v3"}).out, "ret"));
  CHECK(has(command({"compile", "causal_conv1d", "--dim", "D=1300"}).out, "<32x1300xf32"));
  CHECK(has(command({"compile", "causal_conv1d", "--dim", "W=4"}).out, "<4x128xf32"));
  CHECK(with({"--emit", "object", "-o", folder.file("k.o")}).code == 0);
  CHECK(content(folder.file("k.o"))
            .starts_with("\x7f"
                         "ELF"));
  CHECK(with({"--emit", "tile", "-o", folder.file("no/such/folder/k.mlir")}).code == 2);
}

TEST_CASE("bench gives medians and their ratio to a floor") {
  const Outcome o = command(
      {"bench",     "simple_gla", "--mode", "prefill,step",   "--dtype", "f32",     "--threads", "1",        "--tokens",
       "64",        "--heads",    "2",      "--decode-heads", "2",       "--batch", "2",         "--extent", "32",
       "--seconds", "0.05",       "--json"});
  CHECK(o.code == 0);
  std::istringstream lines(o.out);
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    const auto j = nlohmann::json::parse(line);
    CHECK(j["ms"] > 0);
    CHECK(j["floor_ms"] > 0);
    CHECK(j["engine"] == "latile");
  }
  CHECK(count == 2);
}

TEST_CASE("help everywhere, and refusals of command lines in one sentence") {
  for (const char* name : {"", "list", "check", "run", "bench", "compile", "doctor"}) {
    std::vector<std::string> words{"--help"};
    if (*name) words.insert(words.begin(), name);
    const Outcome help = command(words);
    CHECK(help.code == 0);
    CHECK(has(help.out, "--help"));
  }
  CHECK(has(command({"--version"}).out, "latile 0."));
  const std::pair<std::vector<std::string>, std::string> refused[] = {
      {{}, "subcommand"},
      {{"chek"}, "chek"},
      {{"check", "gated_delta_rul"}, "did you mean 'gated_delta_rule'"},
      {{"check", "--dtype", "f64"}, "unknown element type 'f64'"},
      {{"check", "--device", "toaster"}, "no device 'toaster'"},
      {{"check", "--isa", "sse9"}, "no instruction set level 'sse9'"},
      {{"check", "--threads", "0"}, "--threads"},
      {{"compile", "simple_gla", "--emit", "fortran"}, "--emit"},
      {{"compile", "simple_gla", "--dim", "K=4"}, "K is 4"},
      {{"compile", "simple_gla", "--dim", "W=16"}, "no inner dimension 'W'"},
      {{"compile", "simple_gla", "--dim", "K=many"}, "not a finite number"},
      {{"compile", "simple_gla", "--option", "fast=true"}, "fast"},
      {{"compile", "simple_gla", "--without", "q"}, "no optional tensor 'q'"},
      {{"bench", "simple_gla", "--tokens", "0"}, "--tokens"},
  };
  for (const auto& [words, part] : refused) {
    const Outcome o = command(words);
    CHECK(o.code == 2);
    CHECK_MESSAGE(has(o.err, part), o.err);
    CHECK_MESSAGE(o.out.empty(), o.out);
    CHECK(std::count(o.err.begin(), o.err.end(), '\n') == 1);
  }
}
