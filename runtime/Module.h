// A shared object in memory, loaded without a file that others could change.
#pragma once
#include <memory>
#include <string>

namespace latile::runtime {

class Module {
public:
  /// Loads the bytes of a shared object; null and a sentence when the system refuses.
  static std::shared_ptr<Module> load(const std::string& binary, std::string& why);
  ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;
  void* symbol(const std::string& name) const;

private:
  Module(void* handle, int file) : handle(handle), file(file) {}
  void* handle;
  int file;
};

}  // namespace latile::runtime
