// A shared object in memory, loaded for a test.
#pragma once
#include <dlfcn.h>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

class Loaded {
public:
  explicit Loaded(const std::string& bytes) {
    // Open as long as the object: dlopen takes equal paths for one library.
    file_ = memfd_create("kernel", MFD_CLOEXEC);
    bool written = write(file_, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size());
    std::string path = "/proc/self/fd/" + std::to_string(file_);
    handle_ = written ? dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL) : nullptr;
  }
  Loaded(const Loaded&) = delete;
  Loaded& operator=(const Loaded&) = delete;
  ~Loaded() {
    if (handle_) dlclose(handle_);
    close(file_);
  }
  template <class F> F get(const char* symbol) const {
    return handle_ ? reinterpret_cast<F>(dlsym(handle_, symbol)) : nullptr;
  }

private:
  int file_;
  void* handle_;
};
