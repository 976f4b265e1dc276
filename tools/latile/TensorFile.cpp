#include "tools/latile/TensorFile.h"
#include "tools/latile/File.h"
#include "tools/latile/Npy.h"
#include "tools/latile/Safetensors.h"
#include "tools/latile/UserError.h"
#include <filesystem>
#include <fmt/format.h>
#include <map>

namespace latile {
namespace {

constexpr std::string_view extension = ".safetensors";

/// One spelling for each file, so that "o.npy" and "./o.npy" are one.
std::string place_of(const std::string& path) {
  std::error_code error;
  const std::filesystem::path place = std::filesystem::weakly_canonical(std::filesystem::absolute(path, error), error);
  return error ? path : place.string();
}

}  // namespace

TensorFile tensor_file(const std::string& text, const std::string& fallback) {
  if (text.ends_with(extension)) return {text, fallback};
  const std::size_t at = text.rfind(std::string(extension) + ":");
  if (at == std::string::npos) return {text, ""};
  TensorFile file{text.substr(0, at + extension.size()), text.substr(at + extension.size() + 1)};
  if (file.name.empty() || file.name == "__metadata__")
    throw UserError(fmt::format("'{}' names no tensor behind its ':'", text));
  return file;
}

HostTensor read_tensor(const TensorFile& file, bool bfloat_words) {
  return file.name.empty() ? read_npy(file.path, bfloat_words) : read_safetensors(file.path, file.name);
}

void check_distinct(const std::vector<TensorFile>& files) {
  std::map<std::string, std::map<std::string, int>> seen;
  for (const TensorFile& file : files) {
    auto& names = seen[place_of(file.path)];
    if (++names[file.name] > 1)
      throw UserError(
          file.name.empty()
              ? fmt::format("{} would be written twice; give each tensor a .npy file of its own", file.path)
              : fmt::format("{} would get two tensors '{}'; name one as {}:NAME", file.path, file.name, file.path));
    if (names.contains("") && names.size() > 1)
      throw UserError(fmt::format("{} would be written in two formats", file.path));
  }
}

void write_tensors(const std::vector<std::pair<TensorFile, HostTensor>>& tensors, bool bfloat_words) {
  std::vector<std::pair<std::string, std::string>> files;
  std::map<std::string, std::vector<std::pair<std::string, const HostTensor*>>> together;
  std::map<std::string, std::string> path_of;
  for (const auto& [file, tensor] : tensors) {
    if (file.name.empty()) {
      files.emplace_back(file.path, npy_content(tensor, bfloat_words));
      continue;
    }
    const std::string place = place_of(file.path);
    path_of.emplace(place, file.path);
    together[place].emplace_back(file.name, &tensor);
  }
  for (auto& [place, list] : together) files.emplace_back(path_of.at(place), safetensors_content(std::move(list)));
  write_files(files);
}

}  // namespace latile
