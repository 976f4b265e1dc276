#include "tools/latile/Commands.h"
#include "tools/latile/Plan.h"
#include "tools/latile/TensorFile.h"
#include "tools/latile/UserError.h"
#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <map>
#include <memory>

namespace latile {
namespace {

struct Options {
  std::string op, mode = "prefill", layout = "kv", dtype;
  std::vector<std::string> in, out, options, scalars;
  std::string device = "host";
  int threads = -1;
  std::int64_t every = 0;
};

bool is_index(const std::string& name) {
  return name.ends_with("_index") || name == "cu_seqlens" || name == "accepted";
}

class Run {
public:
  explicit Run(const Options& o) : o(o), row(operator_named(o.op)) {}

  void execute() {
    settings();
    read();
    histories();
    allocate();
    PlanRequest request;
    request.op = o.op;
    request.mode = mode;
    request.place = Place::named(o.device);
    request.options = options;
    for (const auto& [name, value] : sizes)
      if (!inferred_only(name)) request.dims.push_back({name, value, value}), dims.push_back(value);
    std::vector<std::size_t> memory;
    std::vector<std::vector<std::int64_t>> strides;
    for (HostTensor& t : tensors) {
      const bool dense = t.strides == dense_strides(t.shape);
      request.tensors.push_back({t.name, t.type, dense ? std::vector<std::int64_t>{} : t.strides, t.shape.size()});
      memory.push_back(memory.size());
      strides.push_back(t.strides);
    }
    // Index tensors come from files: they are looked at wherever the plan runs.
    const ContextHandle context = make_context(o.threads, nullptr, LATILE_CHECK_DEVICE_INDICES);
    Plan plan(context.get(), request);
    PlacedTensors placed(request.place, tensors, memory);
    plan.run(placed.data(), strides, dims, scalars);
    placed.fetch();
    std::vector<std::pair<TensorFile, HostTensor>> files;
    for (const auto& [name, file] : outputs) files.emplace_back(file, shown(tensor(name)));
    write_tensors(files, words);
    for (const auto& [file, t] : files)
      fmt::print("{}: {} {} [{}]\n", file.path, t.name, long_name(t.type), fmt::join(t.shape, ", "));
  }

private:
  void settings() {
    mode = o.mode == "prefill" ? Mode::prefill : o.mode == "recurrent" ? Mode::recurrent : Mode::step;
    words = !o.dtype.empty() && element_type_named(o.dtype) == ElementType::bf16;
    for (const std::string& s : o.options) options.push_back(split_pair(s, "--option"));
    std::vector<std::pair<std::string, std::string>> own;
    for (const auto& option : options)
      if (option.first != "head_map" && option.first != "chunk_size" && option.first != "host_isa" &&
          option.first != "reverse")
        own.push_back(option);
    info = describe(row, own);
    for (const std::string& s : o.out) {
      auto [name, file] = split_pair(s, "--out");
      const TensorInfo* t = declared(name);
      if (!t || !(t->kind == TensorInfo::Kind::output || name.ends_with(".final") || name.ends_with(".history")))
        throw UserError(
            fmt::format("{} gives no tensor '{}'; it gives {}", o.op, name, fmt::join(given_names(true), ", ")));
      if (!outputs.emplace(name, tensor_file(file, name)).second)
        throw UserError(fmt::format("--out names '{}' twice", name));
    }
    if (outputs.empty()) throw UserError(fmt::format("nothing to write: add --out {}=FILE", given_names(true).front()));
    std::vector<TensorFile> places;
    for (const auto& [name, file] : outputs) places.push_back(file);
    check_distinct(places);
    for (const ScalarInfo& s : info.scalars) scalar_names.push_back(s.name);
    for (const std::string& s : o.scalars) {
      auto [name, value] = split_pair(s, "--scalar");
      const auto at = std::find(scalar_names.begin(), scalar_names.end(), name);
      if (at == scalar_names.end())
        throw UserError(fmt::format("{} has no scalar '{}'; it has {}", o.op, name,
                                    scalar_names.empty() ? "none" : fmt::format("{}", fmt::join(scalar_names, ", "))));
      given_scalars[name] = number_in(value, "--scalar " + name);
    }
  }

  /// The declaration behind "q", "S.initial", "S.final_index"; null when there is none.
  const TensorInfo* declared(const std::string& name) const {
    const std::size_t dot = name.find('.');
    const TensorInfo* t = info.tensor(name.substr(0, dot));
    if (!t || (t->kind == TensorInfo::Kind::carry) != (dot != std::string::npos)) return nullptr;
    if (dot == std::string::npos) return t;
    const std::string part = name.substr(dot + 1);
    for (const char* known : {"initial", "final", "history", "initial_index", "final_index", "history_index"})
      if (part == known) return t;
    return nullptr;
  }
  std::vector<std::string> given_names(bool written) const {
    std::vector<std::string> names;
    for (const TensorInfo& t : info.tensors) {
      if (t.kind == TensorInfo::Kind::carry) {
        if (written)
          names.insert(names.end(), {t.name + ".final", t.name + ".history"});
        else
          for (const char* part : {".initial", ".initial_index", ".final_index", ".history_index"})
            names.push_back(t.name + part);
      } else if ((t.kind == TensorInfo::Kind::output) == written) {
        names.push_back(t.name);
      }
    }
    if (!written) names.insert(names.end(), {"accepted", "cu_seqlens"});
    return names;
  }

  void read() {
    for (const std::string& s : o.in) {
      auto [name, file] = split_pair(s, "--in");
      const TensorInfo* t = declared(name);
      const bool ok =
          name == "cu_seqlens" || name == "accepted" ||
          (t && t->kind != TensorInfo::Kind::output && !name.ends_with(".final") && !name.ends_with(".history"));
      if (!ok)
        throw UserError(
            fmt::format("{} reads no tensor '{}'; it reads {}", o.op, name, fmt::join(given_names(false), ", ")));
      HostTensor x = read_tensor(tensor_file(file, name), words);
      x.name = name;
      if (has(name)) throw UserError(fmt::format("--in names '{}' twice", name));
      if (is_index(name) != (x.type == ElementType::i32 || x.type == ElementType::i64))
        throw UserError(fmt::format("{}: tensor '{}' of {} holds {}; it must hold {}", file, name, o.op,
                                    long_name(x.type), is_index(name) ? "int32 or int64" : "floating-point numbers"));
      tensors.push_back(std::move(x));
    }
    ragged = has("cu_seqlens");
    for (const TensorInfo& t : info.tensors)
      if (t.kind != TensorInfo::Kind::carry && t.kind != TensorInfo::Kind::output && !t.optional && !has(t.name))
        throw UserError(fmt::format("{} needs the tensor '{}': add --in {}=FILE", o.op, t.name, t.name));
    for (HostTensor& t : tensors) bind(t);
    if (ragged) size("B", 1, "cu_seqlens", "");
    if (!ragged && sizes.contains("B")) size("N", sizes.at("B"), "a dense batch", "B");
    for (std::size_t i = 0; i < scalar_names.size() && !given_scalars.empty(); ++i) {
      const auto found = given_scalars.find(scalar_names[i]);
      const ScalarInfo& s = info.scalars[i];
      scalars.push_back(found != given_scalars.end() ? found->second
                        : s.fallback                 ? *s.fallback
                                                     : 1 / std::sqrt(static_cast<double>(sizes.at("K"))));
    }
  }

  /// Axes of a tensor, in the order of its shape: dims by name; "T" may stand for several rows.
  std::vector<std::string> axes(const std::string& name) const {
    if (name == "cu_seqlens") return {"N + 1"};
    if (name == "accepted") return {"N"};
    const TensorInfo& t = *declared(name);
    if (name.ends_with(".history_index") || (name.ends_with(".initial_index") && has("accepted")))
      return {"N", t.name + ".states"};
    if (is_index(name)) return {"N"};
    std::vector<std::string> list;
    if (t.kind == TensorInfo::Kind::carry)
      list = {has(name + "_index") || pooled(t.name) ? "slots" : "N"};
    else if (t.kind != TensorInfo::Kind::param)
      list = {"B", "T"};
    list.insert(list.end(), t.dims.begin(), t.dims.end());
    return list;
  }
  bool pooled(const std::string& carry) const {
    return has(carry + ".initial_index") || has(carry + ".final_index") || has(carry + ".history_index");
  }

  /// Histories that are asked for: the tokens between their states, and slots enough where no pool says how many.
  void histories() {
    std::int64_t slots = 0;
    for (const TensorInfo& t : info.tensors) {
      if (t.kind != TensorInfo::Kind::carry || !outputs.contains(t.name + ".history")) continue;
      if (!has(t.name + ".history_index"))
        throw UserError(fmt::format("{} needs the tensor '{}.history_index' for '{}.history': add --in "
                                    "{}.history_index=FILE",
                                    o.op, t.name, t.name, t.name));
      if (o.every < 1)
        throw UserError(fmt::format("{}: '{}.history' needs the tokens between two of its states: add --every NUMBER",
                                    o.op, t.name));
      size(t.name + ".every", o.every, "--every", "");
      const HostTensor& index = tensor(t.name + ".history_index");
      for (std::int64_t i = 0; i < index.count(); ++i)
        slots = std::max(slots, static_cast<std::int64_t>(index.get(i)) + 1);
    }
    if (slots != 0) sizes.emplace("slots", slots);
  }

  void bind(HostTensor& x) {
    const std::vector<std::string> names = axes(x.name);
    if (names.size() != x.shape.size())
      throw UserError(fmt::format("{}: tensor '{}' has {} axes; it needs {}: [{}]", o.op, x.name, x.shape.size(),
                                  names.size(), fmt::join(names, ", ")));
    // A file of states [V, K] is the same memory with its last two axes exchanged.
    if (state_matrix(x.name) && o.layout == "vk") {
      const std::size_t r = x.shape.size();
      std::swap(x.shape[r - 1], x.shape[r - 2]);
      std::swap(x.strides[r - 1], x.strides[r - 2]);
    }
    for (std::size_t d = 0; d < names.size(); ++d) {
      if (names[d] == "N + 1")
        size("N", x.shape[d] - 1, x.name, names[d]);
      else if (names[d] == "T" && declared(x.name)->rate > 1) {
        const int rate = declared(x.name)->rate;
        if (x.shape[d] % rate)
          throw UserError(fmt::format("{}: tensor '{}' has {} rows, which is no multiple of its {} rows a token", o.op,
                                      x.name, x.shape[d], rate));
        size("T", x.shape[d] / rate, x.name, "T");
      } else if (names[d].find('*') == std::string::npos)
        size(names[d], x.shape[d], x.name, names[d]);
    }
  }
  bool state_matrix(const std::string& name) const {
    const TensorInfo* t = is_index(name) ? nullptr : declared(name);
    if (!t || t->kind != TensorInfo::Kind::carry) return false;
    std::size_t inner = 0;
    for (const std::string& d : t->dims) inner += !info.dim(d) || !info.dim(d)->head;
    return inner == 2;
  }

  void size(const std::string& dim, std::int64_t value, const std::string& by, const std::string& axis) {
    const auto [at, fresh] = sizes.emplace(dim, value);
    if (fresh)
      said_by[dim] = by;
    else if (at->second != value)
      throw UserError(fmt::format("{}: {} is {} by '{}' but {} by '{}'{}", o.op, dim, at->second, said_by[dim], value,
                                  by, axis.empty() || axis == dim ? "" : fmt::format(" ({})", axis)));
  }
  /// N of a dense batch is B and is not told to the plan.
  bool inferred_only(const std::string& dim) const { return dim == "N" && !ragged; }

  std::int64_t extent(const std::string& dim) const {
    if (dim == "N + 1") return sizes.at("N") + 1;
    const std::size_t star = dim.find('*');
    if (star != std::string::npos) return extent(dim.substr(0, star)) * extent(dim.substr(star + 1));
    const auto found = sizes.find(dim);
    if (found == sizes.end())
      throw UserError(fmt::format("{}: the size of dimension {} follows from no input", o.op, dim));
    return found->second;
  }

  void allocate() {
    ElementType io = ElementType::f32;
    for (const TensorInfo& t : info.tensors)
      if (t.kind == TensorInfo::Kind::sequence && t.type == Type::io && has(t.name)) io = tensor(t.name).type;
    for (const TensorInfo& t : info.tensors) {
      if (t.kind == TensorInfo::Kind::carry && outputs.contains(t.name + ".history"))
        allocate(t, t.name + ".history", io);
      const std::string name = t.kind == TensorInfo::Kind::carry ? t.name + ".final" : t.name;
      if (t.kind == TensorInfo::Kind::output || (t.kind == TensorInfo::Kind::carry && outputs.contains(name)))
        allocate(t, name, io);
    }
  }

  void allocate(const TensorInfo& t, const std::string& name, ElementType io) {
    const bool state = t.kind == TensorInfo::Kind::carry;
    std::vector<std::int64_t> shape;
    for (const std::string& axis : axes(name)) shape.push_back(extent(axis));
    HostTensor x(name, state ? ElementType::f32 : io, shape);
    if (state && name.ends_with(".final") && has(t.name + ".initial")) {  // a pool keeps what no sequence writes
      x = tensor(t.name + ".initial");
      x.name = name;
    } else if (state && o.layout == "vk" && state_matrix(name)) {
      const std::size_t r = shape.size();
      x.strides[r - 2] = 1, x.strides[r - 1] = shape[r - 2];
    }
    tensors.push_back(std::move(x));
  }

  bool has(const std::string& name) const {
    return std::any_of(tensors.begin(), tensors.end(), [&](const HostTensor& t) { return t.name == name; });
  }
  const HostTensor& tensor(const std::string& name) const {
    return *std::find_if(tensors.begin(), tensors.end(), [&](const HostTensor& t) { return t.name == name; });
  }
  /// As the file has it.
  HostTensor shown(HostTensor t) const {
    if (state_matrix(t.name) && o.layout == "vk") {
      const std::size_t r = t.shape.size();
      std::swap(t.shape[r - 1], t.shape[r - 2]);
      std::swap(t.strides[r - 1], t.strides[r - 2]);
    }
    return t;
  }

  const Options& o;
  const OperatorRow& row;
  OperatorInfo info;
  Mode mode = Mode::prefill;
  bool words = false, ragged = false;
  std::vector<std::pair<std::string, std::string>> options;
  std::map<std::string, TensorFile> outputs;
  std::vector<std::string> scalar_names;
  std::map<std::string, double> given_scalars;
  std::vector<double> scalars;
  std::vector<HostTensor> tensors;
  std::map<std::string, std::int64_t> sizes;
  std::map<std::string, std::string> said_by;
  std::vector<std::int64_t> dims;
};

}  // namespace

void add_run(CLI::App& app, int& code) {
  CLI::App* sub = app.add_subcommand("run", "Runs an operator on .npy and .safetensors files");
  auto o = std::make_shared<Options>();
  sub->add_option("operator", o->op, "Its name")->required();
  sub->add_option(
      "--in", o->in,
      "NAME=FILE: a tensor to read, such as q=q.npy, cu_seqlens=c.npy, S.initial=states.safetensors (the tensor "
      "of that name) or q=x.safetensors:layer0.q");
  sub->add_option("--out", o->out,
                  "NAME=FILE: a tensor to write, such as o=o.npy or S.final=s.safetensors:s0; several may share a "
                  ".safetensors file");
  sub->add_option("--option", o->options,
                  "NAME=VALUE: an option of the operator, or head_map, reverse, chunk_size, host_isa");
  sub->add_option("--every", o->every, "Tokens between two states of each history that is written, as S.history")
      ->check(CLI::PositiveNumber);
  sub->add_option("--scalar", o->scalars, "NAME=NUMBER: a run-time scalar; the others keep their defaults");
  sub->add_option("--mode", o->mode, "prefill, recurrent, or step (one token a sequence)")
      ->check(CLI::IsMember({"prefill", "recurrent", "step"}))
      ->capture_default_str();
  sub->add_option("--state-layout", o->layout, "Order of a state's last two axes in its file: kv or vk")
      ->check(CLI::IsMember({"kv", "vk"}))
      ->capture_default_str();
  sub->add_option("--dtype", o->dtype, "bf16: uint16 files hold the bits of bfloat16 numbers");
  sub->add_option("--device", o->device, place_help)->capture_default_str();
  sub->add_option("--threads", o->threads, "Threads; default one for each CPU")->check(CLI::PositiveNumber);
  sub->footer("Nothing is written unless the whole run succeeds; an output replaces its file in one step. bfloat16 is "
              "read and written as '<V2', or as uint16 with --dtype bf16.");
  sub->callback([o, &code] {
    Run(*o).execute();
    code = exit_ok;
  });
}

}  // namespace latile
