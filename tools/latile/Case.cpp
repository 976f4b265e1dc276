#include "tools/latile/Case.h"
#include "dsl/Describe.h"
#include "tools/latile/UserError.h"
#include <algorithm>
#include <fmt/format.h>
#include <set>

namespace latile {
namespace {

std::vector<std::int64_t> up_to(std::int64_t n) {
  std::vector<std::int64_t> lengths(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < n; ++i) lengths[static_cast<std::size_t>(i)] = i + 1;
  return lengths;
}

/// Other values of an option than its default.
std::vector<std::string> settings(const OptionInfo& option) {
  switch (option.kind) {
  case OptionInfo::Kind::flag: return {option.fallback == "true" ? "false" : "true"};
  case OptionInfo::Kind::number: return {option.range ? fmt::format("{}", option.range->first) : "0.5"};
  case OptionInfo::Kind::integer: {
    std::vector<std::string> values{std::to_string(option.lo)};
    if (option.hi != option.lo) values.push_back(std::to_string(std::min(option.hi, option.lo + 2)));
    std::erase(values, option.fallback);
    return values;
  }
  case OptionInfo::Kind::choice: {
    std::vector<std::string> values = option.values;
    std::erase(values, option.fallback);
    return values;
  }
  }
  return {};
}

class List {
public:
  List(const OperatorRow& row, bool quick) : row(row), quick(quick), info(describe(row, {})) {
    for (const TensorInfo& t : info.tensors) gated |= t.gate;
    for (const TensorInfo& t : info.tensors)
      factors |= t.kind == TensorInfo::Kind::sequence && !t.gate && inner(t) == 0;
    for (const DimInfo& d : info.dims) headed |= d.head, grouped |= !d.group.empty();
  }

  std::vector<Case> take() {
    if (info.has_prefill()) {
      lengths();
      sizes();
      states();
    }
    settings_in_turn();
    heads();
    directions_and_histories();
    tokens();
    return std::move(cases);
  }

private:
  std::size_t inner(const TensorInfo& t) const {
    return static_cast<std::size_t>(std::count_if(t.dims.begin(), t.dims.end(), [&](const std::string& d) {
      const DimInfo* dim = info.dim(d);
      return !dim || !dim->head;
    }));
  }
  Case& add(const std::string& label, std::vector<std::int64_t> extents, std::vector<Data> data) {
    Case c;
    // Some operators limit an extent.
    std::size_t at = 0;
    for (const DimInfo& d : info.dims)
      if (!d.head && at < extents.size()) {
        if (d.most) extents[at] = std::min(extents[at], d.most);
        ++at;
      }
    c.label = fmt::format("{} ({})", label, fmt::join(extents, ", "));
    c.extents = std::move(extents);
    c.data = std::move(data);
    if (!info.has_prefill()) c.mode = Mode::recurrent;
    return cases.emplace_back(std::move(c));
  }
  /// Where the chunk is part of the meaning it is the operator's option and not the plan's.
  void set_chunk(Case& c, std::int64_t chunk) const {
    if (info.mini_batch)
      c.options = {{"mini_batch", std::to_string(chunk)}};
    else
      c.chunk = chunk;
  }
  std::int64_t many() const { return headed ? 2 : 1; }

  /// What breaks a kernel that is right on random numbers.
  std::vector<Data> with_extremes(std::string label, std::vector<std::vector<std::int64_t>> runs) const {
    const std::string high = factors ? ", factors to 2" : "";
    std::vector<Data> list{{label, runs}};
    if (info.has_kernel) return list;  // it has neither keys nor gates
    list.push_back({"keys correlated 0.9" + high, runs, Gates::mild, 0.9, 2});
    list.push_back({"equal keys" + high, runs, Gates::mild, 1, 2});
    if (gated) {
      list.push_back({"gates 0 -50 -3000 -inf", runs, Gates::mixed, 0, 1});
      list.push_back({"gates 0 -50 -3000 -inf, equal keys" + high, runs, Gates::mixed, 1, 2});
    }
    return list;
  }

  void lengths() {
    std::vector<std::vector<std::int64_t>> dense{{1}, {15}, {63}, {100}};
    if (!quick) dense.push_back({2000});
    add("lengths", {64, 64}, {{quick ? "1 15 63 100 tokens" : "1 15 63 100 2000 tokens", dense}});
    for (std::int64_t chunk : {64, 32, 16}) {
      if (quick && chunk != 16) continue;
      std::vector<std::vector<std::int64_t>> runs;
      if (chunk == 32)
        for (std::int64_t n : up_to(chunk)) runs.push_back({n});
      else
        runs.push_back(up_to(chunk));
      Case& c = add(fmt::format("chunks of {}", chunk), {8, 24},
                    with_extremes(fmt::format("each of 1 to {} tokens", chunk), runs));
      set_chunk(c, chunk);
      c.ragged_bits = chunk == 64 ? 32 : chunk == 16 ? 64 : 0;
    }
    Case& ragged = add("ragged", {32, 48}, with_extremes("0 1 5 0 64 100 1 0 tokens", {{0, 1, 5, 0, 64, 100, 1, 0}}));
    ragged.ragged_bits = 32;
    ragged.heads = many();
    ragged.ratio = grouped ? 2 : 1;
  }

  void sizes() {
    if (info.has_kernel) {
      // Wider than what a program takes at a time: a few whole blocks and a part of one.
      Case& wide = add("wide", {1300, 4}, {{"19 0 1 40 tokens", {{19, 0, 1, 40}}}});
      wide.ragged_bits = 32;
      wide.heads = many();
      if (!quick) {
        add("wide", {8192, 3}, {{"20 tokens, batch 2", {{20, 20}}}}).any_as_io = true;
        add("wide", {16384, 2}, {{"17 tokens", {{17}}}});
        Case& narrow = add("wide, step", {1300, 4}, {{"batch 3", {{1, 1, 1}}}});
        narrow.mode = Mode::step;
        narrow.states = States::in_place;
      }
    }
    Case& odd = add("strided", {60, 100}, with_extremes("75 tokens, batch 2", {{75, 75}}));
    odd.strided = true;
    odd.heads = many();
    add("sizes", {128, 128}, with_extremes("100 tokens", {{100}}));
    if (quick) return;
    set_chunk(add("chunks of 64", {64, 64}, with_extremes("150 tokens", {{150}})), 64);
    add("sizes", {96, 192}, with_extremes("70 tokens", {{70}})).ratio = grouped ? 2 : 1;
    Case& largest = add("sizes", {256, 512}, with_extremes("40 tokens", {{40}}));
    largest.any_as_io = true;
    set_chunk(add("chunks of 64", {256, 512}, {{"70 tokens", {{70}}}}), 64);
  }

  void states() {
    Case& v_first = add("states [V, K]", {40, 24}, {{"50 tokens, batch 2", {{50, 50}}}});
    v_first.state_v_first = true;
    v_first.heads = many();
    Case& pool = add("state pool, bfloat16", {32, 48}, {{"20 0 33 1 tokens", {{20, 0, 33, 1}}}});
    pool.ragged_bits = 32;
    pool.states = States::pool;
    pool.state_type = ElementType::bf16;
    pool.index_bits = 64;
    if (quick) return;
    Case& in_place = add("state pool in place", {24, 40}, {{"20 tokens, batch 4", {{20, 20, 20, 20}}}});
    in_place.states = States::in_place;
    in_place.state_v_first = true;
    add("initial state only", {24, 40}, {{"37 tokens", {{37}}}}).states = States::initial;
    add("final state only", {24, 40}, {{"37 tokens", {{37}}}}).states = States::last;
    Case& bare = add("no state, scalars given", {24, 40}, {{"37 tokens", {{37}}}});
    bare.states = States::none;
    bare.scalar = 0.7;
  }

  /// Each option at each other value, and each optional tensor left out where the options bring it in.
  void settings_in_turn() {
    std::set<std::string> seen;
    const auto left_out = [&](const std::vector<std::pair<std::string, std::string>>& options, const std::string& how) {
      const OperatorInfo with = describe(row, options);
      for (const TensorInfo& t : with.tensors) {
        if (!t.optional || t.kind == TensorInfo::Kind::carry || !seen.insert(t.name).second) continue;
        Case& c = add(fmt::format("without {}{}", t.name, how), {24, 40}, {{"37 tokens", {{37}}}});
        c.options = options;
        if (!with.has_prefill()) c.mode = Mode::recurrent;
        c.absent = {t.name};
      }
    };
    left_out({}, "");
    const auto set = [&](const OptionInfo& option, std::vector<std::pair<std::string, std::string>> options,
                         const std::string& before) {
      for (const std::string& value : settings(option)) {
        const std::string label = before + option.name + " = " + value;
        Case& c = add(label, {24, 40}, {{"37 tokens", {{37}}}});
        c.options = options;
        c.options.emplace_back(option.name, value);
        c.any_as_io = true;
        c.ratio = grouped ? 2 : 1;
        if (!describe(row, c.options).has_prefill()) c.mode = Mode::recurrent;
        left_out(std::vector(c.options), ", " + label);
      }
    };
    for (const OptionInfo& option : info.options) {
      set(option, {}, "");
      for (const std::string& value : settings(option))  // options that this one brings in
        for (const OptionInfo& further : describe(row, {{option.name, value}}).options)
          if (std::none_of(info.options.begin(), info.options.end(),
                           [&](const OptionInfo& known) { return known.name == further.name; }))
            set(further, {{option.name, value}}, option.name + " = " + value + ", ");
    }
  }

  void heads() {
    if (!grouped) return;
    Case& tiled = add("4 value heads a key head, tiled", {24, 40}, {{"37 tokens", {{37}}}});
    tiled.heads = 2;
    tiled.ratio = 4;
    tiled.tiled_heads = true;
    // States that several heads share have one writer, wherever they lie.
    const bool shares = std::any_of(info.tensors.begin(), info.tensors.end(), [&](const TensorInfo& t) {
      return t.kind == TensorInfo::Kind::carry && !t.head.empty() && info.dim(t.head)->group.empty();
    });
    if (shares && info.has_chunk && info.has_reference)
      for (const bool step : {false, true}) {
        Case& c = step ? add("step, shared states in place", {24, 40}, {{"batch 4", {{1, 1, 1, 1}}}})
                       : add("shared states in place", {24, 40}, {{"37 0 16 1 tokens", {{37, 0, 16, 1}}}});
        c.mode = step ? Mode::step : Mode::prefill;
        c.ragged_bits = step ? 0 : 32;
        c.states = States::in_place;
        c.heads = 2;
        c.ratio = 4;
      }
    if (quick) return;
    Case& four = add("4 value heads a key head, grouped", {24, 40}, {{"37 tokens", {{37}}}});
    four.heads = 2;
    four.ratio = 4;
  }

  void directions_and_histories() {
    if (info.has_kernel) return;  // its prefill is no scan
    const bool by_token = info.has_reference && info.no_step.empty();
    const auto pooled = [&](Case& c, std::int64_t every) {
      c.ragged_bits = 32;
      c.states = States::pool;
      c.every = every;
      c.accepted = true;
      c.ratio = grouped ? 2 : 1;
    };
    if (info.has_chunk) {
      Case& reversed = add("reversed", {24, 40}, {{"37 0 16 1 tokens", {{37, 0, 16, 1}}}});
      reversed.reversed = true;
      reversed.ragged_bits = 32;
      reversed.ratio = grouped ? 2 : 1;
      const std::int64_t chunk = info.mini_batch ? info.mini_batch : 16;
      pooled(
          add("states of chunks kept", {24, 40}, {{"3 0 2 1 chunks and more", {{3 * chunk + 5, 3, 2 * chunk, chunk}}}}),
          chunk);
    }
    if (!by_token) return;
    pooled(add("states of tokens kept", {24, 40}, {{"4 0 1 3 tokens", {{4, 0, 1, 3}}}}), 1);
    cases.back().mode = Mode::recurrent;
    if (quick) return;
    Case& reversed = add("recurrent, reversed", {24, 40}, {{"7 tokens, batch 2", {{7, 7}}}});
    reversed.mode = Mode::recurrent;
    reversed.reversed = true;
  }

  void tokens() {
    if (!info.has_reference || !info.no_step.empty()) return;
    Case& recurrent = add("recurrent", {24, 40}, {{"33 0 1 7 tokens", {{33, 0, 1, 7}}}});
    recurrent.mode = Mode::recurrent;
    recurrent.ragged_bits = 32;
    recurrent.ratio = grouped ? 2 : 1;
    Case& step = add("step, pool in place", {64, 64}, {{"batch 4", {{1, 1, 1, 1}}}});
    step.mode = Mode::step;
    step.states = States::in_place;
    step.heads = many();
    if (info.has_prefill()) {
      Case& on = add("steps after a prefill", {24, 96}, {{"12 + 8 tokens, batch 2", {{20, 20}}}});
      on.mode = Mode::step;
      on.prefill = 12;
      on.heads = many();
      on.ratio = grouped ? 2 : 1;
    }
    if (quick) return;
    Case& odd = add("step, bfloat16 states [V, K]", {60, 100}, {{"batch 2", {{1, 1}}}});
    odd.mode = Mode::step;
    odd.state_type = ElementType::bf16;
    odd.state_v_first = true;
    odd.ratio = grouped ? 2 : 1;
    if (!gated) return;
    Case& largest = add("step", {256, 512}, {{"gates 0 -50 -3000 -inf, batch 2", {{1, 1}}, Gates::mixed, 0, 1}});
    largest.mode = Mode::step;
  }

  const OperatorRow& row;
  bool quick;
  OperatorInfo info;
  bool gated = false, factors = false, headed = false, grouped = false;
  std::vector<Case> cases;
};

}  // namespace

std::string lines_of(const std::vector<Diagnostic>& mistakes) {
  std::string lines;
  for (const Diagnostic& mistake : mistakes) lines += (lines.empty() ? "" : "\n") + mistake.message();
  return lines;
}

OperatorInfo describe(const OperatorRow& row, const std::vector<std::pair<std::string, std::string>>& options,
                      const std::vector<std::string>& bound) {
  std::vector<Diagnostic> mistakes;
  OperatorInfo info = describe(row, Config{options, bound}, mistakes);
  if (!mistakes.empty()) throw DefinitionError(lines_of(mistakes));
  return info;
}

std::vector<Case> cases_of(const OperatorRow& row, bool quick) { return List(row, quick).take(); }

std::vector<Case> emulated_cases_of(const OperatorRow& row, std::optional<int> half) {
  constexpr std::int64_t longest = 70;  // more than the longest chunk
  std::vector<Case> cases = cases_of(row, true);
  for (Case& c : cases) {
    // The first data is plain, the last the most extreme. Of the largest sizes one kind, which is then for one type:
    // equal keys, with which roundings of long sums add up most.
    const bool largest = *std::max_element(c.extents.begin(), c.extents.end()) >= 128;
    if (largest && c.data.size() > 2)
      c.data = {c.data[2]};
    else if (c.data.size() > 2)
      c.data.erase(c.data.begin() + 1, c.data.end() - 1);
    for (Data& data : c.data) {
      bool shortened = false;
      for (std::vector<std::int64_t>& run : data.lengths)
        for (std::int64_t& tokens : run)
          if (tokens > longest) tokens = longest, shortened = true;
      if (shortened) data.label += fmt::format(", at most {}", longest);
    }
  }
  if (!half) return cases;
  std::vector<Case> kept;
  int turn = 0;
  for (Case& c : cases)
    if (c.data.size() > 1 || turn++ % 2 == *half) kept.push_back(std::move(c));
  return kept;
}

}  // namespace latile
