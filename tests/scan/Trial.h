// Runs of any operator of the table, and what tests of its scan do with their tensors: cut, flip, join, compare.
#pragma once
#include "tools/latile/Plan.h"

namespace latile::test {

/// The tensors of one run, before it or after it, and the tokens of each sequence.
struct Trial {
  Case c;
  Problem p;
  std::vector<std::int64_t> lengths;

  HostTensor& tensor(const std::string& name);
  const HostTensor& tensor(const std::string& name) const;
};

/// How one operator can be run: chunks of 16 rows or its mini-batch, and token by token.
struct Subject {
  const OperatorRow* row;
  OperatorInfo info;
  bool grouped = false;

  explicit Subject(const OperatorRow&);
  /// False where prefill is a kernel over rows, which has no order and no states on the way.
  bool scans() const { return !info.has_kernel; }
  std::vector<Mode> modes() const;
  std::int64_t chunk() const { return info.mini_batch ? info.mini_batch : 16; }
  /// Carries and outputs by name.
  std::vector<std::string> carries() const;
  std::vector<std::string> outputs() const;
  /// Ragged, two heads on the coarsest axis, states read and written.
  Case ragged(Mode) const;
  Trial make(const Case&, const std::vector<std::int64_t>& lengths, ElementType io, std::uint64_t seed = 1) const;
  /// Runs a copy. `in_place`: final and history states lie in the memory of the initial ones.
  Trial run(Trial, bool in_place = false) const;
};

/// Tokens first to last - 1 of sequence n, as a dense batch of one with the sequence's states.
Trial part(const Trial&, std::int64_t n, std::int64_t first, std::int64_t last);
/// Batches of one after one another; states are those of the first.
Trial joined(const std::vector<Trial>&);
/// The tokens of each sequence of inputs and outputs in the other order; states stay.
Trial flipped(Trial);

bool same_bits(const HostTensor&, const HostTensor&);
/// Tokens first … of sequence n of `whole` against all tokens of `part`, which is a dense batch of one.
bool same_bits_at(const Trial& whole, std::int64_t n, std::int64_t first, const Trial& part, const std::string& name);
/// The first axis at `of` against the first axis at `other`.
bool same_slot(const HostTensor&, std::int64_t of, const HostTensor&, std::int64_t other);
void copy_slot(HostTensor& to, std::int64_t at, const HostTensor& from, std::int64_t other);
bool finite(const HostTensor&);
double rms_ratio(const std::vector<double>& got, const std::vector<double>& want);
std::vector<double> values(const HostTensor&);

/// One for all tests, so that a plan is compiled once.
latile_context* context();

}  // namespace latile::test
