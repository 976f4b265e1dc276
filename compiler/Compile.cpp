#include "compiler/Compile.h"
#include "codegen/emulator/Emulate.h"
#include "codegen/Gpu.h"
#include "codegen/host/Host.h"
#include "codegen/Targets.h"
#include "compiler/Emit.h"
#include "compiler/ExternKernels.h"
#include "compiler/passes/OutputChains.h"
#include "compiler/Pipeline.h"
#include "compiler/Version.h"
#include "dialect/Tile.h"
#include "dsl/Describe.h"
#include "dsl/Recorder.h"
#include <chrono>
#include <optional>
#include <set>

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

/// The choice of a target, or a part of it that history states lie a multiple of apart.
std::int64_t between_history_states(std::int64_t chunk, const Specialisation& s) {
  for (const auto& [carry, tokens] : s.every)
    while (chunk > 16 && tokens % chunk != 0) chunk /= 2;
  return chunk;
}

Specialisation settled(const Specialisation& given) {
  Specialisation s = given;
  if (s.chunk == 0) s.chunk = between_history_states(default_chunk(s), s);
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

/// Kernels in CUDA C++ run on CUDA devices.
bool has_extern_kernels(const Specialisation& s, Session& session, CompileFailure& failure) {
  const std::string entry = extern_kernel(*session.module);
  if (entry.empty() || s.device.starts_with("cuda:")) return false;
  failure.text = s.op + ": mode " + name(s.mode) + " has the extern kernel '" + entry +
                 "', which is CUDA C++ and runs on CUDA devices, not on '" + s.device +
                 "'; use a CUDA device, or mode recurrent";
  return true;
}

bool lower_by(const OperatorRow& row, Schedule schedule, Session& session, CompileFailure& failure,
              const simt::Target* gpu = nullptr, BlockSizes sizes = {}) {
  std::string before = session.text(), last = "recording";
  PipelineOptions options;
  options.schedule = schedule;
  options.after = [&](std::string_view pass, mlir::ModuleOp module) {
    last = pass;
    before.clear();
    llvm::raw_string_ostream(before) << module;
    return mlir::success();
  };
  bool ok = succeeded(lower_to_kernels(*session.module, options)) &&
            (!gpu || succeeded(prepare_for_gpu(*session.module, gpu->name, sizes, options)));
  session.mark("passes");
  if (ok) return true;
  failure.user_error = false;
  failure.text = std::string(row.name) + ": the pass after '" + last + "' failed: " + session.diagnostics +
                 "\nreproducer (latile-opt input):\n" + before;
  return false;
}

/// "cuda:sm_80", "hip:gfx90a", "emulated:" with either → what makes the code, and for which GPU.
struct Device {
  bool emulated = false;
  const simt::Target* target = nullptr;
};
bool find_device(const std::string& name, Device& device, CompileFailure& failure) {
  std::size_t colon = name.find(':');
  std::string kind = name.substr(0, colon), target = colon == std::string::npos ? "" : name.substr(colon + 1);
  device.emulated = kind == "emulated";
  device.target = find_target(target);
  if (device.target) {
    const bool amd = device.target->family == simt::Family::amdgcn;
    if (device.emulated || kind == (amd ? "hip" : "cuda")) return true;
  }
  failure.text =
      "no code is made for '" + name +
      "'; known are cuda: with sm_80, sm_86, sm_89 and sm_90, hip: with gfx90a, gfx942, gfx1200 and gfx1201, "
      "and emulated: with any of these";
  return false;
}

/// Rows of a chunk, columns of a state that one block works on, its least threads, and whether blocks have arenas.
struct DeviceTiles {
  std::int64_t chunk = 0;
  BlockSizes sizes;
  bool arena = false;
};

/// Rows of the smallest chunk.
constexpr std::int64_t fewest_rows = 16;

/// Threads of a block that has the registers of a multiprocessor to itself, 255 for each.
constexpr int wide_block = 256;

/// The sizes that are tried, the best first: larger ones need more shared memory.
std::vector<DeviceTiles> device_tiles(const Specialisation& s) {
  std::vector<DeviceTiles> out, narrow;
  std::int64_t last = 0;
  for (std::int64_t chunk : {std::int64_t{64}, std::int64_t{32}, fewest_rows}) {
    chunk = s.chunk ? s.chunk : between_history_states(chunk, s);
    if (chunk == last) continue;
    // Narrow slices repeat what all columns share, and odd ones are read element by element besides.
    for (std::int64_t columns : {64, 32, 16})
      (columns == 16 && chunk > fewest_rows ? narrow : out).push_back({chunk, {columns, 16}});
    narrow.push_back({chunk, {16, 1}});
    last = chunk;
  }
  out.insert(out.end(), narrow.begin(), narrow.end());
  return out;
}

/// Only chunks have work that can leave the serial kernel. Outputs of several heads that read one state leave it too:
/// they are more than the few blocks that keep the states can do beside it. So do long chains to outputs: every chunk
/// has its own. Without either, outputs are a product or two, less than it takes to bring the states to another kernel.
Schedule device_schedule(const Specialisation& s, mlir::ModuleOp module) {
  if (s.mode != Mode::prefill) return Schedule::fused;
  bool leaves = false;
  module.walk([&](tile::ScanOp scan) { leaves |= scan.carryAxis() != scan.getAxis() || has_chains_to_outputs(scan); });
  return leaves ? Schedule::cut : Schedule::prepare;
}

/// What lowering for a device leaves.
struct DeviceCode {
  Device device;
  std::unique_ptr<Session> session;
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> module;
};

/// Records and lowers for a device with tiles of given sizes. `fits`: the kernels have enough shared memory.
bool lower_with(const OperatorRow& row, Specialisation s, const DeviceTiles& tiles, DeviceCode& code,
                Artifact& artifact, bool& fits, CompileFailure& failure) {
  failure = {};
  s.chunk = tiles.chunk;
  code.session = std::make_unique<Session>();
  code.module = std::make_unique<llvm::Module>("latile", code.context);
  if (!record(row, s, *code.session, failure) || has_extern_kernels(s, *code.session, failure) ||
      !lower_by(row, device_schedule(s, *code.session->module), *code.session, failure, code.device.target,
                tiles.sizes))
    return false;
  artifact = Artifact();
  artifact.target = s.device;
  if (s.mode == Mode::prefill) artifact.chunk = s.chunk;
  std::string fault;
  fits = lower_for_gpu(*code.session->module, *code.device.target, *code.module, artifact, fault, tiles.arena);
  if (fits) {
    code.session->mark("emit");
  } else {
    failure.user_error = false;
    failure.text = s.op + ": " + fault;
  }
  return true;
}

bool is_sliced(mlir::ModuleOp module) {
  return llvm::any_of(module.getOps<tile::KernelOp>(), [](tile::KernelOp kernel) { return kernel->hasAttr("slices"); });
}

/// Whether a kernel has fewer threads.
bool is_narrower(mlir::ModuleOp module, int threads) {
  return llvm::any_of(module.getOps<tile::KernelOp>(), [&](tile::KernelOp kernel) {
    auto assigned = kernel->getAttrOfType<mlir::IntegerAttr>("threads");
    return assigned && assigned.getInt() < threads;
  });
}

/// What goes to arenas and back for each row of the state's columns: bytes over rows.
double arena_traffic(const Artifact& artifact) {
  double bytes = 0;
  for (const KernelFacts& kernel : artifact.kernels) bytes += static_cast<double>(kernel.arena_bytes) * kernel.slices;
  return bytes / static_cast<double>(std::max<std::int64_t>(artifact.chunk, 1));
}

/// Records and lowers for a device, with the largest tiles whose kernels fit in shared memory and in registers; where
/// none do, the tiles that fit in shared memory and lack the fewest registers; else with arenas and the tiles that use
/// them least.
bool lower_to_device(const OperatorRow& row, const Specialisation& s, DeviceCode& code, Artifact& artifact,
                     CompileFailure& failure) {
  if (!find_device(s.device, code.device, failure)) return false;
  bool fits = false;
  std::optional<DeviceTiles> best;
  double least = 0;
  std::set<std::int64_t> short_of_registers;  // chunks
  for (bool arena : {false, true}) {
    std::set<std::pair<std::int64_t, std::int64_t>> unsliced;  // chunk and granule at which no kernel has slices
    for (DeviceTiles tiles : device_tiles(s)) {
      tiles.arena = arena;
      if (unsliced.contains({tiles.chunk, tiles.sizes.granule})) continue;
      // Where registers are short, fewer rows help; fewer columns where rows are the fewest already.
      if (!arena && tiles.chunk > fewest_rows && short_of_registers.contains(tiles.chunk)) continue;
      // A thread's part of a tile is smaller among more of them.
      for (const int threads : {0, wide_block}) {
        tiles.sizes.threads = threads;
        // A loop over tokens that walks a state moves all of it for each of them: only where no slice of it fits.
        if (s.mode == Mode::recurrent)
          tiles.sizes.most_elements = BlockSizes().most_elements * tiles.sizes.columns / 16;
        if (!lower_with(row, s, tiles, code, artifact, fits, failure)) return false;
        const double cost = arena ? arena_traffic(artifact) : artifact.short_of_registers;
        if (fits && !arena && cost <= 0) return true;
        if (fits && !arena) short_of_registers.insert(tiles.chunk);
        if (fits && (!best || cost < least)) best = tiles, least = cost;
        if (!fits || arena || !is_narrower(*code.session->module, wide_block)) break;
      }
      if (!is_sliced(*code.session->module)) unsliced.insert({tiles.chunk, tiles.sizes.granule});
    }
    if (best) break;
  }
  return best && lower_with(row, s, *best, code, artifact, fits, failure);
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
    text += "\n" + op.text();
    const bool runs = s.mode == Mode::prefill && s.device.starts_with("cuda:") && !op.info().extern_kernel.empty();
    return runs ? text + "\n" + extern_compiler() : text;
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

static bool compile_device(const OperatorRow& row, const Specialisation& s, Artifact& artifact,
                           CompileFailure& failure) {
  DeviceCode code;
  if (!lower_to_device(row, s, code, artifact, failure)) return false;
  std::string fault;
  bool ok = code.device.emulated ? emulator::compile_emulated(*code.module, artifact.binary, fault)
                                 : write_gpu_code(*code.module, *code.device.target, artifact.binary, fault);
  code.session->mark("codegen");
  if (ok && !add_extern_kernels(*code.session->module, s, code.device.target->name, artifact, failure)) return false;
  if (!artifact.parts.empty()) code.session->mark("extern kernels");
  artifact.stages = code.session->stages;
  if (ok) return true;
  failure.user_error = false;
  failure.text = s.op + ": " + fault + "\nreproducer (lowered module):\n" + code.session->text();
  return false;
}

bool compile(const OperatorRow& row, const Specialisation& given, Artifact& artifact, CompileFailure& failure) {
  if (given.device != "host") return compile_device(row, given, artifact, failure);
  Session session;
  Specialisation s = settled(given);
  if (!record(row, s, session, failure) || has_extern_kernels(s, session, failure) ||
      !lower_by(row, Schedule::fused, session, failure))
    return false;
  artifact = Artifact();
  artifact.stages = session.stages;
  if (s.mode == Mode::prefill) artifact.chunk = s.chunk;
  std::string fault;
  if (host::compile_host(*session.module, s.isa, artifact, fault, nullptr)) return true;
  failure.user_error = false;
  failure.text = s.op + ": " + fault + "\nreproducer (lowered module):\n" + session.text();
  return false;
}

bool parse_stage(const std::string& text, Stage& stage) {
  const std::pair<const char*, Stage> names[] = {{"tile", Stage::tile},    {"kernel", Stage::kernel},
                                                 {"llvm", Stage::llvm},    {"object", Stage::object},
                                                 {"asm", Stage::assembly}, {"ptx", Stage::assembly}};
  for (auto [name, value] : names)
    if (text == name) {
      stage = value;
      return true;
    }
  return false;
}

static bool emit_device_stage(const OperatorRow& row, const Specialisation& s, Stage stage, std::string& text,
                              CompileFailure& failure) {
  DeviceCode code;
  Artifact artifact;
  if (!lower_to_device(row, s, code, artifact, failure)) return false;
  if (stage == Stage::kernel) return text = code.session->text(), true;
  text.clear();
  if (stage == Stage::llvm) {
    llvm::raw_string_ostream out(text);
    code.module->print(out, nullptr);
    return true;
  }
  bool ok = stage != Stage::object ? write_gpu_assembly(*code.module, *code.device.target, text, failure.text)
            : code.device.emulated ? emulator::compile_emulated(*code.module, text, failure.text)
                                   : write_gpu_code(*code.module, *code.device.target, text, failure.text);
  failure.user_error = false;
  if (!ok) return false;
  if (!add_extern_kernels(*code.session->module, s, code.device.target->name, artifact, failure)) return false;
  for (int part = 1; part <= static_cast<int>(artifact.parts.size()); ++part)
    text += std::string("\n") + artifact.part(part);
  return true;
}

bool emit_stage(const OperatorRow& row, const Specialisation& given, Stage stage, std::string& text,
                CompileFailure& failure) {
  if (given.device != "host" && stage != Stage::tile) return emit_device_stage(row, given, stage, text, failure);
  Session session;
  Specialisation s = settled(given);
  if (!record(row, s, session, failure)) return false;
  if (stage == Stage::tile) return text = session.text(), true;
  if (has_extern_kernels(s, session, failure)) return false;
  if (!lower_by(row, Schedule::fused, session, failure)) return false;
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
