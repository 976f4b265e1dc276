#include "compiler/Compile.h"
#include "codegen/host/Host.h"
#include "compiler/Emit.h"
#include "compiler/Pipeline.h"
#include "compiler/Version.h"
#include "dialect/Tile.h"
#include "dsl/Describe.h"
#include "dsl/Recorder.h"
#include <chrono>

namespace latile {
namespace {

double now_ms() {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

CompileFailure mistakes_as_failure(const std::vector<Diagnostic>& mistakes) {
  CompileFailure failure;
  for (const Diagnostic& d : mistakes) failure.text += (failure.text.empty() ? "" : "\n") + d.message();
  return failure;
}

/// A context of its own for each compilation: nothing is shared between threads, nothing outlives the call.
struct Session {
  mlir::MLIRContext context{mlir::MLIRContext::Threading::DISABLED};
  std::string diagnostics;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::vector<StageTime> stages;
  double start = now_ms();

  Session() {
    context.getDiagEngine().registerHandler([this](mlir::Diagnostic& d) {
      if (!diagnostics.empty()) diagnostics += "; ";
      diagnostics += d.str();
      return mlir::success();
    });
  }
  void mark(const char* stage) {
    double t = now_ms();
    stages.push_back({stage, t - start});
    start = t;
  }
  std::string text() {
    std::string out;
    llvm::raw_string_ostream stream(out);
    module->print(stream);
    return out;
  }
};

Specialisation settled(const Specialisation& given) {
  Specialisation s = given;
  if (s.chunk == 0) s.chunk = default_chunk(s);
  return s;
}

bool record(const OperatorRow& row, const Specialisation& s, Session& session, CompileFailure& failure) {
  std::vector<Diagnostic> mistakes;
  // The reference of such an operator judges, and is no plan: its hidden carries have no tensors to live in.
  if (s.mode != Mode::prefill)
    if (OperatorInfo info = describe(row, Config{s.options, {}}, mistakes); !info.no_step.empty()) {
      failure.text = std::string(row.name) + ": mode " + name(s.mode) + " is not offered: " + info.no_step;
      return false;
    }
  mistakes.clear();
  session.module = emit_program(row, s, session.context, mistakes);
  session.mark("record");
  if (session.module) return true;
  failure = mistakes_as_failure(mistakes);
  if (failure.text.empty()) {
    failure.user_error = false;
    failure.text = std::string(row.name) + ": recording failed: " + session.diagnostics;
  }
  return false;
}

bool lower_to_host(const OperatorRow& row, Session& session, CompileFailure& failure) {
  std::string before = session.text(), last = "recording";
  PipelineOptions options;
  options.after = [&](std::string_view pass, mlir::ModuleOp module) {
    last = pass;
    before.clear();
    llvm::raw_string_ostream(before) << module;
    return mlir::success();
  };
  bool ok = succeeded(lower_to_kernels(*session.module, options));
  session.mark("passes");
  if (ok) return true;
  failure.user_error = false;
  failure.text = std::string(row.name) + ": the pass after '" + last + "' failed: " + session.diagnostics +
                 "\nreproducer (latile-opt input):\n" + before;
  return false;
}

class HostCompiler : public Compiler {
public:
  std::vector<std::string> operators() const override {
    std::vector<std::string> names;
    for (const OperatorRow& row : latile::operators()) names.emplace_back(row.name);
    return names;
  }
  bool describe(const std::string& op, const std::vector<std::pair<std::string, std::string>>& options,
                const std::vector<std::string>& bound, OperatorInfo& info, CompileFailure& failure) override {
    const OperatorRow* row = find_operator(op);
    if (!row) return unknown(op, failure);
    std::vector<Diagnostic> mistakes;
    info = latile::describe(*row, Config{options, bound}, mistakes);
    if (mistakes.empty()) return true;
    failure = mistakes_as_failure(mistakes);
    return false;
  }
  bool compile(const Specialisation& s, Artifact& artifact, CompileFailure& failure) override {
    const OperatorRow* row = find_operator(s.op);
    return row ? latile::compile(*row, s, artifact, failure) : unknown(s.op, failure);
  }
  std::string fingerprint(const Specialisation& s) const override {
    const OperatorRow* row = find_operator(s.op);
    std::string text = version_text;
    if (!row) return text;
    Config config{s.options, {}};
    for (const BoundTensor& t : s.tensors) config.bound.push_back(t.name);
    Operator op(s.op, config);
    row->define(op);
    return text + "\n" + op.text();
  }

private:
  static bool unknown(const std::string& op, CompileFailure& failure) {
    failure.text = "there is no operator '" + op + "'";
    return false;
  }
};

}  // namespace

std::int64_t default_chunk(const Specialisation& s) {
  return s.isa.level == "amx" && s.io == ElementType::bf16 ? 32 : 16;
}

bool compile(const OperatorRow& row, const Specialisation& given, Artifact& artifact, CompileFailure& failure) {
  Session session;
  Specialisation s = settled(given);
  if (!record(row, s, session, failure) || !lower_to_host(row, session, failure)) return false;
  artifact = Artifact();
  artifact.stages = session.stages;
  std::string fault;
  if (host::compile_host(*session.module, s.isa, artifact, fault, nullptr)) return true;
  failure.user_error = false;
  failure.text = s.op + ": " + fault + "\nreproducer (lowered module):\n" + session.text();
  return false;
}

bool parse_stage(const std::string& text, Stage& stage) {
  const std::pair<const char*, Stage> names[] = {{"tile", Stage::tile},
                                                 {"kernel", Stage::kernel},
                                                 {"llvm", Stage::llvm},
                                                 {"object", Stage::object},
                                                 {"asm", Stage::assembly}};
  for (auto [name, value] : names)
    if (text == name) {
      stage = value;
      return true;
    }
  return false;
}

bool emit_stage(const OperatorRow& row, const Specialisation& given, Stage stage, std::string& text,
                CompileFailure& failure) {
  Session session;
  Specialisation s = settled(given);
  if (!record(row, s, session, failure)) return false;
  if (stage == Stage::tile) return text = session.text(), true;
  if (!lower_to_host(row, session, failure)) return false;
  if (stage == Stage::kernel) return text = session.text(), true;
  Artifact artifact;
  host::Texts texts;
  if (!host::compile_host(*session.module, s.isa, artifact, failure.text, &texts)) {
    failure.user_error = false;
    return false;
  }
  text = stage == Stage::llvm ? texts.llvm : stage == Stage::object ? texts.object : texts.assembly;
  return true;
}

void install_compiler() {
  static HostCompiler compiler;
  set_compiler(&compiler);
}

}  // namespace latile
