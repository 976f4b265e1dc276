// Definitions to tile IR: what verifies, what folds, where things are cast.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include "compiler/Emit.h"
#include "dialect/Tile.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Verifier.h"
#include <cstdlib>
#include <doctest/doctest.h>
#include <iostream>

using namespace latile;

namespace {

Specialisation specialise(const std::string& op, Mode mode, ElementType io, const std::vector<std::string>& tensors,
                          std::vector<std::pair<std::string, std::string>> options = {}) {
  Specialisation s;
  s.op = op;
  s.mode = mode;
  s.io = io;
  s.chunk = 64;
  s.extents = {{"K", 128}, {"V", 96}};
  s.options = std::move(options);
  for (auto& t : tensors) {
    ElementType type = t == "q" || t == "k" || t == "v" || t == "o" ? io : ElementType::f32;
    if (t.ends_with("_index") || t == "cu_seqlens" || t == "accepted") type = ElementType::i32;
    s.tensors.push_back({t, type, -1});
  }
  return s;
}

struct Emitted {
  std::string text;
  std::vector<Diagnostic> mistakes;
  int count(const std::string& what) const {
    int n = 0;
    for (std::size_t at = 0; (at = text.find(what, at)) != text.npos; ++at) ++n;
    return n;
  }
};

Emitted emit(const Specialisation& s) {
  mlir::MLIRContext context;
  Emitted out;
  auto module = emit_program(*find_operator(s.op), s, context, out.mistakes);
  if (!module) return out;
  CHECK(mlir::succeeded(mlir::verify(*module)));
  llvm::raw_string_ostream stream(out.text);
  module->print(stream);
  if (std::getenv("LATILE_TEST_PRINT")) std::cout << out.text << std::endl;
  return out;
}

const std::vector<std::string> gated{"q", "k", "v", "g", "beta", "o", "S.initial", "S.final"};
constexpr Mode modes[] = {Mode::prefill, Mode::recurrent, Mode::step};

}  // namespace

TEST_CASE("the three operators verify in every mode and type") {
  for (Mode mode : modes)
    for (ElementType io : {ElementType::f32, ElementType::bf16, ElementType::f16}) {
      CHECK(!emit(specialise("gated_delta_rule", mode, io, gated)).text.empty());
      CHECK(!emit(specialise("simple_gla", mode, io, {"q", "k", "v", "g", "o", "S.initial", "S.final"})).text.empty());
      CHECK(!emit(specialise("linear_attn", mode, io, {"q", "k", "v", "o", "S.initial", "z.initial"})).text.empty());
    }
}

TEST_CASE("a chunk rounds only the operands of its products and its outputs") {
  auto f32 = emit(specialise("gated_delta_rule", Mode::prefill, ElementType::f32, gated));
  CHECK(f32.count("tile.cast") == 0);
  CHECK(f32.count("precise") == 0);
  auto bf16 = emit(specialise("gated_delta_rule", Mode::prefill, ElementType::bf16, gated));
  // S, T, the residual, v_new, the scores and the decayed keys down; v and k up; o down.
  CHECK(bf16.count("tile.cast") == 9);
  CHECK(bf16.count("math.exp2") == 3);
  CHECK(bf16.count("tile.neutral") == 0);
  CHECK(bf16.count("tile.dot") == 7);
}

TEST_CASE("a reference rounds nothing but its outputs") {
  auto step = emit(specialise("gated_delta_rule", Mode::step, ElementType::bf16, gated));
  CHECK(step.count("-> tensor<1x96xbf16>") == 1);
  CHECK(step.count("xbf16>\n") == 1);
  CHECK(step.count("tile.dot") == step.count("precise"));
  CHECK(step.count("step}") == 1);
  CHECK(emit(specialise("gated_delta_rule", Mode::recurrent, ElementType::bf16, gated)).count("step}") == 0);
}

TEST_CASE("an optional gate that is not bound leaves nothing behind") {
  auto none = emit(specialise("simple_gla", Mode::prefill, ElementType::bf16, {"q", "k", "v", "o", "S.final"}));
  for (const char* op : {"exp2", "cumsum", "decay", "constant", "neutral", "tile.row"}) CHECK(none.count(op) == 0);
  CHECK(none.count("tile.mask lower") == 1);
  auto plain = emit(specialise("linear_attn", Mode::prefill, ElementType::bf16, {"q", "k", "v", "o", "S.final"},
                               {{"normalize", "false"}}));
  auto body = [](const std::string& text) { return text.substr(text.find("^bb0")); };
  CHECK(plain.count("tile.dot") == none.count("tile.dot"));
  auto delta = emit(specialise("gated_delta_rule", Mode::prefill, ElementType::f32, {"q", "k", "v", "beta", "o"}));
  CHECK(delta.count("exp2") == 0);
  CHECK(delta.count("tile.mask strict") == 1);
  CHECK(body(delta.text).find("broadcast %0") == std::string::npos);
  auto recurrent = emit(specialise("simple_gla", Mode::recurrent, ElementType::f32, {"q", "k", "v", "o", "S.final"}));
  CHECK(recurrent.count("arith.mulf") == 1);  // by scale
}

TEST_CASE("a constant decay alone is a gate without its tensor") {
  auto e = emit(specialise("simple_gla", Mode::prefill, ElementType::bf16, {"q", "k", "v", "g_gamma", "o"}));
  CHECK(e.count("\"g\"") == 0);
  CHECK(e.count("tile.neutral") == 1);
  CHECK(e.count("arith.addf") == 2);  // the two of the body: 0 + gamma has none
}

TEST_CASE("prologues, and neutral rows where a prologue moves zero") {
  auto all = specialise("gated_delta_rule", Mode::prefill, ElementType::bf16,
                        {"q", "k", "v", "g", "A_log", "dt_bias", "beta", "o", "S.initial", "S.final"},
                        {{"qk_l2norm", "true"}, {"gate_in_kernel", "true"}, {"beta", "twice_sigmoid"}});
  auto e = emit(all);
  CHECK(e.count("tile.neutral") == 2);  // g and beta; a zero row stays zero under l2norm
  CHECK(e.count("math.rsqrt") == 2);
  CHECK(e.count("tile.softplus") == 1);
  CHECK(e.count("tile.sigmoid") == 1);
  all.mode = Mode::step;
  CHECK(emit(all).count("tile.neutral") == 0);
  all.tensors[3].type = all.tensors[6].type = ElementType::bf16;  // g and beta in the tensors' type
  CHECK(!emit(all).text.empty());
}

TEST_CASE("slots, ragged sequences, grouped heads") {
  auto s = specialise(
      "gated_delta_rule", Mode::prefill, ElementType::bf16,
      {"cu_seqlens", "q", "k", "v", "g", "beta", "o", "S.initial", "S.initial_index", "S.final", "S.final_index"});
  s.head_ratio = 4;
  s.tiled_heads = true;
  s.tensors[7].type = s.tensors[9].type = ElementType::bf16;
  s.tensors[1].unit = 3;
  auto e = emit(s);
  CHECK(e.count("!tile.sequences<ragged32>") == 1);
  CHECK(e.count("!tile.view<?x?x?x128xbf16, unit 3>") >= 1);
  CHECK(e.count("!tile.view<?xi32>") >= 2);
  CHECK(e.count("head_ratio = 4") == 1);
  CHECK(e.count("has_initial_index = array<i1: true>") == 1);
}

TEST_CASE("mistakes of a specialisation") {
  auto says = [](const Emitted& e, const std::string& text) {
    for (auto& m : e.mistakes)
      if (m.text.find(text) != m.text.npos) return true;
    return false;
  };
  auto s =
      specialise("gated_delta_rule", Mode::prefill, ElementType::bf16, {"q", "k", "g", "beta", "o", "S.final_index"});
  s.extents.erase("V");
  s.tensors[0].type = ElementType::f32;
  auto e = emit(s);
  CHECK(e.text.empty());
  CHECK(says(e, "the extent of dimension V is not given"));
  CHECK(says(e, "tensor 'q' is f32; it must be bf16"));
  CHECK(says(e, "tensor 'v' is needed and not bound"));
  CHECK(says(e, "'S.final_index' indexes 'S.final', which is not bound"));
}

TEST_CASE("direction, history states and accepted counts of a specialisation") {
  auto tensors = gated;
  tensors.insert(tensors.end(), {"S.initial_index", "S.history", "S.history_index", "accepted"});
  auto s = specialise("gated_delta_rule", Mode::prefill, ElementType::bf16, tensors);
  s.tensors.back().type = ElementType::i32;
  s.every = {{"S", 128}};
  s.reversed = true;
  auto e = emit(s);
  CHECK(e.mistakes.empty());
  CHECK(e.count("every = array<i64: 128>") == 1);
  CHECK(e.count("reversed") == 1);
  CHECK(e.count("%S.initial_index: !tile.view<?x?xi32>") == 1);
  CHECK(e.count("accepted(%accepted : !tile.view<?xi32>)") == 1);
  const auto says = [](const Emitted& made, const std::string& text) {
    REQUIRE(made.mistakes.size() == 1);
    return made.mistakes[0].text.find(text) != std::string::npos;
  };
  s.every = {{"S", 96}};
  CHECK(says(emit(s), "S.every is 96; the tokens between history states are a multiple of the chunk of 64"));
  s.every = {{"S", 64}};
  s.mode = Mode::step;
  CHECK(says(emit(s), "mode step keeps no history: its one state is 'S.final'"));
  s.mode = Mode::prefill;
  std::erase_if(s.tensors, [](const BoundTensor& t) { return t.name == "S.history_index"; });
  CHECK(says(emit(s), "'S.history' needs 'S.history_index', which is not bound"));
}

namespace {
void kda_like(Operator& op) {
  auto [H] = op.heads("H");
  auto [K, V] = op.dims("K", "V");
  auto q = op.sequence("q", {H, K}), v = op.sequence("v", {H, V});
  auto g = op.gate("g", {H, K}).optional();
  if (op.flag("bounded")) g.within(-5, 0);
  auto o = op.output("o", {H, V});
  auto S = op.carry("S", {H, K, V});
  op.reference([&](Token) {
    S = exp2(g).col() * S + outer(q, v);
    o = dot(q, S);
  });
  op.chunk([&](Chunk) {
    Tile G = cumsum(g);
    o = dot(decayed_scores(q, q, G, G, lower), v);
    S = exp2(last(G)).col() * S + dot(q.T(), v);
  });
}
void mesa_like(Operator& op) {
  auto [H] = op.heads("H");
  auto [K, V] = op.dims("K", "V");
  int n = op.integer("n", 2, 1, 4);
  auto q = op.sequence("q", {H, K}), k = op.sequence("k", {H, K}).rate(n), v = op.sequence("v", {H, V});
  auto s = op.sequence("s", {H}, f32).neutral(1);
  auto o = op.output("o", {H, V});
  auto A = op.carry("A", {H, K, K}), B = op.carry("B", {H, K, V});
  op.chunk([&](Chunk c) {
    Tile x = solve(q, 30, [&](Tile t) { return dot(t, A, Dot::precise) + exp(c.iota() * 0) * t * s; });
    Tile y = with_adjoint(x, [&](Tile t) { return tanh(t); }, [&](Tile, Tile f, Tile d) { return d * (1 - f * f); });
    o = dot(y, B) * c.valid() / (1 + c.index());
    A = A + dot(k.T(), k);
    B = B + dot(q.T(), v) * c.count();
  });
}
}  // namespace

TEST_CASE("operators from outside") {
  REQUIRE(register_operator({"kda_like", kda_like, "for the test", 0.01, 0.01}));
  REQUIRE(register_operator({"mesa_like", mesa_like, "for the test", 0.01, 0.01}));
  auto chunk = emit(specialise("kda_like", Mode::prefill, ElementType::bf16, {"q", "v", "g", "o"}));
  CHECK(chunk.count("tile.decayed_scores") == 1);
  CHECK(chunk.count("operand = bf16") == 1);
  CHECK(chunk.count("bound") == 0);
  auto bounded =
      emit(specialise("kda_like", Mode::prefill, ElementType::f32, {"q", "v", "g", "o"}, {{"bounded", "true"}}));
  CHECK(bounded.count("bound = -7.2134") == 1);  // in log2 units
  CHECK(bounded.count("operand") == 0);
  auto none = emit(specialise("kda_like", Mode::prefill, ElementType::bf16, {"q", "v", "o"}));
  CHECK(none.count("decayed_scores") == 0);
  CHECK(none.count("tile.mask lower") == 1);
  CHECK(!emit(specialise("kda_like", Mode::step, ElementType::bf16, {"q", "v", "g", "o"})).text.empty());
  auto mesa = emit(specialise("mesa_like", Mode::prefill, ElementType::bf16, {"q", "k", "v", "s", "o", "A.final"}));
  CHECK(mesa.count("tile.solve") == 1);
  CHECK(mesa.count("tile.neutral") == 1);
  CHECK(mesa.count("tensor<128x128xbf16>") >= 1);
  CHECK(emit(specialise("mesa_like", Mode::step, ElementType::bf16, {"q", "k", "v", "s", "o"})).mistakes.size() == 1);
}

namespace {
void shifted(Operator& op) {
  auto [K, V] = op.dims("K", "V");
  auto x = op.sequence("q", {K});
  auto o = op.output("o", {K});
  auto S = op.carry("S", {V, K});
  int far = op.flag("far") ? 97 : 3;
  op.kernel([&](Kernel k) {
    Rows i = k.rows();
    k.columns(K, [&](Columns j) { o(i, j) = x(i - far, j, S) + k.rowmax(K, [&](Columns l) { return x(i, l); }); });
  });
  op.kernel([&](Kernel k) {
    Rows e = k.last(V);
    S(e) = x(e, S);
  });
}
}  // namespace

TEST_CASE("kernels: a launch each, columns in blocks, the state only near a sequence's begin") {
  REQUIRE(register_operator({"shifted", shifted, "for the test", 0.01, 0.01}));
  auto s = specialise("shifted", Mode::prefill, ElementType::bf16, {"q", "o", "S.initial", "S.final"});
  auto narrow = emit(s);
  CHECK(narrow.count("tile.launch") == 2);
  CHECK(narrow.count("scf.if") == 2);
  CHECK(narrow.count("scf.for") == 0);
  CHECK(narrow.count("tile.store_rows") == 4);
  s.extents["K"] = 2000;  // three blocks of 512 and a rest, each with blocks of its own, at either side of the branch
  auto wide = emit(s);
  CHECK(wide.count("scf.for") == 6);
  CHECK(wide.count("tensor<64x464xbf16>") > 0);
  auto bare = emit(specialise("shifted", Mode::prefill, ElementType::f32, {"q", "o"}));
  CHECK(bare.count("tile.launch") == 1);
  CHECK(bare.count("scf.if") == 0);
  CHECK(bare.count("back 3") == 1);

  auto refused = [](const Specialisation& s, const std::string& why) {
    auto e = emit(s);
    REQUIRE(e.mistakes.size() == 1);
    CHECK(e.mistakes[0].text.find(why) != std::string::npos);
  };
  auto far = specialise("shifted", Mode::prefill, ElementType::f32, {"q", "o", "S.initial"}, {{"far", "true"}});
  refused(far, "window of 'q' reaches 97 rows before a sequence, and state 'S' holds 96");
  auto reversed = specialise("shifted", Mode::prefill, ElementType::f32, {"q", "o"});
  reversed.reversed = true;
  refused(reversed, "kernels, which do not run from the last row");
  refused(specialise("shifted", Mode::prefill, ElementType::f32, {"q", "o", "accepted"}), "take no tensor 'accepted'");
}

namespace {
/// Everything that has one lowering; its values are tested with the operators and the interpreter.
void sampler(Operator& op) {
  auto [H] = op.heads("H");
  auto [K, V] = op.dims("K", "V");
  auto x = op.sequence("q", {H, K}), s = op.sequence("v", {H, V}).neutral(-1e30);
  auto o = op.output("o", {H, V}), p = op.output("p", {H, K}, f32);
  auto m = op.carry("m", {H, K}), z = op.carry("z", {H, V}), S = op.carry("S", {H, K, V});
  auto body = [&](Chunk c) {
    Tile top = cummax(x, m), before = prev(top, m), Z = logcumsumexp(s, z);
    Tile g = select(c.valid(), min(x, 0), 0), y = affine_scan(g, before, m);
    Tile A = decayed_scores(y, x, cumsum(g), cumsum(g), lower);
    Tile w = decayed_apply(A, x, cumsum(g), cumsum(g), lower);
    Tile t = decayed_apply_transposed(A, w, cumsum(g), cumsum(g), lower);
    p = loop(3, t, [&](Tile a) { return a * rsqrt(rowmean(a * a) + 1) + pick(top, 0); });
    o = dot(kron_rows(t), dot(kron_rows(x).T(), Z)) * rowsum(t);
    m = last_valid(top), z = last_valid(Z), S = S + dot(x.T(), s);
  };
  op.reference([&](Token t) { body(t); });
  op.chunk(body);
}
}  // namespace

TEST_CASE("each function of the language has its op, in both bodies") {
  REQUIRE(register_operator({"sampler", sampler, "for the test", 0.01, 0.01}));
  for (Mode mode : modes) {
    auto e = emit(specialise("sampler", mode, ElementType::bf16, {"q", "v", "o", "p", "m.initial", "m.final"}));
    for (auto& m : e.mistakes) FAIL_CHECK(m.message());
    for (const char* op : {"tile.cummax", "tile.prev", "tile.logcumsumexp", "tile.affine_scan", "tile.decayed_scores",
                           "scf.for", "arith.cmpf une", "arith.select", "tile.kron_rows", "transposed"})
      CHECK_MESSAGE(e.count(op) >= 1, std::string(op));
    CHECK(e.count("tile.row last_valid") == 2);
    CHECK(e.count("operand = bf16") == (mode == Mode::prefill ? 3 : 0));
  }
}
