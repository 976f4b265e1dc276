#include "runtime/Describe.h"
#include <algorithm>
#include <nlohmann/json.hpp>

namespace latile::runtime {
namespace {

using Setting = std::pair<std::string, std::string>;

std::vector<std::string> values_of(const OptionInfo& option) {
  switch (option.kind) {
  case OptionInfo::Kind::flag: return {"false", "true"};
  case OptionInfo::Kind::choice: return option.values;
  case OptionInfo::Kind::integer: return {std::to_string(option.lo), std::to_string(option.hi)};
  case OptionInfo::Kind::number: return {};
  }
  return {};
}

void merge(Row& row, const OperatorInfo& found, const std::string& setting) {
  for (const DimInfo& dim : found.dims)
    if (row.info.dim(dim.name) == nullptr) row.info.dims.push_back(dim);
  for (const TensorInfo& tensor : found.tensors)
    if (row.info.tensor(tensor.name) == nullptr) {
      row.info.tensors.push_back(tensor);
      row.needs.push_back(setting);
    }
  for (const ScalarInfo& scalar : found.scalars)
    if (std::none_of(row.info.scalars.begin(), row.info.scalars.end(),
                     [&](const ScalarInfo& known) { return known.name == scalar.name; }))
      row.info.scalars.push_back(scalar);
  for (const OptionInfo& option : found.options)
    if (std::none_of(row.info.options.begin(), row.info.options.end(),
                     [&](const OptionInfo& known) { return known.name == option.name; }))
      row.info.options.push_back(option);
  row.info.has_reference |= found.has_reference;
  row.info.has_chunk |= found.has_chunk;
  row.info.has_kernel |= found.has_kernel;
}

const char* text(TensorInfo::Kind kind) {
  switch (kind) {
  case TensorInfo::Kind::sequence: return "sequence";
  case TensorInfo::Kind::param: return "param";
  case TensorInfo::Kind::carry: return "carry";
  case TensorInfo::Kind::output: return "output";
  }
  return "?";
}

const char* text(Type type) {
  switch (type) {
  case Type::io: return "io";
  case Type::any: return "any";
  case Type::f32: return "f32";
  case Type::i32: return "i32";
  case Type::i64: return "i64";
  }
  return "?";
}

const char* text(OptionInfo::Kind kind) {
  switch (kind) {
  case OptionInfo::Kind::flag: return "flag";
  case OptionInfo::Kind::integer: return "integer";
  case OptionInfo::Kind::number: return "number";
  case OptionInfo::Kind::choice: return "choice";
  }
  return "?";
}

}  // namespace

Row operator_row(Compiler& compiler, const std::string& op) {
  Row row;
  row.info.name = op;
  OperatorInfo found;
  CompileFailure failure;
  if (!compiler.describe(op, {}, {}, found, failure)) return row;
  row.info.no_segment = found.no_segment;
  row.info.no_step = found.no_step;
  row.info.mini_batch = found.mini_batch;
  merge(row, found, "");
  // Grows while it is walked: an option may bring in another, which is then tried under the setting that did.
  std::vector<std::vector<Setting>> under(row.info.options.size());
  for (std::size_t i = 0; i < row.info.options.size(); ++i) {
    const OptionInfo option = row.info.options[i];
    for (const std::string& value : values_of(option)) {
      if (value == option.fallback) continue;
      std::vector<Setting> settings = under[i];
      settings.emplace_back(option.name, value);
      OperatorInfo with;
      if (!compiler.describe(op, settings, {}, with, failure)) continue;
      merge(row, with, option.name + "=" + value);
      under.resize(row.info.options.size(), settings);
    }
  }
  return row;
}

std::string operator_json(const Row& row) {
  using json = nlohmann::ordered_json;
  const OperatorInfo& info = row.info;
  json modes = json::array(), dims = json::array(), tensors = json::array(), scalars = json::array(),
       options = json::array();
  if (info.has_prefill()) modes.push_back("prefill");
  if (info.has_reference && info.no_step.empty()) modes.insert(modes.end(), {"recurrent", "step"});
  for (const DimInfo& dim : info.dims) {
    json j = {{"name", dim.name}, {"head", dim.head}};
    if (!dim.group.empty()) j["multiple_of"] = dim.group;
    if (dim.most != 0) j["max"] = dim.most;
    dims.push_back(j);
  }
  for (std::size_t i = 0; i < info.tensors.size(); ++i) {
    const TensorInfo& tensor = info.tensors[i];
    json j = {{"name", tensor.name},
              {"kind", text(tensor.kind)},
              {"dims", tensor.dims},
              {"type", text(tensor.type)},
              {"optional", tensor.optional || tensor.kind == TensorInfo::Kind::carry}};
    if (tensor.gate) j["gate"] = true;
    if (tensor.rate != 1) j["rate"] = tensor.rate;
    if (!row.needs[i].empty()) j["with"] = row.needs[i];
    tensors.push_back(j);
  }
  for (const ScalarInfo& scalar : info.scalars)
    scalars.push_back({{"name", scalar.name}, {"default", scalar.fallback ? json(*scalar.fallback) : json("K^-1/2")}});
  for (const OptionInfo& option : info.options) {
    json j = {{"name", option.name}, {"kind", text(option.kind)}, {"default", option.fallback}};
    if (option.kind == OptionInfo::Kind::integer) j["min"] = option.lo, j["max"] = option.hi;
    if (option.kind == OptionInfo::Kind::choice) j["values"] = option.values;
    options.push_back(j);
  }
  json j = {{"name", info.name},  {"modes", modes},     {"dims", dims},
            {"tensors", tensors}, {"scalars", scalars}, {"options", options}};
  if (!info.no_segment.empty()) j["no_segment"] = info.no_segment;
  if (!info.no_step.empty()) j["no_step"] = info.no_step;
  return j.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace latile::runtime
