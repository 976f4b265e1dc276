#include "compiler/Compile.h"
#include "runtime/Describe.h"
#include "tools/latile/Commands.h"
#include "tools/latile/File.h"
#include "tools/latile/Plan.h"
#include "tools/latile/Problem.h"
#include "tools/latile/UserError.h"
#include <algorithm>
#include <fmt/format.h>
#include <memory>
#include <unistd.h>

namespace latile {
namespace {

struct Options {
  std::string op, stage = "tile", mode = "prefill", dtype = "f32", isa, device, file;
  std::vector<std::string> options, extents, absent;
  std::int64_t chunk = 0, ratio = 1;
  bool ragged = false, stateless = false, tiled = false, reversed = false;
};

/// The specialisation of contiguous tensors with the sizes that were asked for.
Specialisation specialise(const Options& o, const OperatorRow& row) {
  Case c;
  c.mode = o.mode == "prefill" ? Mode::prefill : o.mode == "recurrent" ? Mode::recurrent : Mode::step;
  c.ragged_bits = o.ragged ? 32 : 0;
  c.states = o.stateless ? States::none : States::both;
  c.absent = o.absent;

  Specialisation s;
  s.op = o.op;
  s.mode = c.mode;
  for (const std::string& text : o.options) s.options.push_back(split_pair(text, "--option"));
  const OperatorInfo info = describe(row, s.options);
  for (const DimInfo& d : info.dims)
    if (!d.head) s.extents[d.name] = d.most == 0 ? 128 : std::min<std::int64_t>(d.most, 128);
  for (const std::string& text : o.extents) {
    const auto [name, value] = split_pair(text, "--dim");
    if (!s.extents.contains(name)) throw UserError(fmt::format("{} has no inner dimension '{}'", o.op, name));
    const std::int64_t size = integer_in(value, "--dim " + name);
    const std::int64_t least = info.has_kernel ? 1 : runtime::kMinInner;
    const std::int64_t most = info.has_kernel ? runtime::kMaxColumns : runtime::kMaxInner;
    if (size < least || size > most)
      throw UserError(fmt::format("{}: {} is {}; inner dimensions are {} to {}", o.op, name, size, least, most));
    s.extents[name] = size;
  }
  for (const std::string& name : o.absent) {
    const TensorInfo* t = info.tensor(name);
    if (!t || !t->optional) throw UserError(fmt::format("{} has no optional tensor '{}'", o.op, name));
  }
  s.head_ratio = o.ratio;
  s.tiled_heads = o.tiled;
  s.reversed = o.reversed;
  s.io = element_type_named(o.dtype);
  s.chunk = o.chunk;
  s.isa = HostIsa::native();
  if (!o.isa.empty() && !HostIsa::named(o.isa, s.isa))
    throw UserError(
        fmt::format("there is no instruction set level '{}'; x86-64-v3, avx512, avx512bf16 and amx are known", o.isa));
  if (!o.device.empty()) s.device = (o.device.starts_with("gfx") ? "hip:" : "cuda:") + o.device;
  for (const std::string& name : bound_tensors(info, c)) {
    const TensorInfo* t = info.tensor(name.substr(0, name.find('.')));
    BoundTensor bound{name, ElementType::i32, 0};
    if (t) {
      const bool state = t->kind == TensorInfo::Kind::carry;
      bound.type = t->type == Type::io ? s.io : ElementType::f32;
      bound.unit = static_cast<int>(t->dims.size()) - 1 + (state ? 1 : t->kind == TensorInfo::Kind::param ? 0 : 2);
    }
    s.tensors.push_back(std::move(bound));
  }
  return s;
}

void emit(const Options& o) {
  const OperatorRow& row = operator_named(o.op);
  Stage stage{};
  if (!parse_stage(o.stage, stage))
    throw UserError(
        fmt::format("there is no stage '{}'; tile, kernel, llvm, object, asm and ptx can be written", o.stage));
  if (stage == Stage::object && o.file.empty() && ::isatty(1))
    throw UserError("an object file is not for a terminal: add -o FILE");
  if (o.stage == "ptx" && !o.device.starts_with("sm_"))
    throw UserError(fmt::format("{}: --emit ptx is for NVIDIA's GPUs (--target sm_80 and its like); use asm",
                                o.device.empty() ? "host" : o.device));
  std::string text;
  CompileFailure failure;
  if (!emit_stage(row, specialise(o, row), stage, text, failure))
    throw UserError(failure.text, failure.user_error ? exit_bad_use : exit_internal);
  if (!o.file.empty()) return write_file(o.file, text);
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
    throw UserError("standard output cannot be written");
}

}  // namespace

void add_compile(CLI::App& app, int& code) {
  CLI::App* sub = app.add_subcommand("compile", "Writes what the compiler makes of an operator, at a stage of its way");
  auto o = std::make_shared<Options>();
  sub->add_option("operator", o->op, "Its name")->required();
  sub->add_option("--emit", o->stage, "tile (as recorded), kernel (tile kernels), llvm, object, asm or ptx")
      ->check(CLI::IsMember({"tile", "kernel", "llvm", "object", "asm", "ptx"}))
      ->capture_default_str();
  sub->add_option("-o,--output", o->file, "File; default standard output");
  sub->add_option("--mode", o->mode, "prefill, recurrent or step")
      ->check(CLI::IsMember({"prefill", "recurrent", "step"}))
      ->capture_default_str();
  sub->add_option("--dtype", o->dtype, "Type of the tensors: f32, f16 or bf16")->capture_default_str();
  sub->add_option("--dim", o->extents, "NAME=SIZE of an inner dimension; default 128");
  sub->add_option("--option", o->options, "NAME=VALUE: an option of the operator");
  sub->add_option("--without", o->absent, "An optional tensor that is not bound");
  sub->add_option("--chunk", o->chunk, "Rows of a chunk: 16, 32 or 64; default the target's choice")
      ->check(CLI::IsMember({16, 32, 64}));
  sub->add_option("--heads-ratio", o->ratio, "Value heads for each key head")->check(CLI::PositiveNumber);
  sub->add_flag("--tiled-heads", o->tiled, "Value head h reads key head h mod H, not h div ratio");
  sub->add_flag("--reverse", o->reversed, "From the last token of each sequence to the first");
  sub->add_flag("--ragged", o->ragged, "With cu_seqlens (int32)");
  sub->add_flag("--stateless", o->stateless, "Without initial and final states");
  sub->add_option("--isa", o->isa, "Instruction set level: x86-64-v3, avx512, avx512bf16 or amx; default this CPU's");
  sub->add_option("--target", o->device,
                  "A GPU instead of this machine: sm_80, sm_86, sm_89, sm_90, gfx90a, gfx942, gfx1200 or gfx1201");
  sub->callback([o, &code] {
    emit(*o);
    code = exit_ok;
  });
}

}  // namespace latile
