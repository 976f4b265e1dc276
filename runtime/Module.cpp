#include "runtime/Module.h"
#include <cerrno>
#include <cstring>
#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

namespace latile::runtime {
namespace {

bool write_all(int file, const std::string& bytes) {
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t n = write(file, bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    done += static_cast<std::size_t>(n);
  }
  return true;
}

}  // namespace

std::shared_ptr<Module> Module::load(const std::string& binary, std::string& why) {
  const int file = memfd_create("latile", MFD_CLOEXEC);
  if (file < 0 || !write_all(file, binary)) {
    why = fmt::format("a memory file for {} bytes of code cannot be written: {}", binary.size(), std::strerror(errno));
    if (file >= 0) close(file);
    return nullptr;
  }
  // dlopen takes two equal paths for one library. The descriptor stays open as long as the module, so no other module
  // can have its number; the odd spelling keeps away from anyone else in the process who loads in this way.
  const std::string path = fmt::format("/proc/self/fd/./{}", file);
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* reason = dlerror();
    why = fmt::format("the code cannot be loaded: {}", reason != nullptr ? reason : "unknown reason");
    close(file);
    return nullptr;
  }
  return std::shared_ptr<Module>(new Module(handle, file));
}

Module::~Module() {
  dlclose(handle);
  close(file);
}

void* Module::symbol(const std::string& name) const { return dlsym(handle, name.c_str()); }

}  // namespace latile::runtime
