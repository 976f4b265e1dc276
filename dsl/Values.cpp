// What has a name: operands, carries, outputs.
#include "dsl/Recorder.h"
#include <algorithm>

namespace latile {

using Kind = Declaration::Kind;

Tile::Tile(const Operand& o, Loc l) { *this = o.read(l); }

Tile Tile::T(Loc l) const {
  if (!rec) return {};
  int n = rec->value(Arg(*this, l));
  Shape s = rec->nodes[n].shape;
  return rec->emit({.op = Op::transpose, .in = {n}, .shape = {s.c, s.r}, .io = rec->nodes[n].io, .loc = l});
}
Tile Tile::row(Loc l) const {
  if (!rec) return {};
  const Node& n = rec->nodes[node];
  if (n.shape.c != 0 && !n.poison)
    return rec->mistake(l, "row() of " + rec->show(n.shape) + ": only a column [C, 1] becomes a row", {0, n.shape.r});
  return T(l);
}
Tile Tile::col(Loc l) const {
  if (!rec) return {};
  const Node& n = rec->nodes[node];
  if (n.shape.r != 0 && !n.poison)
    return rec->mistake(l, "col() of " + rec->show(n.shape) + ": only a row [1, K] becomes a column", {n.shape.c, 0});
  return T(l);
}

Tile Operand::read(Loc l) const {
  Recorder& r = *rec;
  const Declaration d = r.decls[id];
  Shape s = d.shape;
  if (r.stack.empty())
    return r.mistake(l, "'" + d.name + "' is read outside reference, chunk, kernel and through()", s);
  if (r.in_reference() && d.kind == Kind::sequence) s.r = r.intern(std::to_string(d.rate));
  if (!d.given && !d.gate) return r.mistake(l, "'" + d.name + "' is optional and not bound: guard it with given()", s);
  if (!r.in_body()) {  // in a prologue
    if (d.kind == Kind::carry) return r.mistake(l, "carry '" + d.name + "' is read in a through()", s);
    if (!r.open_nodes.empty() && r.open_nodes.front() == -1 - id)
      return r.mistake(l, "'" + d.name + "' is read in its own through(): use the function's argument", s);
    r.decls[id].sealed = true;
    return r.emit_outermost({.op = Op::read, .shape = s, .loc = l, .decl = id, .head = d.value_head});
  }
  Body& b = r.bodies.back();
  if (d.hidden && b.kind != Body::reference)
    return r.mistake(l, "hidden carry '" + d.name + "' is read outside the reference: it exists there alone", s);
  if (d.kind == Kind::carry)
    if (auto it = b.carries.find(id); it != b.carries.end()) return Tile(rec, it->second);
  if (auto it = b.reads.find(id); it != b.reads.end()) return Tile(rec, it->second);
  if (b.kind == Body::kernel && (d.kind == Kind::sequence || d.kind == Kind::carry))
    return r.mistake(l,
                     "'" + d.name + "' is read as a whole in a kernel: a kernel reads windows, like " + d.name +
                         "(rows) or " + d.name + "(rows, columns)",
                     s);
  bool io = d.raw() && d.kind != Kind::carry && b.kind != Body::reference;  // in a reference nothing is rounded
  Tile t = r.emit_outermost({.op = Op::read, .shape = s, .io = io, .loc = l, .decl = id, .head = d.value_head});
  b.reads[id] = t.node;
  return t;
}
bool Operand::given() const { return rec->decls[id].given; }

Input& Input::neutral(double v) {
  rec->decls[id].neutral = v;
  return *this;
}
Input& Input::rate(int n) {
  rec->decls[id].rate = n;
  rec->decls[id].shape.r = rec->times(1, n);
  return *this;
}
Input& Input::optional() {
  rec->decls[id].optional = true;
  rec->decls[id].given = rec->bound(rec->decls[id].name);
  return *this;
}
Input& Input::within(double lo, double hi) {
  rec->decls[id].range = {lo, hi};
  return *this;
}
Input& Input::typical(double lo, double hi) {
  rec->decls[id].typical = {lo, hi};
  return *this;
}
Carry& Carry::typical(double lo, double hi) {
  rec->decls[id].typical = {lo, hi};
  return *this;
}
Input& Input::typical_key() {
  rec->decls[id].typical_key = true;
  return *this;
}
Input& Input::typical(const Input& other, double lo, double hi) {
  rec->decls[id].typical_of = rec->decls[other.id].name;
  return typical(lo, hi);
}
Tile Input::begin_prologue(Loc l) {
  Recorder& r = *rec;
  if (!r.stack.empty()) r.report(l, "through() of '" + r.decls[id].name + "' inside a body or another through()");
  if (!r.bodies.empty()) r.report(l, "through() of '" + r.decls[id].name + "' after a body: put it before");
  if (r.decls[id].sealed)
    r.report(l, "through() of '" + r.decls[id].name + "' after the through() of another operand has read it");
  r.open();
  r.open_nodes.push_back(-1 - id);
  return r.emit({.op = Op::argument, .shape = r.decls[id].shape, .loc = l, .head = r.decls[id].value_head});
}
void Input::end_prologue(Tile t, Loc l) {
  Recorder& r = *rec;
  int y = r.widen(r.value(Arg(t, l)), l), region = r.stack.back();
  const Node n = r.nodes[y];
  Declaration& d = r.decls[id];
  if (!(n.shape == d.shape) && !n.poison)
    r.report(l, "through() of '" + d.name + "' turns " + r.show(d.shape) + " into " + r.show(n.shape));
  r.open_nodes.pop_back();
  r.close(y);
  d.prologues.push_back(region);
  if (!n.poison) d.value_head = n.head;
}

namespace {
/// Checks shape and heads of what is assigned, and that the place is a body's outermost level.
void assign(Recorder& r, const Declaration& d, const char* what, Shape want, int node, Loc l) {
  const Node& n = r.nodes[node];
  if (n.poison) return;
  if (!(n.shape == want))
    r.report(l,
             std::string(what) + " '" + d.name + "' is " + r.show(want) + ", the assigned tile is " + r.show(n.shape));
  else if (!r.refines(d.head, n.head))
    r.report(l, std::string(what) + " '" + d.name + "' lives on " +
                    (d.head == -1 ? "no head axis" : "heads " + r.extents[d.head]) +
                    ", the assigned tile varies over " + r.extents[n.head]);
}
bool assignable(Recorder& r, const Declaration& d, const char* what, Loc l) {
  if (r.in_kernel()) {
    r.report(l, std::string(what) + " '" + d.name +
                    "' is assigned as a whole in a kernel: a kernel writes windows, like " + d.name + "(rows)");
    return false;
  }
  if (r.in_body() && r.stack.size() == 1 && r.bodies.back().kind != Body::kernel) return true;
  r.report(l, std::string(what) + " '" + d.name + "' is assigned outside reference and chunk, or inside a loop");
  return false;
}
}  // namespace

Carry& Carry::operator=(Arg a) {
  const Declaration d = rec->decls[id];
  if (!assignable(*rec, d, "carry", a.loc)) return *this;
  if (d.hidden && !rec->in_reference()) {
    rec->report(a.loc, "hidden carry '" + d.name + "' is assigned outside the reference: it exists there alone");
    return *this;
  }
  int y = rec->widen(rec->value(a), a.loc);
  assign(*rec, d, "carry", d.shape, y, a.loc);
  rec->bodies.back().carries[id] = y;
  return *this;
}

bool Output::given() const { return rec->decls[id].given; }
Output& Output::optional() {
  rec->decls[id].optional = true;
  rec->decls[id].given = rec->bound(rec->decls[id].name);
  return *this;
}
Output& Output::operator=(Arg a) {
  const Declaration d = rec->decls[id];
  if (!assignable(*rec, d, "output", a.loc)) return *this;
  int y = rec->widen(rec->value(a), a.loc);
  Shape want = d.shape;
  if (rec->in_reference()) want.r = 0;
  Body& b = rec->bodies.back();
  if (b.outputs.count(id))
    rec->report(a.loc, "output '" + d.name + "' is assigned twice");
  else
    assign(*rec, d, "output", want, y, a.loc);
  b.outputs[id] = d.type == Type::io ? rec->narrow(y, a.loc) : y;
  return *this;
}
Arg::Arg(const Output& o, Loc l)
    : tile(o.rec->mistake(l, "output '" + o.rec->decls[o.id].name + "' is read: keep its value in a Tile first",
                          o.rec->decls[o.id].shape)),
      loc(l) {}

Tile Chunk::valid(Loc l) const {
  return rec->emit({.op = Op::valid, .shape = {rec->in_reference() ? 0 : 1, 0}, .loc = l});
}
Tile Chunk::count(Loc l) const { return rec->emit({.op = Op::count, .loc = l}); }
Tile Chunk::index(Loc l) const { return rec->emit({.op = Op::index, .loc = l}); }
Tile Chunk::iota(Dim d, Loc l) const { return rec->emit({.op = Op::iota, .shape = {0, d.id}, .loc = l}); }
Tile Chunk::iota(Loc l) const {
  return rec->emit({.op = Op::iota, .shape = {rec->in_reference() ? 0 : 1, 0}, .loc = l});
}

}  // namespace latile
