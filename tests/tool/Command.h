// The command run in this process, and what it printed.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

struct Outcome {
  int code;
  std::string out, err;
};

Outcome command(const std::vector<std::string>& words);

/// A folder that goes away with the object.
class Folder {
public:
  Folder();
  ~Folder();
  std::string file(const std::string& name) const { return (path / name).string(); }
  bool has(const std::string& name) const { return std::filesystem::exists(path / name); }
  std::filesystem::path path;
};

std::string content(const std::string& path);
void put(const std::string& path, const std::string& text);
inline bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }
