// Declarations, options, bodies.
#include "dsl/Recorder.h"
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <tuple>

namespace latile {

std::string Diagnostic::message() const {
  if (loc.line() == 0) return text;
  return std::string(loc.file_name()) + ":" + std::to_string(loc.line()) + ": " + text;
}

Operator::Operator(std::string name, Config c) : impl(std::make_unique<Recorder>()) {
  impl->name = std::move(name);
  impl->config = std::move(c);
}
Operator::~Operator() = default;

Dim operator*(Dim a, Dim b) { return {a.rec, a.rec->product(a.id, b.id)}; }

Dim Operator::dim(std::string_view s, bool head) {
  Recorder& r = *impl;
  auto cut = s.find(" % ");
  int id = r.intern(std::string(s.substr(0, cut)));
  r.is_head[id] = head;
  if (cut != s.npos) {
    int coarse = r.intern(std::string(s.substr(cut + 3)));  // may move the vectors
    r.parent[id] = coarse;
  }
  if (std::find(r.declared_dims.begin(), r.declared_dims.end(), id) == r.declared_dims.end())
    r.declared_dims.push_back(id);
  return {impl.get(), id};
}

namespace {
using Kind = Declaration::Kind;

int declare(Recorder& r, Kind kind, std::string_view name, std::initializer_list<Dim> dims, Type type, Loc l) {
  Declaration d;
  d.kind = kind;
  d.name = name;
  d.type = type;
  d.loc = l;
  for (auto& other : r.decls)
    if (other.name == d.name) r.report(l, "'" + d.name + "' is declared twice");
  std::vector<int> inner;
  for (Dim x : dims) {
    d.dims.push_back(x.id);
    if (!r.is_head[x.id])
      inner.push_back(x.id);
    else if (d.head != -1 || !inner.empty())
      r.report(l, "'" + d.name + "': one head axis at most, and before the other dimensions");
    else
      d.head = x.id;
  }
  d.value_head = d.head;
  bool rows = kind == Kind::sequence || kind == Kind::output;
  std::size_t limit = rows ? 1 : 2;
  if (inner.size() > limit) {
    r.report(l, "'" + d.name + "' has " + std::to_string(inner.size()) + " dimensions besides its head axis; a " +
                    (rows ? "sequence" : "tensor without rows") + " has at most " + std::to_string(limit));
    inner.resize(limit);
  }
  if (rows)
    d.shape = {1, inner.empty() ? 0 : inner[0]};
  else if (inner.size() == 1)
    d.shape = {0, inner[0]};
  else if (inner.size() == 2)
    d.shape = {inner[0], inner[1]};
  r.decls.push_back(std::move(d));
  return static_cast<int>(r.decls.size()) - 1;
}

const std::string* given_option(Recorder& r, std::string_view n) {
  for (auto& [k, v] : r.config.options)
    if (k == n) return &v;
  return nullptr;
}

void add_option(Recorder& r, OptionInfo o) {
  for (auto& other : r.options)
    if (other.name == o.name) return;
  r.options.push_back(std::move(o));
}
}  // namespace

Input Operator::sequence(std::string_view n, std::initializer_list<Dim> d, Type t, Loc l) {
  return {rec(), declare(*rec(), Kind::sequence, n, d, t, l)};
}
Input Operator::gate(std::string_view n, std::initializer_list<Dim> d, Loc l) {
  int i = declare(*rec(), Kind::sequence, n, d, Type::any, l);
  rec()->decls[i].gate = true;
  return {rec(), i};
}
Input Operator::param(std::string_view n, std::initializer_list<Dim> d, Type t, Loc l) {
  return {rec(), declare(*rec(), Kind::param, n, d, t, l)};
}
Operand Operator::scalar(std::string_view n, std::optional<double> fallback, Loc l) {
  int i = declare(*rec(), Kind::scalar, n, {}, Type::f32, l);
  rec()->decls[i].fallback = fallback;
  return {rec(), i};
}
Carry Operator::carry(std::string_view n, std::initializer_list<Dim> d, Type t, Loc l) {
  return {rec(), declare(*rec(), Kind::carry, n, d, t, l)};
}
Carry Operator::hidden(std::string_view n, std::initializer_list<Dim> d, Loc l) {
  int i = declare(*rec(), Kind::carry, n, d, Type::f32, l);
  rec()->decls[i].hidden = true;
  return {rec(), i};
}
Output Operator::output(std::string_view n, std::initializer_list<Dim> d, Type t, Loc l) {
  return {rec(), declare(*rec(), Kind::output, n, d, t, l)};
}

bool Operator::flag(std::string_view n, bool fallback) {
  add_option(*rec(), {OptionInfo::Kind::flag, std::string(n), fallback ? "true" : "false", 0, 1, {"false", "true"}});
  auto* s = given_option(*rec(), n);
  if (!s) return fallback;
  if (*s == "true" || *s == "1") return true;
  if (*s != "false" && *s != "0")
    rec()->report({}, "option '" + std::string(n) + "' is '" + *s + "'; it is a flag: true or false");
  return false;
}
int Operator::integer(std::string_view n, int fallback, int lo, int hi) {
  add_option(*rec(), {OptionInfo::Kind::integer, std::string(n), std::to_string(fallback), lo, hi, {}});
  auto* s = given_option(*rec(), n);
  if (!s) return fallback;
  int v = 0;
  auto [end, error] = std::from_chars(s->data(), s->data() + s->size(), v);
  if (error == std::errc() && end == s->data() + s->size() && v >= lo && v <= hi) return v;
  rec()->report({}, "option '" + std::string(n) + "' is '" + *s + "'; it is a whole number from " + std::to_string(lo) +
                        " to " + std::to_string(hi));
  return fallback;
}
std::optional<double> Operator::number(std::string_view n) { return number(n, -HUGE_VAL, HUGE_VAL); }
std::optional<double> Operator::number(std::string_view n, double least, double most) {
  OptionInfo info{OptionInfo::Kind::number, std::string(n), "", 0, 0, {}};
  if (std::isfinite(least)) info.range = {least, most};
  add_option(*rec(), std::move(info));
  auto* s = given_option(*rec(), n);
  if (!s) return {};
  double v = 0;
  auto [end, error] = std::from_chars(s->data(), s->data() + s->size(), v);
  const bool number = error == std::errc() && end == s->data() + s->size();
  if (number && v >= least && v <= most) return v;
  char range[64] = "";
  if (std::isfinite(least)) std::snprintf(range, sizeof range, " from %g to %g", least, most);
  rec()->report({}, "option '" + std::string(n) + "' is '" + *s + "'; it is a number" + range);
  return {};
}
std::string_view Operator::choice(std::string_view n, std::initializer_list<std::string_view> all) {
  std::vector<std::string> values(all.begin(), all.end());
  add_option(*rec(), {OptionInfo::Kind::choice, std::string(n), values[0], 0, 0, values});
  auto* s = given_option(*rec(), n);
  if (!s) return *all.begin();
  for (auto a : all)
    if (a == *s) return a;
  std::string text = "option '" + std::string(n) + "' is '" + *s + "'; its values are";
  for (auto& v : values) text += (&v == &values[0] ? " " : ", ") + v;
  rec()->report({}, text);
  return *all.begin();
}
void Operator::require(bool ok, std::string_view why, Loc l) {
  if (!ok) rec()->report(l, std::string(why));
}
int Operator::mini_batch() {
  std::string_view text = choice("mini_batch", {"16", "32", "64"});
  std::from_chars(text.data(), text.data() + text.size(), rec()->mini_batch);
  return rec()->mini_batch;
}
void Operator::limit(Dim d, int most, std::string_view why) { rec()->limits[d.id] = {most, std::string(why)}; }
void Operator::no_segment(std::string_view why) { rec()->no_segment = why; }
void Operator::no_prefill(std::string_view why) { rec()->no_prefill = why; }

void Operator::begin(int kind, Loc l) {
  auto one = [&](Body::Kind k) { return rec()->body(k) != nullptr; };
  if (kind != Body::kernel && one(static_cast<Body::Kind>(kind)))
    rec()->report(l, std::string(kind == Body::reference ? "reference" : "chunk") + " is given twice");
  else if (kind == Body::kernel ? one(Body::chunk) : kind == Body::chunk && one(Body::kernel))
    rec()->report(l, "chunk and kernel are both given: prefill is one or the other");
  Body b;
  b.kind = kind;
  b.region = rec()->open();
  rec()->bodies.push_back(std::move(b));
}
void Operator::end(Loc l) {
  Recorder& r = *rec();
  const Body& b = r.bodies.back();
  std::string which = b.kind == Body::reference ? "reference" : "chunk";
  if (b.kind != Body::kernel)
    for (std::size_t i = 0; i < r.decls.size(); ++i) {
      const Declaration& d = r.decls[i];
      if (d.kind == Kind::carry && !(d.hidden && b.kind == Body::chunk) && !b.carries.count(static_cast<int>(i)))
        r.report(l, which + " never assigns carry '" + d.name + "'");
      if (d.kind == Kind::output && d.given && !b.outputs.count(static_cast<int>(i)))
        r.report(l, which + " never assigns output '" + d.name + "'");
    }
  if (b.kind == Body::kernel && b.grid == -1) r.report(l, "a kernel has no grid: it begins with rows() or last(n)");
  r.stack.pop_back();
}

void Operator::finish() {
  Recorder& r = *rec();
  std::vector<std::string> known;
  for (auto& o : r.options) known.push_back(o.name);
  for (auto& [k, v] : r.config.options) {
    if (std::find(known.begin(), known.end(), k) != known.end()) continue;
    std::string near = nearest(k, known), text = "there is no option '" + k + "'";
    if (!near.empty())
      text += "; the nearest is '" + near + "'";
    else if (known.empty())
      text += "; this operator has none";
    else
      for (auto& n : known) text += (&n == &known[0] ? "; there are " : ", ") + n;
    r.report({}, text);
  }
  std::vector<std::string> tensors{"cu_seqlens", "accepted"};
  for (auto& d : r.decls)
    if (d.hidden)
      continue;
    else if (d.kind == Kind::carry)
      for (const char* part : {".initial", ".initial_index", ".final", ".final_index", ".history", ".history_index"})
        tensors.push_back(d.name + part);
    else if (d.kind != Kind::scalar)
      tensors.push_back(d.name);
  for (auto& b : r.config.bound) {
    if (std::find(tensors.begin(), tensors.end(), b) != tensors.end()) continue;
    std::string near = nearest(b, tensors);
    r.report({}, "there is no tensor '" + b + "' with these options" +
                     (near.empty() ? std::string() : "; the nearest is '" + near + "'"));
  }
  // The kernels together write everything.
  if (r.body(Body::kernel) || (!r.externs.empty() && !r.body(Body::chunk)))
    for (std::size_t i = 0; i < r.decls.size(); ++i) {
      const Declaration& d = r.decls[i];
      bool written = (d.kind != Kind::output && d.kind != Kind::carry) || !d.given;
      for (const Body& b : r.bodies)
        if (b.kind == Body::kernel)
          written |= b.outputs.count(static_cast<int>(i)) || b.carries.count(static_cast<int>(i));
      for (const ExternDefinition& e : r.externs)
        for (const std::string& tensor : e.kernel.writes) written |= tensor.substr(0, tensor.find('.')) == d.name;
      if (!written) r.report(d.loc, "no kernel writes '" + d.name + "'");
    }
  if (r.bodies.empty()) r.report({}, "no body is given: an operator has a reference, a chunk or a kernel");
}

const std::vector<Diagnostic>& Operator::diagnostics() const { return impl->mistakes; }

OperatorInfo Operator::info() const {
  const Recorder& r = *impl;
  OperatorInfo out;
  out.name = r.name;
  for (int d : r.declared_dims)
    out.dims.push_back({r.extents[d], r.is_head[d], r.parent[d] == -1 ? "" : r.extents[r.parent[d]]});
  for (std::size_t i = 0; i < out.dims.size(); ++i)
    if (auto it = r.limits.find(r.declared_dims[i]); it != r.limits.end())
      std::tie(out.dims[i].most, out.dims[i].limit_why) = it->second;
  for (auto& d : r.decls) {
    if (d.hidden) continue;
    if (d.kind == Kind::scalar) {
      out.scalars.push_back({d.name, d.fallback});
      continue;
    }
    TensorInfo t;
    static constexpr TensorInfo::Kind kinds[] = {TensorInfo::Kind::sequence, TensorInfo::Kind::param,
                                                 TensorInfo::Kind::sequence, TensorInfo::Kind::carry,
                                                 TensorInfo::Kind::output};
    t.kind = kinds[static_cast<int>(d.kind)];
    t.name = d.name;
    for (int x : d.dims) t.dims.push_back(r.extents[x]);
    if (d.head != -1) t.head = r.extents[d.head];
    t.type = d.type;
    t.gate = d.gate;
    t.optional = d.optional;
    t.given = r.bound(d.name);
    t.rate = d.rate;
    t.neutral = d.neutral;
    t.typical = d.typical;
    t.typical_key = d.typical_key;
    t.typical_of = d.typical_of;
    out.tensors.push_back(std::move(t));
  }
  out.options = r.options;
  out.no_segment = r.no_segment;
  out.no_prefill = r.no_prefill;
  out.mini_batch = r.mini_batch;
  if (r.mini_batch)
    out.no_step =
        "its tokens are taken in mini-batches, whose length is part of the meaning, and between two tokens of "
        "one there is no state that a tensor holds";
  out.has_reference = r.body(Body::reference) != nullptr;
  out.has_chunk = r.body(Body::chunk) != nullptr;
  out.has_kernel = r.body(Body::kernel) != nullptr || (!r.externs.empty() && !out.has_chunk);
  if (!r.externs.empty()) out.extern_kernel = r.externs.front().kernel.entry;
  return out;
}

}  // namespace latile
