#include "tools/latile/LargeCheck.h"
#include "runtime/Failure.h"
#include "tools/latile/Meaning.h"
#include "tools/latile/UserError.h"
#include <algorithm>
#include <chrono>
#include <cstring>
#include <fmt/format.h>
#include <functional>

namespace latile {
namespace {

/// A plan's tensors on the device, filled by repetition of a small problem's contents.
class Large {
public:
  Large(latile_context* context, const OperatorRow& row, const Case& c, ElementType io, const CheckSettings& settings,
        const std::vector<std::int64_t>& pattern_lengths)
      : c(c), place(settings.place) {
    const OperatorInfo info = describe(row, c.options);
    const std::string op(row.name);
    const Meaning program(row, specialisation_of(op, c, make_problem(info, c, {}, {1}, io, 1, false), io));
    pattern = make_problem(info, c, {}, pattern_lengths, io, settings.seed, program.divides());
    plan.emplace(context, plan_request(op, c, pattern, "", place));
    plan->keep_workspace();
  }

  std::vector<std::int64_t> dims(const std::function<std::int64_t(const std::string&, std::int64_t)>& value) const {
    std::vector<std::int64_t> values;
    for (const auto& [name, known] : pattern.dims) values.push_back(value(name, known));
    return values;
  }

  void allocate(const std::vector<std::int64_t>& at) {
    for (std::size_t i = 0; i < pattern.entries.size(); ++i) {
      const Problem::Entry& e = pattern.entries[i];
      const auto bytes = static_cast<std::size_t>(element_count(plan->shape(i, at))) * size(e.tensor.type);
      memory.push_back(std::make_unique<DeviceMemory>(place.device, bytes));
      const bool read = e.role == Problem::Role::input || e.role == Problem::Role::initial;
      const std::vector<std::byte>& period = e.tensor.bytes;
      for (std::size_t done = 0; read && !period.empty() && done < bytes; done += period.size())
        place.device->copy_in(static_cast<char*>(memory.back()->data()) + done, period.data(),
                              std::min(period.size(), bytes - done));
    }
  }

  std::vector<void*> data() const {
    std::vector<void*> pointers;
    for (const auto& each : memory) pointers.push_back(each->data());
    return pointers;
  }
  void run(const std::vector<void*>& pointers, const std::vector<std::int64_t>& at) {
    plan->run(pointers, strides(), at, {});
  }

  /// Bytes of a tensor at `at`, from this index of its axis `axis` on; the axes before it have extent 1.
  std::size_t offset(std::size_t tensor, const std::vector<std::int64_t>& at, std::size_t axis,
                     std::int64_t index) const {
    const std::vector<std::int64_t> shape = plan->shape(tensor, at);
    std::int64_t elements = index;
    for (std::size_t d = axis + 1; d < shape.size(); ++d) elements *= shape[d];
    return static_cast<std::size_t>(elements) * size(pattern.entries[tensor].tensor.type);
  }

  /// Whether a written tensor's last bytes are those of `small`; says so in `failure`.
  bool same(std::size_t tensor, const DeviceMemory& small, std::size_t from, std::string& failure) const {
    const std::size_t bytes = memory[tensor]->size() - from;
    std::vector<char> large_bytes(bytes), small_bytes(bytes);
    place.device->copy_out(large_bytes.data(), static_cast<const char*>(memory[tensor]->data()) + from, bytes, nullptr);
    place.device->copy_out(small_bytes.data(), small.data(), bytes, nullptr);
    if (std::all_of(small_bytes.begin(), small_bytes.end(), [](char byte) { return byte == '\xff'; })) {
      failure = fmt::format("{}: nothing was written", pattern.entries[tensor].tensor.name);
      return false;
    }
    if (large_bytes == small_bytes) return true;
    const auto first = std::mismatch(large_bytes.begin(), large_bytes.end(), small_bytes.begin()).first;
    failure = fmt::format("{}: byte {} of its last {} is not that of a run of these sequences alone",
                          pattern.entries[tensor].tensor.name, first - large_bytes.begin(), bytes);
    return false;
  }

  std::vector<std::vector<std::int64_t>> strides() const {
    std::vector<std::vector<std::int64_t>> all;
    for (const Problem::Entry& e : pattern.entries) all.push_back(e.tensor.strides);
    return all;
  }

  const Case& c;
  const Place& place;
  Problem pattern;
  std::optional<Plan> plan;
  std::vector<std::unique_ptr<DeviceMemory>> memory;
};

bool is_written(const Problem::Entry& e) { return e.role == Problem::Role::output || e.role == Problem::Role::final; }

/// Compares the tensors of the last sequences with a run of them alone. `moved`: where each tensor's part begins.
void compare(Large& large, const std::vector<std::int64_t>& alone, const std::vector<std::size_t>& moved,
             CaseResult& result) {
  std::vector<std::unique_ptr<DeviceMemory>> written(large.memory.size());
  std::vector<void*> pointers = large.data();
  for (std::size_t i = 0; i < pointers.size(); ++i) {
    if (is_written(large.pattern.entries[i])) {
      written[i] = std::make_unique<DeviceMemory>(large.place.device, large.memory[i]->size() - moved[i]);
      pointers[i] = written[i]->data();
    } else {
      pointers[i] = static_cast<char*>(pointers[i]) + moved[i];
    }
  }
  large.run(pointers, alone);
  for (std::size_t i = 0; i < pointers.size(); ++i)
    if (written[i] && !large.same(i, *written[i], moved[i], result.failure)) return;
}

void many_elements(latile_context* context, const OperatorRow& row, ElementType io, const CheckSettings& settings,
                   CaseResult& result) {
  Case c;
  c.extents = {128, 128};
  c.heads = 64;
  // 1000 tokens: no power of two, so that an offset that wrapped would meet other numbers.
  constexpr std::int64_t tokens = 1000;
  constexpr std::int64_t sequences = (std::int64_t{1} << 31) / (tokens * 64 * 128) + 2;
  Large large(context, row, c, io, settings, {tokens});
  const auto at = [&](std::int64_t batch) {
    return large.dims(
        [&](const std::string& name, std::int64_t known) { return name == "B" || name == "N" ? batch : known; });
  };
  large.allocate(at(sequences));
  large.run(large.data(), at(sequences));
  std::vector<std::size_t> moved;
  for (std::size_t i = 0; i < large.memory.size(); ++i) {
    const bool whole = large.plan->shape(i, at(sequences)) == large.plan->shape(i, at(1));  // a parameter
    moved.push_back(whole ? 0 : large.offset(i, at(sequences), 0, sequences - 1));
  }
  compare(large, at(1), moved, result);
}

void many_sequences(latile_context* context, const OperatorRow& row, ElementType io, const CheckSettings& settings,
                    CaseResult& result) {
  Case c;
  c.extents = {64, 64};
  c.heads = 4;
  c.ragged_bits = 32;
  constexpr std::int64_t sequences = 70000, last = 100;
  std::vector<std::int32_t> borders{0};
  for (std::int64_t n = 0; n < sequences; ++n) borders.push_back(borders.back() + static_cast<std::int32_t>(n * 7 % 9));
  const std::int64_t rows = borders.back(), first = borders[sequences - last];
  Large large(context, row, c, io, settings, {601, 396});
  const auto at = [&](std::int64_t n, std::int64_t t) {
    return large.dims([&](const std::string& name, std::int64_t known) {
      return name == "N" ? n : name == "T" ? t : known;
    });
  };
  const auto all = at(sequences, rows), alone = at(last, rows - first);
  large.allocate(all);
  std::vector<std::size_t> moved(large.memory.size(), 0);
  std::vector<std::int32_t> own;
  for (std::int64_t n = sequences - last; n <= sequences; ++n)
    own.push_back(borders[static_cast<std::size_t>(n)] - static_cast<std::int32_t>(first));
  std::size_t borders_at = large.memory.size();
  for (std::size_t i = 0; i < large.memory.size(); ++i) {
    const Problem::Entry& e = large.pattern.entries[i];
    if (e.tensor.name == "cu_seqlens")
      borders_at = i;
    else if (e.role == Problem::Role::initial || e.role == Problem::Role::final)
      moved[i] = large.offset(i, all, 0, sequences - last);
    else if (e.rate > 0)
      moved[i] = large.offset(i, all, 1, first * e.rate);
  }
  large.memory[borders_at]->write(borders.data());
  large.run(large.data(), all);
  large.memory[borders_at] = std::make_unique<DeviceMemory>(large.place.device, own.size() * sizeof own[0]);
  large.memory[borders_at]->write(own.data());
  compare(large, alone, moved, result);
}

}  // namespace

std::vector<CaseResult> run_large(latile_context* context, const OperatorRow& row, ElementType io,
                                  const CheckSettings& settings) {
  using Body = void (*)(latile_context*, const OperatorRow&, ElementType, const CheckSettings&, CaseResult&);
  const std::pair<const char*, Body> bodies[] = {{"more than 2^31 elements", many_elements},
                                                 {"70000 sequences", many_sequences}};
  std::vector<CaseResult> results;
  for (const auto& [label, body] : bodies) {
    CaseResult result{std::string(row.name), label, "the last sequences beside a run of them alone", io, {}, "", 0};
    const auto start = std::chrono::steady_clock::now();
    try {
      body(context, row, io, settings, result);
    } catch (const runtime::Failure& failure) { result.failure = failure.text; } catch (const std::exception& e) {
      result.failure = e.what();
    }
    result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    results.push_back(std::move(result));
  }
  return results;
}

}  // namespace latile
