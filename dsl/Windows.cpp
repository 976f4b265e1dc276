// The lower layer: grids, columns, windows.
#include "dsl/Recorder.h"
#include <algorithm>

namespace latile {

using Kind = Declaration::Kind;

namespace {

/// The extent of some columns of a dimension: how many is the target's choice.
int part_of(Recorder& r, int dim) { return r.intern("part of " + r.extents[dim]); }

bool open_here(const Recorder& r, int node) {
  return std::find(r.stack.begin(), r.stack.end(), r.nodes[node].region) != r.stack.end();
}

Shape shape_of(const Window& w) {
  Recorder& r = *w.rec;
  const Declaration& d = r.decls[w.id];
  Shape s = d.shape;
  if (w.rows.node >= 0) s.r = w.rows.extent;
  if (w.tap.node >= 0) s.r = 0;
  if (w.cols.node >= 0) s.c = part_of(r, w.cols.dim);
  return s;
}

/// Reports what is wrong with a window, whether it is read or written; true when nothing is.
bool fits(const Window& w) {
  Recorder& r = *w.rec;
  const Declaration d = r.decls[w.id];
  auto wrong = [&](const std::string& what) {
    r.report(w.loc, "window of '" + d.name + "': " + what);
    return false;
  };
  if (!r.in_kernel()) return wrong("a window is read and written in a kernel only");
  for (int node : {w.rows.node, w.rows.tap, w.cols.node, w.tap.node})
    if (node >= 0 && !open_here(r, node)) return wrong("its rows, columns or tap are those of another kernel or loop");
  if (w.rows.taps > 1) return wrong("its rows are moved by one tap, not by two");
  if (!d.given) return wrong("it is optional and not bound: guard it with given()");
  if (!d.prologues.empty() || d.gate || d.neutral != 0 || d.rate != 1)
    return wrong("through(), neutral values, gates and rates are for chunk bodies: write the work into the kernel");
  if (w.cols.node >= 0 && w.cols.dim != d.shape.c)
    return wrong("columns of " + r.extents[w.cols.dim] + ", while its last extent is " + r.extents[d.shape.c]);
  if (w.tap.node >= 0 && (d.kind != Kind::param || w.tap.dim != d.shape.r))
    return wrong("a tap of " + r.extents[w.tap.dim] + " picks a row of a parameter with that many rows, and it is " +
                 r.show(d.shape));
  if (w.rows.node >= 0 && d.kind == Kind::param) return wrong("it is a parameter and has no rows of a sequence");
  if (w.before < 0) return true;
  const Declaration& state = r.decls[w.before];
  if (d.head != -1 || state.head != -1 || state.shape.c != d.shape.c)
    return wrong("state '" + state.name + "' of " + r.show(state.shape) +
                 " cannot hold rows before it: neither has a " + "head axis, and the last extent is the same");
  return true;
}

int store(const Window& w, int value, Loc l) {
  std::vector<int> in{value};
  for (int node : {w.rows.node, w.cols.node}) in.push_back(node);
  std::erase(in, -1);
  Tile t = w.rec->emit({.op = Op::store,
                        .in = in,
                        .shape = shape_of(w),
                        .loc = l,
                        .decl = w.id,
                        .rows = w.rows.node,
                        .cols = w.cols.node});
  return t.node;
}

Columns begin(Recorder* r, Op op, Dim d, int n, Loc l) {
  Tile t = r->emit({.op = op, .loc = l, .n = n, .decl = d.id});
  int region = r->open();
  r->nodes[t.node].regions.push_back(region);
  r->open_nodes.push_back(t.node);
  return {r, r->emit({.op = Op::argument, .loc = l}).node, d.id};
}

}  // namespace

Arg::Arg(const Window& w, Loc l) : tile(Tile(w)), loc(l) {}

Window::operator Tile() const {
  const Declaration d = rec->decls[id];
  Shape s = shape_of(*this);
  if (d.kind == Kind::output)
    return rec->mistake(loc, "output '" + d.name + "' is read: keep its value in a Tile first", s);
  if (d.kind == Kind::carry)
    return rec->mistake(loc,
                        "carry '" + d.name +
                            "' is read: a kernel reads a state as what comes before a sequence, like x(" + "rows, " +
                            d.name + ")",
                        s);
  if (!fits(*this)) return rec->poison(loc, s);
  std::vector<int> in;
  for (int node : {rows.node, rows.tap, cols.node, tap.node}) in.push_back(node);
  std::erase(in, -1);
  return rec->emit({.op = Op::load,
                    .in = in,
                    .shape = s,
                    .io = d.raw(),
                    .loc = loc,
                    .n = rows.back,
                    .decl = id,
                    .before = before,
                    .rows = rows.node,
                    .cols = cols.node,
                    .tap = rows.tap >= 0 ? rows.tap : tap.node,
                    .reverse = rows.tap >= 0 ? rows.tap_reversed : tap.is_reversed,
                    .head = d.head});
}

Window& Window::operator=(Arg a) {
  Recorder& r = *rec;
  const Declaration d = r.decls[id];
  int y = r.value(a);
  const Node n = r.nodes[y];
  Shape want = shape_of(*this);
  auto wrong = [&](const std::string& what) -> Window& {
    r.report(a.loc, what);
    return *this;
  };
  if (d.kind != Kind::output && d.kind != Kind::carry)
    return wrong("'" + d.name + "' is an input and cannot be written");
  if (r.in_kernel()) (d.kind == Kind::carry ? r.bodies.back().carries : r.bodies.back().outputs)[id] = y;
  if (!fits(*this)) return *this;
  for (int node : r.open_nodes)
    if (r.nodes[node].op != Op::columns || r.nodes[node].n != 0)
      return wrong("'" + d.name + "' is written inside a sum or loop: a window is written at the kernel's outermost " +
                   "level or in columns()");
  if (rows.back != 0 || rows.taps != 0)
    return wrong("'" + d.name + "' is written at other rows than the program's own");
  bool last = r.nodes[rows.node].n == 1;
  if (d.kind == Kind::carry && (!last || rows.extent != d.shape.r))
    return wrong("carry '" + d.name + "' is written by a kernel over last(" + r.extents[d.shape.r] + ")");
  if (d.kind == Kind::output && last) return wrong("output '" + d.name + "' is written by a kernel over rows()");
  if (n.poison) return *this;
  bool fits_rows = n.shape.r == want.r || n.shape.r == 0, fits_cols = n.shape.c == want.c || n.shape.c == 0;
  if (!fits_rows || !fits_cols)
    return wrong("'" + d.name + "' is written as " + r.show(want) + ", the assigned tile is " + r.show(n.shape));
  if (!r.refines(d.head, n.head))
    return wrong("'" + d.name + "' lives on " + (d.head == -1 ? "no head axis" : "heads " + r.extents[d.head]) +
                 ", the assigned tile varies over " + r.extents[n.head]);
  (void)store(*this, d.type == Type::io ? r.narrow(y, a.loc) : r.widen(y, a.loc), a.loc);
  return *this;
}

Rows operator-(Rows r, int n) {
  r.back += n;
  return r;
}
Rows operator-(Rows r, Tap t) {
  ++r.taps;
  r.tap = t.node;
  r.tap_reversed = t.is_reversed;
  return r;
}

static Window window(Recorder* r, int id, Loc l) {
  Window w{};
  w.rec = r, w.id = id, w.loc = l;
  return w;
}
static Window window(Recorder* r, int id, Rows i, Loc l) {
  Window w = window(r, id, l);
  w.rows = i;
  return w;
}
static Window window(Recorder* r, int id, Rows i, Columns j, Loc l) {
  Window w = window(r, id, i, l);
  w.cols = j;
  return w;
}
Window Input::operator()(Rows i, Loc l) const { return window(rec, id, i, l); }
Window Input::operator()(Rows i, Columns j, Loc l) const { return window(rec, id, i, j, l); }
Window Input::operator()(Rows i, const Carry& before, Loc l) const {
  Window w = window(rec, id, i, l);
  w.before = before.id;
  return w;
}
Window Input::operator()(Rows i, Columns j, const Carry& before, Loc l) const {
  Window w = window(rec, id, i, j, l);
  w.before = before.id;
  return w;
}
Window Input::operator()(Columns j, Loc l) const {
  Window w = window(rec, id, l);
  w.cols = j;
  return w;
}
Window Input::operator()(Tap t, Loc l) const {
  Window w = window(rec, id, l);
  w.tap = t;
  return w;
}
Window Input::operator()(Tap t, Columns j, Loc l) const {
  Window w = (*this)(t, l);
  w.cols = j;
  return w;
}
Window Output::operator()(Rows i, Loc l) const { return window(rec, id, i, l); }
Window Output::operator()(Rows i, Columns j, Loc l) const { return window(rec, id, i, j, l); }
Window Carry::operator()(Rows i, Loc l) const { return window(rec, id, i, l); }
Window Carry::operator()(Rows i, Columns j, Loc l) const { return window(rec, id, i, j, l); }

static Rows grid(Recorder* r, int extent, int kind, Loc l) {
  Tile t = r->emit_outermost({.op = Op::grid, .shape = {extent, 0}, .loc = l, .n = kind});
  if (int& known = r->bodies.back().grid; known == -1)
    known = t.node;
  else
    r->report(l, "a kernel has one grid: rows() or last(n), once");
  return {r, t.node, extent};
}
Rows Kernel::rows(Loc l) const { return grid(rec, 1, 0, l); }
Rows Kernel::last(Dim n, Loc l) const { return grid(rec, n.id, 1, l); }
Rows Kernel::last(Loc l) const { return grid(rec, 0, 1, l); }

namespace detail {

Columns begin_columns(Recorder* r, Dim d, Over what, Loc l) {
  return begin(r, Op::columns, d, static_cast<int>(what), l);
}
Tap begin_taps(Recorder* r, Dim d, Loc l) {
  return {r, begin(r, Op::taps, d, static_cast<int>(Over::taps), l).node, d.id};
}
void end_columns(Recorder* r) {
  r->open_nodes.pop_back();
  r->close(-1);
}
Tile end_columns(Recorder* r, Arg result) {
  int y = r->widen(r->value(result), result.loc), n = r->open_nodes.back();
  r->open_nodes.pop_back();
  r->close(y);
  const Node yield = r->nodes[y];
  Node& node = r->nodes[n];
  node.shape = yield.shape;
  if (node.op == Op::columns) {
    int part = part_of(*r, node.decl);
    if (yield.shape.c != part && !yield.poison)
      r->report(result.loc, "the function gives " + r->show(yield.shape) + " for some columns of " +
                                r->extents[node.decl] + "; it gives a value for each of them");
    r->nodes[n].shape.c = 0;
  }
  r->nodes[n].poison |= yield.poison;
  r->nodes[n].head = yield.head;
  return Tile(r, n);
}

}  // namespace detail

}  // namespace latile
