#include "tools/operator-docs/Page.h"
#include <algorithm>
#include <cctype>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace latile::docs {
namespace {

using Kind = TensorInfo::Kind;

std::string shape(const TensorInfo& t) {
  std::vector<std::string> axes;
  if (t.kind == Kind::sequence || t.kind == Kind::output) axes = {"B", t.rate == 1 ? "T" : fmt::format("{} T", t.rate)};
  if (t.kind == Kind::carry) axes = {"N or slots"};
  axes.insert(axes.end(), t.dims.begin(), t.dims.end());
  return fmt::format("[{}]", fmt::join(axes, ", "));
}

std::string type(const TensorInfo& t) {
  if (t.kind == Kind::carry) return "float32, bfloat16 or io";
  switch (t.type) {
  case Type::io: return "io";
  case Type::any: return "io or float32";
  case Type::f32: return "float32";
  case Type::i32: return "int32";
  case Type::i64: return "int64";
  }
  return "";
}

const char* kind(Kind k) {
  switch (k) {
  case Kind::sequence: return "input";
  case Kind::param: return "parameter";
  case Kind::carry: return "state";
  case Kind::output: return "output";
  }
  return "";
}

std::string notes(const Described& d, const TensorInfo& t) {
  std::vector<std::string> list;
  if (t.gate) list.push_back("natural logarithm of a decay");
  if (t.optional) list.push_back("optional");
  if (const auto with = d.with.find(t.name); with != d.with.end()) list.push_back("with `" + with->second + "`");
  if (t.kind == Kind::carry) list.push_back(fmt::format("`{0}.initial`, `{0}.final`", t.name));
  return fmt::format("{}", fmt::join(list, "; "));
}

std::string values(const OptionInfo& o) {
  switch (o.kind) {
  case OptionInfo::Kind::flag: return "true, false";
  case OptionInfo::Kind::integer: return fmt::format("{} to {}", o.lo, o.hi);
  case OptionInfo::Kind::number: return "a number";
  case OptionInfo::Kind::choice: return fmt::format("{}", fmt::join(o.values, ", "));
  }
  return "";
}

bool bound_by_default(const Described& d, const TensorInfo& t) { return !t.optional && !d.with.contains(t.name); }

std::string call(const Described& d) {
  std::string text = fmt::format("```sh\nlatile run {}", d.row->name);
  for (const TensorInfo& t : d.info.tensors)
    if (bound_by_default(d, t) && t.kind != Kind::carry && t.kind != Kind::output)
      text += fmt::format(" --in {0}={0}.npy", t.name);
  for (const TensorInfo& t : d.info.tensors) {
    if (!bound_by_default(d, t)) continue;
    if (t.kind == Kind::output) text += fmt::format(" --out {0}={0}.npy", t.name);
    if (t.kind == Kind::carry) text += fmt::format(" --out {0}.final={0}.npy", t.name);
  }
  text += fmt::format("\n```\n\n```cpp\nlatile::api::PlanDescription d(\"{}\", \"prefill\");\nd", d.row->name);
  for (const DimInfo& dim : d.info.dims) {
    const std::int64_t usual = dim.head ? 8 : dim.most ? std::min<std::int64_t>(128, dim.most) : 128;
    text += fmt::format(".dim(\"{}\", {})", dim.name, usual);
  }
  text += ".dim(\"B\", 1, 64).dim(\"T\", 0, 1 << 20);\nd";
  int listed = 0;
  for (const TensorInfo& t : d.info.tensors) {
    if (!bound_by_default(d, t)) continue;
    if (listed && listed % 4 == 0) text += "\n ";
    ++listed;
    text += fmt::format(".tensor(\"{}{}\", {})", t.name, t.kind == Kind::carry ? ".final" : "",
                        t.type == Type::io ? "LATILE_BF16" : "LATILE_F32");
  }
  return text + ";\nlatile::api::Plan plan(context, d);\n```\n";
}

std::string refused(const std::string& reason) { return "no: " + reason; }

}  // namespace

const std::vector<Capability>& capabilities() {
  static const std::vector<Capability> list{
      {"prefill",
       [](const OperatorInfo& i) -> std::string { return i.has_prefill() ? "yes" : "no: there is no chunk body"; }},
      {"recurrent",
       [](const OperatorInfo& i) { return !i.no_step.empty() ? refused(i.no_step)
                                          : i.has_reference  ? "yes"
                                                             : "no"; }},
      {"step",
       [](const OperatorInfo& i) { return !i.no_step.empty() ? refused(i.no_step)
                                          : i.has_reference  ? "yes"
                                                             : "no"; }},
      {"ragged", [](const OperatorInfo&) -> std::string { return "yes"; }},
      {"states",
       [](const OperatorInfo& i) -> std::string {
         return std::any_of(i.tensors.begin(), i.tensors.end(), [](auto& t) { return t.kind == Kind::carry; }) ? "yes"
                                                                                                               : "n/a";
       }},
      {"pools", [](const OperatorInfo& i) { return capabilities()[4].cell(i); }},
      {"v first",
       [](const OperatorInfo& i) -> std::string {
         return std::any_of(i.tensors.begin(), i.tensors.end(),
                            [](auto& t) { return t.kind == Kind::carry && t.dims.size() - !t.head.empty() == 2; })
                    ? "yes"
                    : "n/a";
       }},
      {"grouped heads",
       [](const OperatorInfo& i) -> std::string {
         const bool headed = std::any_of(i.dims.begin(), i.dims.end(), [](auto& d) { return d.head; });
         const bool grouped = std::any_of(i.dims.begin(), i.dims.end(), [](auto& d) { return !d.group.empty(); });
         return grouped ? "yes" : headed ? "no" : "n/a";
       }},
      {"reverse",
       [](const OperatorInfo& i) -> std::string {
         return i.has_kernel ? "no: prefill is a kernel over rows, which has no direction" : "yes";
       }},
      {"histories",
       [](const OperatorInfo& i) {
         return i.has_kernel ? "no: prefill is a kernel over rows, which keeps no states on the way"
                             : capabilities()[4].cell(i);
       }},
  };
  return list;
}

std::string page(const Described& d) {
  const OperatorInfo& info = d.info;
  std::string summary(d.row->summary);
  if (!summary.empty()) summary[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(summary[0])));
  std::string text = fmt::format("# {}\n\n{}.\n\n```text\n{}\n```\n\n", d.row->name, summary, d.formula);
  text += fmt::format("Defined in [`ops/{0}.cpp`](../../ops/{0}.cpp), {1} lines of code{2}.\n\n", d.row->name,
                      d.code_lines, d.own_headers.empty() ? "" : ", with " + d.own_headers);
  text += "## Tensors\n\n| name | is | shape | type | |\n| --- | --- | --- | --- | --- |\n";
  for (const TensorInfo& t : info.tensors)
    text += fmt::format("| `{}` | {} | {} | {} | {} |\n", t.name, kind(t.kind), shape(t), type(t), notes(d, t));
  text += "\n";
  for (const DimInfo& dim : info.dims) {
    if (!dim.group.empty()) text += fmt::format("{} is a multiple of {}. ", dim.name, dim.group);
    if (dim.most) text += fmt::format("{} is at most {}: {}. ", dim.name, dim.most, dim.limit_why);
  }
  text += "The tensors called io are all float32, all float16 or all bfloat16.\n\n";
  if (!info.scalars.empty()) {
    text += "## Scalars\n\n| name | default | |\n| --- | --- | --- |\n";
    for (const ScalarInfo& s : info.scalars) {
      const auto with = d.with.find(s.name);
      text += fmt::format("| `{}` | {} | {} |\n", s.name, s.fallback ? fmt::format("{}", *s.fallback) : "K^-1/2",
                          with == d.with.end() ? "" : "with `" + with->second + "`");
    }
    text += "\n";
  }
  if (!info.options.empty()) {
    text += "## Options\n\n| name | values | default |\n| --- | --- | --- |\n";
    for (const OptionInfo& o : info.options)
      text += fmt::format("| `{}` | {} | {} |\n", o.name, values(o), o.fallback.empty() ? "not given" : o.fallback);
    text += "\n";
  }
  text += "## Variants\n\n";
  for (const Capability& c : capabilities())
    if (const std::string cell = c.cell(info); cell != "n/a") text += fmt::format("- {}: {}\n", c.name, cell);
  for (const auto& [setting, why] : d.no_prefill) text += fmt::format("- prefill with `{}`: no: {}\n", setting, why);
  if (!info.no_segment.empty()) text += fmt::format("- segments of one sequence: no: {}\n", info.no_segment);
  text += fmt::format("\nTolerance in float32 and float16, root mean square of the error over that of the reference: "
                      "output {}, state {}. bfloat16: the larger of that and 1.5 times the error of its declared "
                      "roundings.\n\n## A call\n\n{}",
                      d.row->output_tolerance, d.row->state_tolerance, call(d));
  return text;
}

std::string index(const std::vector<Described>& all, const Table& other, const std::map<std::string, int>& headers) {
  std::string text =
      "# Operators\n\nMade from the operator table; `ninja latile_operator_docs` renews these pages.\n\n"
      "## What is offered\n\nForward, on the host. *new*: flash-linear-attention (commit bc3b101d) does not have it, "
      "or has it in part. no: the reason is on the operator's page.\n\n| operator |";
  std::string rule = "| --- |";
  for (const Capability& c : capabilities()) text += fmt::format(" {} |", c.name), rule += " --- |";
  text += "\n" + rule + "\n";
  for (const Described& d : all) {
    text += fmt::format("| [{0}]({0}.md) |", d.row->name);
    const auto theirs = other.find(std::string(d.row->name));
    for (const Capability& c : capabilities()) {
      std::string cell = c.cell(d.info);
      if (cell.starts_with("no")) cell = "no";
      if (cell == "yes" && theirs != other.end() && theirs->second.at(c.name) != "yes") cell = "*new*";
      text += fmt::format(" {} |", cell);
    }
    text += "\n";
  }
  text +=
      "\nv first: a state whose memory is [V, K]. pools: states in slots of a pool, chosen by an index tensor. "
      "reverse: from the last token to the first. histories: states on the way are kept, and a run starts from the one "
      "that a count of accepted tokens names.\n\n"
      "## Lines of code\n\nLines that are neither blank nor a comment. flash-linear-attention, counted by "
      "tools/operator-docs/count_lines.py: the files of the operator's own folder, docstrings and backends for other "
      "compilers left out, what its folders share left out; they hold the backward pass too.\n\n| operator | here | "
      "there |\n| --- | --- | --- |\n";
  int ours = 0;
  long long theirs = 0;
  for (const Described& d : all) {
    const auto row = other.find(std::string(d.row->name));
    const std::string count = row == other.end() ? "" : row->second.at("code lines");
    ours += d.code_lines;
    if (!count.empty()) theirs += std::stoll(count);
    text += fmt::format("| {} | {} | {} |\n", d.row->name, d.code_lines, count);
  }
  for (const auto& [name, lines] : headers) {
    ours += lines;
    text += fmt::format("| shared by several: {} | {} | |\n", name, lines);
  }
  return text + fmt::format("| all | {} | {} |\n", ours, theirs);
}

}  // namespace latile::docs
