#include "tools/latile/Meaning.h"
#include "compiler/Emit.h"
#include "compiler/Interpreter.h"
#include "dialect/Tile.h"
#include "tools/latile/UserError.h"

namespace latile {

struct Meaning::Program {
  mlir::MLIRContext context{mlir::MLIRContext::Threading::DISABLED};
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

Specialisation specialisation_of(const std::string& op, const Case& c, const Problem& p, ElementType io) {
  Specialisation s;
  s.op = op;
  s.mode = c.mode;
  s.options = c.options;
  s.extents = p.extents;
  s.head_ratio = c.ratio;
  s.tiled_heads = c.tiled_heads;
  s.reversed = c.reversed;
  s.io = io;
  s.chunk = c.chunk;
  s.isa = HostIsa::native();
  for (const Problem::Entry& e : p.entries) {
    BoundTensor bound{e.tensor.name, e.tensor.type, -1};
    for (std::size_t d = 0; d < e.tensor.strides.size(); ++d)
      if (e.tensor.strides[d] == 1) bound.unit = static_cast<int>(d);
    if (e.role == Problem::Role::history) s.every[e.carry] = c.every;
    s.tensors.push_back(std::move(bound));
  }
  return s;
}

Meaning::Meaning(const OperatorRow& row, const Specialisation& s)
    : program(std::make_unique<Program>()), specialisation(s) {
  std::vector<Diagnostic> mistakes;
  program->module = emit_program(row, s, program->context, mistakes);
  if (!mistakes.empty()) throw DefinitionError(lines_of(mistakes));
  if (!program->module) throw UserError(s.op + ": its program could not be emitted", exit_internal);
  std::vector<std::string> bound;
  for (const BoundTensor& t : s.tensors) bound.push_back(t.name);
  for (const ScalarInfo& scalar : describe(row, s.options, bound).scalars) scalar_names.push_back(scalar.name);
}

Meaning::~Meaning() = default;

bool Meaning::divides() const {
  bool found = false;
  program->module->walk([&](mlir::arith::DivFOp op) {
    mlir::Value divisor = op.getRhs();
    while (auto broadcast = divisor.getDefiningOp<tile::BroadcastOp>()) divisor = broadcast.getX();
    found |= !divisor.getDefiningOp<tile::ConstantOp>();
  });
  return found;
}

double Meaning::dot_flops_per_token() const {
  double flops = 0, rows = 1;
  program->module->walk([&](tile::ScanOp scan) { rows = static_cast<double>(scan.getChunk()); });
  program->module->walk([&](tile::DotOp dot) {
    const auto a = mlir::cast<mlir::RankedTensorType>(dot.getA().getType());
    const auto b = mlir::cast<mlir::RankedTensorType>(dot.getB().getType());
    flops += 2.0 * static_cast<double>(a.getDimSize(0) * a.getDimSize(1) * b.getDimSize(1));
  });
  return flops / rows;
}

Values Meaning::run(const Problem& p, bool float64) const {
  InterpreterInputs inputs;
  inputs.sequences = p.sequences;
  inputs.rows = p.rows;
  inputs.heads = p.fine_heads;
  std::vector<HostTensor> written;
  written.reserve(p.entries.size());
  for (const Problem::Entry& e : p.entries) {
    const HostTensor& from = e.tensor;
    const bool output =
        e.role != Problem::Role::input && e.role != Problem::Role::index && e.role != Problem::Role::initial;
    // The interpreter takes one kind of pointer; what it may only read stays untouched.
    void* data = const_cast<std::byte*>(from.bytes.data());
    if (!output) {
      inputs.tensors[from.name] = {data, from.type, from.shape, from.strides};
      continue;
    }
    HostTensor& to = written.emplace_back(from.name, float64 ? ElementType::f64 : from.type, from.shape);
    for (std::int64_t i = 0, n = to.count(); i < n; ++i) to.set(i, from.get(i));
    inputs.tensors[to.name] = {to.bytes.data(), to.type, to.shape, to.strides};
  }
  for (std::size_t i = 0; i < scalar_names.size(); ++i) inputs.scalars[scalar_names[i]] = p.scalars[i];
  InterpreterOptions options;
  options.float64 = float64;
  options.threads = 1;  // the cases themselves are spread over threads
  const InterpreterReport report = interpret(*program->module, inputs, options);
  if (!report.ok()) throw UserError("interpreter: " + report.problems.front(), exit_internal);
  Values values;
  for (const HostTensor& t : written) {
    std::vector<double>& v = values[t.name];
    v.resize(static_cast<std::size_t>(t.count()));
    for (std::size_t i = 0; i < v.size(); ++i) v[i] = t.get(static_cast<std::int64_t>(i));
  }
  return values;
}

}  // namespace latile
