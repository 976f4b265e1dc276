// Which shared library a process uses: looked for once, when it is first asked for.
#pragma once
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace latile::runtime {

/// `L` is a library that is open. From any thread.
template <class L> class ChosenLibrary {
public:
  using Open = std::shared_ptr<const L> (*)(const std::string& file, std::string& why);

  /// `variable`: of the environment, which may name the file; `usual`: those that are tried else, in order.
  ChosenLibrary(Open open, const char* variable, std::vector<std::string> usual)
      : open_(open), variable_(variable), usual_(std::move(usual)) {}

  /// The same answer at each call; null: none opens, with the first one's reason in `why`, or with `missing` where
  /// several were tried.
  std::shared_ptr<const L> get(std::string& why, const char* missing = nullptr) {
    const std::lock_guard lock(mutex_);
    if (!tried_) {
      tried_ = true;
      const char* named = secure_getenv(variable_);
      if (file_.empty() && named != nullptr) file_ = named;
      const std::vector<std::string> files = file_.empty() ? usual_ : std::vector{file_};
      for (const std::string& file : files) {
        std::string reason;
        library_ = open_(file, reason);
        if (library_) break;
        if (why_.empty()) why_ = std::move(reason);
      }
      if (!library_ && files.size() > 1 && missing != nullptr) why_ = missing;
    }
    if (!library_) why = why_;
    return library_;
  }

  /// Another file from now on, for tests; "": as at the start of the process.
  void use(const std::string& file) {
    const std::lock_guard lock(mutex_);
    tried_ = false, file_ = file, library_ = nullptr, why_.clear();
  }

private:
  const Open open_;
  const char* const variable_;
  const std::vector<std::string> usual_;
  std::mutex mutex_;
  bool tried_ = false;
  std::string file_;
  std::shared_ptr<const L> library_;
  std::string why_;
};

}  // namespace latile::runtime
