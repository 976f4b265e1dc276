// Kernels in CUDA C++: what is wrong with them shows when they are declared.
#include "dsl/Recorder.h"
#include <algorithm>
#include <cctype>

namespace latile {
namespace {

using Kind = Declaration::Kind;

bool is_identifier(const std::string& s) {
  const auto part = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  return !s.empty() && !std::isdigit(static_cast<unsigned char>(s[0])) && std::all_of(s.begin(), s.end(), part);
}

/// Names that a plan may bind, and whether kernels write them.
std::vector<std::pair<std::string, bool>> tensors(const Recorder& r) {
  std::vector<std::pair<std::string, bool>> names{{"cu_seqlens", false}, {"accepted", false}};
  for (const Declaration& d : r.decls) {
    if (d.hidden || d.kind == Kind::scalar) continue;
    if (d.kind != Kind::carry) {
      names.emplace_back(d.name, d.kind == Kind::output);
      continue;
    }
    for (const char* part : {".initial", ".final", ".history"}) {
      names.emplace_back(d.name + part, std::string_view(part) != ".initial");
      names.emplace_back(d.name + part + "_index", false);
    }
  }
  return names;
}

}  // namespace

void Operator::extern_kernel(ExternKernel k, Loc l) {
  Recorder& r = *rec();
  const auto wrong = [&](const std::string& what) { r.report(l, "extern kernel '" + k.entry + "': " + what); };
  if (!r.stack.empty()) wrong("it is given inside a body; give it behind the bodies");
  if (!is_identifier(k.entry)) wrong("its entry is the name of a function in the source");
  if (k.source.empty()) wrong("it has no source");
  if (k.threads < 1 || k.threads > 1024)
    wrong("threads is " + std::to_string(k.threads) + "; a block has 1 to 1024 threads");
  if (k.shared_bytes < 0) wrong("shared_bytes is " + std::to_string(k.shared_bytes) + "; it is not negative");

  if (k.grid.empty()) wrong("it has no grid: name the axes that its blocks cover, as {\"T\", 16}");
  std::vector<std::string> axes{"B", "T", "N"};
  for (int d : r.declared_dims) axes.push_back(r.extents[d]);
  bool inner = false;
  for (const ExternKernel::Axis& axis : k.grid) {
    if (axis.span < 1) wrong("a block covers " + std::to_string(axis.span) + " of axis " + axis.name + "; at least 1");
    const auto found = std::find(axes.begin(), axes.end(), axis.name);
    if (found == axes.end()) {
      const std::string near = nearest(axis.name, axes);
      wrong("its grid has an axis '" + axis.name + "', which is no dimension" +
            (near.empty() ? std::string() : "; the nearest is '" + near + "'"));
      continue;
    }
    const bool fixed = found - axes.begin() >= 3 && !r.is_head[r.intern(axis.name)];
    if (inner && !fixed) wrong("axis " + axis.name + " of its grid follows an inner dimension; those come last");
    inner |= fixed;
    if (std::count_if(k.grid.begin(), k.grid.end(), [&](auto& other) { return other.name == axis.name; }) > 1)
      wrong("axis " + axis.name + " is twice in its grid");
  }

  const auto known = tensors(r);
  std::vector<std::string> names;
  for (const auto& [name, written] : known) names.push_back(name);
  if (k.writes.empty()) wrong("it writes nothing");
  for (const auto* list : {&k.reads, &k.writes})
    for (const std::string& tensor : *list) {
      const auto found = std::find(names.begin(), names.end(), tensor);
      const std::string near = found == names.end() ? nearest(tensor, names) : "";
      if (found == names.end())
        wrong("there is no tensor '" + tensor + "'" +
              (near.empty() ? std::string() : "; the nearest is '" + near + "'"));
      else if (list == &k.writes && !known[static_cast<std::size_t>(found - names.begin())].second)
        wrong("it writes '" + tensor + "', which is an input");
      if (std::count(k.reads.begin(), k.reads.end(), tensor) + std::count(k.writes.begin(), k.writes.end(), tensor) > 1)
        wrong("tensor '" + tensor + "' is named twice; what it writes it may also read");
    }
  r.externs.push_back({std::move(k), l});
}

}  // namespace latile
