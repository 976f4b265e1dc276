#include "dsl/Describe.h"
#include "tools/operator-docs/Page.h"
#include <algorithm>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace latile::docs {
namespace {

std::vector<std::string> lines_of(const std::filesystem::path& file) {
  std::ifstream in(file);
  if (!in) throw std::runtime_error(file.string() + " cannot be read");
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::string trimmed(const std::string& s) {
  const std::size_t begin = s.find_first_not_of(" \t"), end = s.find_last_not_of(" \t\r");
  return begin == s.npos ? "" : s.substr(begin, end - begin + 1);
}

/// The comment that stands above the definition.
std::string comment_above(const std::vector<std::string>& lines, const std::string& name) {
  std::string text;
  for (const std::string& line : lines) {
    if (line.starts_with("/// "))
      text += (text.empty() ? "" : "\n") + line.substr(4);
    else if (line.starts_with("void " + name + "("))
      return text;
    else
      text.clear();
  }
  return {};
}

std::vector<std::string> other_values(const OptionInfo& o) {
  std::vector<std::string> values = o.values;
  if (o.kind == OptionInfo::Kind::integer) values = {std::to_string(o.lo), std::to_string(o.hi)};
  if (o.kind == OptionInfo::Kind::number) values = {"-1", "1"};
  std::erase(values, o.fallback);
  return values;
}

}  // namespace

int code_lines(const std::filesystem::path& file) {
  int count = 0;
  for (const std::string& line : lines_of(file)) {
    const std::string text = trimmed(line);
    count += !text.empty() && !text.starts_with("//");
  }
  return count;
}

Described describe_all(const OperatorRow& row, const std::filesystem::path& ops) {
  Described d{&row, discover(row), {}, {}, std::string(row.formula), 0, {}};
  std::vector<Diagnostic> ignored;
  OperatorInfo plain = describe(row, {}, ignored);
  const auto note = [&](const OperatorInfo& with, const std::string& setting) {
    for (const TensorInfo& t : with.tensors)
      if (!plain.tensor(t.name)) d.with.emplace(t.name, setting);
    for (const ScalarInfo& s : with.scalars)
      if (std::none_of(plain.scalars.begin(), plain.scalars.end(), [&](auto& p) { return p.name == s.name; }))
        d.with.emplace(s.name, setting);
    if (!with.no_prefill.empty()) d.no_prefill.emplace_back(setting, with.no_prefill);
  };
  for (const OptionInfo& option : d.info.options)
    for (const std::string& value : other_values(option)) {
      const std::string setting = option.kind == OptionInfo::Kind::number ? option.name : option.name + " = " + value;
      note(describe(row, {{{option.name, value}}, {}}, ignored), setting);
    }

  const std::filesystem::path file = ops / (std::string(row.name) + ".cpp");
  const std::vector<std::string> lines = lines_of(file);
  if (d.formula.empty()) d.formula = comment_above(lines, std::string(row.name));
  d.code_lines = code_lines(file);
  for (const std::string& line : lines)
    if (const std::string start = "#include \"ops/"; line.starts_with(start))
      d.own_headers += (d.own_headers.empty() ? "" : ", ") + line.substr(start.size(), line.rfind('"') - start.size());
  return d;
}

Table read_table(const std::filesystem::path& file) {
  const auto cells = [](const std::string& line) {
    std::vector<std::string> out;
    std::stringstream in(line);
    for (std::string cell; std::getline(in, cell, ',');) out.push_back(cell);
    return out;
  };
  const std::vector<std::string> lines = lines_of(file);
  Table table;
  if (lines.empty()) return table;
  const std::vector<std::string> heading = cells(lines[0]);
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const std::vector<std::string> row = cells(lines[i]);
    if (row.size() != heading.size())
      throw std::runtime_error(file.string() + ": line " + std::to_string(i + 1) + " has " +
                               std::to_string(row.size()) + " cells; the heading has " +
                               std::to_string(heading.size()));
    for (std::size_t c = 1; c < row.size(); ++c) table[row[0]][heading[c]] = row[c];
  }
  return table;
}

}  // namespace latile::docs
