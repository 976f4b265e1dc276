#include "runtime/DescribeParts.h"
#include <algorithm>
#include <bit>

namespace latile::runtime {
namespace {

constexpr std::size_t kMaxAlignment = 4096;
/// Rows of the smallest chunk that a target chooses where the caller leaves it open.
constexpr std::int64_t kLeastChunk = 16;

/// What a tensor's name stands for.
struct Meaning {
  const TensorInfo* info = nullptr;  ///< none: cu_seqlens
  Role role = Role::input;
};

constexpr const char* kParts[] = {"initial", "initial_index", "final", "final_index", "history", "history_index"};
constexpr Role kPartRoles[] = {Role::initial,     Role::initial_index, Role::final,
                               Role::final_index, Role::history,       Role::history_index};

Meaning meaning(const OperatorInfo& info, const std::string& name) {
  if (name == "cu_seqlens") return {nullptr, Role::borders};
  if (name == "accepted") return {nullptr, Role::accepted};
  if (const TensorInfo* tensor = info.tensor(name); tensor != nullptr) {
    switch (tensor->kind) {
    case TensorInfo::Kind::sequence:
    case TensorInfo::Kind::param: return {tensor, Role::input};
    case TensorInfo::Kind::output: return {tensor, Role::output};
    case TensorInfo::Kind::carry:
      fail(LATILE_BAD_ARGUMENT, "{}: '{}' is a state; bind '{}.initial' or '{}.final'", info.name, name, name, name);
    }
  }
  const std::size_t dot = name.find('.');
  const TensorInfo* carry = dot == std::string::npos ? nullptr : info.tensor(name.substr(0, dot));
  if (carry != nullptr && carry->kind == TensorInfo::Kind::carry) {
    const std::string part = name.substr(dot + 1);
    for (std::size_t i = 0; i < std::size(kParts); ++i)
      if (part == kParts[i]) return {carry, kPartRoles[i]};
  }
  std::vector<std::string> known;
  for (const TensorInfo& tensor : info.tensors) {
    if (tensor.kind != TensorInfo::Kind::carry)
      known.push_back(tensor.name);
    else
      for (const char* part : kParts) known.push_back(tensor.name + "." + part);
  }
  known.insert(known.end(), {"accepted", "cu_seqlens"});
  fail(LATILE_BAD_ARGUMENT, "{}: there is no tensor '{}' with these options{}", info.name, name,
       suggestion(name, known));
}

ElementType element_type(const OperatorInfo& info, const latile_tensor& tensor) {
  constexpr ElementType known[] = {ElementType::f32, ElementType::f16, ElementType::bf16, ElementType::i32,
                                   ElementType::i64};
  constexpr latile_dtype given[] = {LATILE_F32, LATILE_F16, LATILE_BF16, LATILE_I32, LATILE_I64};
  for (std::size_t i = 0; i < std::size(given); ++i)
    if (tensor.type.code == given[i].code && tensor.type.bits == given[i].bits && tensor.type.lanes == given[i].lanes)
      return known[i];
  fail(LATILE_BAD_TYPE,
       "{}: tensor '{}' has the type (code {}, bits {}, lanes {}); latile has f32, f16, bf16, i32, i64", info.name,
       tensor.name, tensor.type.code, tensor.type.bits, tensor.type.lanes);
}

bool is_io(ElementType type) {
  return type == ElementType::f32 || type == ElementType::f16 || type == ElementType::bf16;
}

[[noreturn]] void wrong_type(const OperatorInfo& info, const Tensor& tensor, const std::string& wanted) {
  fail(LATILE_BAD_TYPE, "{}: tensor '{}' is {}; it takes {}", info.name, tensor.name, latile::name(tensor.type),
       wanted);
}

/// The one type of the tensors declared io; of those declared any when there is none.
ElementType io_type(const OperatorInfo& info, const std::vector<Tensor>& tensors,
                    const std::vector<Meaning>& meanings) {
  const Tensor* first = nullptr;
  const Tensor* narrow = nullptr;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& tensor = tensors[i];
    if (meanings[i].role != Role::input && meanings[i].role != Role::output) continue;
    const Type declared = meanings[i].info->type;
    if (declared == Type::any && tensor.type != ElementType::f32 && narrow == nullptr) narrow = &tensor;
    if (declared != Type::io) continue;
    if (!is_io(tensor.type)) wrong_type(info, tensor, "f32, f16 or bf16");
    if (first != nullptr && tensor.type != first->type)
      fail(LATILE_BAD_TYPE, "{}: tensor '{}' is {} and '{}' is {}; they have one type", info.name, first->name,
           latile::name(first->type), tensor.name, latile::name(tensor.type));
    if (first == nullptr) first = &tensor;
  }
  if (first != nullptr) return first->type;
  if (narrow != nullptr && !is_io(narrow->type)) wrong_type(info, *narrow, "f32, f16 or bf16");
  return narrow != nullptr ? narrow->type : ElementType::f32;
}

void check_type(const OperatorInfo& info, const Tensor& tensor, const Meaning& meaning, ElementType io) {
  if (tensor.integer()) {
    if (tensor.type != ElementType::i32 && tensor.type != ElementType::i64) wrong_type(info, tensor, "i32 or i64");
    return;
  }
  if (meaning.role == Role::initial || meaning.role == Role::final || meaning.role == Role::history) {
    if (tensor.type != ElementType::f32 && tensor.type != ElementType::bf16 && tensor.type != io)
      wrong_type(info, tensor, io == ElementType::f16 ? "f32, bf16 or f16" : "f32 or bf16");
    return;
  }
  switch (meaning.info->type) {
  case Type::io: break;  // checked by io_type
  case Type::any:
    if (tensor.type != io && tensor.type != ElementType::f32)
      wrong_type(info, tensor, io == ElementType::f32 ? "f32" : fmt::format("f32 or {}", latile::name(io)));
    break;
  case Type::f32:
    if (tensor.type != ElementType::f32) wrong_type(info, tensor, "f32");
    break;
  case Type::i32:
    if (tensor.type != ElementType::i32) wrong_type(info, tensor, "i32");
    break;
  case Type::i64:
    if (tensor.type != ElementType::i64) wrong_type(info, tensor, "i64");
    break;
  }
}

/// "K*K": inner dims are fixed in a plan, so a product of them is a constant. 0 when one is unknown.
std::int64_t product(const Signature& signature, const std::string& name) {
  std::int64_t value = 1;
  for (std::size_t at = 0; at <= name.size();) {
    const std::size_t cut = std::min(name.find('*', at), name.size());
    const int dim = signature.dim(name.substr(at, cut - at));
    if (dim < 0) return 0;
    value *= signature.dims[static_cast<std::size_t>(dim)].min;
    at = cut + 1;
  }
  return value;
}

/// The columns of a table of slots.
Extent states_of(const Signature& signature, const std::string& carry, const std::string& tensor) {
  Extent columns;
  columns.name = carry + ".states";
  columns.dim = signature.dim(columns.name);
  if (columns.dim < 0)
    fail(LATILE_BAD_ARGUMENT, "{}: dimension {} is not given; tensor '{}' has so many columns: add it as a range",
         signature.op, columns.name, tensor);
  return columns;
}

/// [B, T, declared...], [declared...], [N or slots, declared...], [N], [N, states], [N + 1].
std::vector<Extent> axes(const Signature& signature, const Meaning& meaning, bool pooled, bool with_accepted) {
  std::vector<Extent> axes;
  switch (meaning.role) {
  case Role::borders:
    axes.push_back(signature.sequences);
    axes.back().extra = 1;
    return axes;
  case Role::initial_index:
    axes.push_back(signature.sequences);
    if (with_accepted) axes.push_back(states_of(signature, meaning.info->name, meaning.info->name + ".initial_index"));
    return axes;
  case Role::history_index:
    axes.push_back(signature.sequences);
    axes.push_back(states_of(signature, meaning.info->name, meaning.info->name + ".history_index"));
    return axes;
  case Role::final_index:
  case Role::accepted: axes.push_back(signature.sequences); return axes;
  case Role::history:
  case Role::initial:
  case Role::final: axes.push_back(pooled ? signature.slots : signature.sequences); break;
  case Role::input:
  case Role::output:
    if (meaning.info->kind == TensorInfo::Kind::param) break;
    axes.push_back(signature.batch);
    axes.push_back(signature.rows);
    axes.back().factor *= meaning.info->rate;
    break;
  }
  for (const std::string& name : meaning.info->dims) {
    Extent axis;
    axis.name = name;
    axis.dim = signature.dim(name);
    if (axis.dim < 0) axis.factor = product(signature, name);
    if (axis.factor == 0)
      fail(LATILE_INTERNAL, "{}: tensor '{}' has the undeclared dimension {}", signature.op, meaning.info->name, name);
    axes.push_back(axis);
  }
  return axes;
}

void read_strides(Signature& signature, const latile_tensor& given, Tensor& tensor) {
  if (given.ndim != 0 && given.ndim != tensor.rank()) {
    std::string shape;
    for (const Extent& axis : tensor.axes) {
      shape += shape.empty() ? "" : ", ";
      shape += axis.name + (axis.factor > 1 && axis.dim >= 0 ? fmt::format("*{}", axis.factor) : "");
      if (axis.extra != 0) shape += fmt::format(" + {}", axis.extra);
    }
    fail(LATILE_BAD_ARGUMENT, "{}: tensor '{}' has rank {}; it is [{}], rank {}", signature.op, tensor.name, given.ndim,
         shape, tensor.rank());
  }
  tensor.first_runtime_stride = signature.runtime_strides;
  tensor.contiguous = given.ndim == 0 || given.strides == nullptr;
  if (tensor.contiguous) return;
  for (int i = 0; i < tensor.rank(); ++i) {
    const std::int64_t stride = given.strides[i];
    if (stride < -1)
      fail(LATILE_BAD_SHAPE, "{}: tensor '{}': stride {} of dimension {} is negative; -1 means given at run",
           signature.op, tensor.name, stride, tensor.axes[static_cast<std::size_t>(i)].name);
    tensor.strides.push_back(stride);
    if (stride == -1) ++signature.runtime_strides;
  }
}

void read_alignment(const Signature& signature, const latile_tensor& given, Tensor& tensor) {
  if (given.flags != 0)
    fail(LATILE_UNSUPPORTED, "{}: tensor '{}': flags are {}; there are none yet, give 0", signature.op, tensor.name,
         given.flags);
  if (given.alignment != 0 && (!std::has_single_bit(given.alignment) || given.alignment > kMaxAlignment))
    fail(LATILE_BAD_ARGUMENT, "{}: tensor '{}': alignment {} is no power of two up to {}", signature.op, tensor.name,
         given.alignment, kMaxAlignment);
  tensor.alignment = std::max<std::size_t>(given.alignment, size(tensor.type));
}

int unit_axis(const Tensor& tensor) {
  if (tensor.contiguous) return tensor.rank() - 1;
  for (int i = tensor.rank() - 1; i >= 0; --i)
    if (tensor.strides[static_cast<std::size_t>(i)] == 1) return i;
  return -1;
}

/// A carry's history: all that belongs to it is there, and its states lie between two chunks.
void read_history(const OperatorInfo& info, const Signature& signature, Mode mode, std::int64_t chunk,
                  CarryTensors& carry) {
  const int every = signature.dim(carry.name + ".every");
  if (carry.history < 0 && carry.history_index < 0) {
    if (every >= 0)
      fail(LATILE_BAD_ARGUMENT, "{}: dimension {}.every is given without '{}.history'", info.name, carry.name,
           carry.name);
    return;
  }
  if (carry.history < 0 || carry.history_index < 0)
    fail(LATILE_BAD_ARGUMENT, "{}: '{}.history' and '{}.history_index' belong together; '{}.{}' is missing", info.name,
         carry.name, carry.name, carry.name, carry.history < 0 ? "history" : "history_index");
  if (mode == Mode::step)
    fail(LATILE_UNSUPPORTED,
         "{}: mode step keeps no history: its one state is '{}.final'; use mode recurrent for more "
         "tokens than one",
         info.name, carry.name);
  if (every < 0)
    fail(LATILE_BAD_ARGUMENT, "{}: dimension {}.every is not given; add the tokens between two states of '{}.history'",
         info.name, carry.name, carry.name);
  carry.every = signature.dims[static_cast<std::size_t>(every)].min;
  if (carry.every % chunk != 0)
    fail(LATILE_BAD_SHAPE,
         "{}: dimension {}.every is {}, which is no multiple of {}, the rows of a chunk; use {}mode recurrent, which "
         "goes token by token",
         info.name, carry.name, carry.every, chunk, info.mini_batch ? "another mini_batch or " : "");
}

/// Fills carries and checks that what belongs together is there.
void read_carries(const OperatorInfo& info, Signature& signature, Mode mode, std::int64_t chunk) {
  for (const TensorInfo& tensor : info.tensors) {
    if (tensor.kind != TensorInfo::Kind::carry) {
      const bool bound = signature.tensor(tensor.name) >= 0;
      if (!bound && !tensor.optional)
        fail(LATILE_BAD_ARGUMENT, "{}: tensor '{}' is required; add it to latile_plan_desc.tensors", info.name,
             tensor.name);
      continue;
    }
    CarryTensors carry{tensor.name,
                       signature.tensor(tensor.name + ".initial"),
                       signature.tensor(tensor.name + ".initial_index"),
                       signature.tensor(tensor.name + ".final"),
                       signature.tensor(tensor.name + ".final_index"),
                       signature.tensor(tensor.name + ".history"),
                       signature.tensor(tensor.name + ".history_index")};
    for (const auto& [index, state, part] : {std::tuple(carry.initial_index, carry.initial, "initial"),
                                             std::tuple(carry.final_index, carry.final, "final")})
      if (index >= 0 && state < 0)
        fail(LATILE_BAD_ARGUMENT, "{}: tensor '{}.{}_index' is given without '{}.{}'", info.name, tensor.name, part,
             tensor.name, part);
    read_history(info, signature, mode, chunk, carry);
    signature.carries.push_back(carry);
  }
  if (signature.accepted < 0) return;
  if (std::none_of(signature.carries.begin(), signature.carries.end(),
                   [](const CarryTensors& carry) { return carry.initial_index >= 0; }))
    fail(LATILE_BAD_ARGUMENT,
         "{}: tensor 'accepted' is given, but no state has an initial_index for it to choose from; bind the slots of "
         "the states to start from",
         info.name);
}

}  // namespace

void read_tensors(const latile_plan_desc& desc, const OperatorInfo& info, Described& described) {
  Signature& signature = described.signature;
  Specialisation& specialisation = described.specialisation;
  const auto listed = [&](const std::string& name) {
    return std::any_of(desc.tensors, desc.tensors + desc.tensor_count, [&](const auto& t) { return name == t.name; });
  };
  std::vector<Meaning> meanings;
  for (std::size_t i = 0; i < desc.tensor_count; ++i) {
    const latile_tensor& given = desc.tensors[i];
    Tensor tensor;
    tensor.name = given.name;
    if (signature.tensor(tensor.name) >= 0)
      fail(LATILE_BAD_ARGUMENT, "{}: tensor '{}' is given twice", info.name, tensor.name);
    meanings.push_back(meaning(info, tensor.name));
    const Meaning& means = meanings.back();
    tensor.role = means.role;
    tensor.type = element_type(info, given);
    tensor.axes = axes(signature, means, listed(tensor.name + "_index"), listed("accepted"));
    if (tensor.rank() > kMaxRank)
      fail(LATILE_UNSUPPORTED, "{}: tensor '{}' has rank {}, above the limit of {}", info.name, tensor.name,
           tensor.rank(), kMaxRank);
    read_strides(signature, given, tensor);
    read_alignment(signature, given, tensor);
    if (means.role == Role::borders) signature.borders = static_cast<int>(i);
    if (means.role == Role::accepted) signature.accepted = static_cast<int>(i);
    signature.tensors.push_back(std::move(tensor));
  }
  const std::int64_t chunk = specialisation.mode != Mode::prefill ? 1
                             : info.mini_batch                    ? info.mini_batch
                             : specialisation.chunk               ? specialisation.chunk
                                                                  : kLeastChunk;
  read_carries(info, signature, specialisation.mode, chunk);
  for (const CarryTensors& carry : signature.carries)
    if (carry.every) specialisation.every[carry.name] = carry.every;
  specialisation.io = io_type(info, signature.tensors, meanings);
  for (std::size_t i = 0; i < meanings.size(); ++i)
    check_type(info, signature.tensors[i], meanings[i], specialisation.io);

  // In declared order and not the caller's, so that callers who list them differently share their code.
  const auto bind = [&](int index) {
    if (index < 0) return;
    const Tensor& tensor = signature.tensors[static_cast<std::size_t>(index)];
    specialisation.tensors.push_back({tensor.name, tensor.type, unit_axis(tensor)});
  };
  auto carry = signature.carries.begin();
  for (const TensorInfo& tensor : info.tensors) {
    if (tensor.kind != TensorInfo::Kind::carry) {
      bind(signature.tensor(tensor.name));
      continue;
    }
    for (int index :
         {carry->initial, carry->initial_index, carry->final, carry->final_index, carry->history, carry->history_index})
      bind(index);
    ++carry;
  }
  bind(signature.accepted);
  bind(signature.borders);
}

}  // namespace latile::runtime
