// The recorded graph as text without locations: for keys, and to compare host compilers.
#include "dsl/Recorder.h"
#include <cstdio>

namespace latile {
namespace {

std::string digits(double v) {
  char b[40];
  std::snprintf(b, sizeof b, "%.17g", v);
  return b;
}

struct Printer {
  const Recorder& r;
  std::string out;
  std::map<int, int> names;

  std::string ref(int node) {
    auto [it, fresh] = names.try_emplace(node, static_cast<int>(names.size()));
    return "%" + std::to_string(it->second);
  }
  void region(int id, const std::vector<int>& results, const std::string& pad) {
    for (int i : r.ordered(id, results)) {
      const Node& n = r.nodes[i];
      out += pad + ref(i) + " = " + name(n.op);
      for (int x : n.in) out += " " + ref(x);
      if (n.op == Op::constant) out += " " + digits(n.value);
      if (n.op == Op::columns || n.op == Op::taps)
        out += " over " + r.extents[n.decl];
      else if (n.decl >= 0)
        out += " '" + r.decls[n.decl].name + "'";
      static const char* const masks[] = {"all", "lower", "strict"};
      if (n.op == Op::mask || n.op == Op::decay || n.op == Op::decayed_scores || n.op == Op::decayed_apply ||
          n.op == Op::decayed_apply_transposed)
        out += std::string(" ") + masks[static_cast<int>(n.mask)];
      for (auto [at, what] : {std::pair{n.rows, " rows "}, {n.cols, " columns "}, {n.tap, " tap "}})
        if (at >= 0) out += what + ref(at);
      if (n.before >= 0) out += " before '" + r.decls[n.before].name + "'";
      if (n.stair != 1) out += " stair " + std::to_string(n.stair);
      if (n.n != 0) out += " n " + std::to_string(n.n);
      if (n.precise) out += " precise";
      if (n.exclusive) out += " exclusive";
      if (n.reverse) out += " reverse";
      out += " : " + r.show(n.shape) + (n.io ? " io" : " f32");
      if (n.head != -1) out += " over " + r.extents[n.head];
      out += "\n";
      for (int nested : n.regions) {
        out += pad + "{\n";
        region(nested, {r.regions[nested].yield}, pad + "  ");
        out += pad + "}\n";
      }
    }
    out += pad + "yield";
    for (int i : results) out += " " + ref(i);
    out += "\n";
  }
};

}  // namespace

std::string Operator::text() const {
  const Recorder& r = *impl;
  Printer p{r, {}, {}};
  static const char* const kinds[] = {"sequence", "param", "scalar", "carry", "output"};
  static const char* const types[] = {"io", "any", "f32", "i32", "i64"};
  static const char* const bodies[] = {"reference", "chunk", "kernel"};
  p.out = "operator " + r.name + "\n";
  for (int d : r.declared_dims)
    p.out += std::string(r.is_head[d] ? "heads " : "dim ") + r.extents[d] +
             (r.parent[d] == -1 ? "" : " % " + r.extents[r.parent[d]]) + "\n";
  if (r.mini_batch) p.out += "mini_batch " + std::to_string(r.mini_batch) + "\n";
  for (auto& d : r.decls) {
    p.out += std::string(kinds[static_cast<int>(d.kind)]) + " '" + d.name + "' [";
    for (std::size_t i = 0; i < d.dims.size(); ++i) p.out += (i ? ", " : "") + r.extents[d.dims[i]];
    p.out += std::string("] ") + types[static_cast<int>(d.type)];
    if (d.gate) p.out += " gate";
    if (!d.given) p.out += " absent";
    if (d.hidden) p.out += " hidden";
    if (d.rate != 1) p.out += " rate " + std::to_string(d.rate);
    if (d.neutral != 0) p.out += " neutral " + digits(d.neutral);
    if (d.range) p.out += " within " + digits(d.range->first) + " " + digits(d.range->second);
    p.out += "\n";
    for (int region : d.prologues) p.region(region, {r.regions[region].yield}, "  ");
  }
  for (auto& b : r.bodies) {
    p.out += std::string(bodies[b.kind]) + "\n";
    p.region(b.region, r.results(b), "  ");
  }
  for (const ExternDefinition& e : r.externs) {
    const ExternKernel& k = e.kernel;
    p.out += "extern " + k.entry + " threads " + std::to_string(k.threads) + " shared " +
             std::to_string(k.shared_bytes) + " grid";
    for (const ExternKernel::Axis& axis : k.grid) p.out += " " + axis.name + "/" + std::to_string(axis.span);
    for (auto [what, list] : {std::pair{" reads", &k.reads}, {" writes", &k.writes}, {" options", &k.options}}) {
      p.out += what;
      for (const std::string& word : *list) p.out += " " + std::to_string(word.size()) + ":" + word;
    }
    p.out += " source " + std::to_string(k.source.size()) + "\n" + k.source + "\n";
  }
  return p.out;
}

}  // namespace latile
