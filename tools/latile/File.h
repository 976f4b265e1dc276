// Whole files in and out: what cannot be read is refused by name, what is written appears complete or not at all.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace latile {

/// A regular file that is open for reading; a UserError names it and the reason when it cannot be.
class InputFile {
public:
  explicit InputFile(std::string path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  std::uint64_t size() const { return bytes; }
  /// `count` bytes from `offset`, all of which must lie in the file.
  void read(std::uint64_t offset, void* data, std::size_t count) const;
  /// Throws UserError "PATH: WHY".
  [[noreturn]] void refuse(const std::string& why) const;

private:
  std::string path;
  int handle = -1;
  std::uint64_t bytes = 0;
};

/// All of a file's bytes.
std::string read_file(const std::string& path);

/// Writes paths and their contents: each under a temporary name beside its target, synced, and when all of them are,
/// renamed one after another. So a full disk or a folder that cannot be written to leaves every old file as it was.
/// Throws UserError.
void write_files(const std::vector<std::pair<std::string, std::string>>& files);
void write_file(const std::string& path, const std::string& content);

}  // namespace latile
