// The operator table: the one source of the C API, the command, the docs and the tests.
#pragma once
#include "latile/dsl.h"
#include <string_view>
#include <vector>

namespace latile {

struct OperatorRow {
  std::string_view name;
  void (*define)(Operator&);
  std::string_view summary;  ///< one line
  /// Bounds of the RMS ratio against the float64 token reference, in float32 and float16.
  double output_tolerance, state_tolerance;
  /// The definition as text, for the docs; empty: the comment above the definition's function.
  std::string_view formula = "";
};

/// Built-in rows first, then registered ones.
const std::vector<OperatorRow>& operators();
/// Adds an operator from outside the tree; false when the name is taken. The views must live as long as the process.
/// For static initialisers, and otherwise before any other thread uses the library.
bool register_operator(const OperatorRow&);
/// Null when there is none.
const OperatorRow* find_operator(std::string_view);

}  // namespace latile
