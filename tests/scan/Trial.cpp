#include "tests/scan/Trial.h"
#include "compiler/Compile.h"
#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>

namespace latile::test {
namespace {

std::size_t bytes_of(const HostTensor& t, std::size_t from_axis) {
  std::size_t bytes = size(t.type);
  for (std::size_t axis = from_axis; axis < t.shape.size(); ++axis) bytes *= static_cast<std::size_t>(t.shape[axis]);
  return bytes;
}

std::int64_t begin_of(const Trial& t, std::int64_t n) {
  std::int64_t begin = 0;
  for (std::int64_t k = 0; k < n; ++k) begin += t.lengths[static_cast<std::size_t>(k)];
  return begin;
}

/// Where token `token` of sequence n lies; a ragged batch has one row of tokens.
std::size_t token_offset(const Trial& t, const Problem::Entry& e, std::int64_t n, std::int64_t token) {
  const std::size_t row = bytes_of(e.tensor, 2) * static_cast<std::size_t>(e.rate);
  if (t.c.ragged_bits) return static_cast<std::size_t>(begin_of(t, n) + token) * row;
  return static_cast<std::size_t>(n * t.lengths[0] + token) * row;
}

}  // namespace

HostTensor& Trial::tensor(const std::string& name) {
  Problem::Entry* entry = p.find(name);
  if (!entry) throw std::runtime_error("there is no tensor " + name);
  return entry->tensor;
}
const HostTensor& Trial::tensor(const std::string& name) const { return const_cast<Trial*>(this)->tensor(name); }

Subject::Subject(const OperatorRow& of) : row(&of), info(describe(of, {})) {
  for (const DimInfo& d : info.dims) grouped |= !d.group.empty();
}

std::vector<Mode> Subject::modes() const {
  std::vector<Mode> modes;
  if (info.has_chunk) modes.push_back(Mode::prefill);
  if (info.has_reference && info.no_step.empty()) modes.push_back(Mode::recurrent);
  return modes;
}

std::vector<std::string> Subject::carries() const {
  std::vector<std::string> names;
  for (const TensorInfo& t : info.tensors)
    if (t.kind == TensorInfo::Kind::carry) names.push_back(t.name);
  return names;
}
std::vector<std::string> Subject::outputs() const {
  std::vector<std::string> names;
  for (const TensorInfo& t : info.tensors)
    if (t.kind == TensorInfo::Kind::output) names.push_back(t.name);
  return names;
}

Case Subject::ragged(Mode mode) const {
  Case c;
  c.mode = mode;
  c.extents = {24, 40};
  // Some operators limit an extent.
  std::size_t at = 0;
  for (const DimInfo& d : info.dims)
    if (!d.head && at < c.extents.size()) {
      if (d.most) c.extents[at] = std::min(c.extents[at], d.most);
      ++at;
    }
  c.heads = 2;
  c.ratio = grouped ? 2 : 1;
  c.ragged_bits = 32;
  if (!info.mini_batch && mode == Mode::prefill) c.chunk = 16;
  return c;
}

Trial Subject::make(const Case& c, const std::vector<std::int64_t>& lengths, ElementType io, std::uint64_t seed) const {
  // Positive queries and keys: sums that some operators divide by stay away from zero.
  return {c, make_problem(info, c, {}, lengths, io, seed, true), lengths};
}

Trial Subject::run(Trial t, bool in_place) const {
  Plan plan(context(), plan_request(std::string(row->name), t.c, t.p, ""));
  std::vector<void*> data;
  std::vector<std::vector<std::int64_t>> strides;
  std::vector<std::int64_t> dims;
  for (Problem::Entry& e : t.p.entries) {
    const bool other = in_place && (e.role == Problem::Role::final || e.role == Problem::Role::history);
    data.push_back(other ? t.tensor(e.carry + ".initial").bytes.data() : e.tensor.bytes.data());
    strides.push_back(e.tensor.strides);
  }
  for (const auto& [name, value] : t.p.dims) dims.push_back(value);
  plan.run(data, strides, dims, {});
  if (plan.overran()) throw std::runtime_error("memory behind the workspace was written");
  return t;
}

Trial part(const Trial& t, std::int64_t n, std::int64_t first, std::int64_t last) {
  Trial out{t.c, t.p, {last - first}};
  out.c.ragged_bits = 0;
  out.p.entries.clear();
  out.p.sequences = 1;
  out.p.rows = last - first;
  std::erase_if(out.p.dims, [](const auto& d) { return d.first == "N"; });
  for (auto& [name, value] : out.p.dims) {
    if (name == "B") value = 1;
    if (name == "T") value = last - first;
  }
  for (const Problem::Entry& e : t.p.entries) {
    if (e.tensor.name == "cu_seqlens") continue;
    Problem::Entry cut = e;
    std::vector<std::int64_t> shape = e.tensor.shape;
    std::size_t from = 0, count = e.tensor.bytes.size();
    if (e.rate) {
      shape[0] = 1, shape[1] = (last - first) * e.rate;
      from = token_offset(t, e, n, first);
      count = bytes_of(e.tensor, 2) * static_cast<std::size_t>(e.rate * (last - first));
    } else if (!e.carry.empty()) {
      shape[0] = 1;
      count = bytes_of(e.tensor, 1);
      from = count * static_cast<std::size_t>(n);
    }
    cut.tensor = HostTensor(e.tensor.name, e.tensor.type, shape);
    std::copy_n(e.tensor.bytes.begin() + static_cast<std::ptrdiff_t>(from), count, cut.tensor.bytes.begin());
    out.p.entries.push_back(std::move(cut));
  }
  return out;
}

Trial joined(const std::vector<Trial>& parts) {
  Trial out = parts[0];
  for (std::size_t k = 1; k < parts.size(); ++k) out.lengths[0] += parts[k].lengths[0];
  for (std::size_t i = 0; i < out.p.entries.size(); ++i) {
    Problem::Entry& e = out.p.entries[i];
    if (!e.rate) continue;
    std::vector<std::int64_t> shape = e.tensor.shape;
    shape[1] = out.lengths[0] * e.rate;
    HostTensor all(e.tensor.name, e.tensor.type, shape);
    auto to = all.bytes.begin();
    for (const Trial& part : parts)
      to = std::copy(part.p.entries[i].tensor.bytes.begin(), part.p.entries[i].tensor.bytes.end(), to);
    e.tensor = std::move(all);
  }
  out.p.rows = out.lengths[0];
  for (auto& [name, value] : out.p.dims)
    if (name == "T") value = out.lengths[0];
  return out;
}

Trial flipped(Trial t) {
  const Trial before = t;
  for (std::size_t i = 0; i < t.p.entries.size(); ++i) {
    Problem::Entry& e = t.p.entries[i];
    if (!e.rate) continue;
    const std::size_t token_bytes = bytes_of(e.tensor, 2) * static_cast<std::size_t>(e.rate);
    for (std::int64_t n = 0; n < t.p.sequences; ++n) {
      const std::int64_t length = t.lengths[static_cast<std::size_t>(n)];
      for (std::int64_t token = 0; token < length; ++token)
        std::memcpy(e.tensor.bytes.data() + token_offset(t, e, n, token),
                    before.p.entries[i].tensor.bytes.data() + token_offset(t, e, n, length - 1 - token), token_bytes);
    }
  }
  return t;
}

bool same_bits(const HostTensor& a, const HostTensor& b) { return a.shape == b.shape && a.bytes == b.bytes; }

bool same_bits_at(const Trial& whole, std::int64_t n, std::int64_t first, const Trial& part, const std::string& name) {
  const Problem::Entry& of = *whole.p.find(name);
  const HostTensor& got = part.tensor(name);
  return std::memcmp(of.tensor.bytes.data() + token_offset(whole, of, n, first), got.bytes.data(), got.bytes.size()) ==
         0;
}

bool same_slot(const HostTensor& a, std::int64_t of, const HostTensor& b, std::int64_t other) {
  const std::size_t bytes = bytes_of(a, 1);
  return bytes == bytes_of(b, 1) && std::memcmp(a.bytes.data() + bytes * static_cast<std::size_t>(of),
                                                b.bytes.data() + bytes * static_cast<std::size_t>(other), bytes) == 0;
}

void copy_slot(HostTensor& to, std::int64_t at, const HostTensor& from, std::int64_t other) {
  const std::size_t bytes = bytes_of(to, 1);
  std::memcpy(to.bytes.data() + bytes * static_cast<std::size_t>(at),
              from.bytes.data() + bytes * static_cast<std::size_t>(other), bytes);
}

std::vector<double> values(const HostTensor& t) {
  std::vector<double> list(static_cast<std::size_t>(t.count()));
  for (std::size_t i = 0; i < list.size(); ++i) list[i] = t.get(static_cast<std::int64_t>(i));
  return list;
}

bool finite(const HostTensor& t) {
  const std::vector<double> list = values(t);
  return std::all_of(list.begin(), list.end(), [](double x) { return std::isfinite(x); });
}

double rms_ratio(const std::vector<double>& got, const std::vector<double>& want) {
  double difference = 0, square = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    difference += (got[i] - want[i]) * (got[i] - want[i]);
    square += want[i] * want[i];
  }
  return std::sqrt(difference / square);
}

latile_context* context() {
  static const ContextHandle made = [] {
    install_compiler();
    return make_context(2, "");
  }();
  return made.get();
}

}  // namespace latile::test
