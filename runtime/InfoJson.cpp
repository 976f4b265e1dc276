#include "runtime/InfoJson.h"
#include <cmath>
#include <nlohmann/json.hpp>

namespace latile::runtime {

using nlohmann::json;

namespace {

using Range = std::optional<std::pair<double, double>>;

json range_to_json(const Range& range) { return range ? json({range->first, range->second}) : json(nullptr); }
Range range_from_json(const json& j) {
  if (j.is_null()) return {};
  return std::pair(j.at(0).get<double>(), j.at(1).get<double>());
}

/// A null is a list too, where it is iterated over.
const json& list(const json& j) {
  if (!j.is_array()) throw json::type_error::create(302, "no list", &j);
  return j;
}

/// The number of an enumerator, refused when it is beyond the last one.
template <class E> E enumerator(const json& j, E last) {
  const auto value = j.get<unsigned>();
  if (value > static_cast<unsigned>(last)) throw json::out_of_range::create(401, "an unknown kind", &j);
  return static_cast<E>(value);
}

}  // namespace

json info_to_json(const OperatorInfo& info) {
  json dims = json::array(), tensors = json::array(), scalars = json::array(), options = json::array();
  for (const DimInfo& d : info.dims)
    dims.push_back({{"name", d.name}, {"head", d.head}, {"group", d.group}, {"most", d.most}, {"why", d.limit_why}});
  // What checks draw numbers from is no business of a plan.
  for (const TensorInfo& t : info.tensors)
    tensors.push_back({{"kind", t.kind},
                       {"name", t.name},
                       {"dims", t.dims},
                       {"head", t.head},
                       {"type", t.type},
                       {"gate", t.gate},
                       {"optional", t.optional},
                       {"given", t.given},
                       {"rate", t.rate},
                       {"neutral", std::isfinite(t.neutral) ? json(t.neutral) : json(t.neutral > 0 ? "inf" : "-inf")}});
  for (const ScalarInfo& s : info.scalars)
    scalars.push_back({{"name", s.name}, {"fallback", s.fallback ? json(*s.fallback) : json(nullptr)}});
  for (const OptionInfo& o : info.options)
    options.push_back({{"kind", o.kind},
                       {"name", o.name},
                       {"fallback", o.fallback},
                       {"lo", o.lo},
                       {"hi", o.hi},
                       {"values", o.values},
                       {"range", range_to_json(o.range)}});
  return {{"name", info.name},
          {"dims", dims},
          {"tensors", tensors},
          {"scalars", scalars},
          {"options", options},
          {"no_segment", info.no_segment},
          {"no_prefill", info.no_prefill},
          {"no_step", info.no_step},
          {"mini_batch", info.mini_batch},
          {"reference", info.has_reference},
          {"chunk", info.has_chunk},
          {"kernel", info.has_kernel}};
}

OperatorInfo info_from_json(const json& j) {
  OperatorInfo info;
  j.at("name").get_to(info.name);
  for (const json& d : list(j.at("dims"))) {
    DimInfo& dim = info.dims.emplace_back();
    d.at("name").get_to(dim.name), d.at("head").get_to(dim.head), d.at("group").get_to(dim.group);
    d.at("most").get_to(dim.most), d.at("why").get_to(dim.limit_why);
  }
  for (const json& t : list(j.at("tensors"))) {
    TensorInfo& tensor = info.tensors.emplace_back();
    tensor.kind = enumerator(t.at("kind"), TensorInfo::Kind::output);
    t.at("name").get_to(tensor.name), t.at("dims").get_to(tensor.dims), t.at("head").get_to(tensor.head);
    tensor.type = enumerator(t.at("type"), Type::i64);
    t.at("gate").get_to(tensor.gate), t.at("optional").get_to(tensor.optional), t.at("given").get_to(tensor.given);
    t.at("rate").get_to(tensor.rate);
    const json& neutral = t.at("neutral");
    tensor.neutral = neutral.is_string() ? (neutral == "inf" ? INFINITY : -INFINITY) : neutral.get<double>();
  }
  for (const json& s : list(j.at("scalars"))) {
    ScalarInfo& scalar = info.scalars.emplace_back();
    s.at("name").get_to(scalar.name);
    if (!s.at("fallback").is_null()) scalar.fallback = s.at("fallback").get<double>();
  }
  for (const json& o : list(j.at("options"))) {
    OptionInfo& option = info.options.emplace_back();
    option.kind = enumerator(o.at("kind"), OptionInfo::Kind::choice);
    o.at("name").get_to(option.name), o.at("fallback").get_to(option.fallback);
    o.at("lo").get_to(option.lo), o.at("hi").get_to(option.hi), o.at("values").get_to(option.values);
    option.range = range_from_json(o.at("range"));
  }
  j.at("no_segment").get_to(info.no_segment), j.at("no_prefill").get_to(info.no_prefill);
  j.at("no_step").get_to(info.no_step), j.at("mini_batch").get_to(info.mini_batch);
  j.at("reference").get_to(info.has_reference), j.at("chunk").get_to(info.has_chunk);
  j.at("kernel").get_to(info.has_kernel);
  return info;
}

}  // namespace latile::runtime
