#include "runtime/DescribeParts.h"
#include <algorithm>

namespace latile::runtime {
namespace {

/// Far beyond any memory, and small enough that sums of a few stay in 64 bits.
constexpr std::int64_t kMaxDim = std::int64_t{1} << 48;
constexpr const char* kPlanDims[] = {"B", "T", "N", "slots"};

bool is_plan_dim(const std::string& name) {
  return std::any_of(std::begin(kPlanDims), std::end(kPlanDims), [&](const char* known) { return name == known; });
}

/// "S.every" and "S.states" of a carry S.
bool is_history_dim(const OperatorInfo& info, const std::string& name) {
  const std::size_t dot = name.find('.');
  const TensorInfo* carry = dot == std::string::npos ? nullptr : info.tensor(name.substr(0, dot));
  return carry != nullptr && carry->kind == TensorInfo::Kind::carry &&
         (name.substr(dot) == ".every" || name.substr(dot) == ".states");
}

Dimension read_dim(const latile_dim& given, const OperatorInfo& info) {
  const Dimension dim{given.name, given.min, given.max};
  const DimInfo* known = info.dim(dim.name);
  const bool of_history = is_history_dim(info, dim.name);
  if (known == nullptr && !is_plan_dim(dim.name) && !of_history) {
    std::vector<std::string> names(std::begin(kPlanDims), std::end(kPlanDims));
    for (const DimInfo& candidate : info.dims) names.push_back(candidate.name);
    for (const TensorInfo& tensor : info.tensors)
      if (tensor.kind == TensorInfo::Kind::carry)
        names.insert(names.end(), {tensor.name + ".every", tensor.name + ".states"});
    fail(LATILE_BAD_ARGUMENT, "{}: there is no dimension '{}'{}", info.name, dim.name, suggestion(dim.name, names));
  }
  if (dim.min > dim.max)
    fail(LATILE_BAD_SHAPE, "{}: dimension {} has the empty range {} to {}; give min <= max", info.name, dim.name,
         dim.min, dim.max);
  const bool inner = known != nullptr && !known->head, head = known != nullptr && known->head;
  const bool limited = inner && known->most != 0;
  // Kernels of the lower layer take some columns of an extent at a time, whatever it is; a chunk body takes all.
  const std::int64_t lowest = inner                ? (info.has_kernel ? 1 : kMinInner)
                              : head || of_history ? 1
                                                   : 0,
                     highest = limited ? known->most
                               : inner ? (info.has_kernel ? kMaxColumns : kMaxInner)
                                       : kMaxDim;
  if (dim.min < lowest)
    fail(LATILE_BAD_SHAPE, "{}: dimension {} is {}, below the limit of {}", info.name, dim.name, dim.min, lowest);
  if (dim.max > highest)
    fail(LATILE_BAD_SHAPE, "{}: dimension {} is {}, above the limit of {}{}{}", info.name, dim.name, dim.max, highest,
         limited ? ": " : "", limited ? known->limit_why : "");
  if ((inner || (of_history && dim.name.ends_with(".every"))) && dim.min != dim.max)
    fail(LATILE_BAD_SHAPE, "{}: dimension {} has the range {} to {}, but code is made for one value; give min = max",
         info.name, dim.name, dim.min, dim.max);
  return dim;
}

/// The dimension `name`, or the constant when it is not declared and there is one.
Extent extent(const Signature& signature, const std::string& name, std::int64_t constant, const char* remedy) {
  Extent found;
  found.name = name;
  found.dim = signature.dim(name);
  if (found.dim >= 0) return found;
  if (constant < 0) fail(LATILE_BAD_ARGUMENT, "{}: dimension {} is not given; {}", signature.op, name, remedy);
  found.factor = constant;
  return found;
}

/// A declared dimension that only one value makes sense for.
void only(const Signature& signature, const char* name, std::int64_t value, const char* why) {
  const int index = signature.dim(name);
  if (index < 0) return;
  const Dimension& dim = signature.dims[static_cast<std::size_t>(index)];
  if (dim.min > value || dim.max < value)
    fail(LATILE_BAD_SHAPE, "{}: dimension {} has the range {} to {}, but {}", signature.op, name, dim.min, dim.max,
         why);
}

void read_heads(const OperatorInfo& info, Described& described) {
  Signature& signature = described.signature;
  for (const DimInfo& dim : info.dims) {
    if (!dim.head || dim.group.empty()) continue;
    HeadRatio pair;
    pair.fine = signature.dim(dim.name);
    pair.coarse = signature.dim(dim.group);
    const Dimension& fine = signature.dims[static_cast<std::size_t>(pair.fine)];
    const Dimension& coarse = signature.dims[static_cast<std::size_t>(pair.coarse)];
    pair.ratio = fine.min / coarse.min;
    if (fine.min % coarse.min != 0)
      fail(LATILE_BAD_SHAPE, "{}: dimension {} is {}, which is no multiple of {} = {}", info.name, fine.name, fine.min,
           coarse.name, coarse.min);
    if (fine.max % coarse.max != 0 || fine.max / coarse.max != pair.ratio)
      fail(LATILE_BAD_SHAPE,
           "{}: the ratio {}/{} is {} at the lower ends and not at the upper ones, {} and {}; it is "
           "fixed in a plan",
           info.name, fine.name, coarse.name, pair.ratio, fine.max, coarse.max);
    if (!signature.heads.empty())
      fail(LATILE_UNSUPPORTED, "{}: operators with more than one grouped head axis are not offered yet", info.name);
    signature.heads.push_back(pair);
    described.specialisation.head_ratio = pair.ratio;
  }
}

}  // namespace

void read_dims(const latile_plan_desc& desc, const OperatorInfo& info, Mode mode, Described& described) {
  Signature& signature = described.signature;
  for (std::size_t i = 0; i < desc.dim_count; ++i) {
    if (signature.dim(desc.dims[i].name) >= 0)
      fail(LATILE_BAD_ARGUMENT, "{}: dimension {} is given twice", info.name, desc.dims[i].name);
    signature.dims.push_back(read_dim(desc.dims[i], info));
  }
  for (const DimInfo& dim : info.dims) {
    const int index = signature.dim(dim.name);
    if (index < 0)
      fail(LATILE_BAD_ARGUMENT, "{}: dimension {} is not given; add it to latile_plan_desc.dims", info.name, dim.name);
    if (!dim.head) described.specialisation.extents[dim.name] = signature.dims[static_cast<std::size_t>(index)].min;
  }
  read_heads(info, described);
  signature.step = mode == Mode::step;

  bool ragged = false;
  for (std::size_t i = 0; i < desc.tensor_count; ++i) {
    const std::string name = desc.tensors[i].name;
    ragged |= name == "cu_seqlens";
    signature.needs_slots |= name.ends_with("_index");
  }
  if (ragged && mode == Mode::step)
    fail(LATILE_UNSUPPORTED, "{}: mode step takes no cu_seqlens; give the tokens as a batch, tensors [B, 1, ...]",
         info.name);
  if (ragged) only(signature, "B", 1, "with cu_seqlens all sequences lie in one row of tokens: B is 1");
  if (mode == Mode::step) only(signature, "T", 1, "mode step takes one token a sequence: T is 1");
  constexpr const char* remedy = "add it to latile_plan_desc.dims as a range";
  signature.batch = extent(signature, "B", ragged ? 1 : -1, remedy);
  signature.rows = extent(signature, "T", mode == Mode::step ? 1 : -1, remedy);
  signature.sequences =
      ragged ? extent(signature, "N", -1, "cu_seqlens has N + 1 elements; add it as a range") : signature.batch;
  if (signature.needs_slots)
    signature.slots = extent(signature, "slots", -1, "a state with an index lives in a pool of so many slots");
}

}  // namespace latile::runtime
