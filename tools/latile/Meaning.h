// What an operator's program means: the interpreter on the recorded program, on the tensors of a Problem.
#pragma once
#include "tools/latile/Problem.h"
#include <memory>

namespace latile {

/// The specialisation that a case and its tensors stand for.
Specialisation specialisation_of(const std::string& op, const Case&, const Problem&, ElementType io);

/// Logical values by tensor name, last axis fastest: of outputs and final states.
using Values = std::map<std::string, std::vector<double>>;

class Meaning {
public:
  /// Records and emits the program. Throws DefinitionError.
  Meaning(const OperatorRow&, const Specialisation&);
  ~Meaning();
  Meaning(const Meaning&) = delete;

  /// float64: nothing is rounded, results stay float64. Otherwise each operation has its declared type and results
  /// that of their tensors. Throws UserError when the interpreter reports a problem.
  Values run(const Problem&, bool float64) const;
  /// A body divides by something that is no constant: its inputs must keep the divisor away from zero.
  bool divides() const;
  /// Operations of the matrix products of the recorded body, for each token and head of the finest axis.
  double dot_flops_per_token() const;

private:
  struct Program;
  std::unique_ptr<Program> program;
  Specialisation specialisation;
  std::vector<std::string> scalar_names;
};

}  // namespace latile
