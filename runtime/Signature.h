// The caller's side of a plan: its dimensions and tensors, checked, in the caller's order.
#pragma once
#include "compiler/Specialisation.h"
#include "runtime/Failure.h"
#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace latile::runtime {

inline constexpr int kMaxRank = 8;
using Extents = std::array<std::int64_t, kMaxRank>;

struct Dimension {
  std::string name;
  std::int64_t min = 0, max = 0;
};

/// A number known at run: one of the plan's dims, or a constant. extent = (dim or 1) * factor + extra.
struct Extent {
  std::string name;
  int dim = -1;  ///< index into Signature::dims; -1: none
  std::int64_t factor = 1, extra = 0;
  std::int64_t at(const std::int64_t* dims) const { return (dim < 0 ? 1 : dims[dim]) * factor + extra; }
};

enum class Role : std::uint8_t {
  input,
  output,
  initial,
  initial_index,
  final,
  final_index,
  history,
  history_index,
  accepted,
  borders
};

struct Tensor {
  std::string name;
  ElementType type = ElementType::f32;
  Role role = Role::input;
  std::vector<Extent> axes;
  bool contiguous = true;
  std::vector<std::int64_t> strides;     ///< when not contiguous; -1: given at run
  std::size_t first_runtime_stride = 0;  ///< where its own begin in latile_args::strides
  std::size_t alignment = 1;             ///< of every pointer, bytes

  bool written() const { return role == Role::output || role == Role::final || role == Role::history; }
  /// Its contents say where things lie; a run checks them.
  bool integer() const {
    return role == Role::initial_index || role == Role::final_index || role == Role::history_index ||
           role == Role::accepted || role == Role::borders;
  }
  int rank() const { return static_cast<int>(axes.size()); }
};

/// Indices into Signature::tensors; -1: not bound.
struct CarryTensors {
  std::string name;
  int initial = -1, initial_index = -1, final = -1, final_index = -1, history = -1, history_index = -1;
  std::int64_t every = 0;  ///< tokens between history states; 0: none are kept
};

struct Scalar {
  std::string name;
  double value = 0;  ///< its default
};

struct HeadRatio {
  int fine = -1, coarse = -1;  ///< indices into dims
  std::int64_t ratio = 1;
};

struct Signature {
  std::string op;
  std::vector<Dimension> dims;
  std::vector<Tensor> tensors;
  std::vector<CarryTensors> carries;
  std::vector<Scalar> scalars;
  std::vector<HeadRatio> heads;
  int borders = -1;   ///< cu_seqlens; -1: dense
  int accepted = -1;  ///< -1: initial_index has one axis
  Extent batch, rows, sequences, slots;
  bool needs_slots = false;
  bool step = false;
  std::size_t runtime_strides = 0;

  bool ragged() const { return borders >= 0; }
  int dim(const std::string& name) const;  ///< -1: not declared
  int tensor(const std::string& name) const;
  /// Slots that the states of one carry are written to at these dims.
  std::int64_t written_slots(const CarryTensors&, const std::int64_t* dims) const;

  /// Checks each dim's range and what dims must agree on; throws Failure.
  void check_dims(const std::int64_t* given) const;
  /// Elements of a tensor at checked dims; throws Failure when they don't fit 64 bits.
  std::int64_t shape(const Tensor&, const std::int64_t* dims, Extents&) const;
};

}  // namespace latile::runtime
