// A mistake of the command's user: one sentence and an exit code.
#pragma once
#include <stdexcept>
#include <string>

namespace latile {

/// Exit codes of the command, documented in its --help and in docs/command.md.
enum ExitCode : int {
  exit_ok = 0,
  exit_failed = 1,    ///< `check`: an error exceeds its tolerance
  exit_bad_use = 2,   ///< a command line, file or argument is refused
  exit_internal = 3,  ///< a fault of latile itself
};

struct UserError : std::runtime_error {
  explicit UserError(const std::string& text, int code = exit_bad_use) : std::runtime_error(text), code(code) {}
  int code;
};

/// Mistakes in a definition, a line each, with the author's file and line in front.
struct DefinitionError : UserError {
  explicit DefinitionError(const std::string& lines) : UserError(lines) {}
};

}  // namespace latile
