#include "tests/tool/Command.h"
#include "tools/latile/Meaning.h"
#include "tools/latile/Npy.h"
#include "tools/latile/Safetensors.h"
#include <algorithm>
#include <cmath>
#include <cstring>
#include <doctest/doctest.h>

using namespace latile;

namespace {

constexpr const char* op = "gated_delta_rule";

/// The inputs of a problem as files, and the command line that reads them.
struct Files {
  const Folder& folder;
  std::vector<std::string> words{"run", op};
  Files(const Folder& f, const Problem& p, bool v_first = false) : folder(f) {
    for (const Problem::Entry& e : p.entries) {
      if (e.role == Problem::Role::output || e.role == Problem::Role::final || e.role == Problem::Role::history)
        continue;
      HostTensor t = e.tensor;
      if (v_first && e.role == Problem::Role::initial) {
        const std::size_t r = t.shape.size();
        std::swap(t.shape[r - 1], t.shape[r - 2]);
        std::swap(t.strides[r - 1], t.strides[r - 2]);
      }
      write_npy(folder.file(t.name + ".npy"), t, false);
      words.insert(words.end(), {"--in", t.name + "=" + folder.file(t.name + ".npy")});
    }
  }
  Outcome run(std::initializer_list<std::string> more, const std::string& out = "o") const {
    std::vector<std::string> all = words;
    all.insert(all.end(), more);
    all.insert(all.end(), {"--out", out + "=" + folder.file(out + ".npy")});
    return command(all);
  }
};

Case small(States states = States::both) {
  Case c;
  c.extents = {24, 40};
  c.heads = 2, c.ratio = 2;
  c.states = states;
  return c;
}

Problem problem(const Case& c, const std::vector<std::int64_t>& lengths, ElementType io = ElementType::f32) {
  return make_problem(describe(*find_operator(op), {}), c, {}, lengths, io, 1, false);
}

double error(const std::string& file, const std::vector<double>& want) {
  const HostTensor got = read_npy(file, false);
  REQUIRE(got.count() == static_cast<std::int64_t>(want.size()));
  double difference = 0, reference = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    const double d = got.get(static_cast<std::int64_t>(i)) - want[i];
    difference += d * d, reference += want[i] * want[i];
  }
  return std::sqrt(difference / reference);
}

Values meaning(Case c, const Problem& p, ElementType io = ElementType::f32) {
  c.mode = Mode::recurrent;
  return Meaning(*find_operator(op), specialisation_of(op, c, p, io)).run(p, true);
}

}  // namespace

TEST_CASE("run gives what the interpreter gives") {
  const Folder folder;
  Case c = small();
  SUBCASE("dense, float32") {
    const Problem p = problem(c, {30, 30});
    const Outcome o = Files(folder, p).run({"--out", "S.final=" + folder.file("s.npy")});
    CHECK_MESSAGE(o.code == 0, o.err);
    CHECK(has(o.out, "float32 [2, 30, 4, 40]"));
    CHECK(error(folder.file("o.npy"), meaning(c, p).at("o")) < 1e-5);
    CHECK(error(folder.file("s.npy"), meaning(c, p).at("S.final")) < 1e-5);
  }
  SUBCASE("ragged, bfloat16, recurrent") {
    c.ragged_bits = 32;
    const Problem p = problem(c, {0, 17, 1}, ElementType::bf16);
    const Outcome o = Files(folder, p).run({"--mode", "recurrent"});
    CHECK_MESSAGE(o.code == 0, o.err);
    CHECK(has(o.out, "bfloat16 [1, 18, 4, 40]"));
    CHECK(error(folder.file("o.npy"), meaning(c, p, ElementType::bf16).at("o")) < 5e-3);
  }
  SUBCASE("states [V, K] in the file") {
    const Problem p = problem(c, {9});
    const Outcome o = Files(folder, p, true).run({"--state-layout", "vk", "--out", "S.final=" + folder.file("s.npy")});
    CHECK_MESSAGE(o.code == 0, o.err);
    HostTensor s = read_npy(folder.file("s.npy"), false);
    CHECK(s.shape == std::vector<std::int64_t>{1, 4, 40, 24});
    const std::vector<double> want = meaning(c, p).at("S.final");
    CHECK(s.get(1) == doctest::Approx(want[40]).epsilon(1e-4));
    CHECK(error(folder.file("o.npy"), meaning(c, p).at("o")) < 1e-5);
  }
  SUBCASE("a pool keeps what no sequence writes; a scalar; tiled heads") {
    c = small(States::pool);
    c.tiled_heads = true;
    c.scalar = 0.5;
    const Problem p = problem(c, {5, 5, 5});
    const Outcome o =
        Files(folder, p).run({"--scalar", "scale=0.5", "--option", "head_map=tiled", "--option", "chunk_size=32",
                              "--threads", "2", "--out", "S.final=" + folder.file("s.npy")});
    CHECK_MESSAGE(o.code == 0, o.err);
    CHECK(error(folder.file("o.npy"), meaning(c, p).at("o")) < 1e-5);
    CHECK(error(folder.file("s.npy"), meaning(c, p).at("S.final")) < 1e-5);
  }
  SUBCASE("from the last token, starting from accepted states, keeping those of chunks") {
    c = small(States::pool);
    c.ragged_bits = 32, c.reversed = true, c.every = 16, c.accepted = true;
    Problem p = problem(c, {40, 0, 16});
    std::vector<std::byte>& kept = p.find("S.history")->tensor.bytes;
    std::fill(kept.begin(), kept.end(), std::byte{0});
    const Files files(folder, p);
    const Outcome o = files.run({"--option", "reverse=true", "--every", "16", "--out",
                                 "S.history=" + folder.file("h.npy"), "--out", "S.final=" + folder.file("s.npy")});
    CHECK_MESSAGE(o.code == 0, o.err);
    CHECK(error(folder.file("o.npy"), meaning(c, p).at("o")) < 1e-5);
    CHECK(error(folder.file("h.npy"), meaning(c, p).at("S.history")) < 1e-5);
    CHECK(error(folder.file("s.npy"), meaning(c, p).at("S.final")) < 1e-5);
    CHECK(has(files.run({"--out", "S.history=" + folder.file("h.npy")}).err, "add --every NUMBER"));
  }
  SUBCASE("everything in .safetensors files") {
    const Problem p = problem(c, {7, 0, 23}, ElementType::bf16);
    const Folder own;
    std::vector<std::pair<std::string, const HostTensor*>> inputs;
    std::vector<std::string> words{"run", op};
    const std::string in = own.file("in.safetensors"), out = own.file("out.safetensors");
    for (const Problem::Entry& e : p.entries) {
      if (e.role == Problem::Role::output || e.role == Problem::Role::final) continue;
      const bool renamed = e.tensor.name == "q";
      inputs.emplace_back(renamed ? "layers.0.query" : e.tensor.name, &e.tensor);
      words.insert(words.end(), {"--in", e.tensor.name + "=" + in + (renamed ? ":layers.0.query" : "")});
    }
    put(in, safetensors_content(inputs));
    put(out, "what was there");
    words.insert(words.end(), {"--out", "o=" + out, "--out", "S.final=" + out + ":state"});
    Outcome o = command(words);
    CHECK_MESSAGE(o.code == 0, o.err);
    CHECK(safetensors_names(out) == std::vector<std::string>{"o", "state"});
    CHECK(read_safetensors(out, "o").type == ElementType::bf16);
    write_npy(folder.file("o.npy"), read_safetensors(out, "o"), false);
    write_npy(folder.file("s.npy"), read_safetensors(out, "state"), false);
    CHECK(error(folder.file("o.npy"), meaning(c, p, ElementType::bf16).at("o")) < 5e-3);
    CHECK(error(folder.file("s.npy"), meaning(c, p, ElementType::bf16).at("S.final")) < 5e-3);

    const std::string kept = content(out);
    words.insert(words.end(), {"--in", "beta2=" + in});
    o = command(words);
    CHECK(o.code == 2);
    CHECK(content(out) == kept);
  }
  SUBCASE("one step") {
    const Problem p = problem(c, {1, 1});
    CHECK(Files(folder, p).run({"--mode", "step"}).code == 0);
    CHECK(error(folder.file("o.npy"), meaning(c, p).at("o")) < 1e-5);
  }
}

TEST_CASE("bad input: one sentence, exit code 2, and what was there stays") {
  const Folder folder;
  const Problem p = problem(small(), {30, 30});
  const Files files(folder, p);
  put(folder.file("o.npy"), "old");
  const auto file = [&](const std::string& name, ElementType type, const std::vector<std::int64_t>& shape) {
    write_npy(folder.file("other-" + name), HostTensor("", type, shape), false);
    return folder.file("other-" + name);
  };
  const auto replaced = [&](const std::string& tensor, const std::string& path) {
    Files other = files;
    for (std::string& word : other.words)
      if (word.starts_with(tensor + "=")) word = tensor + "=" + path;
    return other.run({});
  };
  const auto refused = [&](const Outcome& o, const std::string& part) {
    CHECK(o.code == 2);
    CHECK_MESSAGE(has(o.err, part), o.err);
    CHECK(std::count(o.err.begin(), o.err.end(), '\n') == 1);
    CHECK(o.out.empty());
    CHECK(content(folder.file("o.npy")) == "old");
  };
  using E = ElementType;
  refused(replaced("q", folder.file("none.npy")), "cannot be opened");
  const std::string whole = content(folder.file("k.npy"));
  put(folder.file("short.npy"), whole.substr(0, whole.size() - 5));
  refused(replaced("k", folder.file("short.npy")), "truncated");
  refused(replaced("q", file("a.npy", E::f32, {2, 30, 24})), "'q' has 3 axes; it needs 4");
  refused(replaced("q", file("b.npy", E::f32, {2, 30, 2, 23})), "K is");
  refused(replaced("k", file("c.npy", E::f32, {2, 29, 2, 24})), "T is");
  refused(replaced("v", file("d.npy", E::f16, {2, 30, 4, 40})), "v");
  refused(replaced("q", file("e.npy", E::i32, {2, 30, 2, 24})), "floating-point");
  refused(replaced("beta", file("f.npy", E::bf16, {2, 30, 4})), "beta");
  refused(replaced("S.initial", file("g.npy", E::f32, {3, 4, 24, 40})), "N is");
  refused(files.run({"--in", "cu_seqlens=" + file("h.npy", E::f32, {3})}), "must hold int32 or int64");
  refused(files.run({"--in", "w=" + folder.file("k.npy")}), "reads no tensor 'w'");
  refused(files.run({"--in", "q=" + folder.file("k.npy")}), "'q' twice");
  refused(files.run({"--in", "q"}), "NAME=VALUE");
  refused(files.run({"--out", "p=" + folder.file("p.npy")}), "gives no tensor 'p'");
  refused(files.run({"--out", "S.final=" + folder.file("o.npy")}), "would be written twice");
  refused(replaced("q", folder.file("none.safetensors")), "cannot be opened");
  put(folder.file("short.safetensors"), "short");
  refused(replaced("q", folder.file("short.safetensors:q")), "fewer than 8 bytes");
  refused(files.run({"--option", "speed=fast"}), "speed");
  refused(files.run({"--option", "beta=cubed"}), "cubed");
  refused(files.run({"--option", "chunk_size=17"}), "17");
  refused(files.run({"--option", "host_isa=z80"}), "z80");
  refused(files.run({"--scalar", "scale=nan"}), "not a finite number");
  refused(files.run({"--scalar", "size=1"}), "no scalar 'size'");
  refused(files.run({"--mode", "backward"}), "--mode");
  refused(files.run({"--mode", "step"}), "T");
  refused(command({"run", op, "--in", "q=" + folder.file("q.npy"), "--out", "o=" + folder.file("o.npy")}),
          "needs the tensor");
  refused(command({"run", op}), "--out");

  // Ragged: borders that decrease, that end beyond the tokens, and too many states for the sequences.
  Case c = small();
  c.ragged_bits = 64;
  const Problem ragged = problem(c, {10, 20});
  const Folder second;
  const Files more(second, ragged);
  HostTensor borders("cu_seqlens", E::i64, {3});
  borders.set(1, 20), borders.set(2, 10);
  write_npy(second.file("cu_seqlens.npy"), borders, false);
  Outcome o = more.run({});
  CHECK(o.code == 2);
  CHECK_MESSAGE(has(o.err, "cu_seqlens"), o.err);
  CHECK(!second.has("o.npy"));
  borders.set(1, 10), borders.set(2, 31);
  write_npy(second.file("cu_seqlens.npy"), borders, false);
  CHECK(more.run({}).code == 2);
  CHECK(!second.has("o.npy"));
}

TEST_CASE("K over the limit") {
  const Folder folder;
  Case c = small(States::none);
  c.extents = {520, 40};
  const Outcome o = Files(folder, problem(c, {3})).run({});
  CHECK(o.code == 2);
  CHECK_MESSAGE(has(o.err, "512"), o.err);
  CHECK(!folder.has("o.npy"));
}
