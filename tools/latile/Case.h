// The cases that `check` runs: a chosen list that covers each feature of an operator, not a product of all.
#pragma once
#include "compiler/Specialisation.h"
#include "latile/table.h"
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace latile {

enum class Gates : std::uint8_t {
  mild,   ///< logsigmoid(x) / 16, x normal: as in trained models at their start
  mixed,  ///< 0, mild, -50, -3000 and -inf side by side in every chunk
};

/// What the runs of one plan read.
struct Data {
  std::string label;
  std::vector<std::vector<std::int64_t>> lengths;  ///< for each run, the tokens of each sequence
  Gates gates = Gates::mild;
  double correlation = 0;  ///< of keys across tokens; 1: all keys of a head are equal
  double beta_high = 1;    ///< per-head factors are uniform in (0, beta_high)
};

enum class States : std::uint8_t {
  none,
  initial,  ///< initial state only
  last,     ///< final state only
  both,
  pool,      ///< slots with indices, some of them -1
  in_place,  ///< a pool, read and written at the same slots
};

/// One plan and the data it is run on.
struct Case {
  std::string label;
  Mode mode = Mode::prefill;
  std::vector<std::pair<std::string, std::string>> options;
  std::vector<std::string> absent;    ///< optional tensors that are not bound
  std::vector<std::int64_t> extents;  ///< of the operator's inner dims, in order; the last repeats
  std::int64_t heads = 1;             ///< on the coarsest axis
  std::int64_t ratio = 1;             ///< heads of the finest axis per head of the coarsest
  bool tiled_heads = false;
  int ragged_bits = 0;     ///< 32 or 64: of cu_seqlens; 0: dense
  std::int64_t chunk = 0;  ///< 0: the target's choice
  States states = States::both;
  bool reversed = false;
  std::int64_t every = 0;      ///< tokens between the history states that each carry keeps in its pool; 0: none
  bool accepted = false;       ///< states start from one of several slots, by the count of accepted tokens
  bool state_v_first = false;  ///< memory of a state [K, V] holds V outermost
  ElementType state_type = ElementType::f32;
  int index_bits = 32;           ///< of slot indices
  bool strided = false;          ///< sequences and outputs are not contiguous
  bool any_as_io = false;        ///< tensors of either type are bound in the io type
  std::int64_t prefill = 0;      ///< mode step: first so many tokens by a prefill, whose states the steps continue
  std::optional<double> scalar;  ///< value of every run-time scalar; none: their defaults
  std::vector<Data> data;
};

std::string lines_of(const std::vector<Diagnostic>&);

/// An operator at some options. `bound`: names of the plan's tensors; empty: all that the options bring in.
/// Throws DefinitionError with all mistakes of the definition.
OperatorInfo describe(const OperatorRow&, const std::vector<std::pair<std::string, std::string>>& options,
                      const std::vector<std::string>& bound = {});

/// The list for an operator, which need not be one of ours: options, optional tensors, heads and gates are taken from
/// its declaration. quick: the part of it that a build can run each time.
std::vector<Case> cases_of(const OperatorRow&, bool quick);
/// Of the quick list what the emulator runs in seconds: short sequences, two kinds of data at most. half 0 or 1: the
/// cases with two kinds of data, and every second of the others, so that two types share those.
std::vector<Case> emulated_cases_of(const OperatorRow&, std::optional<int> half);

}  // namespace latile
