#include "runtime/Artifact.h"
#include <nlohmann/json.hpp>

namespace latile {

using nlohmann::json;

namespace {

void to_json(json& j, const ViewArgument& v) { j = {{"tensor", v.tensor}, {"rank", v.rank}}; }
void from_json(const json& j, ViewArgument& v) {
  j.at("tensor").get_to(v.tensor);
  j.at("rank").get_to(v.rank);
}

void to_json(json& j, const WorkspaceTensor& w) {
  j = {{"name", w.name},  {"axis", w.axis}, {"rows", w.rows}, {"cols", w.cols}, {"element_bytes", w.element_bytes},
       {"chunk", w.chunk}};
}
void from_json(const json& j, WorkspaceTensor& w) {
  j.at("name").get_to(w.name);
  j.at("axis").get_to(w.axis);
  j.at("rows").get_to(w.rows);
  j.at("cols").get_to(w.cols);
  j.at("element_bytes").get_to(w.element_bytes);
  j.at("chunk").get_to(w.chunk);
}

void to_json(json& j, const KernelFacts& k) {
  j = {{"symbol", k.symbol},          {"grid", k.grid}, {"chunk", k.chunk},
       {"views", json::array()},      {"dims", k.dims}, {"scalars", k.scalars},
       {"arena_bytes", k.arena_bytes}};
  if (k.threads != 0) j["threads"] = k.threads, j["shared_bytes"] = k.shared_bytes, j["slices"] = k.slices;
  if (k.narrow) j["narrow"] = true;
  if (!k.spans.empty()) j["spans"] = k.spans;
  if (k.part != 0) j["part"] = k.part;
  for (const ViewArgument& view : k.views) to_json(j["views"].emplace_back(), view);
}
void from_json(const json& j, KernelFacts& k) {
  j.at("symbol").get_to(k.symbol);
  j.at("grid").get_to(k.grid);
  j.at("chunk").get_to(k.chunk);
  for (const json& view : j.at("views")) from_json(view, k.views.emplace_back());
  j.at("dims").get_to(k.dims);
  j.at("scalars").get_to(k.scalars);
  j.at("arena_bytes").get_to(k.arena_bytes);
  k.threads = j.value("threads", 0);
  k.shared_bytes = j.value("shared_bytes", std::size_t{0});
  k.slices = j.value("slices", 1);
  k.narrow = j.value("narrow", false);
  k.spans = j.value("spans", std::vector<std::int64_t>());
  k.part = j.value("part", 0);
}

}  // namespace

int Artifact::add_part(const std::string& code) {
  binary += '\0';
  parts.push_back(binary.size());
  binary += code;
  return static_cast<int>(parts.size());
}

const char* Artifact::part(int number) const {
  if (number < 0 || static_cast<std::size_t>(number) > parts.size()) return nullptr;
  const std::size_t begin = number == 0 ? 0 : parts[static_cast<std::size_t>(number) - 1];
  return begin <= binary.size() ? binary.c_str() + begin : nullptr;
}

std::string Artifact::facts_json() const {
  json j = {{"target", target}, {"chunk", chunk}, {"kernels", json::array()}, {"workspace", json::array()}};
  if (!parts.empty()) j["parts"] = parts;
  for (const KernelFacts& kernel : kernels) to_json(j["kernels"].emplace_back(), kernel);
  for (const WorkspaceTensor& tensor : workspace) to_json(j["workspace"].emplace_back(), tensor);
  return j.dump();
}

bool Artifact::from_json(const std::string& text, Artifact& artifact) {
  const json j = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!j.is_object()) return false;
  try {
    Artifact read;
    j.at("target").get_to(read.target);
    read.chunk = j.value("chunk", std::int64_t{0});
    read.parts = j.value("parts", std::vector<std::size_t>());
    for (const json& kernel : j.at("kernels")) latile::from_json(kernel, read.kernels.emplace_back());
    for (const json& tensor : j.at("workspace")) latile::from_json(tensor, read.workspace.emplace_back());
    read.binary = std::move(artifact.binary);
    read.stages = std::move(artifact.stages);
    artifact = std::move(read);
    return true;
  } catch (const json::exception&) { return false; }
}

}  // namespace latile
