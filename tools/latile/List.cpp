#include "dsl/Describe.h"
#include "tools/latile/Commands.h"
#include <fmt/format.h>
#include <memory>
#include <nlohmann/json.hpp>

namespace latile {
namespace {

const char* kind_name(TensorInfo::Kind kind) {
  switch (kind) {
  case TensorInfo::Kind::sequence: return "sequence";
  case TensorInfo::Kind::param: return "parameter";
  case TensorInfo::Kind::carry: return "state";
  case TensorInfo::Kind::output: return "output";
  }
  return "";
}

const char* type_name(Type type) {
  switch (type) {
  case Type::io: return "io";
  case Type::any: return "io or float32";
  case Type::f32: return "float32";
  case Type::i32: return "int32";
  case Type::i64: return "int64";
  }
  return "";
}

const char* kind_name(OptionInfo::Kind kind) {
  switch (kind) {
  case OptionInfo::Kind::flag: return "flag";
  case OptionInfo::Kind::integer: return "integer";
  case OptionInfo::Kind::number: return "number";
  case OptionInfo::Kind::choice: return "choice";
  }
  return "";
}

std::string values_of(const OptionInfo& o) {
  switch (o.kind) {
  case OptionInfo::Kind::flag: return "true | false";
  case OptionInfo::Kind::integer: return fmt::format("{} to {}", o.lo, o.hi);
  case OptionInfo::Kind::number: return "a number";
  case OptionInfo::Kind::choice: return fmt::format("{}", fmt::join(o.values, " | "));
  }
  return "";
}

nlohmann::json describe_json(const OperatorRow& row) {
  const OperatorInfo info = discover(row);
  nlohmann::json j{{"name", row.name},
                   {"summary", row.summary},
                   {"output_tolerance", row.output_tolerance},
                   {"state_tolerance", row.state_tolerance},
                   {"tensors", nlohmann::json::array()},
                   {"scalars", nlohmann::json::array()},
                   {"options", nlohmann::json::array()}};
  for (const TensorInfo& t : info.tensors)
    j["tensors"].push_back({{"name", t.name},
                            {"kind", kind_name(t.kind)},
                            {"dims", t.dims},
                            {"type", type_name(t.type)},
                            {"gate", t.gate},
                            {"optional", t.optional},
                            {"rate", t.rate}});
  for (const ScalarInfo& s : info.scalars) {
    nlohmann::json fallback = "K^-1/2";
    if (s.fallback) fallback = *s.fallback;
    j["scalars"].push_back({{"name", s.name}, {"default", fallback}});
  }
  for (const OptionInfo& o : info.options) {
    nlohmann::json option{{"name", o.name}, {"kind", kind_name(o.kind)}, {"default", o.fallback}};
    if (o.kind == OptionInfo::Kind::choice) option["values"] = o.values;
    if (o.kind == OptionInfo::Kind::integer) option["min"] = o.lo, option["max"] = o.hi;
    j["options"].push_back(std::move(option));
  }
  return j;
}

void print(const OperatorRow& row) {
  const OperatorInfo info = discover(row);
  fmt::print("{}: {}\n", row.name, row.summary);
  for (const TensorInfo& t : info.tensors)
    fmt::print("  {:9} {:10} [{}{}], {}{}{}\n", kind_name(t.kind), t.name,
               t.kind == TensorInfo::Kind::param   ? ""
               : t.kind == TensorInfo::Kind::carry ? "N or slots, "
               : t.rate == 1                       ? "B, T, "
                                                   : fmt::format("B, {} T, ", t.rate),
               fmt::join(t.dims, ", "), type_name(t.type), t.gate ? ", natural logarithm of a decay" : "",
               t.optional ? ", optional" : "");
  for (const ScalarInfo& s : info.scalars)
    fmt::print("  {:9} {:10} default {}\n", "scalar", s.name, s.fallback ? fmt::format("{}", *s.fallback) : "K^-1/2");
  for (const OptionInfo& o : info.options)
    fmt::print("  {:9} {:10} {}, default {}\n", "option", o.name, values_of(o),
               o.fallback.empty() ? "none" : o.fallback);
  fmt::print("  tolerance (RMS ratio) output {}, state {}\n\n", row.output_tolerance, row.state_tolerance);
}

}  // namespace

void add_list(CLI::App& app, int&) {
  CLI::App* sub = app.add_subcommand("list", "The operators with their tensors, scalars and options");
  auto names = std::make_shared<std::vector<std::string>>();
  auto json = std::make_shared<bool>(false);
  sub->add_option("operator", *names, "Only these; default all");
  sub->add_flag("--json", *json, "One JSON array on standard output");
  sub->callback([=] {
    std::vector<const OperatorRow*> rows;
    for (const std::string& name : *names) rows.push_back(&operator_named(name));
    if (names->empty())
      for (const OperatorRow& row : operators()) rows.push_back(&row);
    nlohmann::json all = nlohmann::json::array();
    for (const OperatorRow* row : rows) *json ? all.push_back(describe_json(*row)) : print(*row);
    if (*json) fmt::print("{}\n", all.dump(2));
  });
}

}  // namespace latile
