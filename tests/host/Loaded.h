// A shared object in memory, loaded for a test.
#pragma once
#include <dlfcn.h>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

class Loaded {
public:
  explicit Loaded(const std::string& bytes) {
    int fd = memfd_create("kernel", MFD_CLOEXEC);
    bool written = write(fd, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size());
    std::string path = "/proc/self/fd/" + std::to_string(fd);
    handle_ = written ? dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL) : nullptr;
    close(fd);
  }
  Loaded(const Loaded&) = delete;
  Loaded& operator=(const Loaded&) = delete;
  ~Loaded() {
    if (handle_) dlclose(handle_);
  }
  template <class F> F get(const char* symbol) const {
    return handle_ ? reinterpret_cast<F>(dlsym(handle_, symbol)) : nullptr;
  }

private:
  void* handle_;
};
