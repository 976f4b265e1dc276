#include "dsl/Recorder.h"
#include <algorithm>
#include <cmath>
#include <set>

namespace latile {

const char* name(Op op) {
  static const char* const names[] = {
#define LATILE_OP(name) #name,
      LATILE_OPS(LATILE_OP)
#undef LATILE_OP
  };
  return names[static_cast<int>(op)];
}

int Recorder::intern(const std::string& s) {
  auto it = std::find(extents.begin(), extents.end(), s);
  if (it != extents.end()) return static_cast<int>(it - extents.begin());
  extents.push_back(s);
  parent.push_back(-1);
  is_head.push_back(false);
  return static_cast<int>(extents.size()) - 1;
}

int Recorder::product(int a, int b) {
  // Factors in a fixed order and one number, so that equal products are one symbol.
  std::multiset<std::string> symbols;
  std::int64_t number = 1;
  for (int e : {a, b})
    for (std::size_t at = 0; at <= extents[e].size();) {
      std::size_t cut = std::min(extents[e].find('*', at), extents[e].size());
      std::string factor = extents[e].substr(at, cut - at);
      if (!factor.empty() && factor.find_first_not_of("0123456789") == factor.npos)
        number *= std::stoll(factor);
      else
        symbols.insert(factor);
      at = cut + 1;
    }
  std::string text;
  for (auto& s : symbols) text += (text.empty() ? "" : "*") + s;
  if (text.empty()) return intern(std::to_string(number));
  return intern(number == 1 ? text : text + "*" + std::to_string(number));
}

int Recorder::times(int extent, int n) { return n == 1 ? extent : product(extent, intern(std::to_string(n))); }

void Recorder::report(Loc l, const std::string& sentence) { mistakes.push_back({l, name + ": " + sentence}); }

Tile Recorder::poison(Loc l, Shape guess, std::vector<int> from) {
  Tile t = emit({.op = Op::poison, .in = std::move(from), .shape = guess, .loc = l});
  nodes[t.node].poison = true;
  return t;
}

Tile Recorder::mistake(Loc l, const std::string& sentence, Shape guess) {
  report(l, sentence);
  return poison(l, guess);
}

Tile Recorder::emit(Node n) {
  n.region = stack.empty() ? -1 : stack.back();
  for (int i : n.in) {
    n.poison |= nodes[i].poison;
    if (n.poison) continue;
    std::size_t before = mistakes.size();
    n.head = join(n.head, nodes[i].head, n.loc);
    n.poison = mistakes.size() > before;
  }
  nodes.push_back(std::move(n));
  int id = static_cast<int>(nodes.size()) - 1;
  if (!stack.empty()) regions[stack.back()].nodes.push_back(id);
  return Tile(this, id);
}

Tile Recorder::emit_outermost(Node n) {
  std::vector<int> saved{stack.front()};
  std::swap(saved, stack);
  Tile t = emit(std::move(n));
  std::swap(saved, stack);
  return t;
}

int Recorder::value(const Arg& a) {
  if (a.is_number) return emit({.op = Op::constant, .loc = a.loc, .value = a.number}).node;
  if (!a.tile.rec) return mistake(a.loc, "a tile without a value is used: assign it first").node;
  if (a.tile.rec != this) return mistake(a.loc, "a tile of another operator is used").node;
  const Node& n = nodes[a.tile.node];
  if (n.poison || std::find(stack.begin(), stack.end(), n.region) != stack.end()) return a.tile.node;
  return mistake(a.loc, "a tile of another body is used: a tile lives in the body that made it", n.shape).node;
}

int Recorder::widen(int node, Loc l) {
  if (!nodes[node].io) return node;
  return emit({.op = Op::cast, .in = {node}, .shape = nodes[node].shape, .loc = l}).node;
}

int Recorder::narrow(int node, Loc l) {
  const Node& n = nodes[node];
  if (n.io) return node;
  if (n.op == Op::cast && nodes[n.in[0]].io) return n.in[0];
  return emit({.op = Op::cast, .in = {node}, .shape = n.shape, .io = true, .loc = l}).node;
}

bool Recorder::refines(int fine, int coarse) const {
  if (coarse == -1) return true;
  for (; fine != -1; fine = parent[fine])
    if (fine == coarse) return true;
  return false;
}

int Recorder::join(int a, int b, Loc l) {
  if (refines(a, b)) return a;
  if (refines(b, a)) return b;
  report(l, "values over heads " + extents[a] + " and " + extents[b] +
                " meet, and neither groups the other: declare one as \"" + extents[a] + " % " + extents[b] + "\"");
  return a;
}

int Recorder::open() {
  regions.emplace_back();
  stack.push_back(static_cast<int>(regions.size()) - 1);
  return stack.back();
}

void Recorder::close(int yield) {
  regions[stack.back()].yield = yield;
  stack.pop_back();
}

bool Recorder::bound(const std::string& tensor) const {
  if (config.bound.empty()) return true;
  return std::any_of(config.bound.begin(), config.bound.end(), [&](const std::string& b) {
    return b == tensor ||
           (b.size() > tensor.size() && b[tensor.size()] == '.' && b.compare(0, tensor.size(), tensor) == 0);
  });
}

void Recorder::outside(int node, std::vector<int>& out) const {
  for (int region : nodes[node].regions)
    for (int m : ordered(region, {regions[region].yield})) {
      for (int i : nodes[m].in)
        if (nodes[i].region != region) out.push_back(i);
      outside(m, out);
    }
}

std::vector<int> Recorder::ordered(int region, const std::vector<int>& roots) const {
  std::vector<char> seen(nodes.size());
  std::vector<int> out;
  struct Frame {
    int node;
    std::vector<int> needs;
    std::size_t next = 0;
  };
  std::vector<Frame> path;  // not recursive: an unrolled loop makes deep graphs
  auto enter = [&](int n) {
    if (n < 0 || seen[n] || nodes[n].region != region) return;
    seen[n] = 1;
    Frame f{n, nodes[n].in};
    outside(n, f.needs);  // what a nested region captures comes first
    path.push_back(std::move(f));
  };
  auto run = [&](int root) {
    enter(root);
    while (!path.empty()) {
      Frame& f = path.back();
      if (f.next < f.needs.size()) {
        enter(f.needs[f.next++]);
      } else {
        out.push_back(f.node);
        path.pop_back();
      }
    }
  };
  for (int n : roots) run(n);
  for (int n : regions[region].nodes)
    if (nodes[n].op == Op::store || nodes[n].op == Op::adjoint || (nodes[n].op == Op::columns && nodes[n].n == 0))
      run(n);
  return out;
}

const Body* Recorder::body(Body::Kind kind) const {
  for (auto& b : bodies)
    if (b.kind == kind) return &b;
  return nullptr;
}

std::vector<int> Recorder::results(const Body& b) const {
  std::vector<int> out;
  if (b.kind == Body::kernel) return out;  // its stores
  for (auto& [decl, node] : b.outputs) out.push_back(node);
  for (auto& [decl, node] : b.carries) out.push_back(node);
  return out;
}

std::optional<double> fold(const Node& n, std::span<const std::optional<double>> in) {
  for (auto& x : in)
    if (!x) return {};
  switch (n.op) {
  case Op::constant: return n.value;
  case Op::add: return *in[0] + *in[1];
  case Op::sub: return *in[0] - *in[1];
  case Op::mul: return *in[0] * *in[1];
  case Op::div: return *in[0] / *in[1];
  case Op::max: return std::max(*in[0], *in[1]);
  case Op::min: return std::min(*in[0], *in[1]);
  case Op::neg: return -*in[0];
  case Op::exp: return std::exp(*in[0]);
  case Op::exp2: return std::exp2(*in[0]);
  case Op::log: return std::log(*in[0]);
  case Op::log2: return std::log2(*in[0]);
  case Op::sqrt: return std::sqrt(*in[0]);
  case Op::rsqrt: return 1 / std::sqrt(*in[0]);
  case Op::sigmoid: return 1 / (1 + std::exp(-*in[0]));
  case Op::tanh: return std::tanh(*in[0]);
  case Op::floor: return std::floor(*in[0]);
  case Op::softplus: return std::max(*in[0], 0.0) + std::log1p(std::exp(-std::abs(*in[0])));
  case Op::select: return *in[0] != 0 ? *in[1] : *in[2];
  case Op::stop_gradient:
  case Op::cast:
  case Op::transpose:
  case Op::reduce_mean:
  case Op::reduce_max:
  case Op::last:
  case Op::last_valid:
  case Op::pick:
  case Op::repeat_rows: return *in[0];
  case Op::reduce_sum:
  case Op::reduce_columns:
  case Op::cumsum:
    if (*in[0] == 0) return 0.0;  // otherwise it depends on an extent or is no longer one value
    return {};
  default: return {};
  }
}

bool keeps_neutral(const Recorder& r, const Declaration& d) {
  double row = 0;
  for (int region : d.prologues) {
    std::map<int, std::optional<double>> known;
    for (int n : r.ordered(region, {r.regions[region].yield})) {
      const Node& node = r.nodes[n];
      if (node.op == Op::argument) {
        known[n] = row;
        continue;
      }
      std::vector<std::optional<double>> in;
      for (int i : node.in) in.push_back(known[i]);
      bool leaf = node.in.empty() && node.op != Op::constant;
      known[n] = leaf ? std::nullopt : fold(node, in);
    }
    auto result = known[r.regions[region].yield];
    if (!result) return false;
    row = *result;
  }
  return row == d.neutral;  // a gate's factor and clamp map 0 to 0
}

std::string nearest(std::string_view word, const std::vector<std::string>& candidates) {
  std::string best;
  std::size_t least = std::max<std::size_t>(2, word.size() / 2);
  for (auto& c : candidates) {
    std::vector<std::size_t> row(c.size() + 1);
    for (std::size_t j = 0; j <= c.size(); ++j) row[j] = j;
    for (std::size_t i = 1; i <= word.size(); ++i) {
      std::size_t diagonal = row[0];
      row[0] = i;
      for (std::size_t j = 1; j <= c.size(); ++j) {
        std::size_t above = row[j];
        row[j] = std::min({row[j] + 1, row[j - 1] + 1, diagonal + (word[i - 1] != c[j - 1])});
        diagonal = above;
      }
    }
    bool inside = word.size() >= 3 && c.find(word) != c.npos;
    std::size_t distance = inside ? std::min<std::size_t>(row[c.size()], 1) : row[c.size()];
    if (distance < least || (distance == least && best.empty())) least = distance, best = c;
  }
  return best;
}

}  // namespace latile
