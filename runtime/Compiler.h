// How the runtime reaches the compiler, without linking it: liblatile installs one, the runtime alone has none.
#pragma once
#include "compiler/Specialisation.h"
#include "runtime/Artifact.h"

namespace latile {

struct CompileFailure {
  bool user_error = true;  ///< the caller's mistake; false: a fault of the compiler
  std::string text;        ///< one sentence
};

/// Every function may be called from several threads at once.
class Compiler {
public:
  virtual ~Compiler() = default;
  /// Names of the operators, in the table's order.
  virtual std::vector<std::string> operators() const = 0;
  /// Describes one specialisation by its operator, options, and names of bound tensors.
  virtual bool describe(const std::string& op, const std::vector<std::pair<std::string, std::string>>& options,
                        const std::vector<std::string>& bound, OperatorInfo& info, CompileFailure& failure) = 0;
  virtual bool compile(const Specialisation& specialisation, Artifact& artifact, CompileFailure& failure) = 0;
  /// Part of the cache key: differs whenever the code compiled for equal specialisations may.
  virtual std::string fingerprint(const Specialisation& specialisation) const = 0;
};

/// Installs the process's compiler; nullptr: none. It must outlive every context.
void set_compiler(Compiler* compiler);
Compiler* installed_compiler();

}  // namespace latile
