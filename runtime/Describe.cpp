#include "runtime/Describe.h"
#include "runtime/DescribeParts.h"
#include "runtime/HostIsa.h"
#include <algorithm>
#include <cmath>

namespace latile::runtime {
namespace {

using Names = std::vector<std::string>;

void check_pointers(const latile_plan_desc& desc) {
  check_size(&desc, desc.size, sizeof(latile_plan_desc), "latile_plan_desc");
  const auto need = [](bool present, const char* field) {
    if (!present) fail(LATILE_BAD_ARGUMENT, "latile_plan_desc.{} is null", field);
  };
  need(desc.op != nullptr, "op");
  need(desc.mode != nullptr, "mode");
  need(desc.options != nullptr || desc.option_count == 0, "options");
  need(desc.dims != nullptr || desc.dim_count == 0, "dims");
  need(desc.tensors != nullptr || desc.tensor_count == 0, "tensors");
  for (std::size_t i = 0; i < desc.option_count; ++i) {
    need(desc.options[i].name != nullptr, "options[].name");
    need(desc.options[i].value != nullptr, "options[].value");
  }
  for (std::size_t i = 0; i < desc.dim_count; ++i) need(desc.dims[i].name != nullptr, "dims[].name");
  for (std::size_t i = 0; i < desc.tensor_count; ++i) need(desc.tensors[i].name != nullptr, "tensors[].name");
}

Mode parse_mode(const latile_plan_desc& desc) {
  const std::string mode = desc.mode;
  for (Mode known : {Mode::prefill, Mode::recurrent, Mode::step})
    if (mode == latile::name(known)) return known;
  if (mode == "forward_saving" || mode == "backward")
    fail(LATILE_UNSUPPORTED, "{}: mode {} is not offered on the host yet; use prefill, recurrent or step", desc.op,
         mode);
  fail(LATILE_BAD_ARGUMENT, "{}: there is no mode '{}'{}", desc.op, mode,
       suggestion(mode, {"prefill", "recurrent", "step"}));
}

void check_operator(Compiler& compiler, const std::string& op) {
  const Names known = compiler.operators();
  if (std::find(known.begin(), known.end(), op) == known.end())
    fail(LATILE_BAD_ARGUMENT, "there is no operator '{}'{}", op, suggestion(op, known));
}

void check_mode(const OperatorInfo& info, Mode mode) {
  if (mode != Mode::prefill && !info.no_step.empty())
    fail(LATILE_UNSUPPORTED, "{}: mode {} is not offered: {}; use mode prefill", info.name, latile::name(mode),
         info.no_step);
  if (mode == Mode::prefill && !info.no_prefill.empty())
    fail(LATILE_UNSUPPORTED, "{}: mode prefill is not offered with these options: {}; use mode recurrent", info.name,
         info.no_prefill);
  if (mode == Mode::prefill ? info.has_prefill() : info.has_reference) return;
  fail(LATILE_UNSUPPORTED, "{}: mode {} needs a {} body, which the operator does not have", info.name,
       latile::name(mode), mode == Mode::prefill ? "chunk" : "reference");
}

/// Where prefill is a kernel over rows and no scan there is no order of tokens, and no state on the way.
void check_kernel(const latile_plan_desc& desc, const OperatorInfo& info, const Specialisation& specialisation) {
  if (specialisation.reversed)
    fail(LATILE_UNSUPPORTED,
         "{}: option reverse is true, but in mode prefill this operator is a kernel over rows and no scan; use mode "
         "recurrent, or flip its inputs",
         info.name);
  for (std::size_t i = 0; i < desc.tensor_count; ++i) {
    const std::string name = desc.tensors[i].name;
    if (name == "accepted" || name.ends_with(".history") || name.ends_with(".history_index"))
      fail(LATILE_UNSUPPORTED,
           "{}: tensor '{}': in mode prefill this operator is a kernel over rows and keeps no states on the way; use "
           "mode recurrent",
           info.name, name);
  }
}

void fill_scalars(const OperatorInfo& info, const Specialisation& specialisation, Signature& signature) {
  for (const ScalarInfo& scalar : info.scalars) {
    double fallback = 1;
    if (scalar.fallback) {
      fallback = *scalar.fallback;
    } else if (!specialisation.extents.empty()) {
      const auto k = specialisation.extents.find("K");
      const auto& extent = k != specialisation.extents.end() ? *k : *specialisation.extents.begin();
      fallback = 1 / std::sqrt(static_cast<double>(extent.second));
    }
    signature.scalars.push_back({scalar.name, fallback});
  }
}

}  // namespace

Described describe(Compiler& compiler, const latile_plan_desc& desc, const HostIsa& native,
                   const std::string& device_target) {
  check_pointers(desc);
  check_operator(compiler, desc.op);
  const Mode mode = parse_mode(desc);
  if (device_target.empty() && native.level == "none")
    fail(LATILE_NO_DEVICE, "{}: this CPU lacks AVX2, FMA or F16C, which the host target needs (x86-64-v3)", desc.op);

  Described described;
  Signature& signature = described.signature;
  Specialisation& specialisation = described.specialisation;
  signature.op = specialisation.op = desc.op;
  specialisation.mode = mode;
  if (device_target.empty())
    specialisation.isa = native;
  else
    specialisation.device = device_target;  // and the level stays at its default: it does not shape the code

  Options options = split_options(desc, native, specialisation);
  Names bound;
  for (std::size_t i = 0; i < desc.tensor_count; ++i) bound.emplace_back(desc.tensors[i].name);
  OperatorInfo info;
  CompileFailure failure;
  if (!compiler.describe(desc.op, options, bound, info, failure)) {
    // The row knows options that the present settings don't reach, so ask it before repeating the recorder's words.
    check_options(operator_row(compiler, desc.op).info, options);
    fail(failure.user_error ? LATILE_BAD_ARGUMENT : LATILE_INTERNAL, "{}", failure.text);
  }
  check_options(info, options);
  specialisation.options = canonical_options(info, std::move(options));
  check_mode(info, mode);
  if (info.mini_batch && specialisation.chunk)
    fail(LATILE_BAD_ARGUMENT,
         "{}: option chunk_size is {}, but this operator's chunk is its mini-batch, which is part of its meaning; give "
         "option mini_batch instead",
         info.name, specialisation.chunk);

  if (info.has_kernel && mode == Mode::prefill) check_kernel(desc, info, specialisation);
  read_dims(desc, info, mode, described);
  read_tensors(desc, info, described);
  fill_scalars(info, specialisation, signature);
  return described;
}

}  // namespace latile::runtime
