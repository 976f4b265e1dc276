// An NVRTC that only knows its version, which FAKE_NVRTC_VERSION gives ("13.0"), and compiles nothing.
#include <cstddef>
#include <cstdio>
#include <cstdlib>

#define FAKE extern "C" __attribute__((visibility("default")))

FAKE int nvrtcVersion(int* major, int* minor) {
  const char* text = std::getenv("FAKE_NVRTC_VERSION");
  return text != nullptr && std::sscanf(text, "%d.%d", major, minor) == 2 ? 0 : 1;
}
FAKE int nvrtcCreateProgram(void** program, const char*, const char*, int, const char* const*, const char* const*) {
  static int one;
  return *program = &one, 0;
}
FAKE int nvrtcDestroyProgram(void**) { return 0; }
FAKE int nvrtcCompileProgram(void*, int, const char* const*) { return 6; }
FAKE int nvrtcGetPTXSize(void*, std::size_t*) { return 6; }
FAKE int nvrtcGetPTX(void*, char*) { return 6; }
FAKE int nvrtcGetProgramLogSize(void*, std::size_t* size) { return *size = 0, 0; }
FAKE int nvrtcGetProgramLog(void*, char*) { return 0; }
FAKE const char* nvrtcGetErrorString(int) { return "FAKE_ERROR"; }
