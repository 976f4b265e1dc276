// The tensors of one run of `check` or `bench`, made from an operator's declaration and a seed.
#pragma once
#include "tools/latile/Case.h"
#include "tools/latile/HostTensor.h"
#include <map>

namespace latile {

struct Problem {
  enum class Role : std::uint8_t { input, index, output, initial, final, history };
  struct Entry {
    Role role;
    std::string carry;  ///< for states and indices
    HostTensor tensor;
    int rate = 0;  ///< rows per token of a sequence or output; 0: it has no rows
  };
  std::vector<Entry> entries;  ///< in the plan's order
  std::vector<std::pair<std::string, std::int64_t>> dims;
  std::map<std::string, std::int64_t> extents;  ///< of inner dims
  std::vector<double> scalars;                  ///< in the operator's order
  bool default_scalars = true;
  std::int64_t sequences = 0, rows = 0, fine_heads = 1;

  Entry* find(const std::string& name);
  const Entry* find(const std::string& name) const;
};

/// Names of the tensors that the case's plan binds, in its order.
std::vector<std::string> bound_tensors(const OperatorInfo&, const Case&);

/// Inputs by what the declaration says of them with typical(), otherwise by what they are: gates as `data` asks; a
/// sequence along the first inner axis of a state is a key of unit length and correlation `data.correlation` over the
/// tokens, or a normal query if its name begins with q; a sequence with one number per head is uniform in (0,
/// beta_high); all others are normal. Parameters are uniform in (-0.5, 0), states normal. positive: queries, keys and
/// states are made positive, so that an operator that divides by a sum of them is well posed. Outputs and final states
/// are NaN. Same seed, same numbers, on any machine.
Problem make_problem(const OperatorInfo&, const Case&, const Data&, const std::vector<std::int64_t>& lengths,
                     ElementType io, std::uint64_t seed, bool positive);

}  // namespace latile
