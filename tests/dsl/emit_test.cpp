// Definitions to tile IR: what verifies, what folds, where things are cast.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include "compiler/Emit.h"
#include "dialect/Tile.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Verifier.h"
#include <cstdlib>
#include <doctest/doctest.h>
#include <iostream>

using namespace latile;

namespace {

Specialisation specialise(const std::string& op, Mode mode, ElementType io, const std::vector<std::string>& tensors,
                          std::vector<std::pair<std::string, std::string>> options = {}) {
  Specialisation s;
  s.op = op;
  s.mode = mode;
  s.io = io;
  s.chunk = 64;
  s.extents = {{"K", 128}, {"V", 96}};
  s.options = std::move(options);
  for (auto& t : tensors) {
    ElementType type = t == "q" || t == "k" || t == "v" || t == "o" ? io : ElementType::f32;
    if (t.ends_with("_index") || t == "cu_seqlens") type = ElementType::i32;
    s.tensors.push_back({t, type, -1});
  }
  return s;
}

struct Emitted {
  std::string text;
  std::vector<Diagnostic> mistakes;
  int count(const std::string& what) const {
    int n = 0;
    for (std::size_t at = 0; (at = text.find(what, at)) != text.npos; ++at) ++n;
    return n;
  }
};

Emitted emit(const Specialisation& s) {
  mlir::MLIRContext context;
  Emitted out;
  auto module = emit_program(*find_operator(s.op), s, context, out.mistakes);
  for (auto& m : out.mistakes) MESSAGE(m.message());
  if (!module) return out;
  CHECK(mlir::succeeded(mlir::verify(*module)));
  llvm::raw_string_ostream stream(out.text);
  module->print(stream);
  if (std::getenv("LATILE_TEST_PRINT")) std::cout << out.text << std::endl;
  return out;
}

const std::vector<std::string> gated{"q", "k", "v", "g", "beta", "o", "S.initial", "S.final"};
constexpr Mode modes[] = {Mode::prefill, Mode::recurrent, Mode::step};

}  // namespace

TEST_CASE("the three operators verify in every mode and type") {
  for (Mode mode : modes)
    for (ElementType io : {ElementType::f32, ElementType::bf16, ElementType::f16}) {
      CHECK(!emit(specialise("gated_delta_rule", mode, io, gated)).text.empty());
      CHECK(!emit(specialise("simple_gla", mode, io, {"q", "k", "v", "g", "o", "S.initial", "S.final"})).text.empty());
      CHECK(!emit(specialise("linear_attn", mode, io, {"q", "k", "v", "o", "S.initial", "z.initial"})).text.empty());
    }
}
