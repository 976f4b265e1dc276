#include "codegen/nvrtc/Nvrtc.h"
#include <dlfcn.h>
#include <filesystem>
#include <fmt/format.h>

namespace latile::nvrtc {

namespace fs = std::filesystem;
using Program = void*;

#define LATILE_NVRTC_FUNCTIONS(X)                                                                                      \
  X(Version, (int* major, int* minor))                                                                                 \
  X(CreateProgram,                                                                                                     \
    (Program*, const char* source, const char* name, int headers, const char* const* texts, const char* const* names)) \
  X(DestroyProgram, (Program*))                                                                                        \
  X(CompileProgram, (Program, int count, const char* const* options))                                                  \
  X(GetPTXSize, (Program, std::size_t*))                                                                               \
  X(GetPTX, (Program, char*))                                                                                          \
  X(GetProgramLogSize, (Program, std::size_t*))                                                                        \
  X(GetProgramLog, (Program, char*))

struct Library::Functions {
#define LATILE_NVRTC_DECLARE(name, arguments) int(*name) arguments = nullptr;
  LATILE_NVRTC_FUNCTIONS(LATILE_NVRTC_DECLARE)
#undef LATILE_NVRTC_DECLARE
  const char* (*GetErrorString)(int) = nullptr;
};

namespace {

/// The headers of the toolkit: beside the folder of the library, of which the last parts may be lib/x64 or the like.
std::string headers_beside(const std::string& file) {
  std::error_code none;
  fs::path folder = fs::canonical(file, none).parent_path();
  for (int up = 0; up < 4 && folder.has_relative_path(); ++up, folder = folder.parent_path())
    if (fs::exists(folder / "include" / "cuda_fp16.h", none)) return (folder / "include").string();
  return "";
}

}  // namespace

std::shared_ptr<const Library> Library::open(const std::string& file, std::string& why) {
  void* handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* reason = dlerror();
    why = fmt::format("NVRTC cannot be loaded: {}", reason != nullptr ? reason : file);
    return nullptr;
  }
  auto functions = std::make_shared<Functions>();
  const auto find = [&]<class F>(F& function, const char* name) {
    function = reinterpret_cast<F>(dlsym(handle, name));
    if (function == nullptr && why.empty()) why = fmt::format("{} is no NVRTC: it lacks {}", file, name);
  };
  why.clear();
#define LATILE_NVRTC_FIND(name, arguments) find(functions->name, "nvrtc" #name);
  LATILE_NVRTC_FUNCTIONS(LATILE_NVRTC_FIND)
#undef LATILE_NVRTC_FIND
  find(functions->GetErrorString, "nvrtcGetErrorString");
  int major = 0, minor = 0;
  if (why.empty() && functions->Version(&major, &minor) != 0) why = fmt::format("{} does not say its version", file);
  if (why.empty() && major < 12) why = fmt::format("{} is NVRTC {}.{}; 12.0 or newer is needed", file, major, minor);
  if (!why.empty()) {
    dlclose(handle);
    return nullptr;
  }
  // It stays loaded: it has threads and tables of its own.
  std::shared_ptr<Library> library(new Library());
  Dl_info info;
  const bool known = dladdr(reinterpret_cast<void*>(functions->Version), &info) != 0 && info.dli_fname != nullptr;
  library->file = known ? info.dli_fname : file;
  library->version = fmt::format("{}.{}", major, minor);
  library->include = headers_beside(library->file);
  library->functions = std::move(functions);
  return library;
}

runtime::ChosenLibrary<Library>& Library::chosen() {
  static runtime::ChosenLibrary<Library> one(
      open, "LATILE_NVRTC", {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so", "/usr/local/cuda/lib64/libnvrtc.so"});
  return one;
}

std::shared_ptr<const Library> Library::get(std::string& why) {
  return chosen().get(why, "NVRTC was not found: no libnvrtc.so.13 or .12 where libraries are looked for, none in "
                           "/usr/local/cuda/lib64; install it, or name its file in LATILE_NVRTC");
}

void Library::use(const std::string& file) { chosen().use(file); }

bool Library::compile(const Source& source, std::string& ptx, std::string& failure) const {
  const Functions& f = *functions;
  Program program = nullptr;
  const auto fails = [&](int result, const char* what) {
    if (result == 0) return false;
    failure = fmt::format("NVRTC {}: {}: {}", version, what, f.GetErrorString(result));
    std::size_t size = 0;
    if (program != nullptr && f.GetProgramLogSize(program, &size) == 0 && size > 1) {
      std::string log(size, '\0');
      if (f.GetProgramLog(program, log.data()) == 0) failure += "\n" + std::string(log.c_str());
      while (failure.ends_with('\n')) failure.pop_back();
    }
    return true;
  };
  if (fails(f.CreateProgram(&program, source.text.c_str(), source.name.c_str(), 0, nullptr, nullptr), "the source"))
    return false;
  const auto done = [&](bool result) {
    f.DestroyProgram(&program);
    return result;
  };
  std::vector<std::string> options{fmt::format("--gpu-architecture=compute_{}", source.capability), "--std=c++17"};
  if (!include.empty()) options.push_back("-I" + include);
  options.insert(options.end(), source.options.begin(), source.options.end());
  std::vector<const char*> words;
  for (const std::string& option : options) words.push_back(option.c_str());
  if (fails(f.CompileProgram(program, static_cast<int>(words.size()), words.data()), "the source does not compile"))
    return done(false);
  std::size_t size = 0;
  if (fails(f.GetPTXSize(program, &size), "the size of the PTX")) return done(false);
  ptx.assign(size, '\0');
  if (fails(f.GetPTX(program, ptx.data()), "the PTX")) return done(false);
  ptx.resize(ptx.find_last_not_of('\0') + 1);
  return done(true);
}

}  // namespace latile::nvrtc
