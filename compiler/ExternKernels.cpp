#include "compiler/ExternKernels.h"
#include "codegen/nvrtc/Nvrtc.h"
#include <algorithm>
#include <fmt/format.h>
#include <regex>

namespace latile {
namespace {

constexpr const char* attribute = "extern_kernels";

tile::ProgramOp program_of(mlir::ModuleOp module) { return *module.getOps<tile::ProgramOp>().begin(); }

mlir::ArrayAttr kernels_of(mlir::ModuleOp module) {
  return program_of(module)->getAttrOfType<mlir::ArrayAttr>(attribute);
}

std::string text(mlir::DictionaryAttr kernel, llvm::StringRef name) {
  return kernel.getAs<mlir::StringAttr>(name).getValue().str();
}
std::vector<std::string> texts(mlir::DictionaryAttr kernel, llvm::StringRef name) {
  std::vector<std::string> list;
  for (mlir::Attribute a : kernel.getAs<mlir::ArrayAttr>(name))
    list.push_back(mlir::cast<mlir::StringAttr>(a).getValue().str());
  return list;
}
std::int64_t number(mlir::DictionaryAttr kernel, llvm::StringRef name) {
  return kernel.getAs<mlir::IntegerAttr>(name).getInt();
}

/// A tensor of a kernel that the plan binds.
struct Member {
  std::string tensor, name;  ///< "S.final", "S_final"
  const char* type;
  int rank;
  bool written;
};

const char* type_name(ElementType type) {
  switch (type) {
  case ElementType::f16: return "f16";
  case ElementType::bf16: return "bf16";
  case ElementType::i32: return "int";
  case ElementType::i64: return "long long";
  default: return "float";
  }
}

/// Members and scalars in the order of the arguments: what is read, what is written; as the program has them.
struct Signature {
  std::vector<Member> members;
  std::vector<std::string> sizes, scalars;
};

Signature signature_of(mlir::ModuleOp module, const Specialisation& s, mlir::DictionaryAttr kernel) {
  Signature out;
  tile::ProgramOp program = program_of(module);
  for (const char* list : {"reads", "writes"})
    for (const std::string& tensor : texts(kernel, list)) {
      const BoundTensor* bound = s.tensor(tensor);
      if (!bound) continue;
      int rank = 1;  // of cu_seqlens, which is part of the program's sequences
      for (auto [name, argument] : llvm::zip(program.getArgNames(), program.getBody().front().getArguments()))
        if (mlir::cast<mlir::StringAttr>(name).getValue() == tensor)
          rank = static_cast<int>(mlir::cast<tile::ViewType>(argument.getType()).getRank());
      std::string name = tensor;
      std::replace(name.begin(), name.end(), '.', '_');
      out.members.push_back(
          {tensor, std::move(name), type_name(bound->type), rank, std::string_view(list) == "writes"});
    }
  out.sizes = {"B", "T", "N"};
  for (const std::string& head : texts(kernel, "heads")) out.sizes.push_back(head);
  for (auto [name, argument] : llvm::zip(program.getArgNames(), program.getBody().front().getArguments()))
    if (argument.getType().isF64()) out.scalars.push_back(mlir::cast<mlir::StringAttr>(name).getValue().str());
  return out;
}

constexpr const char* types = R"(namespace latile {
struct bf16 {
  unsigned short bits;
  bf16() = default;
  __device__ bf16(float x) { asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(x)); }
  __device__ operator float() const { return __uint_as_float(static_cast<unsigned>(bits) << 16); }
};
struct f16 {
  unsigned short bits;
  f16() = default;
  __device__ f16(float x) { asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x)); }
  __device__ operator float() const {
    float x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
    return x;
  }
};
)";

/// Blocks along an axis of the grid, as an expression of the prelude.
std::string blocks(const Specialisation& s, const std::string& axis, std::int64_t span) {
  const auto inner = s.extents.find(axis);
  if (inner != s.extents.end()) return std::to_string((inner->second + span - 1) / span) + "LL";
  return span == 1 ? "a.sizes." + axis : fmt::format("((a.sizes.{} + {}) / {})", axis, span - 1, span);
}

/// The kernel's one parameter is the struct of the prelude, by value. Empty: so it is.
std::string wrong_parameters(const std::string& ptx, const std::string& entry, std::size_t bytes) {
  const std::string no_kernel = fmt::format("its source has no kernel {0}: declare it extern \"C\" __global__ void "
                                            "{0}(const latile::Arguments a)",
                                            entry);
  std::smatch found;
  if (!std::regex_search(ptx, found, std::regex(fmt::format(R"(\.entry\s+{}\s*\(([^)]*)\))", entry)))) return no_kernel;
  const std::string parameters = found[1];
  const std::regex whole(fmt::format(R"(\s*\.param\s+\.align\s+8\s+\.b8\s+\w+\[{}\]\s*)", bytes));
  if (std::regex_match(parameters, whole)) return "";
  return fmt::format("{} takes other parameters than (const latile::Arguments a)", entry);
}

}  // namespace

std::string extern_kernel(mlir::ModuleOp module) {
  mlir::ArrayAttr kernels = kernels_of(module);
  return kernels && !kernels.empty() ? text(mlir::cast<mlir::DictionaryAttr>(kernels[0]), "entry") : "";
}

std::string extern_compiler() {
  std::string why;
  const std::shared_ptr<const nvrtc::Library> library = nvrtc::Library::get(why);
  return library ? "NVRTC " + library->version : "no NVRTC";
}

std::string extern_prelude(mlir::ModuleOp module, const Specialisation& s, mlir::DictionaryAttr kernel) {
  const Signature signature = signature_of(module, s, kernel);
  std::string out = types;
  out += fmt::format("using io = {};\n", type_name(s.io));
  for (const auto& [name, extent] : s.extents) out += fmt::format("constexpr long long {} = {};\n", name, extent);
  out += "struct Arguments {\n";
  for (const Member& m : signature.members)
    out += fmt::format("  {}{}* {};\n", m.written ? "" : "const ", m.type, m.name);
  out += "  struct {\n";
  for (const Member& m : signature.members) out += fmt::format("    long long {}[{}];\n", m.name, m.rank);
  out += "  } strides;\n  struct {\n";
  for (const std::string& name : signature.sizes) out += fmt::format("    long long {};\n", name);
  out += "  } sizes;\n";
  if (!signature.scalars.empty()) {
    out += "  struct {\n";
    for (const std::string& name : signature.scalars) out += fmt::format("    double {};\n", name);
    out += "  } scalars;\n";
  }
  out += "};\n";
  const std::vector<std::string> grid = texts(kernel, "grid");
  const auto spans = kernel.getAs<mlir::DenseI64ArrayAttr>("spans").asArrayRef();
  out += "struct Block {\n";
  for (const std::string& axis : grid) out += fmt::format("  long long {};\n", axis);
  out += "};\n__device__ inline Block block(const Arguments& a) {\n  long long left = blockIdx.x;\n  Block at;\n";
  for (std::size_t k = grid.size(); k-- > 0;) {
    const std::string count = blocks(s, grid[k], spans[k]);
    if (k == 0)
      out += fmt::format("  at.{} = left;\n", grid[k]);
    else
      out += fmt::format("  at.{0} = left % {1};\n  left /= {1};\n", grid[k], count);
  }
  out += "  return at;\n}\n}  // namespace latile\n";
  for (const Member& m : signature.members) out += fmt::format("#define LATILE_HAS_{} 1\n", m.name);
  return out;
}

bool add_extern_kernels(mlir::ModuleOp module, const Specialisation& s, const std::string& chip, Artifact& artifact,
                        CompileFailure& failure) {
  mlir::ArrayAttr kernels = kernels_of(module);
  if (!kernels) return true;
  const auto refuse = [&](const std::string& entry, const std::string& why) {
    failure.user_error = true;
    failure.text = fmt::format("{}: extern kernel '{}': {}", s.op, entry, why);
    return false;
  };
  std::string why;
  const std::shared_ptr<const nvrtc::Library> library = nvrtc::Library::get(why);
  for (mlir::Attribute a : kernels) {
    const auto kernel = mlir::cast<mlir::DictionaryAttr>(a);
    const Signature signature = signature_of(module, s, kernel);
    KernelFacts facts;
    facts.symbol = text(kernel, "entry");
    if (!library) return refuse(facts.symbol, "it is CUDA C++, and " + why);
    std::size_t parameters = signature.sizes.size() + signature.scalars.size();
    bool writes = false;
    for (const Member& m : signature.members) {
      facts.views.push_back({m.tensor, m.rank});
      parameters += 1 + static_cast<std::size_t>(m.rank);
      writes |= m.written;
    }
    if (!writes) continue;  // nobody wants what it would write
    facts.dims = signature.sizes, facts.scalars = signature.scalars;
    const auto spans = kernel.getAs<mlir::DenseI64ArrayAttr>("spans").asArrayRef();
    for (auto [axis, span] : llvm::zip(texts(kernel, "grid"), spans)) {
      const auto inner = s.extents.find(axis);
      if (inner != s.extents.end()) {
        facts.slices *= static_cast<int>((inner->second + span - 1) / span);
        continue;
      }
      facts.grid.push_back(axis), facts.spans.push_back(span);
    }
    facts.threads = static_cast<int>(number(kernel, "threads"));
    facts.shared_bytes = static_cast<std::size_t>(number(kernel, "shared_bytes"));
    nvrtc::Source source{facts.symbol + ".cu",
                         extern_prelude(module, s, kernel) + "#line 1\n" + text(kernel, "source") + "\n",
                         std::stoi(chip.substr(chip.find('_') + 1)), texts(kernel, "options")};
    std::string ptx;
    if (!library->compile(source, ptx, why)) return refuse(facts.symbol, why);
    if (why = wrong_parameters(ptx, facts.symbol, 8 * parameters); !why.empty()) return refuse(facts.symbol, why);
    facts.part = artifact.add_part(ptx);
    artifact.kernels.push_back(std::move(facts));
  }
  return true;
}

}  // namespace latile
