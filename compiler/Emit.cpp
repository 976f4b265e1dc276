#include "compiler/Emit.h"
#include "compiler/EmitBody.h"
#include "compiler/EmitKernel.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/MLIRContext.h"
#include <algorithm>

namespace latile {
namespace {

using Kind = Declaration::Kind;
using mlir::Value;

/// One tensor of the plan: what it is bound to and its view.
struct Bound {
  const BoundTensor* tensor;
  int declaration = -1;  ///< -1: of all carries
  std::string part;      ///< of a carry: "initial", "initial_index", "final", …, "history_index"; of all: "accepted"
  Value argument;
};

class ProgramEmitter {
public:
  ProgramEmitter(Recorder& recorder, const Specialisation& s, mlir::MLIRContext& c)
      : r(recorder), spec(s), context(c), chunk(s.mode != Mode::prefill ? 1
                                                : recorder.mini_batch   ? recorder.mini_batch
                                                : s.chunk               ? s.chunk
                                                                        : 16) {}

  mlir::OwningOpRef<mlir::ModuleOp> run();

private:
  Recorder& r;
  const Specialisation& spec;
  mlir::MLIRContext& context;
  std::int64_t chunk;
  const Body* body = nullptr;
  int axis = -1;
  std::vector<Bound> bound;
  const BoundTensor* cu_seqlens = nullptr;

  void check_body();
  void check_extents();
  void check_axis();
  void check_tensors();
  void check_type(const Declaration&, const BoundTensor&);
  void check_history(const Declaration&, int id);
  Bound* find(int declaration, const std::string& part = "");
  tile::ViewType view(const Bound&) const;
  tile::ProgramOp make_program(mlir::OpBuilder&, mlir::Location);
  void make_scan(mlir::OpBuilder&, mlir::Location, mlir::Block& arguments);
  void note_externs(tile::ProgramOp, mlir::Builder);
  std::string head(const Declaration& d) const { return d.head == -1 ? "" : r.extents[d.head]; }
};

void ProgramEmitter::check_body() {
  Body::Kind kind = spec.mode == Mode::prefill ? Body::chunk : Body::reference;
  body = r.body(kind);
  if (!body && kind == Body::chunk) body = r.body(Body::kernel);
  if (body || (kind == Body::chunk && !r.externs.empty())) return;
  r.report({}, kind == Body::chunk && !r.no_prefill.empty()
                   ? "mode prefill is not offered with these options: " + r.no_prefill + "; use mode recurrent"
               : kind == Body::chunk ? "there is no chunk body, so no prefill: use the recurrent mode"
                                     : "there is no reference, so neither recurrent nor step: use prefill");
}

void ProgramEmitter::check_extents() {
  for (int d : r.declared_dims) {
    if (r.is_head[d]) continue;
    auto it = spec.extents.find(r.extents[d]);
    if (it == spec.extents.end())
      r.report({}, "the extent of dimension " + r.extents[d] + " is not given");
    else if (it->second < 1)
      r.report({}, "dimension " + r.extents[d] + " is " + std::to_string(it->second) + "; it must be positive");
    else if (auto limit = r.limits.find(d); limit != r.limits.end() && it->second > limit->second.first)
      r.report({}, "dimension " + r.extents[d] + " is " + std::to_string(it->second) + ", above the limit of " +
                       std::to_string(limit->second.first) + ": " + limit->second.second);
  }
}

void ProgramEmitter::check_axis() {
  for (int d : r.declared_dims) {
    if (!r.is_head[d]) continue;
    if (r.refines(d, axis))
      axis = d;
    else if (!r.refines(axis, d))
      r.report({}, "head axes " + r.extents[axis] + " and " + r.extents[d] + " do not refine one another");
  }
  bool grouped = axis != -1 && r.parent[axis] != -1;
  if (grouped && r.parent[r.parent[axis]] != -1)
    r.report({}, "head axis " + r.extents[axis] + " is grouped twice; one grouping is lowered");
  if (spec.head_ratio < 1 || (spec.head_ratio > 1 && !grouped))
    r.report({},
             "the head ratio is " + std::to_string(spec.head_ratio) + (grouped ? "" : ", and no head axis is grouped"));
  if (spec.head_ratio == 1 || !grouped) return;
  // Kernels own what they write; a scan may have carries on the axis that its own one groups.
  const bool scan = body && body->kind != Body::kernel;
  bool shared = scan, carried = false;
  for (auto& d : r.decls)
    if (d.kind == Kind::carry) shared &= d.head == r.parent[axis], carried = true;
  for (auto& d : r.decls) {
    bool coarse = d.head == r.parent[axis] && (d.kind == Kind::carry ? scan : shared && carried);
    if ((d.kind == Kind::carry || d.kind == Kind::output) && d.head != axis && !coarse)
      r.report(d.loc, "'" + d.name + "' lives on " + (d.head == -1 ? "no head axis" : "heads " + r.extents[d.head]) +
                          (d.kind == Kind::output ? ", which the carries do not" : "") +
                          ": with more than one head of " + r.extents[axis] + " in a group, declare it over " +
                          r.extents[axis]);
  }
}

void ProgramEmitter::check_type(const Declaration& d, const BoundTensor& t) {
  bool ok = t.type == ElementType::f32 || t.type == ElementType::f16 || t.type == ElementType::bf16;
  if (d.type == Type::io) ok = t.type == spec.io;
  if (d.type == Type::f32) ok = t.type == ElementType::f32;
  if (d.type == Type::any && d.kind != Kind::carry) ok = t.type == spec.io || t.type == ElementType::f32;
  if (ok) return;
  std::string want = d.type == Type::io ? name(spec.io) : d.type == Type::f32 ? "f32" : "";
  if (want.empty()) want = d.kind == Kind::carry ? "f32, f16 or bf16" : std::string("f32 or ") + name(spec.io);
  r.report({}, "tensor '" + t.name + "' is " + name(t.type) + "; it must be " + want);
}

void ProgramEmitter::check_tensors() {
  for (auto& t : spec.tensors) {
    bool integer = t.type == ElementType::i32 || t.type == ElementType::i64;
    if (t.name == "cu_seqlens") {
      cu_seqlens = &t;
      if (!integer) r.report({}, "tensor 'cu_seqlens' is " + std::string(name(t.type)) + "; it must be i32 or i64");
      continue;
    }
    if (t.name == "accepted") {
      if (!integer) r.report({}, "tensor 'accepted' is " + std::string(name(t.type)) + "; it must be i32 or i64");
      bound.push_back({&t, -1, "accepted", {}});
      continue;
    }
    std::size_t dot = t.name.find('.');
    Bound one{&t, -1, dot == t.name.npos ? "" : t.name.substr(dot + 1), {}};
    for (std::size_t i = 0; i < r.decls.size(); ++i)
      if (r.decls[i].name == t.name.substr(0, dot) && !r.decls[i].hidden &&
          (r.decls[i].kind == Kind::carry) == (dot != t.name.npos))
        one.declaration = static_cast<int>(i);
    if (one.declaration == -1) continue;  // finish() has reported it
    if (one.part.ends_with("_index")) {
      if (!integer) r.report({}, "tensor '" + t.name + "' is " + std::string(name(t.type)) + "; it must be i32 or i64");
    } else {
      check_type(r.decls[one.declaration], t);
    }
    bound.push_back(one);
  }
  for (std::size_t i = 0; i < r.decls.size(); ++i) {
    const Declaration& d = r.decls[i];
    int id = static_cast<int>(i);
    if (d.kind == Kind::carry) {
      for (const char* part : {"initial", "final", "history"})
        if (find(id, std::string(part) + "_index") && !find(id, part))
          r.report({}, "tensor '" + d.name + "." + part + "_index' indexes '" + d.name + "." + part +
                           "', which is not bound: bind it too");
      check_history(d, id);
    } else if (d.kind != Kind::scalar && !d.optional && !find(id)) {
      r.report({}, "tensor '" + d.name + "' is needed and not bound");
    }
  }
}

void ProgramEmitter::check_history(const Declaration& d, int id) {
  const auto every = spec.every.find(d.name);
  if (!find(id, "history")) {
    if (every != spec.every.end())
      r.report({}, d.name + ".every is given, but '" + d.name + ".history' is not bound: bind it too");
    return;
  }
  if (!find(id, "history_index"))
    r.report({}, "tensor '" + d.name + ".history' needs '" + d.name + ".history_index', which is not bound");
  if (every == spec.every.end() || every->second < 1 || every->second % chunk != 0)
    r.report({}, d.name + ".every is " + (every == spec.every.end() ? "not given" : std::to_string(every->second)) +
                     "; the tokens between history states are a multiple of the chunk of " + std::to_string(chunk));
  if (spec.mode == Mode::step) r.report({}, "mode step keeps no history: its one state is '" + d.name + ".final'");
}

Bound* ProgramEmitter::find(int declaration, const std::string& part) {
  for (auto& one : bound)
    if (one.declaration == declaration && one.part == part) return &one;
  return nullptr;
}

tile::ViewType ProgramEmitter::view(const Bound& one) const {
  std::vector<std::int64_t> shape;
  if (one.declaration == -1 || one.part.ends_with("_index")) {
    bool table = one.part == "history_index" || (one.part == "initial_index" && spec.tensor("accepted"));
    shape.assign(table ? 2 : 1, mlir::ShapedType::kDynamic);
  } else {
    const Declaration& d = r.decls[one.declaration];
    bool rows = d.kind == Kind::sequence || d.kind == Kind::output;
    std::size_t dynamic = (rows ? 2 : d.kind == Kind::carry ? 1 : 0) + (d.head != -1);
    shape.assign(dynamic, mlir::ShapedType::kDynamic);
    for (int x : d.dims)
      if (!r.is_head[x]) shape.push_back(extent_of(r, spec, chunk, x));
  }
  return tile::ViewType::get(&context, shape, element_type(context, one.tensor->type), one.tensor->unit);
}

tile::ProgramOp ProgramEmitter::make_program(mlir::OpBuilder& b, mlir::Location loc) {
  std::vector<mlir::Type> types{tile::SequencesType::get(&context, !cu_seqlens                            ? 0
                                                                   : cu_seqlens->type == ElementType::i64 ? 64
                                                                                                          : 32)};
  std::vector<std::string> names{"sequences"};
  for (auto& one : bound) types.push_back(view(one)), names.push_back(one.tensor->name);
  for (auto& d : r.decls)
    if (d.kind == Kind::scalar) types.push_back(b.getF64Type()), names.push_back(d.name);

  std::vector<llvm::StringRef> texts(names.begin(), names.end());
  auto program =
      tile::ProgramOp::create(b, loc, b.getStringAttr(r.name), mlir::TypeAttr::get(b.getFunctionType(types, {})),
                              b.getStrArrayAttr(texts), mlir::ArrayAttr(), mlir::ArrayAttr());
  if (spec.mode == Mode::step) program->setAttr("step", b.getUnitAttr());
  mlir::Block& block = program.getBody().emplaceBlock();
  for (auto type : types) block.addArgument(type, loc);
  for (std::size_t i = 0; i < bound.size(); ++i) bound[i].argument = block.getArgument(static_cast<unsigned>(i) + 1);
  return program;
}

void ProgramEmitter::make_scan(mlir::OpBuilder& b, mlir::Location loc, mlir::Block& program) {
  // The body is emitted into a block of its own, because what it reads decides the operands of the scan.
  mlir::Region region;
  mlir::Block& block = region.emplaceBlock();
  mlir::OpBuilder inner(&context);
  inner.setInsertionPointToEnd(&block);
  BodyEmitter emitter(r, *body, spec, chunk, inner);

  std::vector<Value> inputs, initial, initial_index, final, final_index, outputs, history, history_index;
  std::vector<std::string> reads, read_heads, carries, carry_heads, writes, write_heads;
  std::vector<std::int64_t> rates, every;
  std::vector<bool> has[4];
  mlir::Type f32 = b.getF32Type();
  std::vector<int> used = emitter.reads();

  unsigned scalar = static_cast<unsigned>(bound.size()) + 1;
  for (std::size_t i = 0; i < r.decls.size(); ++i) {
    const Declaration& d = r.decls[i];
    int id = static_cast<int>(i);
    bool needed = std::find(used.begin(), used.end(), id) != used.end();
    Value argument;
    if (d.kind == Kind::scalar)
      argument = program.getArgument(scalar++);
    else if (Bound* one = d.kind == Kind::carry || d.kind == Kind::output ? nullptr : find(id))
      argument = one->argument;
    if (!needed || !argument) continue;
    inputs.push_back(argument);
    reads.push_back(d.name);
    read_heads.push_back(head(d));
    rates.push_back(d.kind == Kind::sequence ? d.rate : 0);
    mlir::Type element = f32;
    if (auto v = mlir::dyn_cast<tile::ViewType>(argument.getType())) element = v.getElementType();
    emitter.bind(id, block.addArgument(emitter.tile_type(d.shape, element), location(context, d.loc)));
  }
  for (std::size_t i = 0; i < r.decls.size(); ++i) {
    const Declaration& d = r.decls[i];
    if (d.kind != Kind::carry || (d.hidden && body->kind == Body::chunk)) continue;
    int id = static_cast<int>(i);
    carries.push_back(d.name);
    carry_heads.push_back(head(d));
    std::vector<Value>* lists[] = {&initial, &initial_index, &final, &final_index};
    const char* parts[] = {"initial", "initial_index", "final", "final_index"};
    for (int p = 0; p < 4; ++p) {
      Bound* one = find(id, parts[p]);
      has[p].push_back(one != nullptr);
      if (one) lists[p]->push_back(one->argument);
    }
    Bound* kept = find(id, "history");
    every.push_back(kept ? spec.every.at(d.name) : 0);
    if (kept) history.push_back(kept->argument), history_index.push_back(find(id, "history_index")->argument);
    emitter.bind(id, block.addArgument(emitter.tile_type(d.shape, f32), location(context, d.loc)));
  }

  emitter.run();
  std::vector<Value> results;
  for (auto& [id, node] : body->outputs) {
    Bound* one = find(id);
    if (!one) continue;  // an optional output that nobody wants
    const Declaration& d = r.decls[id];
    outputs.push_back(one->argument);
    writes.push_back(d.name);
    write_heads.push_back(head(d));
    results.push_back(emitter.result(node, element_type(context, one->tensor->type), r.nodes[node].loc));
  }
  for (auto& [id, node] : body->carries) results.push_back(emitter.result(node, f32, r.nodes[node].loc));
  tile::YieldOp::create(inner, loc, results);

  auto names = [&](const std::vector<std::string>& list) {
    return b.getStrArrayAttr(std::vector<llvm::StringRef>(list.begin(), list.end()));
  };
  auto bools = [&](const std::vector<bool>& list) {
    return b.getDenseBoolArrayAttr(llvm::SmallVector<bool>(list.begin(), list.end()));
  };
  Bound* accepted = find(-1, "accepted");
  auto scan = tile::ScanOp::create(
      b, loc, program.getArgument(0), inputs, initial, initial_index, final, final_index, outputs, history,
      history_index, accepted ? accepted->argument : Value(), b.getI64IntegerAttr(chunk),
      b.getStringAttr(axis == -1 ? "" : r.extents[axis]), names(reads), names(read_heads),
      b.getDenseI64ArrayAttr(rates), names(carries), names(carry_heads), bools(has[0]), bools(has[1]), bools(has[2]),
      bools(has[3]), names(writes), names(write_heads), b.getI64IntegerAttr(spec.head_ratio),
      tile::HeadMapAttr::get(&context, spec.tiled_heads ? tile::HeadMap::Tiled : tile::HeadMap::Grouped),
      history.empty() ? mlir::DenseI64ArrayAttr() : b.getDenseI64ArrayAttr(every),
      spec.reversed ? b.getUnitAttr() : mlir::UnitAttr());
  scan.getBody().takeBody(region);
}

/// For compiler/ExternKernels.h. Passes don't look at it, and the interpreter refuses a program that has it.
void ProgramEmitter::note_externs(tile::ProgramOp program, mlir::Builder b) {
  auto texts = [&](const std::vector<std::string>& list) {
    return b.getStrArrayAttr(std::vector<llvm::StringRef>(list.begin(), list.end()));
  };
  std::vector<std::string> heads;
  for (int d : r.declared_dims)
    if (r.is_head[d]) heads.push_back(r.extents[d]);
  std::vector<mlir::Attribute> kernels;
  for (const ExternDefinition& e : r.externs) {
    const ExternKernel& k = e.kernel;
    std::vector<std::string> grid;
    std::vector<std::int64_t> spans;
    for (const ExternKernel::Axis& axis : k.grid) grid.push_back(axis.name), spans.push_back(axis.span);
    kernels.push_back(b.getDictionaryAttr(
        {b.getNamedAttr("entry", b.getStringAttr(k.entry)), b.getNamedAttr("source", b.getStringAttr(k.source)),
         b.getNamedAttr("grid", texts(grid)), b.getNamedAttr("spans", b.getDenseI64ArrayAttr(spans)),
         b.getNamedAttr("threads", b.getI64IntegerAttr(k.threads)),
         b.getNamedAttr("shared_bytes", b.getI64IntegerAttr(k.shared_bytes)), b.getNamedAttr("heads", texts(heads)),
         b.getNamedAttr("reads", texts(k.reads)), b.getNamedAttr("writes", texts(k.writes)),
         b.getNamedAttr("options", texts(k.options))}));
  }
  program->setAttr("extern_kernels", b.getArrayAttr(kernels));
}

mlir::OwningOpRef<mlir::ModuleOp> ProgramEmitter::run() {
  check_body();
  check_extents();
  check_axis();
  check_tensors();
  if (body && body->kind == Body::kernel) check_windows(r, spec);
  if (!r.mistakes.empty()) return {};

  context.loadDialect<tile::TileDialect, mlir::arith::ArithDialect, mlir::math::MathDialect, mlir::scf::SCFDialect>();
  mlir::OpBuilder b(&context);
  mlir::Location loc = mlir::UnknownLoc::get(&context);
  for (auto& d : r.decls)
    if (d.loc.line() != 0) {
      loc = location(context, d.loc);
      break;
    }
  mlir::OwningOpRef<mlir::ModuleOp> module = mlir::ModuleOp::create(loc);
  b.setInsertionPointToEnd(module->getBody());
  tile::ProgramOp program = make_program(b, loc);
  b.setInsertionPointToEnd(&program.getBody().front());
  if (spec.mode == Mode::prefill && !r.externs.empty()) note_externs(program, b);
  if (!body) return module;
  if (body->kind != Body::kernel) {
    make_scan(b, loc, program.getBody().front());
    return module;
  }
  auto argument = [&](int declaration, llvm::StringRef part) -> Value {
    if (r.decls[declaration].kind != Kind::scalar) {
      Bound* one = find(declaration, part.str());
      return one ? one->argument : Value();
    }
    auto number = static_cast<unsigned>(bound.size()) + 1;
    for (int i = 0; i < declaration; ++i) number += r.decls[static_cast<std::size_t>(i)].kind == Kind::scalar;
    return program.getBody().getArgument(number);
  };
  emit_kernels({r, spec, chunk, axis, program, argument}, b);
  return module;
}

}  // namespace

mlir::OwningOpRef<mlir::ModuleOp> emit_program(const OperatorRow& row, const Specialisation& spec,
                                               mlir::MLIRContext& context, std::vector<Diagnostic>& mistakes) {
  Config config{spec.options, {}};
  for (auto& t : spec.tensors) config.bound.push_back(t.name);
  Operator op{std::string(row.name), config};
  row.define(op);
  op.finish();
  mlir::OwningOpRef<mlir::ModuleOp> module;
  if (op.diagnostics().empty()) module = ProgramEmitter(*op.rec(), spec, context).run();
  mistakes.insert(mistakes.end(), op.diagnostics().begin(), op.diagnostics().end());
  return module;
}

}  // namespace latile
