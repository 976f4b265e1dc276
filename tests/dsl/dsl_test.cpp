// The recorder: what is recorded, described, and reported at which line.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include "dsl/Describe.h"
#include "dsl/Recorder.h"
#include <algorithm>
#include <doctest/doctest.h>
#include <fstream>
#include <set>

using namespace latile;

#define LATILE_BAD(name) void name(Operator&);
#include "bad_programs.inc"
#undef LATILE_BAD

namespace {

struct BadProgram {
  const char* name;
  void (*define)(Operator&);
};
const BadProgram bad_programs[] = {
#define LATILE_BAD(name) {#name, name},
#include "bad_programs.inc"
#undef LATILE_BAD
};

/// The lines of a program that end in "// MISTAKE text".
std::vector<std::pair<unsigned, std::string>> expected(const std::string& program) {
  std::ifstream file(std::string(LATILE_BAD_DIR) + "/" + program + ".cpp");
  REQUIRE(file.good());
  std::vector<std::pair<unsigned, std::string>> out;
  std::string line;
  for (unsigned n = 1; std::getline(file, line); ++n)
    if (auto at = line.find("// MISTAKE "); at != line.npos) out.push_back({n, line.substr(at + 11)});
  return out;
}

std::vector<Diagnostic> record(void (*define)(Operator&), Config config = {}) {
  Operator op("op", std::move(config));
  define(op);
  op.finish();
  return op.diagnostics();
}

const OperatorRow& row(const char* name) { return *find_operator(name); }

bool says(const std::vector<Diagnostic>& all, const std::string& text) {
  return std::any_of(all.begin(), all.end(), [&](auto& d) { return d.text.find(text) != d.text.npos; });
}

}  // namespace

TEST_CASE("each mistake is reported once, at the user's line, with both shapes") {
  for (auto& p : bad_programs) {
    CAPTURE(p.name);
    Config config;
    if (std::string(p.name) == "optional_not_bound") config.bound = {"q", "k", "v", "g", "o"};
    auto found = record(p.define, config);
    auto want = expected(p.name);
    for (auto& d : found) INFO(d.message());
    REQUIRE(found.size() == want.size());
    for (std::size_t i = 0; i < want.size(); ++i) {
      CAPTURE(found[i].text);
      CHECK(found[i].loc.line() == want[i].first);
      CHECK(found[i].text.find("op: " + want[i].second) == 0);
      CHECK(std::string(found[i].loc.file_name()).ends_with(std::string(p.name) + ".cpp"));
    }
  }
}

TEST_CASE("the built-in operators record without mistakes, with every option") {
  for (auto& r : operators()) {
    CAPTURE(r.name);
    OperatorInfo all = discover(r);
    for (auto& option : all.options)
      for (auto& value : option.values) {
        std::vector<Diagnostic> mistakes;
        OperatorInfo one = describe(r, {{{option.name, value}}, {}}, mistakes);
        CHECK(mistakes.empty());
        CHECK((one.has_reference || one.has_chunk));  // an option may rule one of them out
      }
  }
}

TEST_CASE("describing and discovering") {
  std::vector<Diagnostic> mistakes;
  OperatorInfo plain = describe(row("gated_delta_rule"), {}, mistakes);
  CHECK(mistakes.empty());
  CHECK(plain.tensor("A_log") == nullptr);
  REQUIRE(plain.tensor("q"));
  CHECK(plain.tensor("q")->dims == std::vector<std::string>{"H", "K"});
  CHECK(plain.tensor("q")->head == "H");
  CHECK(plain.tensor("g")->gate);
  CHECK(plain.tensor("g")->type == Type::any);
  CHECK(plain.tensor("S")->kind == TensorInfo::Kind::carry);
  REQUIRE(plain.dim("HV"));
  CHECK(plain.dim("HV")->head);
  CHECK(plain.dim("HV")->group == "H");
  CHECK_FALSE(plain.scalars[0].fallback.has_value());

  OperatorInfo all = discover(row("gated_delta_rule"));
  CHECK(all.tensor("A_log"));
  CHECK(all.tensor("dt_bias"));
  CHECK(all.tensor("dt_bias")->optional);
  auto beta = std::find_if(all.options.begin(), all.options.end(), [](auto& o) { return o.name == "beta"; });
  REQUIRE(beta != all.options.end());
  CHECK(beta->values == std::vector<std::string>{"given", "sigmoid", "twice_sigmoid"});

  OperatorInfo bound = describe(row("simple_gla"), {{}, {"q", "k", "v", "o", "S.final"}}, mistakes);
  CHECK(mistakes.empty());
  CHECK_FALSE(bound.tensor("g")->given);
  CHECK(bound.tensor("S")->given);
}

TEST_CASE("options and tensors that are not there name the nearest") {
  std::vector<Diagnostic> m;
  describe(row("gated_delta_rule"), {{{"qk_norm", "true"}}, {}}, m);
  CHECK(says(m, "gated_delta_rule: there is no option 'qk_norm'; the nearest is 'qk_l2norm'"));
  m.clear();
  describe(row("gated_delta_rule"), {{{"beta", "sigmoids"}}, {}}, m);
  CHECK(says(m, "its values are given, sigmoid, twice_sigmoid"));
  m.clear();
  describe(row("gated_delta_rule"), {{{"qk_l2norm", "yes"}}, {}}, m);
  CHECK(says(m, "it is a flag: true or false"));
  m.clear();
  describe(row("simple_gla"), {{}, {"q", "k", "v", "o", "S.inital"}}, m);
  CHECK(says(m, "there is no tensor 'S.inital' with these options; the nearest is 'S.initial'"));
  m.clear();
  describe(row("gated_delta_rule"), {{{"gate_in_kernel", "true"}}, {"q", "k", "v", "beta", "o", "A_log"}}, m);
  CHECK(says(m, "gate_in_kernel needs the gate's input g"));
}

namespace {
void everything(Operator& op) {
  auto [H] = op.heads("H");
  auto [K, V] = op.dims("K", "V");
  int n = op.integer("steps", 2, 1, 8);
  auto bound = op.number("bound");
  auto q = op.sequence("q", {H, K}), k = op.sequence("k", {H, K}).rate(n), v = op.sequence("v", {H, V}).rate(n);
  auto s = op.sequence("s", {H, K}, f32).neutral(-1e30);
  auto g = op.gate("g", {H, K}).within(bound ? *bound : -5, 0);
  auto u = op.param("u", {H, K});
  auto scale = op.scalar("scale"), eps = op.scalar("eps", 1e-5);
  auto o = op.output("o", {H, V});
  auto S = op.carry("S", {H, K, V}), z = op.carry("z", {H, K}), W = op.carry("W", {H, K * K, V});
  q.through(l2norm).through([&](Tile x) { return silu(x) * u; });
  op.no_segment("for the test");
  op.chunk([&](Chunk c) {
    Tile G = cumsum(g), E = cumsum(g, {.exclusive = true}), R = cumsum(g, {.reverse = true});
    Tile A = decayed_scores(q, q, E, G, strict) + diagonal(rowsum(q * u * q));
    Tile B = decayed_apply(A, q, G, G, lower) + decayed_apply_transposed(A, q, G, G, lower);
    Tile x = solve(q, 3, [&](Tile t) { return dot(dot(t, q.T(), Dot::precise), B, Dot::precise) + eps * t; });
    Tile y = loop(3, x, [&](Tile t) { return affine_scan(g, t, z) * c.valid(); });
    Tile w = with_adjoint(y, [&](Tile t) { return tanh(t); }, [&](Tile, Tile f, Tile d) { return d * (1 - f * f); });
    Tile m = max(cummax(w, z), prev(w, z)) - logcumsumexp(s, z) + R * c.count() + c.index() + c.iota();
    Tile p = softmax_rows(select(c.valid(), m, relu(min(w, 0)))) + rowvar(w) + rowmean(w) + log(exp(w)) + log2(sqrt(w));
    Tile kn = pick(k, 1);
    o = scale * dot(p, S) + dot(masked(dot(q, k.T()), lower, n), v) * rowsum(lookup(A, Table::fenwick));
    S = S + dot(repeat_rows(p, n).T(), v) + outer(kn, last(v)) / (1 + softplus(colsum(p).col()));
    z = last_valid(p) + stop_gradient(rsqrt(z)) - kn;
    Tile T = inverse_unit_lower(-A * decay(rowsum(G), rowsum(G), strict));
    Tile levels = lookup(A, Table::fenwick, c.count()) * rowsum(kron_rows(q, q * c.iota(K)));
    W = W + exp2(last(rowsum(G))) * dot(kron_rows(q).T(), dot(T + levels, dot(q, S)));
  });
}
void window(Operator& op) {
  auto [D, W] = op.dims("D", "W");
  auto x = op.sequence("x", {D});
  auto w = op.param("w", {W, D}, Type::any), u = op.param("u", {D});
  auto y = op.output("y", {D});
  auto h = op.carry("h", {W, D});
  op.reference([&](Token) {
    h = next(h, x);
    y = floor(colsum(w * h)) * u;
  });
  op.kernel([&](Kernel k) {
    Rows i = k.rows();
    Tile most = k.rowmax(D, [&](Columns j) { return x(i - 2, j); });
    Tile mean = k.rowmean(D, [&](Columns j) { return x(i, j) + 1; }), all = rowsum(x(i));
    k.columns(D, [&](Columns j) {
      Tile z = k.sum(W, [&](Tap t) { return w(t, j) * x(i - t.reversed(), j, h); });
      y(i, j) = floor(z) * u(j) + (most + mean + all);
    });
  });
  op.kernel([&](Kernel k) {
    Rows e = k.last(W);
    h(e) = x(e, h);
  });
}
}  // namespace

TEST_CASE("every function of the language is recorded") {
  Operator op("everything");
  everything(op);
  op.finish();
  for (auto& d : op.diagnostics()) MESSAGE(d.message());
  CHECK(op.diagnostics().empty());
  std::set<Op> seen;
  for (auto& n : op.rec()->nodes) seen.insert(n.op);
  Operator lower_layer("window");
  window(lower_layer);
  lower_layer.finish();
  CHECK(lower_layer.diagnostics().empty());
  for (auto& n : lower_layer.rec()->nodes) seen.insert(n.op);
  for (int i = 0; i <= static_cast<int>(Op::store); ++i) {
    CAPTURE(std::string(name(static_cast<Op>(i))));
    CHECK(seen.count(static_cast<Op>(i)) == (static_cast<Op>(i) == Op::poison ? 0 : 1));
  }
  CHECK(op.info().no_segment == "for the test");
  CHECK(op.info().tensor("k")->rate == 2);
  CHECK(op.info().tensor("s")->neutral == -1e30);
}

TEST_CASE("products of extents are one symbol whatever their order") {
  Recorder r;
  int k = r.intern("K"), v = r.intern("V");
  CHECK(r.product(k, v) == r.product(v, k));
  CHECK(r.times(r.times(k, 2), 3) == r.times(k, 6));
  CHECK(r.times(k, 1) == k);
}

TEST_CASE("a prologue keeps the neutral value or it doesn't") {
  Operator op("op");
  auto [H] = op.heads("H");
  auto [K] = op.dims("K");
  auto q = op.sequence("q", {H, K}), b = op.sequence("b", {H}), w = op.sequence("w", {H}).neutral(0.5);
  auto A = op.param("A", {H});
  q.through(l2norm);
  b.through([](Tile x) { return sigmoid(x); });
  w.through([](Tile x) { return sigmoid(x); });
  auto g = op.gate("g", {H});
  auto h = op.gate("h", {H});
  h.through([&](Tile x) { return x + A; });
  auto& d = op.rec()->decls;
  CHECK(keeps_neutral(*op.rec(), d[q.id]));
  CHECK_FALSE(keeps_neutral(*op.rec(), d[b.id]));
  CHECK(keeps_neutral(*op.rec(), d[w.id]));
  CHECK(keeps_neutral(*op.rec(), d[g.id]));
  CHECK_FALSE(keeps_neutral(*op.rec(), d[h.id]));
}

TEST_CASE("a deep body is recorded and ordered without recursion") {
  Operator op("op");
  auto [H] = op.heads("H");
  auto [K] = op.dims("K");
  auto x = op.sequence("x", {H, K});
  auto h = op.carry("h", {H, K});
  op.reference([&](Token) {
    for (int i = 0; i < 50000; ++i) h = h + 1;
    h = h + x;
  });
  CHECK(op.diagnostics().empty());
  CHECK(op.text().size() > 100000);
}

TEST_CASE("registering an operator") {
  auto define = +[](Operator& op) { everything(op); };
  CHECK(register_operator({"everything", define, "for the test", 0.001, 0.001}));
  CHECK_FALSE(register_operator({"everything", define, "again", 0.001, 0.001}));
  CHECK(find_operator("everything"));
  CHECK(operators().back().name == "everything");
  CHECK(find_operator("nothing") == nullptr);
}
