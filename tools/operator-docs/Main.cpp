// latile-operator-docs OPS DOCS [--check]: writes the pages of the built-in operators into DOCS, which holds fla.csv;
// with --check it compares and says what differs.
#include "tools/operator-docs/Page.h"
#include <cstdio>
#include <exception>
#include <fstream>
#include <iterator>

namespace {

using namespace latile;
namespace fs = std::filesystem;

std::map<std::string, std::string> pages(const fs::path& ops, const fs::path& docs) {
  std::map<std::string, std::string> files;
  std::vector<docs::Described> all;
  for (const OperatorRow& row : operators()) {
    all.push_back(docs::describe_all(row, ops));
    files[std::string(row.name) + ".md"] = docs::page(all.back());
  }
  std::map<std::string, int> headers;
  for (const auto& entry : fs::directory_iterator(ops))
    if (entry.path().extension() == ".h") headers[entry.path().filename()] = docs::code_lines(entry.path());
  files["README.md"] = docs::index(all, docs::read_table(docs / "fla.csv"), headers);
  return files;
}

std::string content(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

int run(const fs::path& ops, const fs::path& docs, bool check) {
  const std::map<std::string, std::string> files = pages(ops, docs);
  int stale = 0;
  for (const auto& [name, text] : files) {
    if (content(docs / name) == text) continue;
    ++stale;
    if (check)
      std::fprintf(stderr, "%s is not what the operators give; ninja latile_operator_docs renews it\n",
                   (docs / name).c_str());
    else
      std::ofstream(docs / name, std::ios::binary) << text;
  }
  for (const auto& entry : fs::directory_iterator(docs))
    if (entry.path().extension() == ".md" && !files.contains(entry.path().filename())) {
      ++stale;
      std::fprintf(stderr, "%s is the page of no operator; remove it\n", entry.path().c_str());
    }
  return check && stale ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  const bool check = argc == 4 && std::string(argv[3]) == "--check";
  if (argc != 3 && !check) return std::fprintf(stderr, "usage: latile-operator-docs OPS DOCS [--check]\n"), 2;
  try {
    return run(argv[1], argv[2], check);
  } catch (const std::exception& e) { return std::fprintf(stderr, "latile-operator-docs: %s\n", e.what()), 2; }
}
