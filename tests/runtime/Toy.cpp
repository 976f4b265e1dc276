#include "Toy.h"
#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <stdexcept>
#include <unistd.h>

namespace latile::test {
namespace {

/// Read once: a test that gives up its rights may not see the build folder any more.
const std::string& module_bytes() {
  static const std::string bytes = [] {
    std::ifstream file(TOY_MODULE, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }();
  return bytes;
}

bool is_set(const std::vector<std::pair<std::string, std::string>>& options, const std::string& name) {
  return std::any_of(options.begin(), options.end(),
                     [&](const auto& option) { return option.first == name && option.second == "true"; });
}

using Kind = TensorInfo::Kind;

TensorInfo tensor(Kind kind, const char* name, std::vector<std::string> dims, Type type, bool optional = false) {
  TensorInfo info;
  info.kind = kind;
  info.name = name;
  info.dims = std::move(dims);
  info.type = type;
  info.optional = optional;
  return info;
}

/// Kernels of FakeCuda.cpp: o = scale * v. Option n: 2 and 3 for much and too much shared memory, 4 for broken code, 5
/// for blocks with arenas.
void compile_for_device(const Specialisation& s, Artifact& artifact) {
  int n = 1;
  for (const auto& [name, value] : s.options)
    if (name == "n") n = std::stoi(value);
  artifact.target = s.device;
  artifact.binary = n == 4 ? "broken" : "toy kernels";
  KernelFacts kernel{"toy_scale", {"chunks", "HV"}, 16, {{"v", 4}, {"o", 4}}, {"T", "HV", "V", "chunks", "B"},
                     {"scale"}};
  kernel.threads = 64, kernel.slices = 2;
  kernel.shared_bytes = n == 2 ? 100 << 10 : n == 3 ? 300 << 10 : 1024;
  if (n == 5) kernel.symbol = "toy_scale_in_arenas", kernel.arena_bytes = 100000;
  if (s.ragged()) {
    artifact.workspace = {{"table", "", 1, 3, 4, 16}};
    KernelFacts table{"toy_table", {}, 16, {{"cu_seqlens", 1}, {"workspace.table", 3}}, {"N", "T", "chunks"}, {}};
    table.threads = 32;
    artifact.kernels.push_back(table);
    kernel.symbol = "toy_scale_ragged";
    kernel.views.insert(kernel.views.begin(), {"workspace.table", 3});
  }
  artifact.kernels.push_back(kernel);
}

}  // namespace

bool ToyCompiler::describe(const std::string& op, const std::vector<std::pair<std::string, std::string>>& options,
                           const std::vector<std::string>&, OperatorInfo& info, CompileFailure& failure) {
  info.name = op;
  info.dims = {{"H", true, ""}, {"HV", true, "H"}, {"K", false, ""}, {"V", false, ""}};
  info.tensors = {
      tensor(Kind::sequence, "q", {"H", "K"}, Type::io),  tensor(Kind::sequence, "k", {"H", "K"}, Type::io),
      tensor(Kind::sequence, "v", {"HV", "V"}, Type::io), tensor(Kind::sequence, "g", {"HV"}, Type::any, true),
      tensor(Kind::output, "o", {"HV", "V"}, Type::io),   tensor(Kind::carry, "S", {"HV", "K", "V"}, Type::f32)};
  info.scalars = {{"scale", std::nullopt}, {"eps", 1e-5}};
  info.options = {{OptionInfo::Kind::flag, "cut", "false", 0, 0, {}},
                  {OptionInfo::Kind::flag, "weighted", "false", 0, 0, {}},
                  {OptionInfo::Kind::choice, "form", "plain", 0, 0, {"plain", "other"}},
                  {OptionInfo::Kind::integer, "n", "1", 1, 5, {}},
                  {OptionInfo::Kind::number, "bound", "0.5", 0, 0, {}}};
  if (is_set(options, "weighted")) {
    info.tensors.push_back(tensor(Kind::param, "weights", {"HV"}, Type::f32));
    info.options.push_back({OptionInfo::Kind::flag, "squared", "false", 0, 0, {}});
  }
  for (const auto& [name, value] : options)
    if (name == "form" && value == "recorder says no") {
      failure.text = "toy: the recorder said no";
      return false;
    }
  info.has_reference = true;
  info.has_chunk = op == "toy";
  return true;
}

bool ToyCompiler::compile(const Specialisation& s, Artifact& artifact, CompileFailure& failure) {
  ++compilations;
  if (delay_ms != 0) usleep(static_cast<useconds_t>(delay_ms) * 1000);
  if (defect == "fails") {
    failure = {false, "toy: a fault of the compiler"};
    return false;
  }
  if (s.device != "host") return compile_for_device(s, artifact), true;
  artifact.target = "host:" + s.isa.level;
  artifact.binary = defect == "no library" ? "not a shared object" : module_bytes();
  artifact.stages = {{"everything", 1.5}};
  if (std::find(s.options.begin(), s.options.end(), std::pair<std::string, std::string>("cut", "true")) !=
      s.options.end()) {
    artifact.workspace = {{"T", "HV", 16, 1, 4, 16}};
    artifact.kernels = {
        {"toy_sums", {"chunks", "HV"}, 16, {{"v", 4}, {"workspace.T", 4}}, {"T", "HV", "V", "chunks", "B"}, {}, 8192},
        {"toy_products", {"N", "HV"}, 0, {{"v", 4}, {"workspace.T", 4}, {"o", 4}}, {"T", "HV", "V"}, {}, 4096}};
    return true;
  }
  const auto bound = [&](const char* name) { return s.tensor(name) != nullptr; };
  const bool wide =
      std::any_of(s.tensors.begin(), s.tensors.end(), [](const BoundTensor& t) { return t.type == ElementType::i64; });
  // Plans with states on the way are there to be refused.
  const bool runs = !bound("S.history") && !bound("accepted");
  const int all = bound("cu_seqlens") + 2 * bound("S.initial") + 4 * bound("S.initial_index") + 8 * bound("S.final") +
                  16 * bound("S.final_index") + 32 * wide + 64 * s.tiled_heads;
  const int flags = runs ? all : bound("cu_seqlens");
  KernelFacts kernel;
  kernel.symbol = defect == "no symbol" ? "nothing" : "toy_scan_" + std::to_string(flags);
  kernel.grid = {"N", "HV"};
  if (bound("cu_seqlens")) kernel.views.push_back({"cu_seqlens", 1});
  for (const char* name : {"q", "k", "v"}) kernel.views.push_back({name, 4});
  for (const auto& [name, rank] : {std::pair("S.initial", 4), std::pair("S.initial_index", 1), std::pair("S.final", 4),
                                   std::pair("S.final_index", 1)})
    if (bound(name) && runs) kernel.views.push_back({name, rank});
  kernel.views.push_back({"o", 4});
  kernel.dims = {"T", "N", "H", "HV", "K", "V"};
  if (defect == "unknown dim") kernel.dims.push_back("Q");
  kernel.scalars = {"scale"};
  kernel.arena_bytes = 64 * 8 + 64 * 64 * 4;
  artifact.kernels = {kernel};
  return true;
}

ToyCompiler& toy() {
  static ToyCompiler compiler;
  return compiler;
}

Folder::Folder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "latile-test-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no temporary folder");
  path = pattern;
}

Folder::~Folder() {
  std::error_code ignored;
  std::filesystem::permissions(path, std::filesystem::perms::owner_all, ignored);
  std::filesystem::remove_all(path, ignored);
}

void Problem::make() {
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  const auto fill = [&](std::vector<float>& values, std::int64_t count) {
    values.resize(static_cast<std::size_t>(count));
    for (float& value : values) value = normal(random);
  };
  const std::int64_t states = slots > 0 ? slots : sequences();
  fill(q, B * T * H * (K + 4));  // rows of q are padded: its strides are given at run
  fill(k, B * T * H * K);
  fill(v, B * T * HV * V);
  fill(S0, states * HV * K * V);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  o.assign(static_cast<std::size_t>(B * T * HV * V), nan);
  S1.assign(S0.size(), nan);
  names = {"q", "k", "v", "o"};
  data = {q.data(), k.data(), v.data(), o.data()};
  const auto add = [&](const char* name, void* pointer) { names.emplace_back(name), data.push_back(pointer); };
  const auto add_index = [&](const char* name, int which, const std::vector<std::int64_t>& values) {
    wide[which] = values;
    narrow[which].assign(values.begin(), values.end());
    add(name, wide_index ? static_cast<void*>(wide[which].data()) : narrow[which].data());
  };
  if (initial) add("S.initial", S0.data());
  if (!initial_index.empty()) add_index("S.initial_index", 0, initial_index);
  if (final) add("S.final", in_place ? S0.data() : S1.data());
  if (!final_index.empty()) add_index("S.final_index", 1, final_index);
  if (!history_index.empty()) {
    add("S.history", in_place ? S0.data() : S1.data());
    add_index("S.history_index", 3, history_index);
  }
  if (!accepted.empty()) add_index("accepted", 4, accepted);
  if (!borders.empty()) add_index("cu_seqlens", 2, borders);
  dims = {H, HV, K, V, B, T, sequences()};
  if (slots > 0) dims.push_back(slots);
  if (this->states > 0) dims.push_back(this->states);
  if (!history_index.empty()) dims.push_back(every);
  strides = {T * H * (K + 4), H * (K + 4), K + 4};
  reference();
  kept_o = o;
  kept_final = in_place ? S0 : S1;
}

void Problem::describe(api::PlanDescription& d) const {
  const std::int64_t many = 1 << 20;
  d.dim("H", 1, 64).dim("HV", HV / H, 64 * (HV / H)).dim("K", K).dim("V", V);
  d.dim("B", 0, many).dim("T", 0, many).dim("N", 0, many);
  if (slots > 0) d.dim("slots", 0, many);
  if (states > 0) d.dim("S.states", 1, many);
  if (!history_index.empty()) d.dim("S.every", every);
  if (tiled) d.option("head_map", "tiled");
  for (const auto& [name, value] : options) d.option(name, value);
  for (const std::string& name : names) {
    const bool index = name == "cu_seqlens" || name == "accepted" || name.ends_with("_index");
    d.tensor(name,
             !index       ? LATILE_F32
             : wide_index ? LATILE_I64
                          : LATILE_I32,
             name == "q" ? std::vector<std::int64_t>{-1, -1, -1, 1} : std::vector<std::int64_t>{});
  }
}

std::size_t Problem::at(const std::string& name) const {
  return static_cast<std::size_t>(std::find(names.begin(), names.end(), name) - names.begin());
}

void Problem::reference() {
  expected_o.assign(o.size(), std::numeric_limits<float>::quiet_NaN());
  expected_final = in_place ? S0 : S1;
  const auto index = [](std::int64_t i, std::int64_t n, std::int64_t j) { return static_cast<std::size_t>(i * n + j); };
  for (std::int64_t n = 0; n < sequences(); ++n)
    for (std::int64_t hv = 0; hv < HV; ++hv) {
      const std::int64_t h = tiled ? hv % H : hv / (HV / H);
      const bool ragged = !borders.empty();
      const auto un = static_cast<std::size_t>(n);
      const std::int64_t first = ragged ? borders[un] : n * T, last = ragged ? borders[un + 1] : (n + 1) * T;
      const std::int64_t from = initial_index.empty() ? n : initial_index[un];
      const std::int64_t to = final_index.empty() ? n : final_index[un];
      std::vector<double> S(static_cast<std::size_t>(K * V));
      for (std::size_t i = 0; i < S.size(); ++i)
        if (initial && from >= 0) S[i] = static_cast<double>(S0[index(from * HV + hv, K * V, 0) + i]);
      for (std::int64_t t = first; t < last; ++t)
        for (std::int64_t j = 0; j < V; ++j) {
          double sum = 0;
          for (std::int64_t i = 0; i < K; ++i) {
            double& s = S[index(i, V, j)];
            s += static_cast<double>(k[index(t * H + h, K, i)]) * static_cast<double>(v[index(t * HV + hv, V, j)]);
            sum += static_cast<double>(q[index(t * H + h, K + 4, i)]) * s;
          }
          expected_o[index(t * HV + hv, V, j)] = static_cast<float>(sum / std::sqrt(static_cast<double>(K)));
        }
      for (std::size_t i = 0; i < S.size(); ++i)
        if (final && to >= 0) expected_final[index(to * HV + hv, K * V, 0) + i] = static_cast<float>(S[i]);
    }
}

double Problem::error() const {
  double worst = 0;
  const auto compare = [&](const std::vector<float>& got, const std::vector<float>& expected) {
    for (std::size_t i = 0; i < got.size(); ++i) {
      if (std::isnan(got[i]) && std::isnan(expected[i])) continue;
      const double difference = std::abs(static_cast<double>(got[i]) - static_cast<double>(expected[i]));
      worst = std::isnan(difference) ? INFINITY
                                     : std::max(worst, difference / (1 + std::abs(static_cast<double>(expected[i]))));
    }
  };
  compare(o, expected_o);
  if (final) compare(in_place ? S0 : S1, expected_final);
  return worst;
}

bool Problem::untouched() const {
  const std::vector<float>& states = in_place ? S0 : S1;
  return std::memcmp(o.data(), kept_o.data(), o.size() * sizeof(float)) == 0 &&
         std::memcmp(states.data(), kept_final.data(), states.size() * sizeof(float)) == 0;
}

std::vector<std::byte> workspace_of(const api::Plan& plan, const std::vector<std::int64_t>& dims) {
  // All ones: a launch that reads scratch before writing it would read NaN and absurd indices.
  return std::vector<std::byte>(plan.workspace(dims), std::byte{0xff});
}

}  // namespace latile::test

extern "C" void install_toy_compiler(void) { latile::set_compiler(&latile::test::toy()); }
