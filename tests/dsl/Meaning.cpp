#include "tests/dsl/Meaning.h"
#include "compiler/Emit.h"
#include "compiler/Interpreter.h"
#include "dsl/Describe.h"
#include "mlir/IR/MLIRContext.h"
#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <limits>

namespace latile::meaning {

bool Head::has(const std::string& tensor) const { return places.count(tensor) != 0; }
std::int64_t Head::dim(const std::string& name) const { return dims.at(name); }
double Head::decay(double g) { return std::exp2(std::max(g * 1.4426950408889634, -126.0)); }

double* Head::row(const std::string& tensor, std::int64_t at) const {
  const Place& p = places.at(tensor);
  std::int64_t index = sequence * p.shape[1] + at;
  if (p.head >= 0) index = index * p.shape[2] + p.head;
  return p.values->data() + index * p.inner;
}
double* Head::param(const std::string& tensor) const {
  const Place& p = places.at(tensor);
  return p.values->data() + std::max<std::int64_t>(p.head, 0) * p.inner;
}
double* Head::carry(const std::string& name) const {
  const Place& p = places.at(name);
  std::int64_t index = sequence;
  if (p.head >= 0) index = index * p.shape[1] + p.head;
  return p.values->data() + index * p.inner;
}

namespace {

constexpr std::int64_t sequences = 2;
constexpr double scale = 0.3;

std::int64_t extent(const std::string& dim, const std::map<std::string, std::int64_t>& dims) {
  std::int64_t product = 1;
  for (std::size_t at = 0; at <= dim.size();) {
    const std::size_t cut = std::min(dim.find('*', at), dim.size());
    const std::string factor = dim.substr(at, cut - at);
    const auto known = dims.find(factor);
    product *= known == dims.end() ? std::stoll(factor) : known->second;
    at = cut + 1;
  }
  return product;
}

struct Tensor {
  const TensorInfo* info;
  std::vector<std::int64_t> shape;
  std::int64_t inner = 1;
  Numbers values{};
};

/// Everything one configuration binds, by the name of its declaration; carries hold their initial state.
struct Problem {
  OperatorInfo info;
  std::map<std::string, Tensor> tensors;
  std::int64_t tokens, heads = 1, ratio = 1;
};

double draw(const TensorInfo& t, std::mt19937_64& random, int& turn) {
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> uniform;
  static const double hard[] = {0, -50, -3000, -std::numeric_limits<double>::infinity()};
  if (t.gate) return ++turn % 11 == 0 ? hard[(turn / 11) % 4] : -std::abs(normal(random)) * 0.2;
  if (t.kind == TensorInfo::Kind::param) return -0.5 * uniform(random);
  if (t.kind == TensorInfo::Kind::sequence && t.dims.size() == (t.head.empty() ? 0 : 1)) return uniform(random);
  return normal(random) * (t.name == "k" ? 0.3 : 1);
}

Problem make(const std::string& op, const Setting& s, std::int64_t tokens) {
  std::vector<Diagnostic> mistakes;
  Problem p{describe(*find_operator(op), {s.options, {}}, mistakes), {}, tokens};
  for (auto& m : mistakes) FAIL_CHECK(m.message());
  for (auto& d : p.info.dims)
    if (d.head) {
      p.heads = std::max(p.heads, s.dims.at(d.name));
      if (!d.group.empty()) p.ratio = s.dims.at(d.name) / s.dims.at(d.group);
    }
  std::mt19937_64 random(static_cast<std::uint64_t>(7 + tokens));
  int turn = static_cast<int>(tokens);
  for (auto& t : p.info.tensors) {
    if (std::find(s.absent.begin(), s.absent.end(), t.name) != s.absent.end()) continue;
    Tensor x{&t, {}};
    if (t.kind == TensorInfo::Kind::carry)
      x.shape = {sequences};
    else if (t.kind != TensorInfo::Kind::param)
      x.shape = {sequences, tokens * t.rate};
    std::int64_t count = 1;
    for (auto e : x.shape) count *= e;
    for (auto& d : t.dims) {
      x.shape.push_back(extent(d, s.dims));
      count *= x.shape.back();
      if (d != t.head) x.inner *= x.shape.back();
    }
    x.values.resize(static_cast<std::size_t>(count));
    const auto own = s.draw.find(t.name);
    if (t.kind != TensorInfo::Kind::output)
      for (auto& v : x.values) v = own == s.draw.end() ? draw(t, random, turn) : own->second(random);
    p.tensors.emplace(t.name, std::move(x));
  }
  return p;
}

using Results = std::map<std::string, Numbers>;

Results results(const Problem& p) {
  Results r;
  for (auto& [name, t] : p.tensors)
    if (t.info->kind == TensorInfo::Kind::output || t.info->kind == TensorInfo::Kind::carry) r[name] = t.values;
  return r;
}

Results by_hand(Problem p, const Oracle& oracle, const Setting& s) {
  const Problem start = p;
  for (std::int64_t n = 0; n < sequences; ++n)
    for (std::int64_t h = 0; h < p.heads; ++h) {
      Head head;
      head.tokens = p.tokens, head.scale = scale, head.dims = s.dims, head.sequence = n;
      for (auto& [name, t] : p.tensors) {
        std::int64_t own = t.info->head.empty() ? -1 : h / (p.heads / s.dims.at(t.info->head));
        head.places[name] = {&t.values, t.shape, t.inner, own};
        if (t.info->kind != TensorInfo::Kind::carry || t.info->head.empty()) continue;
        // Heads that share a state start from the same one.
        const auto at = (n * s.dims.at(t.info->head) + own) * t.inner;
        std::copy_n(start.tensors.at(name).values.begin() + at, t.inner, t.values.begin() + at);
      }
      oracle(head);
    }
  return results(p);
}

Results interpreted(const std::string& op, Problem p, const Setting& s, Mode mode, std::int64_t chunk) {
  Specialisation spec;
  spec.op = op, spec.mode = mode, spec.chunk = chunk, spec.options = s.options, spec.head_ratio = p.ratio;
  for (auto& d : p.info.dims)
    if (!d.head) spec.extents[d.name] = s.dims.at(d.name);
  InterpreterInputs in;
  in.sequences = sequences, in.rows = p.tokens, in.heads = p.heads;
  for (auto& scalar : p.info.scalars)
    in.scalars[scalar.name] = scalar.name == "scale" ? scale : scalar.fallback.value_or(scale);
  Results out = results(p);
  auto bind = [&](const std::string& name, const std::vector<std::int64_t>& shape, Numbers& values) {
    spec.tensors.push_back({name, ElementType::f32, -1});
    std::vector<std::int64_t> strides(shape.size(), 1);
    for (std::size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
    in.tensors[name] = {values.data(), ElementType::f64, shape, strides};
  };
  for (auto& [name, t] : p.tensors)
    if (t.info->kind == TensorInfo::Kind::carry)
      bind(name + ".initial", t.shape, t.values), bind(name + ".final", t.shape, out.at(name));
    else
      bind(name, t.shape, out.count(name) ? out.at(name) : t.values);
  mlir::MLIRContext context;
  std::vector<Diagnostic> mistakes;
  auto module = emit_program(*find_operator(op), spec, context, mistakes);
  for (auto& m : mistakes) FAIL_CHECK(m.message());
  REQUIRE(module);
  auto report = interpret(*module, in);
  for (auto& problem : report.problems) FAIL_CHECK(problem);
  return out;
}

double error(const Numbers& want, const Numbers& have) {
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < want.size(); ++i)
    difference += (want[i] - have[i]) * (want[i] - have[i]), size += want[i] * want[i];
  return std::sqrt(difference / (size + 1e-300));
}

}  // namespace

void compare(const std::string& op, const Oracle& oracle, const Setting& s) {
  REQUIRE_MESSAGE(find_operator(op), op);
  std::string settings = op;
  for (auto& [k, v] : s.options) settings += " " + k + "=" + v;
  for (auto& a : s.absent) settings += " without " + a;
  CAPTURE(settings);
  auto check = [&](Mode mode, std::int64_t tokens, std::int64_t chunk, double bound) {
    CAPTURE(static_cast<int>(mode));
    CAPTURE(tokens);
    CAPTURE(chunk);
    Problem p = make(op, s, tokens);
    Results want = by_hand(p, oracle, s), have = interpreted(op, p, s, mode, chunk);
    for (auto& [name, values] : want) {
      CAPTURE(name);
      CHECK(error(values, have.at(name)) < bound);
    }
  };
  const OperatorInfo info = make(op, s, 1).info;
  if (info.has_reference) check(Mode::recurrent, 37, 0, s.recurrent_bound);
  if (!info.has_prefill()) return;
  // Differences of gates after a step of −126 lose digits that the recurrence keeps.
  const std::int64_t full = info.mini_batch ? info.mini_batch : 16;
  for (std::int64_t valid = 1; valid <= full; ++valid) check(Mode::prefill, valid, full, s.chunk_bound);
  for (std::int64_t chunk : {1, 16, 32, 64}) check(Mode::prefill, 37, chunk, s.chunk_bound);
}

}  // namespace latile::meaning
