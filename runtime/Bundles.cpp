#include "runtime/Bundle.h"
#include "runtime/DescribeParts.h"
#include "runtime/Failure.h"
#include "runtime/HostIsa.h"
#include <algorithm>
#include <charconv>
#include <fmt/ranges.h>
#include <functional>
#include <iterator>
#include <mutex>
#include <set>
#include <string_view>

namespace latile::runtime {
namespace {

/// Whether these options mean what the description was made for. A value that it does not take is no match.
bool same_options(const BundleInfo& candidate, const Options& options) {
  try {
    check_options(candidate.info, options);
  } catch (const Failure&) { return false; }
  return canonical_options(candidate.info, options) == candidate.options;
}

/// 90 of "cuda:sm_90"; 0 for other targets, and for those with a letter, whose instructions no later chip has.
int ptx_chip(const std::string& target) {
  constexpr std::string_view prefix = "cuda:sm_";
  int chip = 0;
  if (!target.starts_with(prefix)) return 0;
  const auto [end, error] = std::from_chars(target.data() + prefix.size(), target.data() + target.size(), chip);
  return error == std::errc() && end == target.data() + target.size() ? chip : 0;
}

std::string text(const Options& options) {
  if (options.empty()) return "the default options";
  std::vector<std::string> list;
  for (const auto& [name, value] : options) list.push_back(name + " = " + value);
  return fmt::format("the options {}", fmt::join(list, ", "));
}

}  // namespace

void Bundles::add(std::shared_ptr<const Bundle> bundle) {
  const std::unique_lock lock(mutex);
  list.push_back(std::move(bundle));
}

bool Bundles::empty() const { return count() == 0; }

std::size_t Bundles::count() const {
  const std::shared_lock lock(mutex);
  return list.size();
}

std::vector<std::shared_ptr<const Bundle>> Bundles::all() const {
  const std::shared_lock lock(mutex);
  return {list.rbegin(), list.rend()};
}

std::unique_ptr<Artifact> Bundles::find(const Specialisation& wanted) const {
  const auto bundles = all();
  if (bundles.empty()) return nullptr;
  Specialisation s = wanted;
  const auto any = [&]() -> std::unique_ptr<Artifact> {
    const std::string text = s.json();
    for (const auto& bundle : bundles)
      if (auto found = bundle->find(text)) return found;
    return nullptr;
  };
  if (auto found = any()) return found;
  if (s.device == "host") {
    for (const char* lower : {"avx512bf16", "avx512", "x86-64-v3"}) {
      HostIsa isa;
      if (!HostIsa::named(lower, isa) || lower == wanted.isa.level || !host_includes(wanted.isa, isa)) continue;
      s.isa = isa;
      if (auto found = any()) return found;
    }
    return nullptr;
  }
  // The driver compiles PTX for every later chip; machine code is for one.
  std::set<int, std::greater<>> chips;
  for (const auto& bundle : bundles)
    for (const BundlePlan& plan : bundle->plans)
      if (const int chip = ptx_chip(plan.artifact.target); chip > 0 && chip < ptx_chip(wanted.device))
        chips.insert(chip);
  for (int chip : chips) {
    s.device = fmt::format("cuda:sm_{}", chip);
    if (auto found = any(); found && !found->binary.starts_with("\x7f"
                                                                "ELF"))
      return found;
  }
  return nullptr;
}

std::vector<std::string> Bundles::operators() const {
  std::vector<std::string> names;
  for (const auto& bundle : all())
    for (const BundleInfo& each : bundle->infos)
      if (std::find(names.begin(), names.end(), each.info.name) == names.end()) names.push_back(each.info.name);
  return names;
}

bool Bundles::describe(const std::string& op, const Options& options, const std::vector<std::string>& bound,
                       OperatorInfo& info, CompileFailure&) {
  std::vector<std::string> sorted = bound;
  std::sort(sorted.begin(), sorted.end());
  // What is nearest to it: of the same options, with the fewest tensors more or less.
  const BundleInfo* near = nullptr;
  bool near_options = false;
  std::size_t near_difference = 0;
  for (const auto& bundle : all())
    for (const BundleInfo& each : bundle->infos) {
      if (each.info.name != op) continue;
      std::vector<std::string> other;
      std::set_symmetric_difference(sorted.begin(), sorted.end(), each.bound.begin(), each.bound.end(),
                                    std::back_inserter(other));
      const bool same = same_options(each, options);
      if (same && other.empty()) {
        info = each.info;
        return true;
      }
      if (near == nullptr || same > near_options || (same == near_options && other.size() < near_difference))
        near = &each, near_options = same, near_difference = other.size();
    }
  // `near` lies in a bundle of this context, which keeps it.
  if (near_options)
    fail(LATILE_NO_COMPILER,
         "{}: no bundle has a plan with the tensors {}; one has {}; bind these, or write a bundle that has it", op,
         fmt::join(sorted, ", "), fmt::join(near->bound, ", "));
  fail(LATILE_NO_COMPILER, "{}: no bundle has a plan with {}; one has {}; write a bundle that has it", op,
       text(options), near != nullptr ? text(near->options) : "none");
}

bool Bundles::compile(const Specialisation& wanted, Artifact&, CompileFailure&) {
  std::vector<std::string> targets, dims;
  for (const auto& [name, extent] : wanted.extents) dims.push_back(fmt::format("{} = {}", name, extent));
  for (const auto& bundle : all())
    for (const BundlePlan& plan : bundle->plans)
      if (bundle->infos[plan.info].info.name == wanted.op &&
          std::find(targets.begin(), targets.end(), plan.artifact.target) == targets.end())
        targets.push_back(plan.artifact.target);
  fail(LATILE_NO_COMPILER,
       "{}: no bundle has code for mode {} with {}, {} and this plan's other settings on {}; of this operator there is "
       "code for {}; write a bundle that has it",
       wanted.op, name(wanted.mode), fmt::join(dims, ", "), latile::name(wanted.io),
       wanted.device == "host" ? "host:" + wanted.isa.level : wanted.device, fmt::join(targets, ", "));
}

}  // namespace latile::runtime
