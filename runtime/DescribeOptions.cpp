#include "runtime/DescribeParts.h"
#include "runtime/HostIsa.h"
#include <algorithm>
#include <charconv>
#include <fmt/ranges.h>

namespace latile::runtime {
namespace {

bool truth(const std::string& text) { return text == "true" || text == "1"; }

std::optional<double> number(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<std::int64_t> integer(const std::string& text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

const OptionInfo* find(const OperatorInfo& info, const std::string& name) {
  for (const OptionInfo& option : info.options)
    if (option.name == name) return &option;
  return nullptr;
}

[[noreturn]] void refuse(const std::string& op, const std::string& name, const std::string& value,
                         const std::string& wanted) {
  fail(LATILE_BAD_ARGUMENT, "{}: option {} is '{}'; it takes {}", op, name, value, wanted);
}

/// One spelling for each value: "1" and "true", "08" and "8", "0.50" and "0.5".
std::string canonical(const OptionInfo& option, const std::string& value) {
  switch (option.kind) {
  case OptionInfo::Kind::flag: return truth(value) ? "true" : "false";
  case OptionInfo::Kind::integer:
    if (const auto parsed = integer(value)) return fmt::format("{}", *parsed);
    break;
  case OptionInfo::Kind::number:
    if (const auto parsed = number(value)) return fmt::format("{}", *parsed);
    break;
  case OptionInfo::Kind::choice: break;
  }
  return value;
}

}  // namespace

Options split_options(const latile_plan_desc& desc, const HostIsa& native, Specialisation& specialisation) {
  Options own;
  std::vector<std::string> seen;
  for (std::size_t i = 0; i < desc.option_count; ++i) {
    const std::string name = desc.options[i].name, value = desc.options[i].value;
    if (std::find(seen.begin(), seen.end(), name) != seen.end())
      fail(LATILE_BAD_ARGUMENT, "{}: option {} is given twice", desc.op, name);
    seen.push_back(name);
    if (name == "head_map") {
      if (value != "grouped" && value != "tiled") refuse(desc.op, name, value, "grouped or tiled");
      specialisation.tiled_heads = value == "tiled";
    } else if (name == "reverse") {
      if (!truth(value) && value != "false" && value != "0") refuse(desc.op, name, value, "true or false");
      specialisation.reversed = truth(value);
      if (specialisation.reversed && specialisation.mode == Mode::step)
        fail(LATILE_BAD_ARGUMENT,
             "{}: option reverse is true, but mode step takes one token, which has no order; leave "
             "it out",
             desc.op);
    } else if (name == "chunk_size") {
      if (value != "auto" && value != "16" && value != "32" && value != "64")
        refuse(desc.op, name, value, "auto, 16, 32 or 64");
      // The other modes go token by token: their code does not depend on it.
      if (specialisation.mode == Mode::prefill) specialisation.chunk = integer(value).value_or(0);
    } else if (name == "host_isa") {
      HostIsa isa;
      if (desc.device.type != LATILE_CPU)
        fail(LATILE_BAD_ARGUMENT, "{}: option host_isa is {}, but the plan is not for the host; leave it out", desc.op,
             value);
      if (value == "native") continue;
      if (!HostIsa::named(value, isa)) refuse(desc.op, name, value, "native, x86-64-v3, avx512, avx512bf16 or amx");
      if (!host_supports(isa))
        fail(LATILE_NO_DEVICE, "{}: option host_isa is {}, which this CPU does not have; the best it has is {}",
             desc.op, value, native.level);
      specialisation.isa = isa;
    } else {
      own.emplace_back(name, value);
    }
  }
  return own;
}

void check_options(const OperatorInfo& info, const Options& options) {
  for (const auto& [name, value] : options) {
    const OptionInfo* option = find(info, name);
    if (option == nullptr) {
      std::vector<std::string> known = {"head_map", "reverse", "chunk_size", "host_isa"};
      for (const OptionInfo& candidate : info.options) known.push_back(candidate.name);
      fail(LATILE_BAD_ARGUMENT, "{}: there is no option '{}' with these settings{}", info.name, name,
           suggestion(name, known));
    }
    switch (option->kind) {
    case OptionInfo::Kind::flag:
      if (!truth(value) && value != "false" && value != "0") refuse(info.name, name, value, "true or false");
      break;
    case OptionInfo::Kind::integer: {
      const auto parsed = integer(value);
      if (!parsed || *parsed < option->lo || *parsed > option->hi)
        refuse(info.name, name, value, fmt::format("an integer from {} to {}", option->lo, option->hi));
      break;
    }
    case OptionInfo::Kind::number:
      if (!number(value)) refuse(info.name, name, value, "a number");
      break;
    case OptionInfo::Kind::choice:
      if (std::find(option->values.begin(), option->values.end(), value) == option->values.end())
        refuse(info.name, name, value, fmt::format("one of {}", fmt::join(option->values, ", ")));
      break;
    }
  }
}

Options canonical_options(const OperatorInfo& info, Options options) {
  Options kept;
  for (auto& [name, value] : options) {
    const OptionInfo& option = *find(info, name);
    std::string spelled = canonical(option, value);
    if (spelled != canonical(option, option.fallback)) kept.emplace_back(name, std::move(spelled));
  }
  std::sort(kept.begin(), kept.end());
  return kept;
}

}  // namespace latile::runtime
