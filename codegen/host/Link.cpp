#include "codegen/host/Host.h"
#include "lld/Common/Driver.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include <mutex>

LLD_HAS_DRIVER(elf)

namespace latile::host {

bool link_shared(const std::string& object, std::string& shared, std::string& failure) {
  llvm::SmallString<128> in, out;
  int fd = -1;
  if (llvm::sys::fs::createTemporaryFile("latile", "o", fd, in) ||
      llvm::sys::fs::createTemporaryFile("latile", "so", out)) {
    failure = "no temporary file can be written for the linker";
    return false;
  }
  llvm::scope_exit clean([&] {
    llvm::sys::fs::remove(in);
    llvm::sys::fs::remove(out);
  });
  {
    llvm::raw_fd_ostream file(fd, true);
    file << object;
    file.close();
    if (file.has_error()) {
      failure = "writing " + in.str().str() + " failed: " + file.error().message();
      file.clear_error();
      return false;
    }
  }
  static std::mutex one_at_a_time;  // lld keeps its state in globals
  std::lock_guard lock(one_at_a_time);
  std::string messages;
  llvm::raw_string_ostream stream(messages);
  const char* arguments[] = {"ld.lld",          "-shared", "--no-undefined", "-z",      "now", "-Bsymbolic",
                             "--build-id=none", "-o",      out.c_str(),      in.c_str()};
  lld::Result result = lld::lldMain(arguments, stream, stream, {{lld::Gnu, &lld::elf::link}});
  if (result.retCode != 0) {
    failure = "lld: " + messages;
    return false;
  }
  auto file = llvm::MemoryBuffer::getFile(out);
  if (!file) {
    failure = "lld left no output";
    return false;
  }
  shared = (*file)->getBuffer().str();
  return true;
}

}  // namespace latile::host
