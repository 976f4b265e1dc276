// An operator for the runtime's tests, "toy", with a compiler whose code was compiled when the tests were built.
#pragma once
#include "latile/latile.hpp"
#include "runtime/Compiler.h"
#include <atomic>
#include <random>
#include <string>
#include <vector>

namespace latile::test {

class ToyCompiler : public Compiler {
public:
  std::vector<std::string> operators() const override { return {"toy", "reference_only"}; }
  bool describe(const std::string& op, const std::vector<std::pair<std::string, std::string>>& options,
                const std::vector<std::string>& bound, OperatorInfo& info, CompileFailure& failure) override;
  bool compile(const Specialisation& specialisation, Artifact& artifact, CompileFailure& failure) override;
  std::string fingerprint(const Specialisation&) const override { return version; }

  std::string version = "toy 1";
  std::atomic<int> compilations = 0;
  int delay_ms = 0;    ///< that each compilation takes longer
  std::string defect;  ///< what compile does wrong: "fails", "no symbol", "no library", "unknown dim"
};

/// The one that is installed for the whole test program.
ToyCompiler& toy();

/// A folder that goes with the object.
struct Folder {
  Folder();
  ~Folder();
  std::string path;
};

/// A run of "toy" with its tensors. Set the public fields, then call make().
struct Problem {
  std::int64_t B = 1, T = 20, H = 2, HV = 4, K = 8, V = 12, slots = 0;
  std::string mode = "prefill";
  std::vector<std::int64_t> borders;  ///< ragged when not empty
  bool initial = false, final = false, wide_index = false, in_place = false, tiled = false;
  std::vector<std::int64_t> initial_index, final_index;
  /// A history of S, in the memory of the states when in_place; with `accepted`, initial_index has `states` columns.
  std::vector<std::int64_t> history_index, accepted;
  std::int64_t states = 0, every = 16;
  std::vector<std::pair<std::string, std::string>> options;

  void make();
  /// The plan's description: lengths as ranges, q with strides given at run.
  void describe(api::PlanDescription& description) const;
  std::int64_t sequences() const { return borders.empty() ? B : static_cast<std::int64_t>(borders.size()) - 1; }
  /// Fills expected_o and expected_final from the definition, in double.
  void reference();
  /// Largest difference of o and the final states from reference(); both were filled with NaN by make().
  double error() const;
  /// Whether o and the final states are as make() left them.
  bool untouched() const;

  std::vector<std::string> names;  ///< of the tensors, in the plan's order
  std::vector<void*> data;
  std::vector<std::int64_t> dims, strides;
  std::vector<float> q, k, v, o, S0, S1, expected_o, expected_final;
  std::vector<std::int32_t> narrow[5];
  std::vector<std::int64_t> wide[5];
  std::size_t at(const std::string& name) const;  ///< index into names

private:
  std::vector<float> kept_o, kept_final;
};

/// Workspace of a plan at dims, aligned as malloc does.
std::vector<std::byte> workspace_of(const api::Plan& plan, const std::vector<std::int64_t>& dims);

}  // namespace latile::test

extern "C" void install_toy_compiler(void);
