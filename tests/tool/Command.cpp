#include "tests/tool/Command.h"
#include "latile/tool.h"
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <unistd.h>

namespace {

/// Sends a file descriptor to a temporary file for a while.
class Capture {
public:
  explicit Capture(std::FILE* stream) : stream(stream), file(std::tmpfile()) {
    std::fflush(stream);
    saved = ::dup(::fileno(stream));
    ::dup2(::fileno(file), ::fileno(stream));
  }
  std::string end() {
    std::fflush(stream);
    ::dup2(saved, ::fileno(stream));
    ::close(saved);
    std::string text;
    std::rewind(file);
    for (int c; (c = std::fgetc(file)) != EOF;) text += static_cast<char>(c);
    std::fclose(file);
    return text;
  }

private:
  std::FILE *stream, *file;
  int saved;
};

}  // namespace

Outcome command(const std::vector<std::string>& words) {
  std::vector<std::string> copy{"latile"};
  copy.insert(copy.end(), words.begin(), words.end());
  std::vector<char*> argv;
  for (std::string& word : copy) argv.push_back(word.data());
  Capture out(stdout), err(stderr);
  Outcome outcome;
  outcome.code = latile::tool_main(static_cast<int>(argv.size()), argv.data());
  outcome.out = out.end();
  outcome.err = err.end();
  return outcome;
}

Folder::Folder() {
  std::string name = (std::filesystem::temp_directory_path() / "latile-test-XXXXXX").string();
  path = ::mkdtemp(name.data());
}
Folder::~Folder() { std::filesystem::remove_all(path); }

std::string content(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

void put(const std::string& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }
