#include "tools/latile/CaseRun.h"
#include "tools/latile/Meaning.h"
#include "tools/latile/UserError.h"
#include <algorithm>
#include <chrono>
#include <cmath>
#include <fmt/format.h>
#include <optional>

namespace latile {
namespace {

/// Differences up to this are none, whatever the size of the reference.
constexpr double negligible = 1e-6;

bool is_state(const Problem::Entry& e) { return e.role == Problem::Role::final || e.role == Problem::Role::history; }
bool written(const Problem::Entry& e) { return e.role == Problem::Role::output || is_state(e); }

/// The tensors of one run, with final states in the memory of initial ones where the case says so.
class Buffers {
public:
  Buffers(const Problem& p, const Case& c, const Place& place)
      : problem(p), in_place(c.states == States::in_place || c.prefill > 0) {
    for (const Problem::Entry& e : p.entries) tensors.push_back(e.tensor);
    std::vector<std::size_t> memories;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      std::size_t memory = i;
      if (in_place && p.entries[i].role == Problem::Role::initial)
        for (std::size_t j = 0; j < tensors.size(); ++j)
          if (p.entries[j].role == Problem::Role::final && p.entries[j].carry == p.entries[i].carry) memory = j;
      if (memory != i) tensors[memory].bytes = tensors[i].bytes;
      memories.push_back(memory);
      strides.push_back(tensors[i].strides);
    }
    placed.emplace(place, tensors, memories, c.strided);
    data = placed->data();
  }
  /// After the runs: the contents come back from the device.
  void fetch() { placed->fetch(); }
  bool overran() const { return placed->overran(); }
  const HostTensor& tensor(std::size_t i) const { return tensors[i]; }
  /// The sequences and outputs from a row on.
  std::vector<void*> from_row(std::int64_t row) const {
    std::vector<void*> moved = data;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const int rate = problem.entries[i].rate;
      if (rate == 0) continue;
      moved[i] = static_cast<std::byte*>(data[i]) +
                 row * rate * tensors[i].strides[1] * static_cast<std::int64_t>(size(tensors[i].type));
    }
    return moved;
  }

  std::vector<void*> data;
  std::vector<std::vector<std::int64_t>> strides;

private:
  const Problem& problem;
  bool in_place;
  std::vector<HostTensor> tensors;
  std::optional<PlacedTensors> placed;
};

class Runner {
public:
  Runner(latile_context* context, const OperatorRow& row, const Case& c, ElementType io, const CheckSettings& settings)
      : context(context), row(row), c(c), io(io), settings(settings) {
    std::vector<std::string> bound;
    const OperatorInfo all = describe(row, c.options);
    info = c.absent.empty() ? all : describe(row, c.options, bound = bound_tensors(all, c));
  }

  void run(const Data& data, CaseResult& result) {
    for (const std::vector<std::int64_t>& lengths : data.lengths) {
      Problem p = make_problem(info, c, data, lengths, io, settings.seed, false);
      prepare(p);
      if (positive) p = make_problem(info, c, data, lengths, io, settings.seed, true);
      compare(p, lengths, result);
      if (!result.failure.empty()) return;
    }
  }

private:
  /// Plans and programs are made once for the case, from its first tensors.
  void prepare(const Problem& p) {
    if (plan) return;
    Case tokens = c;
    tokens.mode = Mode::recurrent;
    tokens.chunk = 0;
    reference.emplace(row, specialisation_of(std::string(row.name), tokens, p, io));
    positive = reference->divides() && std::none_of(info.tensors.begin(), info.tensors.end(), [](const TensorInfo& t) {
                 return t.kind == TensorInfo::Kind::carry && t.typical;  // then nothing but the state is in the divisor
               });
    plan.emplace(context, plan_request(std::string(row.name), c, p, settings.isa, settings.place));
    if (c.prefill)
      first.emplace(context, plan_request(std::string(row.name), judged(), p, settings.isa, settings.place));
    if (!rounds_to_bfloat16(p)) return;
    // Where the chunk is the target's choice, declared types are judged at the one that it chose. Of a prefill with
    // kernels that are not written in the language, the reference alone says what it means.
    Case other = judged();
    if (!info.extern_kernel.empty()) other.mode = Mode::recurrent, other.chunk = 0;
    if (other.chunk == 0 && other.mode == Mode::prefill) other.chunk = (first ? *first : *plan).chunk();
    declared.emplace(row, specialisation_of(std::string(row.name), other, p, io));
  }
  /// Steps are judged as what they continue: a prefill, or the tokens of one.
  Case judged() const {
    Case other = c;
    if (c.mode == Mode::step) other.mode = c.prefill ? Mode::prefill : Mode::recurrent;
    return other;
  }
  static bool rounds_to_bfloat16(const Problem& p) {
    return std::any_of(p.entries.begin(), p.entries.end(),
                       [](const Problem::Entry& e) { return e.tensor.type == ElementType::bf16; });
  }

  std::vector<std::int64_t> dims(const Problem& p, std::int64_t tokens) const {
    std::vector<std::int64_t> values;
    for (const auto& [name, value] : p.dims) values.push_back(name == "T" && tokens ? tokens : value);
    return values;
  }

  void execute(const Problem& p, Buffers& buffers) {
    const std::vector<double> scalars = p.default_scalars ? std::vector<double>{} : p.scalars;
    if (!c.prefill) return plan->run(buffers.data, buffers.strides, dims(p, 0), scalars);
    first->run(buffers.data, buffers.strides, dims(p, c.prefill), scalars);
    for (std::int64_t t = c.prefill; t < p.rows; ++t)
      plan->run(buffers.from_row(t), buffers.strides, dims(p, 1), scalars);
  }

  void compare(const Problem& p, const std::vector<std::int64_t>& lengths, CaseResult& result) {
    Buffers buffers(p, c, settings.place), again(p, c, settings.place);
    execute(p, buffers);
    // The emulator is slow, and one order of lanes gives one result.
    const bool twice = !settings.place.emulated();
    if (twice) execute(p, again);
    buffers.fetch(), again.fetch();
    for (int more = 2; twice && more < settings.repeats && result.failure.empty(); ++more) {
      Buffers another(p, c, settings.place);
      execute(p, another);
      another.fetch();
      for (std::size_t i = 0; i < p.entries.size(); ++i)
        if (another.tensor(i).bytes != buffers.tensor(i).bytes)
          result.failure = fmt::format("{}: run {} gave other bits", buffers.tensor(i).name, more + 1);
    }
    if (!result.failure.empty()) return;
    for (std::size_t i = 0; i < p.entries.size(); ++i) {
      const HostTensor& now = buffers.tensor(i);
      if (!written(p.entries[i])) {
        if (now.bytes != p.entries[i].tensor.bytes) result.failure = now.name + ", an input, was changed";
      } else if (twice && now.bytes != again.tensor(i).bytes) {
        result.failure = now.name + ": a second run gave other bits";
      } else if (!gaps_untouched(now, p.entries[i].tensor)) {
        result.failure = now.name + ": memory between its elements was written";
      }
    }
    if (plan->overran() || (first && first->overran())) result.failure = "memory behind the workspace was written";
    if (buffers.overran()) result.failure = "memory before or behind a tensor was written";
    if (!result.failure.empty()) return;

    Values exact = reference->run(p, true);
    Values rounded = declared ? declared->run(p, false) : Values{};
    for (std::size_t i = 0; i < p.entries.size(); ++i) {
      const Problem::Entry& e = p.entries[i];
      if (!written(e)) continue;
      std::vector<double>& want = exact.at(e.tensor.name);
      if (c.mode == Mode::step && e.role == Problem::Role::output) {
        absent_rows(p, want);
        if (declared) absent_rows(p, rounded.at(e.tensor.name));
      }
      const bool state = is_state(e);
      TensorError error{e.tensor.name, state, 0, state ? row.state_tolerance : row.output_tolerance, -1};
      const std::vector<bool> compared = compared_elements(p, e, lengths);
      std::vector<double> got(want.size());
      for (std::size_t k = 0; k < got.size(); ++k) {
        got[k] = buffers.tensor(i).get(static_cast<std::int64_t>(k));
        if (!compared[k] && got[k] != e.tensor.get(static_cast<std::int64_t>(k))) {
          result.failure = fmt::format("{}: a slot that no sequence writes was changed", e.tensor.name);
          return;
        }
        if (compared[k] && !std::isfinite(want[k])) {
          result.failure =
              fmt::format("{}: the reference itself is not finite ({} tokens)", e.tensor.name, fmt::join(lengths, " "));
          return;
        }
      }
      error.error = ratio(got, want, compared);
      if (declared) {
        error.declared = ratio(rounded.at(e.tensor.name), want, compared);
        error.allowed = std::max(error.allowed, 1.5 * error.declared);
      }
      keep_worst(result, error);
    }
  }

  static bool gaps_untouched(HostTensor now, const HostTensor& before) {
    HostTensor old = before;
    for (std::int64_t i = 0, n = now.count(); i < n; ++i) now.set(i, 0), old.set(i, 0);
    return now.bytes == old.bytes;
  }

  /// A step's sequence whose indices are all -1 is absent; its output row is zero.
  void absent_rows(const Problem& p, std::vector<double>& want) const {
    std::vector<bool> absent(static_cast<std::size_t>(p.sequences), true);
    bool any = false;
    for (const Problem::Entry& e : p.entries) {
      if (e.role != Problem::Role::index || e.carry.empty()) continue;
      any = true;
      for (std::int64_t n = 0; n < p.sequences; ++n)
        if (e.tensor.get(n) >= 0) absent[static_cast<std::size_t>(n)] = false;
    }
    const std::size_t row_size = p.sequences ? want.size() / static_cast<std::size_t>(p.sequences) : 0;
    for (std::size_t n = 0; any && n < absent.size(); ++n)
      if (absent[n]) std::fill_n(want.begin() + static_cast<std::ptrdiff_t>(n * row_size), row_size, 0.0);
  }

  /// In a pool, the elements of slots that some sequence writes; elsewhere all.
  std::vector<bool> compared_elements(const Problem& p, const Problem::Entry& e,
                                      const std::vector<std::int64_t>& lengths) const {
    const auto count = static_cast<std::size_t>(e.tensor.count());
    const Problem::Entry* index = p.find(e.tensor.name + "_index");
    if (!is_state(e) || !index) return std::vector<bool>(count, true);
    std::vector<bool> some(count, false);
    const std::size_t slot_size = count / static_cast<std::size_t>(e.tensor.shape[0]);
    const std::int64_t columns = e.role == Problem::Role::history ? index->tensor.shape[1] : 1;
    for (std::int64_t n = 0; n < p.sequences; ++n) {
      const std::int64_t states = e.role == Problem::Role::history ? lengths[static_cast<std::size_t>(n)] / c.every : 1;
      for (std::int64_t m = 0; m < states; ++m)
        if (const auto slot = static_cast<std::int64_t>(index->tensor.get(n * columns + m)); slot >= 0)
          std::fill_n(some.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(slot) * slot_size), slot_size,
                      true);
    }
    return some;
  }

  static double ratio(const std::vector<double>& got, const std::vector<double>& want,
                      const std::vector<bool>& compared) {
    double difference = 0, reference = 0, most = 0, count = 0;
    for (std::size_t i = 0; i < want.size(); ++i) {
      if (!compared[i]) continue;
      const double d = got[i] - want[i];
      if (!std::isfinite(d)) return INFINITY;
      most = std::max(most, std::fabs(d));
      difference += d * d, reference += want[i] * want[i], ++count;
    }
    if (most <= negligible) return std::min(most, reference > 0 ? std::sqrt(difference / reference) : most);
    return std::sqrt(difference / count) / (std::sqrt(reference / count) + 1e-8);
  }

  /// The worst of a case's runs is compared with the worst of their interpreted runs: of small tensors the two errors
  /// of one run differ by more than the contract's factor, in either direction.
  static void keep_worst(CaseResult& result, const TensorError& error) {
    for (TensorError& known : result.errors)
      if (known.name == error.name) {
        if (!(error.error <= known.error)) known.error = error.error;
        known.allowed = std::max(known.allowed, error.allowed);
        known.declared = std::max(known.declared, error.declared);
        return;
      }
    result.errors.push_back(error);
  }

  latile_context* context;
  const OperatorRow& row;
  const Case& c;
  ElementType io;
  const CheckSettings& settings;
  OperatorInfo info;
  std::optional<Meaning> reference, declared;
  std::optional<Plan> plan, first;
  bool positive = false;
};

}  // namespace

bool CaseResult::passed() const {
  return failure.empty() &&
         std::none_of(errors.begin(), errors.end(), [](const TensorError& e) { return e.exceeds(); });
}

std::vector<CaseResult> run_case(latile_context* context, const OperatorRow& row, const Case& c, ElementType io,
                                 const CheckSettings& settings) {
  std::vector<CaseResult> results;
  std::optional<Runner> runner;
  for (const Data& data : c.data) {
    CaseResult result{std::string(row.name), c.label, data.label, io, {}, "", 0};
    const auto start = std::chrono::steady_clock::now();
    try {
      if (!runner) runner.emplace(context, row, c, io, settings);
      runner->run(data, result);
    } catch (const std::exception& e) { result.failure = e.what(); }
    result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    results.push_back(std::move(result));
  }
  return results;
}

}  // namespace latile
