#include "tests/host/HostRun.h"
#include "codegen/emulator/Emulate.h"
#include "codegen/Gpu.h"
#include "codegen/host/Host.h"
#include "codegen/Targets.h"
#include "runtime/emulator/Emulator.h"
#include "runtime/HostIsa.h"
#include "tests/host/Loaded.h"
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <doctest/doctest.h>
#include <list>
#include <memory>
#include <optional>

namespace latile::test {
namespace {

using mlir::cast;

ElementType type_of(tile::ViewType view) {
  mlir::Type t = view.getElementType();
  return t.isF16()         ? ElementType::f16
         : t.isBF16()      ? ElementType::bf16
         : t.isF32()       ? ElementType::f32
         : t.isInteger(64) ? ElementType::i64
                           : ElementType::i32;
}

std::uint16_t to_bfloat16(double x) {
  auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(x));
  return static_cast<std::uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

void write(std::byte* to, ElementType type, double x) {
  auto put = [&](auto value) { std::memcpy(to, &value, sizeof value); };
  if (type == ElementType::f32)
    put(static_cast<float>(x));
  else if (type == ElementType::bf16)
    put(to_bfloat16(x));
  else if (type == ElementType::f16)
    put(static_cast<_Float16>(x));
  else if (type == ElementType::i64)
    put(static_cast<std::int64_t>(x));
  else
    put(static_cast<std::int32_t>(x));
}

double read(const std::byte* from, ElementType type) {
  auto get = [&](auto value) {
    std::memcpy(&value, from, sizeof value);
    return value;
  };
  if (type == ElementType::f32) return static_cast<double>(get(0.0f));
  if (type == ElementType::bf16)
    return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(get(std::uint16_t{})) << 16));
  return static_cast<double>(get(_Float16{}));
}

/// Every byte is set, which is NaN in each float type; `guard` bytes lie on both sides.
struct Memory {
  static constexpr std::size_t guard = 4096;
  std::size_t bytes;
  std::unique_ptr<std::byte[]> all;
  std::byte* begin;

  explicit Memory(std::size_t size) : bytes(size), all(new std::byte[size + 3 * guard]) {
    std::memset(all.get(), 0xff, bytes + 3 * guard);
    auto at = reinterpret_cast<std::uintptr_t>(all.get()) + guard;
    begin = reinterpret_cast<std::byte*>((at + guard - 1) / guard * guard);
  }
  bool guards_hold() const {
    auto set = [](std::byte b) { return b == std::byte{0xff}; };
    return std::all_of(begin - guard, begin, set) && std::all_of(begin + bytes, begin + bytes + guard, set);
  }
};

/// A tensor in memory and the place of each element of its array.
struct Tensor {
  ElementType type;
  std::vector<std::int64_t> shape, strides;
  Memory memory;
  std::vector<std::size_t> places;  ///< in bytes
  bool output = false;

  static std::vector<std::int64_t> choose(const std::vector<std::int64_t>& shape, std::int64_t unit,
                                          std::mt19937_64& engine, std::int64_t grain) {
    // The unit axis lies innermost, the others around it, each with up to three elements of padding; with a grain the
    // strides are multiples of it.
    std::vector<std::size_t> order(shape.size());
    for (std::size_t k = 0; k < order.size(); ++k) order[k] = order.size() - 1 - k;
    if (unit >= 0)
      std::rotate(order.begin(), std::find(order.begin(), order.end(), static_cast<std::size_t>(unit)),
                  std::find(order.begin(), order.end(), static_cast<std::size_t>(unit)) + 1);
    std::vector<std::int64_t> strides(shape.size());
    std::int64_t next = unit >= 0 ? 1 : 1 + static_cast<std::int64_t>(engine() % 2);
    for (std::size_t axis : order) {
      strides[axis] = next;
      next = next * std::max<std::int64_t>(shape[axis], 1) + static_cast<std::int64_t>(engine() % 4);
      next = (next + grain - 1) / grain * grain;
    }
    return strides;
  }
  static std::size_t span(const std::vector<std::int64_t>& shape, const std::vector<std::int64_t>& strides) {
    std::int64_t last = 0;
    for (std::size_t k = 0; k < shape.size(); ++k) {
      if (shape[k] == 0) return 0;
      last += (shape[k] - 1) * strides[k];
    }
    return static_cast<std::size_t>(last) + 1;
  }

  Tensor(ElementType of, std::vector<std::int64_t> extents, std::int64_t unit, std::mt19937_64& engine,
         std::int64_t grain)
      : type(of), shape(std::move(extents)), strides(choose(shape, unit, engine, grain)),
        memory(span(shape, strides) * size(of)) {
    std::int64_t count = 1;
    for (auto extent : shape) count *= extent;
    for (std::int64_t n = 0; n < count; ++n) {
      std::int64_t at = 0, rest = n;
      for (std::size_t axis = shape.size(); axis-- > 0;) {
        at += rest % shape[axis] * strides[axis];
        rest /= shape[axis];
      }
      places.push_back(static_cast<std::size_t>(at) * size(type));
    }
  }
};

bool is_poison(const std::byte* at, std::size_t bytes) {
  return std::all_of(at, at + bytes, [](std::byte b) { return b == std::byte{0xff}; });
}

class Runner {
public:
  Runner(const Artifact& artifact, mlir::ModuleOp recorded, Data& data, std::uint64_t seed)
      : artifact_(artifact), data_(data), engine_(seed),
        grain_(artifact.target.starts_with("emulated:") && seed % 2 ? 8 : 1) {
    recorded.walk([&](tile::ScanOp found) { scan_ = found; });
    lay(*recorded.getOps<tile::ProgramOp>().begin());
  }

  void run() {
    Loaded loaded(artifact_.binary);
    if (artifact_.target.starts_with("emulated:")) return emulate(loaded);
    for (const KernelFacts& kernel : artifact_.kernels) {
      auto* entry = loaded.get<HostKernel>(kernel.symbol.c_str());
      REQUIRE(static_cast<bool>(entry));
      launch(kernel, entry);
    }
    read_back();
  }

private:
  void lay(tile::ProgramOp program) {
    std::int64_t rows = data_.rows;
    chunk_ = static_cast<std::int64_t>(scan_.getChunk());
    chunks_ = data_.sequences * ((rows + chunk_ - 1) / chunk_);
    for (auto [arg, attribute] : llvm::zip(program.getBody().front().getArguments(), program.getArgNames())) {
      auto name = cast<mlir::StringAttr>(attribute).str();
      if (auto s = mlir::dyn_cast<tile::SequencesType>(arg.getType()); s && s.isRagged()) {
        const auto& borders = data_.indices.at("cu_seqlens");
        chunks_ = 0;
        for (std::size_t n = 1; n < borders.size(); ++n) chunks_ += (borders[n] - borders[n - 1] + chunk_ - 1) / chunk_;
        // On a device chunk i of sequence n has the number cu_seqlens[n] / C + n + i.
        if (artifact_.target.starts_with("emulated:"))
          chunks_ = borders.back() / chunk_ + static_cast<std::int64_t>(borders.size()) - 1;
        add("cu_seqlens", s.getBits() == 64 ? ElementType::i64 : ElementType::i32,
            {static_cast<std::int64_t>(borders.size())}, 0, borders);
        continue;
      }
      auto view = mlir::dyn_cast<tile::ViewType>(arg.getType());
      if (!view) continue;
      if (auto it = data_.indices.find(name); it != data_.indices.end()) {
        add(name, type_of(view), data_.index_shape(name), view.getUnit(), it->second);
        continue;
      }
      bool output =
          name.ends_with(".final") || name.ends_with(".history") || llvm::is_contained(scan_.getOutputs(), arg);
      const Array& array = data_.arrays.at(name);
      add(name, type_of(view), array.shape, view.getUnit(), array.data, output);
    }
    for (const WorkspaceTensor& w : artifact_.workspace) {
      std::vector<std::int64_t> shape{chunks_};
      if (!w.axis.empty()) shape.push_back(dim(w.axis));
      shape.insert(shape.end(), {w.rows, w.cols});
      std::int64_t count = 1;
      for (auto extent : shape) count *= extent;
      workspace_.try_emplace("workspace." + w.name, static_cast<std::size_t>(count * w.element_bytes));
      std::vector<std::int64_t> strides(shape.size(), 1);
      for (std::size_t axis = shape.size(); axis-- > 1;) strides[axis - 1] = strides[axis] * shape[axis];
      workspace_strides_["workspace." + w.name] = strides;
    }
  }

  template <class T>
  void add(const std::string& name, ElementType type, std::vector<std::int64_t> shape, std::int64_t unit,
           const std::vector<T>& values, bool output = false) {
    Tensor& tensor = tensors_.try_emplace(name, type, std::move(shape), unit, engine_, grain_).first->second;
    tensor.output = output;
    REQUIRE(tensor.places.size() == values.size());
    if (!output)
      for (std::size_t k = 0; k < values.size(); ++k)
        write(tensor.memory.begin + tensor.places[k], type, static_cast<double>(values[k]));
    before_.emplace(name, std::vector<std::byte>(tensor.memory.begin, tensor.memory.begin + tensor.memory.bytes));
  }

  std::int64_t dim(const std::string& name) {
    if (name == "N") return data_.sequences;
    if (name == "T") return data_.rows;
    if (name == "chunks") return chunks_;
    if (name == scan_.getAxis()) return data_.heads;
    return data_.heads / static_cast<std::int64_t>(scan_.getHeadRatio());
  }

  /// Runs all kernels as GPUs do, with a shadow of every tensor: any report is a failure.
  void emulate(const Loaded& loaded) {
    emulator::Memory memory;
    auto add = [&](const std::string& name, const Memory& m, std::size_t granule, bool written) {
      if (m.bytes == 0) return;
      REQUIRE(memory.add(name, m.begin, m.bytes, granule));
      if (written) memory.mark_written(m.begin, m.bytes);
    };
    for (auto& [name, tensor] : tensors_)
      add(name, tensor.memory, std::min<std::size_t>(size(tensor.type), 4), !tensor.output);
    for (auto& [name, m] : workspace_) add(name, m, 2, false);
    std::list<Memory> all_arenas;  // places in `memory` stay taken until the end
    for (const KernelFacts& kernel : artifact_.kernels) {
      auto* entry = loaded.get<const emulator::EmulatedKernel* (*)()>(kernel.symbol.c_str());
      REQUIRE(static_cast<bool>(entry));
      Call call = call_of(kernel);
      std::vector<std::uint64_t> parameters;
      for (void* p : call.pointers) parameters.push_back(reinterpret_cast<std::uintptr_t>(p));
      for (std::int64_t x : call.integers) parameters.push_back(static_cast<std::uint64_t>(x));
      for (double x : call.scalars) parameters.push_back(std::bit_cast<std::uint64_t>(x));
      emulator::Launch launch;
      launch.kernel = entry();
      launch.name = kernel.symbol;
      launch.blocks = call.items * kernel.slices;
      // Fewer blocks than items, so that arenas and shared memory serve several.
      Memory* arenas = nullptr;
      if (kernel.arena_bytes != 0) {
        const std::size_t stride = (kernel.arena_bytes + Memory::guard - 1) / Memory::guard * Memory::guard;
        const std::int64_t grid = std::min<std::int64_t>(launch.blocks, 3);
        arenas = &all_arenas.emplace_back(stride * static_cast<std::size_t>(grid));
        add("arenas of " + kernel.symbol, *arenas, 2, false);
        for (std::uint64_t x : {reinterpret_cast<std::uintptr_t>(arenas->begin), stride,
                                static_cast<std::uint64_t>(launch.blocks), static_cast<std::uint64_t>(grid)})
          parameters.push_back(x);
        launch.blocks = grid;
      }
      launch.threads = kernel.threads;
      launch.shared_bytes = kernel.shared_bytes;
      launch.parameters = parameters.data();
      REQUIRE(launch.kernel->parameters == parameters.size());
      emulator::Result result = emulator::emulate(launch, memory, {.seed = engine_()});
      for (const emulator::Report& report : result.reports) FAIL_CHECK(report.text);
      CHECK(result.completed);
      if (arenas) CHECK(arenas->guards_hold());
    }
    read_back();
  }

  struct Call {
    std::vector<void*> pointers;
    std::vector<std::int64_t> integers;
    std::vector<double> scalars;
    std::int64_t items = 1;
  };
  Call call_of(const KernelFacts& kernel) {
    Call call;
    auto& [pointers, integers, scalars, items] = call;
    for (const ViewArgument& view : kernel.views) {
      bool in_workspace = view.tensor.starts_with("workspace.");
      CAPTURE(view.tensor);
      REQUIRE((in_workspace ? workspace_.contains(view.tensor) : tensors_.contains(view.tensor)));
      pointers.push_back(in_workspace ? workspace_.at(view.tensor).begin : tensors_.at(view.tensor).memory.begin);
      const auto& strides = in_workspace ? workspace_strides_.at(view.tensor) : tensors_.at(view.tensor).strides;
      REQUIRE(static_cast<std::size_t>(view.rank) == strides.size());
      integers.insert(integers.end(), strides.begin(), strides.end());
    }
    for (const std::string& name : kernel.dims) integers.push_back(dim(name));
    for (const std::string& name : kernel.scalars) scalars.push_back(data_.scalars.at(name));
    if (kernel.grid.front() == "chunks") CHECK(kernel.chunk == chunk_);
    for (const std::string& axis : kernel.grid) items *= dim(axis);
    return call;
  }

  void launch(const KernelFacts& kernel, HostKernel entry) {
    Call call = call_of(kernel);
    const auto& [pointers, integers, scalars, items] = call;
    std::vector<std::int64_t> order;
    for (std::int64_t item = 0; item < items; ++item) order.push_back(item);
    std::shuffle(order.begin(), order.end(), engine_);
    KernelArguments arguments{pointers.data(), integers.data(), scalars.data()};
    Memory arena(kernel.arena_bytes);
    for (std::int64_t item : order) {
      std::memset(arena.begin, 0xff, arena.bytes);
      entry(&arguments, item, arena.begin);
    }
    CHECK_MESSAGE(arena.guards_hold(), "written outside the arena by ", kernel.symbol);
  }

  void read_back() {
    for (auto& [name, memory] : workspace_) CHECK_MESSAGE(memory.guards_hold(), "written outside ", name);
    for (auto& [name, tensor] : tensors_) {
      CHECK_MESSAGE(tensor.memory.guards_hold(), "written outside ", name);
      auto& before = before_.at(name);
      const std::size_t bytes = size(tensor.type);
      if (tensor.output) {
        Array& array = data_.arrays.at(name);
        for (std::size_t k = 0; k < array.data.size(); ++k) {
          std::byte* at = tensor.memory.begin + tensor.places[k];
          array.data[k] = is_poison(at, bytes) ? 777 : read(at, tensor.type);
          std::memcpy(before.data() + tensor.places[k], at, bytes);
        }
      }
      CHECK_MESSAGE(std::equal(before.begin(), before.end(), tensor.memory.begin), "written between elements of ",
                    name);
    }
  }

  const Artifact& artifact_;
  Data& data_;
  std::mt19937_64 engine_;
  const std::int64_t grain_;  ///< elements: strides of device tensors are multiples of it for every other seed
  tile::ScanOp scan_;
  std::int64_t chunk_ = 1, chunks_ = 0;
  std::map<std::string, Tensor> tensors_;
  std::map<std::string, Memory> workspace_;
  std::map<std::string, std::vector<std::int64_t>> workspace_strides_;
  std::map<std::string, std::vector<std::byte>> before_;
};

}  // namespace

void round_to_views(mlir::ModuleOp recorded, Data& data) {
  auto program = *recorded.getOps<tile::ProgramOp>().begin();
  for (auto [arg, attribute] : llvm::zip(program.getBody().front().getArguments(), program.getArgNames())) {
    auto view = mlir::dyn_cast<tile::ViewType>(arg.getType());
    auto it = data.arrays.find(cast<mlir::StringAttr>(attribute).str());
    if (!view || it == data.arrays.end()) continue;
    for (double& x : it->second.data) {
      std::byte bytes[8];
      write(bytes, type_of(view), x);
      if (x != 777) x = read(bytes, type_of(view));
    }
  }
  for (auto& [name, scalar] : data.scalars) scalar = static_cast<double>(static_cast<float>(scalar));
}

void run_host(const Artifact& artifact, mlir::ModuleOp recorded, Data& data, std::uint64_t seed) {
  Runner(artifact, recorded, data, seed).run();
}

double rms_ratio(const Array& got, const Array& expected) {
  double difference = 0, square = 0;
  for (std::size_t k = 0; k < expected.data.size(); ++k) {
    const double x = got.data[k], y = expected.data[k];
    if (x == y && std::isinf(x)) continue;
    difference += (x - y) * (x - y);
    if (y != 777) square += y * y;
  }
  if (difference == 0) return 0;
  const double ratio = std::sqrt(difference / square);
  return std::isnan(ratio) ? INFINITY : ratio;
}

const std::vector<std::string>& host_levels() {
  static const std::vector<std::string> levels = [] {
    std::vector<std::string> out;
    for (const char* name : {"x86-64-v3", "avx512", "avx512bf16", "amx"}) {
      HostIsa isa;
      REQUIRE(HostIsa::named(name, isa));
      // The level with dot products of pairs is meant for another maker's CPUs, but runs wherever they exist.
      if (host_supports(isa) || (isa.level == "avx512bf16" && __builtin_cpu_supports("avx512bf16")))
        out.push_back(name);
    }
    return out;
  }();
  return levels;
}

/// What a program means on random data, in float64 and with each result rounded to its type.
struct Expected {
  Expected(mlir::ModuleOp recorded, const BatchShape& shape, std::uint64_t seed)
      : start(data_for(recorded, shape, seed)) {
    round_to_views(recorded, start);
    exact = rounded = start;
    run(recorded, exact, {.float64 = true});
    run(recorded, rounded, {.float64 = false});
  }
  void compare(const Data& got, double base) const {
    for (const auto& [name, array] : exact.arrays) {
      const double conditioning = rms_ratio(rounded.arrays.at(name), array);
      if (conditioning > 0.05) continue;  // chaotic: nothing can be said
      const double error = rms_ratio(got.arrays.at(name), array);
      CAPTURE(name);
      CAPTURE(conditioning);
      CHECK(error <= base + 8 * conditioning);
    }
  }
  Data start, exact, rounded;
};

void check_host(mlir::ModuleOp recorded, Schedule schedule, const BatchShape& shape, std::uint64_t seed,
                const std::vector<std::string>& levels, double base) {
  const Expected meaning(recorded, shape, seed);
  mlir::OwningOpRef<mlir::ModuleOp> kernels(recorded.clone());
  REQUIRE(mlir::succeeded(lower_to_kernels(*kernels, {.schedule = schedule})));
  for (const std::string& level : levels) {
    HostIsa isa;
    REQUIRE(HostIsa::named(level, isa));
    CAPTURE(level);
    CAPTURE(static_cast<int>(schedule));
    Artifact artifact;
    std::string failure;
    mlir::OwningOpRef<mlir::ModuleOp> copy(kernels->clone());
    REQUIRE_MESSAGE(host::compile_host(*copy, isa, artifact, failure, nullptr), failure);
    Data got = meaning.start;
    run_host(artifact, recorded, got, seed);
    meaning.compare(got, base);
  }
}

int check_emulated(mlir::ModuleOp recorded, Schedule schedule, const BatchShape& shape, std::uint64_t seed,
                   const std::string& target, double base, Shortage shortage) {
  const Expected meaning(recorded, shape, seed);
  mlir::OwningOpRef<mlir::ModuleOp> kernels(recorded.clone());
  REQUIRE(mlir::succeeded(lower_to_kernels(*kernels, {.schedule = schedule})));
  // Every third program as it is: whole states, products as written.
  if (seed % 3 != 0) REQUIRE(mlir::succeeded(prepare_for_gpu(*kernels, target)));
  CAPTURE(target);
  CAPTURE(static_cast<int>(schedule));
  Artifact artifact;
  artifact.target = "emulated:" + target;
  llvm::LLVMContext context;
  llvm::Module module("latile", context);
  std::string failure;
  simt::Target gpu = *find_target(target);
  Artifact plenty;
  if (shortage.registers != 0) {
    llvm::Module other("latile", context);
    if (!lower_for_gpu(*kernels, gpu, other, plenty, failure)) return 0;
    gpu.most_registers = shortage.registers;
  }
  if (shortage.shared_bytes != 0) gpu.shared_limit = shortage.shared_bytes;
  const bool lowered = lower_for_gpu(*kernels, gpu, module, artifact, failure, shortage.shared_bytes != 0);
  // A random program may be larger than a block; that it is refused is right.
  if (!lowered && failure.find("bytes of shared memory") != std::string::npos) return 0;
  REQUIRE_MESSAGE(lowered, failure);
  REQUIRE_MESSAGE(emulator::compile_emulated(module, artifact.binary, failure), failure);
  Data got = meaning.start;
  Runner(artifact, recorded, got, seed).run();
  meaning.compare(got, base);
  int count = 0;
  for (std::size_t k = 0; k < artifact.kernels.size(); ++k)
    count += artifact.kernels[k].arena_bytes != 0 ||
             (shortage.registers != 0 && artifact.kernels[k].shared_bytes > plenty.kernels.at(k).shared_bytes);
  return count;
}

}  // namespace latile::test
