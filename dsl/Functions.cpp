// The functions of the language: each checks its shapes and records one operation, or its parts.
#include "dsl/Recorder.h"

namespace latile {
namespace {

Recorder* owner(std::initializer_list<const Arg*> args) {
  for (auto* a : args)
    if (a->tile.rec) return a->tile.rec;
  return nullptr;  // numbers and empty tiles alone: an empty tile, reported where it is used
}

/// The operands as float32 nodes, and whether one of them is poisoned.
struct Operands {
  Recorder* r;
  std::vector<int> in;
  bool poison = false;
  explicit Operands(std::initializer_list<const Arg*> args, bool widen = true) : r(owner(args)) {
    if (!r) return;
    for (auto* a : args) {
      int n = r->value(*a);
      in.push_back(widen ? r->widen(n, a->loc) : n);
      poison |= r->nodes[in.back()].poison;
    }
  }
  Shape shape(int i) const { return r->nodes[in[i]].shape; }
};

Tile unary(Op op, const Arg& a) {
  Operands x({&a});
  if (!x.r) return {};
  return x.r->emit({.op = op, .in = x.in, .shape = x.shape(0), .loc = a.loc});
}
/// With another shape or attributes: `change` edits the node.
template <class F> Tile unary(Op op, const Arg& a, F&& change) {
  Operands x({&a});
  if (!x.r) return {};
  Node n{.op = op, .in = x.in, .shape = x.shape(0), .loc = a.loc};
  change(n);
  return x.r->emit(std::move(n));
}

bool stretch(int& a, int b) {
  if (a == 0) a = b;
  return b == 0 || a == b;
}
Tile elementwise(Op op, const char* sign, std::initializer_list<const Arg*> args) {
  Operands x(args);
  if (!x.r) return {};
  Recorder& r = *x.r;
  Loc l = (*args.begin())->loc;
  Shape s = x.shape(0);
  if (x.poison) return r.poison(l, s, x.in);
  for (std::size_t i = 1; i < x.in.size(); ++i) {
    Shape before = s, t = x.shape(static_cast<int>(i));
    bool rows = stretch(s.r, t.r), cols = stretch(s.c, t.c);
    if (!rows || !cols)
      return r.mistake(l,
                       std::string("'") + sign + "' of " + r.show(before) + " and " + r.show(t) + ": extents " +
                           r.extents[rows ? before.c : before.r] + " and " + r.extents[rows ? t.c : t.r] +
                           " neither match nor are 1",
                       before);
  }
  return r.emit({.op = op, .in = x.in, .shape = s, .loc = l});
}

bool expect(const Operands& x, int i, const char* what, Loc l, Shape want) {
  if (x.shape(i) == want) return true;
  x.r->report(l, std::string(what) + " needs " + x.r->show(want) + ", got " + x.r->show(x.shape(i)));
  return false;
}

}  // namespace

Tile operator+(Arg a, Arg b) { return elementwise(Op::add, "+", {&a, &b}); }
Tile operator-(Arg a, Arg b) { return elementwise(Op::sub, "-", {&a, &b}); }
Tile operator*(Arg a, Arg b) { return elementwise(Op::mul, "*", {&a, &b}); }
Tile operator/(Arg a, Arg b) { return elementwise(Op::div, "/", {&a, &b}); }
Tile max(Arg a, Arg b) { return elementwise(Op::max, "max", {&a, &b}); }
Tile min(Arg a, Arg b) { return elementwise(Op::min, "min", {&a, &b}); }
Tile select(Arg c, Arg a, Arg b) { return elementwise(Op::select, "select", {&c, &a, &b}); }

Tile operator-(Arg a) { return unary(Op::neg, a); }
Tile exp(Arg a) { return unary(Op::exp, a); }
Tile exp2(Arg a) { return unary(Op::exp2, a); }
Tile log(Arg a) { return unary(Op::log, a); }
Tile log2(Arg a) { return unary(Op::log2, a); }
Tile sqrt(Arg a) { return unary(Op::sqrt, a); }
Tile rsqrt(Arg a) { return unary(Op::rsqrt, a); }
Tile sigmoid(Arg a) { return unary(Op::sigmoid, a); }
Tile tanh(Arg a) { return unary(Op::tanh, a); }
Tile floor(Arg a) { return unary(Op::floor, a); }
Tile softplus(Arg a) { return unary(Op::softplus, a); }
Tile stop_gradient(Arg a) { return unary(Op::stop_gradient, a); }
Tile relu(Arg a) { return max(a, Arg(0, a.loc)); }
Tile log2_gate(Arg a) { return max(Arg(a * Arg(1.4426950408889634074, a.loc), a.loc), Arg(-126, a.loc)); }
Tile silu(Arg a) { return Arg(a.tile, a.loc) * Arg(sigmoid(a), a.loc); }

Tile rowsum(Arg a) {
  return unary(Op::reduce_sum, a, [](Node& n) { n.shape.c = 0; });
}
Tile rowmean(Arg a) {
  return unary(Op::reduce_mean, a, [](Node& n) { n.shape.c = 0; });
}
Tile rowmax(Arg a) {
  return unary(Op::reduce_max, a, [](Node& n) { n.shape.c = 0; });
}
Tile colsum(Arg a) {
  return unary(Op::reduce_columns, a, [](Node& n) { n.shape.r = 0; });
}
Tile rowvar(Arg a) {
  Loc l = a.loc;
  Arg centred(a - Arg(rowmean(a), l), l);
  return rowmean(Arg(centred * centred, l));
}
Tile softmax_rows(Arg a) {
  Loc l = a.loc;
  Arg e(exp(Arg(a - Arg(stop_gradient(Arg(rowmax(a), l)), l), l)), l);
  return e / Arg(rowsum(e), l);
}
Tile l2norm(Arg a) {
  Loc l = a.loc;
  Arg squares(rowsum(Arg(a * a, l)), l);
  return a * Arg(rsqrt(Arg(squares + Arg(1e-6, l), l)), l);
}

Tile dot(Arg a, Arg b, Dot precision) {
  Operands x({&a, &b}, false);
  if (!x.r) return {};
  Recorder& r = *x.r;
  Shape s = x.shape(0), t = x.shape(1);
  if (x.poison) return r.poison(a.loc, {s.r, t.c}, x.in);
  if (s.c != t.r)
    return r.mistake(a.loc,
                     "dot of " + r.show(s) + " and " + r.show(t) + ": the inner extents " + r.extents[s.c] + " and " +
                         r.extents[t.r] + " differ",
                     {s.r, t.c});
  bool precise = precision == Dot::precise || r.in_reference() || !r.in_body();
  for (int i : {0, 1}) {
    const Loc l = i ? b.loc : a.loc;
    x.in[i] = precise ? r.widen(x.in[i], l) : r.narrow(x.in[i], l);
  }
  return r.emit({.op = Op::dot, .in = x.in, .shape = {s.r, t.c}, .loc = a.loc, .precise = precise});
}
Tile outer(Arg a, Arg b) {
  Operands x({&a, &b}, false);
  if (!x.r) return {};
  Shape s = x.shape(0), t = x.shape(1);
  if (!x.poison && (s.r != 0 || t.r != 0))
    return x.r->mistake(a.loc, "outer of " + x.r->show(s) + " and " + x.r->show(t) + ": both must be rows [1, K]",
                        {s.c, t.c});
  Tile column = Tile(x.r, x.in[0]).T(a.loc);
  return dot(Arg(column, a.loc), b, Dot::precise);
}

Tile cumsum(Arg a, Cumsum how) {
  return unary(Op::cumsum, a, [&](Node& n) { n.exclusive = how.exclusive, n.reverse = how.reverse; });
}
static Tile from_row(Op op, const char* what, const Arg& a, const Arg& from) {
  Operands x({&a, &from});
  if (!x.r) return {};
  Shape s = x.shape(0);
  if (x.poison || !expect(x, 1, what, from.loc, {0, s.c})) return x.r->poison(a.loc, s, x.in);
  return x.r->emit({.op = op, .in = x.in, .shape = s, .loc = a.loc});
}
Tile cummax(Arg a, Arg from) { return from_row(Op::cummax, "cummax: the first maximum", a, from); }
Tile prev(Arg a, Arg from) { return from_row(Op::prev, "prev: the first row", a, from); }
Tile next(Arg a, Arg from) { return from_row(Op::next, "next: the last row", a, from); }
Tile logcumsumexp(Arg s, Arg z) { return from_row(Op::logcumsumexp, "logcumsumexp: the carry", s, z); }
Tile last(Arg a) {
  return unary(Op::last, a, [](Node& n) { n.shape.r = 0; });
}
Tile last_valid(Arg a) {
  return unary(Op::last_valid, a, [](Node& n) { n.shape.r = 0; });
}
Tile pick(Arg a, int row) {
  return unary(Op::pick, a, [&](Node& n) { n.shape.r = 0, n.n = row; });
}
Tile repeat_rows(Arg a, int n) {
  Recorder* r = a.tile.rec;
  return unary(Op::repeat_rows, a, [&](Node& node) { node.shape.r = r->times(node.shape.r, n), node.n = n; });
}
Tile diagonal(Arg a) {
  Operands x({&a});
  if (!x.r) return {};
  Shape s = x.shape(0);
  if (!x.poison && s.c != 0)
    return x.r->mistake(a.loc, "diagonal of " + x.r->show(s) + ": it takes a column [C, 1]", {s.r, s.r});
  return x.r->emit({.op = Op::diagonal, .in = x.in, .shape = {s.r, s.r}, .loc = a.loc});
}
Tile kron_rows(Arg a) {
  Recorder* r = a.tile.rec;
  return unary(Op::kron_rows, a, [&](Node& n) { n.shape.c = r->product(n.shape.c, n.shape.c); });
}
Tile kron_rows(Arg a, Arg b) {
  Operands x({&a, &b});
  if (!x.r) return {};
  Shape s = x.shape(0), t = x.shape(1), out{s.r, x.r->product(s.c, t.c)};
  if (x.poison) return x.r->poison(a.loc, out, x.in);
  if (s.r != t.r)
    return x.r->mistake(a.loc, "kron_rows of " + x.r->show(s) + " and " + x.r->show(t) + ": the rows differ", out);
  return x.r->emit({.op = Op::kron_rows, .in = x.in, .shape = out, .loc = a.loc});
}
Tile lookup(Arg a, Table t, Arg from) {
  Operands x({&a, &from});
  if (!x.r) return {};
  Shape s = x.shape(0), out{s.r, s.r};
  if (x.poison || !expect(x, 1, "lookup: the number to count from", from.loc, {})) return x.r->poison(a.loc, out, x.in);
  return x.r->emit({.op = Op::lookup, .in = x.in, .shape = out, .loc = a.loc, .n = static_cast<int>(t)});
}
Tile lookup(Arg a, Table t) {
  return unary(Op::lookup, a, [&](Node& n) { n.shape.c = n.shape.r, n.n = static_cast<int>(t); });
}
Tile masked(Arg a, Mask m, int stair) {
  return unary(Op::mask, a, [&](Node& n) { n.mask = m, n.stair = stair; });
}

Tile decay(Arg gr, Arg gc, Mask m, int stair) {
  Operands x({&gr, &gc});
  if (!x.r) return {};
  Shape s = x.shape(0), t = x.shape(1), out{s.r, t.r};
  if (x.poison) return x.r->poison(gr.loc, out, x.in);
  if (s.c != 0 || t.c != 0)
    return x.r->mistake(gr.loc, "decay of " + x.r->show(s) + " and " + x.r->show(t) + ": it takes two columns [C, 1]",
                        out);
  return x.r->emit({.op = Op::decay, .in = x.in, .shape = out, .loc = gr.loc, .mask = m, .stair = stair});
}
Tile decayed_scores(Arg q, Arg k, Arg gr, Arg gc, Mask m) {
  Operands x({&q, &k, &gr, &gc});
  if (!x.r) return {};
  Shape s = x.shape(0), t = x.shape(1), out{s.r, t.r};
  if (x.poison) return x.r->poison(q.loc, out, x.in);
  if (s.c != t.c)
    return x.r->mistake(q.loc, "decayed_scores of " + x.r->show(s) + " and " + x.r->show(t) + ": the widths differ",
                        out);
  if (!expect(x, 2, "decayed_scores: the row gate", gr.loc, s) ||
      !expect(x, 3, "decayed_scores: the column gate", gc.loc, t))
    return x.r->poison(q.loc, out, x.in);
  return x.r->emit({.op = Op::decayed_scores, .in = x.in, .shape = out, .loc = q.loc, .mask = m});
}
static Tile apply(bool transposed, const Arg& A, const Arg& v, const Arg& gr, const Arg& gc, Mask m) {
  Operands x({&A, &v, &gr, &gc});
  if (!x.r) return {};
  Shape s = x.shape(0), t = x.shape(1);
  int rows = transposed ? s.c : s.r, over = transposed ? s.r : s.c;
  Shape out{rows, t.c};
  if (x.poison) return x.r->poison(A.loc, out, x.in);
  if (over != t.r)
    return x.r->mistake(A.loc,
                        "decayed_apply of " + x.r->show(s) + " to " + x.r->show(t) + ": extents " + x.r->extents[over] +
                            " and " + x.r->extents[t.r] + " differ",
                        out);
  if (!expect(x, 2, "decayed_apply: the row gate", gr.loc, {s.r, t.c}) ||
      !expect(x, 3, "decayed_apply: the column gate", gc.loc, {s.c, t.c}))
    return x.r->poison(A.loc, out, x.in);
  Op op = transposed ? Op::decayed_apply_transposed : Op::decayed_apply;
  return x.r->emit({.op = op, .in = x.in, .shape = out, .loc = A.loc, .mask = m});
}
Tile decayed_apply(Arg A, Arg x, Arg gr, Arg gc, Mask m) { return apply(false, A, x, gr, gc, m); }
Tile decayed_apply_transposed(Arg A, Arg x, Arg gr, Arg gc, Mask m) { return apply(true, A, x, gr, gc, m); }
Tile inverse_unit_lower(Arg a) {
  Operands x({&a});
  if (!x.r) return {};
  Shape s = x.shape(0);
  if (!x.poison && s.r != s.c)
    return x.r->mistake(a.loc, "inverse_unit_lower of " + x.r->show(s) + ", which is not square", {s.r, s.r});
  return x.r->emit({.op = Op::inverse_unit_lower, .in = x.in, .shape = s, .loc = a.loc});
}
Tile affine_scan(Arg g, Arg v, Arg h) {
  Operands x({&g, &v, &h});
  if (!x.r) return {};
  Shape s = x.shape(1);
  if (x.poison || !expect(x, 0, "affine_scan: the gate", g.loc, s) ||
      !expect(x, 2, "affine_scan: the carry", h.loc, {0, s.c}))
    return x.r->poison(v.loc, s, x.in);
  return x.r->emit({.op = Op::affine_scan, .in = x.in, .shape = s, .loc = v.loc});
}

namespace detail {
Tile begin_region(RegionOp op, std::initializer_list<Arg> args, int n) {
  static constexpr Op ops[] = {Op::solve, Op::loop, Op::custom, Op::adjoint};
  std::vector<int> in;
  Recorder* r = nullptr;
  for (auto& a : args) r = r ? r : a.tile.rec;
  if (!r) return {};
  for (auto& a : args) in.push_back(r->widen(r->value(a), a.loc));
  Loc l = args.begin()->loc;
  Shape s = r->nodes[in[0]].shape;
  Tile t = r->emit({.op = ops[static_cast<int>(op)], .in = in, .shape = s, .loc = l, .n = n});
  int region = r->open();
  r->nodes[t.node].regions.push_back(region);
  r->open_nodes.push_back(t.node);
  Tile first;
  for (std::size_t i = 0; i < in.size(); ++i) {
    const Node& from = r->nodes[in[i]];
    Node argument{.op = Op::argument, .shape = from.shape, .loc = l, .head = from.head, .poison = from.poison};
    Tile a = r->emit(std::move(argument));
    if (i == 0) first = a;
  }
  return first;
}
Tile argument(Tile first, int k) { return Tile(first.rec, first.node + k); }
Tile end_region(Tile first, Arg result) {
  Recorder* r = first.rec;
  if (!r) return {};
  int y = r->widen(r->value(result), result.loc), n = r->open_nodes.back();
  r->open_nodes.pop_back();
  r->close(y);
  Node& node = r->nodes[n];
  const Node& yield = r->nodes[y];
  if (node.op == Op::custom)
    node.shape = yield.shape;
  else if (!(yield.shape == node.shape) && !yield.poison && !node.poison)
    r->report(result.loc, std::string(name(node.op)) + ": the region turns " + r->show(node.shape) + " into " +
                              r->show(yield.shape));
  node.poison |= yield.poison;
  if (r->refines(yield.head, node.head)) node.head = yield.head;
  return Tile(r, n);
}
}  // namespace detail

}  // namespace latile
