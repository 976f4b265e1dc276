#include "tools/latile/Problem.h"
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace latile {
namespace {

/// One stream of numbers for each (seed, tensor): SplitMix64.
class Draw {
public:
  Draw(std::uint64_t seed, const std::string& name) : state(seed * 0x9e3779b97f4a7c15ull + 1) {
    for (char c : name) state = (state ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
  }
  std::uint64_t bits() {
    std::uint64_t z = (state += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
  double uniform() { return (static_cast<double>(bits() >> 11) + 0.5) * 0x1p-53; }
  double normal() {
    const double radius = std::sqrt(-2 * std::log(uniform()));
    return radius * std::cos(6.283185307179586 * uniform());
  }

private:
  std::uint64_t state;
};

using Shape = std::vector<std::int64_t>;

class Maker {
public:
  Maker(const OperatorInfo& info, const Case& c, const Data& data, const Shape& lengths, ElementType io,
        std::uint64_t seed, bool positive)
      : info(info), c(c), data(data), lengths(lengths), io(io), seed(seed), positive(positive) {}

  Problem make() {
    sizes();
    for (const std::string& name : bound_tensors(info, c)) add(name);
    p.default_scalars = !c.scalar;
    for (const ScalarInfo& s : info.scalars)
      p.scalars.push_back(c.scalar ? *c.scalar : s.fallback ? *s.fallback : 1 / std::sqrt(key_extent()));
    return std::move(p);
  }

private:
  double key_extent() const {
    const auto k = p.extents.find("K");
    return static_cast<double>(k == p.extents.end() ? 1 : k->second);
  }

  void sizes() {
    std::size_t inner = 0;
    for (const DimInfo& d : info.dims) {
      std::int64_t value = !d.head           ? c.extents[std::min(inner++, c.extents.size() - 1)]
                           : d.group.empty() ? c.heads
                                             : c.heads * c.ratio;
      if (d.most) value = std::min(value, d.most);
      named[d.name] = value;
      p.dims.emplace_back(d.name, value);
      if (d.head)
        p.fine_heads = std::max(p.fine_heads, value);
      else
        p.extents[d.name] = value;
    }
    p.sequences = static_cast<std::int64_t>(lengths.size());
    total = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
    p.rows = c.ragged_bits ? total : lengths.empty() ? 0 : lengths[0];
    if (c.ragged_bits)
      p.dims.insert(p.dims.end(), {{"B", 1}, {"T", total}, {"N", p.sequences}});
    else
      p.dims.insert(p.dims.end(), {{"B", p.sequences}, {"T", p.rows}});
    if (pooled()) p.dims.emplace_back("slots", slots());
    for (const TensorInfo& t : info.tensors) {
      if (t.kind != TensorInfo::Kind::carry) continue;
      if (c.every) p.dims.emplace_back(t.name + ".every", c.every);
      if (c.every || c.accepted) p.dims.emplace_back(t.name + ".states", columns());
    }
  }

  bool pooled() const { return c.states == States::pool || c.states == States::in_place; }
  std::int64_t slots() const { return p.sequences * (1 + columns()) + 3; }
  /// Of a table of slots: one more than the history states of the longest sequence.
  std::int64_t columns() const {
    const std::int64_t longest = lengths.empty() ? 0 : *std::max_element(lengths.begin(), lengths.end());
    return c.every ? longest / c.every + 1 : c.accepted ? 3 : 0;
  }
  /// The size of a dim, which may be a product like "K*K".
  std::int64_t extent(const std::string& dim) const {
    const auto found = named.find(dim);
    if (found != named.end()) return found->second;
    const std::size_t star = dim.find('*');
    return star == std::string::npos ? 1 : extent(dim.substr(0, star)) * extent(dim.substr(star + 1));
  }
  bool head(const std::string& dim) const {
    const DimInfo* d = info.dim(dim);
    return d && d->head;
  }
  ElementType type_of(const TensorInfo& t) const {
    switch (t.type) {
    case Type::io: return io;
    case Type::any: return c.any_as_io ? io : ElementType::f32;
    case Type::f32: return ElementType::f32;
    case Type::i32: return ElementType::i32;
    case Type::i64: return ElementType::i64;
    }
    return io;
  }

  void add(const std::string& name) {
    if (name == "cu_seqlens") return borders();
    if (name == "accepted") {
      HostTensor x(name, c.index_bits == 32 ? ElementType::i32 : ElementType::i64, {p.sequences});
      for (std::int64_t n = 0; n < p.sequences; ++n) x.set(n, static_cast<double>(1 + n % columns()));
      p.entries.push_back({Problem::Role::index, "", std::move(x)});
      return;
    }
    const std::size_t dot = name.rfind('.');
    if (dot != std::string::npos) return state(name.substr(0, dot), name.substr(dot + 1));
    const TensorInfo& t = *info.tensor(name);
    Shape shape;
    if (t.kind != TensorInfo::Kind::param)
      shape = {c.ragged_bits ? 1 : p.sequences, (c.ragged_bits ? total : p.rows) * t.rate};
    for (const std::string& d : t.dims) shape.push_back(extent(d));
    const bool output = t.kind == TensorInfo::Kind::output;
    HostTensor x(name, type_of(t), shape, strides(t, shape));
    x.poison();
    if (t.kind == TensorInfo::Kind::param)
      fill(x, [&](Draw& d) { return t.typical ? between(d, *t.typical) : -0.5 * d.uniform(); });
    else if (!output)
      sequence(t, x);
    const int rate = t.kind == TensorInfo::Kind::param ? 0 : t.rate;
    p.entries.push_back({output ? Problem::Role::output : Problem::Role::input, "", std::move(x), rate});
  }

  /// Layouts that engines have: heads before tokens, slices of a wider row, and a stride inside.
  Shape strides(const TensorInfo& t, const Shape& shape) {
    if (!c.strided || t.kind == TensorInfo::Kind::param || shape.size() < 3) return dense_strides(shape);
    const int kind = t.kind == TensorInfo::Kind::output ? 1 : turn++ % 3;
    Shape order(shape.size());
    std::iota(order.begin(), order.end(), 0);
    if (kind == 0) std::swap(order[1], order[2]);
    Shape strides(shape.size());
    std::int64_t step = kind == 2 || shape.size() == 3 ? 2 : 1;
    for (std::size_t i = order.size(); i-- > 0;) {
      const auto axis = static_cast<std::size_t>(order[i]);
      strides[axis] = step;
      step *= shape[axis];
      if (i == 2) step += 16;
    }
    return strides;
  }

  static double within(Draw& d, std::pair<double, double> range) {
    return range.first + (range.second - range.first) * d.uniform();
  }

  template <class F> void fill(HostTensor& x, F&& draw_one) {
    Draw draw(seed, x.name);
    for (std::int64_t i = 0, n = x.count(); i < n; ++i) x.set(i, draw_one(draw));
  }

  static double between(Draw& d, const std::pair<double, double>& range) {
    return range.first + (range.second - range.first) * d.uniform();
  }

  void sequence(const TensorInfo& t, HostTensor& x) {
    std::vector<std::string> inner;
    for (const std::string& d : t.dims)
      if (!head(d)) inner.push_back(d);
    if (const Problem::Entry* other = p.find(t.typical_of)) {
      Draw draw(seed, x.name);
      for (std::int64_t i = 0, n = x.count(); i < n; ++i) x.set(i, other->tensor.get(i) * between(draw, *t.typical));
      return;
    }
    if (t.typical) return fill(x, [&](Draw& d) { return between(d, *t.typical); });
    if (t.typical_key) return keys(x, extent(inner[0]));
    if (t.gate) return fill(x, [&](Draw& d) { return gate(d); });
    if (t.typical_key && !inner.empty()) return keys(x, extent(inner.back()));
    if (const Problem::Entry* other = t.typical_of.empty() ? nullptr : p.find(t.typical_of)) {
      std::int64_t i = 0;
      return fill(x, [&](Draw& d) { return other->tensor.get(i++) * within(d, *t.typical); });
    }
    if (t.typical) return fill(x, [&](Draw& d) { return within(d, *t.typical); });
    if (inner.empty()) return fill(x, [&](Draw& d) { return data.beta_high * d.uniform(); });
    if (!key_axis(inner[0])) return fill(x, [](Draw& d) { return d.normal(); });
    if (t.name[0] == 'q') return fill(x, [&](Draw& d) { return positive ? std::fabs(d.normal()) : d.normal(); });
    keys(x, extent(inner[0]));
  }

  bool key_axis(const std::string& dim) const {
    for (const TensorInfo& t : info.tensors) {
      if (t.kind != TensorInfo::Kind::carry) continue;
      Shape places;
      std::vector<std::string> inner;
      for (const std::string& d : t.dims)
        if (!head(d)) inner.push_back(d);
      if (inner.size() == 2 && inner[0] == dim) return true;
    }
    return false;
  }

  double gate(Draw& d) const {
    const double mild = -std::log1p(std::exp(-d.normal())) / 16, pick = d.uniform();
    if (data.gates == Gates::mild || pick < 0.4) return mild;
    if (pick < 0.6) return 0;
    if (pick < 0.75) return -50;
    if (pick < 0.85) return -3000;
    return -std::numeric_limits<double>::infinity();
  }

  /// Unit vectors; two of one head have a scalar product of about `correlation`.
  void keys(HostTensor& x, std::int64_t width) {
    Draw draw(seed, x.name);
    const std::int64_t vectors = width ? x.count() / width : 0;
    const std::int64_t heads = x.shape.size() == 4 ? x.shape[2] : 1;
    std::vector<double> common(static_cast<std::size_t>(heads * width)), key(static_cast<std::size_t>(width));
    const auto unit = [&](double* v) {
      double sum = 0;
      for (std::int64_t i = 0; i < width; ++i) sum += v[i] * v[i];
      for (std::int64_t i = 0; i < width; ++i) v[i] /= std::sqrt(sum);
    };
    for (double& v : common) v = positive ? std::fabs(draw.normal()) : draw.normal();
    for (std::int64_t h = 0; h < heads; ++h) unit(common.data() + h * width);
    for (std::int64_t n = 0; n < vectors; ++n) {
      for (double& v : key) v = positive ? std::fabs(draw.normal()) : draw.normal();
      unit(key.data());
      const double* shared = common.data() + n % heads * width;
      for (std::int64_t i = 0; i < width; ++i) {
        double& v = key[static_cast<std::size_t>(i)];
        v = std::sqrt(data.correlation) * shared[i] + std::sqrt(1 - data.correlation) * v;
      }
      unit(key.data());
      for (std::int64_t i = 0; i < width; ++i) x.set(n * width + i, key[static_cast<std::size_t>(i)]);
    }
  }

  void borders() {
    HostTensor x("cu_seqlens", c.ragged_bits == 32 ? ElementType::i32 : ElementType::i64, {p.sequences + 1});
    std::int64_t at = 0;
    for (std::int64_t n = 0; n < p.sequences; ++n)
      x.set(n + 1, static_cast<double>(at += lengths[static_cast<std::size_t>(n)]));
    p.entries.push_back({Problem::Role::index, "", std::move(x)});
  }

  void state(const std::string& carry, const std::string& part) {
    const std::string name = carry + "." + part;
    if (part == "history_index" || (part == "initial_index" && c.accepted)) return table(carry, name);
    if (part.ends_with("_index")) {
      HostTensor x(name, c.index_bits == 32 ? ElementType::i32 : ElementType::i64, {p.sequences});
      // Slots in another order than sequences; one sequence starts from nothing, another leaves nothing behind.
      // In place both are the same one, which a step calls absent.
      const bool first = part == "initial_index";
      const std::int64_t none = c.states == States::in_place || first ? 1 : 2;
      for (std::int64_t n = 0; n < p.sequences; ++n) x.set(n, static_cast<double>(n == none ? -1 : slots() - 1 - n));
      p.entries.push_back({Problem::Role::index, carry, std::move(x)});
      return;
    }
    const TensorInfo& t = *info.tensor(carry);
    Shape shape{pooled() ? slots() : p.sequences};
    for (const std::string& d : t.dims) shape.push_back(extent(d));
    Shape strides = dense_strides(shape);
    const std::size_t rank = shape.size();
    const bool matrix = rank >= 3 && !head(t.dims[t.dims.size() - 2]);
    if (c.state_v_first && matrix) strides[rank - 2] = 1, strides[rank - 1] = shape[rank - 2];
    HostTensor x(name, t.type == Type::f32 ? ElementType::f32 : c.state_type, shape, strides);
    x.poison();
    const bool given = part == "initial";
    const Problem::Role role = given             ? Problem::Role::initial
                               : part == "final" ? Problem::Role::final
                                                 : Problem::Role::history;
    if (given || pooled()) {
      // One stream for both, so that a pool in place starts from the same numbers under either name.
      Draw draw(seed, carry);
      for (std::int64_t i = 0, n = x.count(); i < n; ++i) {
        const double v = t.typical ? between(draw, *t.typical) : 0.5 * draw.normal();
        x.set(i, positive ? std::fabs(v) : v);
      }
      if (matrix && t.dims[t.dims.size() - 2] == t.dims.back()) make_definite(x);
    }
    p.entries.push_back({role, carry, std::move(x)});
  }

  /// Slots behind those of the other indices, and a state of each sequence that is nobody's.
  void table(const std::string& carry, const std::string& name) {
    HostTensor x(name, c.index_bits == 32 ? ElementType::i32 : ElementType::i64, {p.sequences, columns()});
    for (std::int64_t n = 0; n < p.sequences; ++n)
      for (std::int64_t m = 0; m < columns(); ++m)
        x.set(n * columns() + m, m % 3 == 1 ? -1.0 : static_cast<double>(m * p.sequences + n));
    p.entries.push_back({Problem::Role::index, carry, std::move(x)});
  }

  /// A state over [K, K] may be a Gram matrix: symmetric and positive definite, eigenvalues around 1.
  static void make_definite(HostTensor& x) {
    const std::int64_t K = x.shape.back();
    for (std::int64_t at = 0; at < x.count(); at += K * K)
      for (std::int64_t i = 0; i < K; ++i)
        for (std::int64_t j = 0; j <= i; ++j) {
          const double v = (i == j) + 0.5 * x.get(at + i * K + j) / std::sqrt(static_cast<double>(K));
          x.set(at + i * K + j, v), x.set(at + j * K + i, v);
        }
  }

  const OperatorInfo& info;
  const Case& c;
  const Data& data;
  const Shape& lengths;
  ElementType io;
  std::uint64_t seed;
  bool positive;
  std::int64_t total = 0;
  int turn = 0;
  std::map<std::string, std::int64_t> named;
  Problem p;
};

}  // namespace

Problem::Entry* Problem::find(const std::string& name) {
  const auto found =
      std::find_if(entries.begin(), entries.end(), [&](const Entry& e) { return e.tensor.name == name; });
  return found == entries.end() ? nullptr : &*found;
}
const Problem::Entry* Problem::find(const std::string& name) const { return const_cast<Problem*>(this)->find(name); }

std::vector<std::string> bound_tensors(const OperatorInfo& info, const Case& c) {
  std::vector<std::string> names;
  const bool pooled = c.states == States::pool || c.states == States::in_place;
  for (const TensorInfo& t : info.tensors) {
    if (t.kind != TensorInfo::Kind::carry) {
      if (std::find(c.absent.begin(), c.absent.end(), t.name) == c.absent.end()) names.push_back(t.name);
      continue;
    }
    if (c.states == States::none) continue;
    if (c.states != States::last) {
      names.push_back(t.name + ".initial");
      if (pooled) names.push_back(t.name + ".initial_index");
    }
    if (c.states != States::initial) {
      names.push_back(t.name + ".final");
      if (pooled) names.push_back(t.name + ".final_index");
    }
    if (c.every) names.insert(names.end(), {t.name + ".history", t.name + ".history_index"});
  }
  if (c.accepted) names.emplace_back("accepted");
  if (c.ragged_bits) names.push_back("cu_seqlens");
  return names;
}

Problem make_problem(const OperatorInfo& info, const Case& c, const Data& data,
                     const std::vector<std::int64_t>& lengths, ElementType io, std::uint64_t seed, bool positive) {
  return Maker(info, c, data, lengths, io, seed, positive).make();
}

}  // namespace latile
