// One case of `check`: its plan, its runs through the C API, and their errors.
#pragma once
#include "tools/latile/Plan.h"

namespace latile {

/// RMS of the difference over RMS of the reference.
struct TensorError {
  std::string name;
  bool state = false;
  double error = 0;
  double allowed = 0;
  double declared = -1;  ///< error of the interpreter in declared types; -1: not taken, the tolerance alone counts
  bool exceeds() const { return !(error <= allowed); }
};

/// Errors of one Data of a case: each tensor's worst over its runs.
struct CaseResult {
  std::string op, case_label, data_label;
  ElementType io = ElementType::f32;
  std::vector<TensorError> errors;
  std::string failure;  ///< what is wrong beside errors, one sentence; empty: nothing
  double seconds = 0;
  bool passed() const;
};

struct CheckSettings {
  std::uint64_t seed = 1;
  std::string isa;  ///< "": native
  Place place;
  int repeats = 2;  ///< runs of each case that must give the same bits
};

/// A result for each of the case's data. Throws nothing: a plan that is refused is a failure.
std::vector<CaseResult> run_case(latile_context*, const OperatorRow&, const Case&, ElementType io,
                                 const CheckSettings&);

}  // namespace latile
