#include "tests/emulator/Emulated.h"
#include "codegen/emulator/Emulate.h"
#include "llvm/AsmParser/Parser.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Support/SourceMgr.h"
#include <bit>
#include <cmath>
#include <doctest/doctest.h>
#include <sstream>

namespace latile::emulator {
namespace {

// Debug locations from the comments: a file for each op, a line for each of its places.
std::string located(const std::string& text) {
  std::istringstream in(text);
  std::string out, line, metadata;
  int next = 10;
  while (std::getline(in, line)) {
    if (auto at = line.find(" ;@"); at != std::string::npos) {
      auto colon = line.find(':', at);
      std::string file = line.substr(at + 3, colon - at - 3), number = line.substr(colon + 1);
      auto id = [](int n) { return "!" + std::to_string(n); };
      metadata += id(next) + " = !DIFile(filename: \"" + file + "\", directory: \"\")\n";
      metadata += id(next + 1) + " = !DILexicalBlockFile(scope: !3, file: " + id(next) + ", discriminator: 0)\n";
      metadata += id(next + 2) + " = !DILocation(line: " + number + ", column: 1, scope: " + id(next + 1) + ")\n";
      line = line.substr(0, at) + ", !dbg " + id(next + 2);
      next += 3;
    } else if (line.starts_with("define ")) {
      auto brace = line.rfind('{');
      line.insert(brace, "!dbg !3 ");
    }
    out += line + "\n";
  }
  return out + metadata + R"(
!llvm.dbg.cu = !{!0}
!llvm.module.flags = !{!1}
!0 = distinct !DICompileUnit(language: DW_LANG_C, file: !2, emissionKind: LineTablesOnly)
!1 = !{i32 2, !"Debug Info Version", i32 3}
!2 = !DIFile(filename: "kernel", directory: "")
!3 = distinct !DISubprogram(name: "kernel", file: !2, unit: !0, type: !4, spFlags: DISPFlagDefinition)
!4 = !DISubroutineType(types: !5)
!5 = !{}
)";
}

}  // namespace

std::string compile_text(const std::string& text, std::string& failure) {
  llvm::LLVMContext context;
  llvm::SMDiagnostic diagnostic;
  std::unique_ptr<llvm::Module> module = llvm::parseAssemblyString(located(text), diagnostic, context);
  if (!module) {
    llvm::raw_string_ostream out(failure);
    diagnostic.print("", out, false);
    return "";
  }
  std::string shared;
  return compile_emulated(*module, shared, failure) ? shared : "";
}

std::string changed(std::string text, const std::string& from, const std::string& to) {
  auto at = text.find(from);
  REQUIRE_MESSAGE(at != std::string::npos, from);
  REQUIRE(text.find(from, at + 1) == std::string::npos);
  return text.replace(at, from.size(), to);
}

Kernel::Kernel(const std::string& text) {
  auto at = text.find("ptx_kernel void @");
  std::size_t skip = 17;
  if (at == std::string::npos) {
    at = text.find("amdgpu_kernel void @");
    skip = 20;
  }
  REQUIRE(at != std::string::npos);
  name_ = text.substr(at + skip, text.find('(', at) - at - skip);
  std::string failure, shared = compile_text(text, failure);
  REQUIRE_MESSAGE(!shared.empty(), failure);
  loaded_ = std::make_unique<Loaded>(shared);
  auto* describe = loaded_->get<const EmulatedKernel* (*)()>(name_.c_str());
  bool exported = describe != nullptr;
  REQUIRE(exported);
  kernel_ = describe();
}

Result Kernel::run(Memory& memory, std::vector<std::uint64_t> parameters) const {
  REQUIRE(parameters.size() == kernel_->parameters);
  return emulate({kernel_, name_, blocks, threads, shared, parameters.data()}, memory, options);
}

std::string texts(const Result& result) {
  std::string all;
  for (const Report& r : result.reports) all += r.text + "\n";
  return all;
}

float from_bf16(std::uint16_t h) { return std::bit_cast<float>(std::uint32_t{h} << 16); }
std::uint16_t to_bf16(float x) { return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(x) >> 16); }
std::uint16_t to_f16(float x) {
  if (x == 0) return 0;
  int exponent = 0;
  float mantissa = std::frexp(std::fabs(x), &exponent);
  return static_cast<std::uint16_t>((x < 0 ? 0x8000 : 0) | (exponent + 14) << 10 |
                                    (static_cast<int>(mantissa * 2048) & 1023));
}

}  // namespace latile::emulator
