// Bundles: compiled plans in one file, for a program without a compiler.
//   magic, format, calling convention, who wrote it, lengths, XXH3-128 of the index; the index (JSON); binaries, each
//   at a multiple of 64 bytes. The index has the descriptions that plans are made by, and for each plan its
//   specialisation, its facts, where its binary lies and that binary's XXH3-128.
#pragma once
#include "runtime/Compiler.h"
#include <cstdint>
#include <functional>
#include <memory>
#include <shared_mutex>
#include <string>
#include <utility>
#include <vector>

namespace latile::runtime {

/// Changes with the file's layout and with what the index means.
inline constexpr std::uint32_t kBundleFormat = 1;

/// A description that plans of a bundle are made by: the operator at some options, with some tensors bound.
struct BundleInfo {
  std::vector<std::pair<std::string, std::string>> options;  ///< canonical
  std::vector<std::string> bound;                            ///< names of the plan's tensors, sorted
  OperatorInfo info;
};

/// A plan's code for one target.
struct BundlePlan {
  std::string specialisation;  ///< Specialisation::json
  std::size_t info = 0;
  Artifact artifact;  ///< without its binary when it comes from a file
  std::uint64_t offset = 0, bytes = 0;
  std::string checksum;  ///< of the binary, hex
};

/// A bundle's file, open. Immutable; binaries are read and verified when they are asked for.
class Bundle {
public:
  /// Reads header and index and checks all of them. Throws Failure (BAD_FILE) that names the file and the reason.
  explicit Bundle(std::string path);
  ~Bundle();
  Bundle(const Bundle&) = delete;
  Bundle& operator=(const Bundle&) = delete;

  /// The plan with its binary; null when there is none. Throws Failure (BAD_FILE) when the binary is damaged.
  std::unique_ptr<Artifact> find(const std::string& specialisation) const;
  /// Reads every binary; throws Failure (BAD_FILE) at the first that is damaged.
  void verify() const;
  /// What is in it, for people and programs: file, writer, plans with op, mode, target, options, dims, tensors, bytes.
  std::string text() const;

  const std::string path;
  std::string writer;
  std::vector<BundleInfo> infos;
  std::vector<BundlePlan> plans;

private:
  void read_index(const std::string& text, std::uint64_t data, std::uint64_t size);
  std::string binary(const BundlePlan&) const;
  [[noreturn]] void refuse(const std::string& why) const;
  int handle = -1;
};

/// The bytes of a bundle of these plans; infos are those that their `info` counts.
std::string bundle_content(const std::vector<BundleInfo>& infos, const std::vector<BundlePlan>& plans);

/// All bundles of a context. In a program without a compiler it stands in for one: it describes and gives what is
/// there, and refuses the rest by name. From any thread.
class Bundles : public Compiler {
public:
  void add(std::shared_ptr<const Bundle>);
  bool empty() const;
  std::size_t count() const;

  /// The newest bundle's code for exactly this; or on the host for the highest level below this one's, on CUDA the PTX
  /// for the latest chip before the device's. Null: none.
  std::unique_ptr<Artifact> find(const Specialisation&) const;

  std::vector<std::string> operators() const override;
  bool describe(const std::string& op, const std::vector<std::pair<std::string, std::string>>& options,
                const std::vector<std::string>& bound, OperatorInfo& info, CompileFailure& failure) override;
  bool compile(const Specialisation&, Artifact&, CompileFailure&) override;
  std::string fingerprint(const Specialisation&) const override { return "bundles"; }

private:
  std::vector<std::shared_ptr<const Bundle>> all() const;  ///< the newest first
  mutable std::shared_mutex mutex;
  std::vector<std::shared_ptr<const Bundle>> list;
};

}  // namespace latile::runtime
