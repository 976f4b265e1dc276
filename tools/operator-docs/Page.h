// Pages of docs/operators, made from the operator table and from the sources of the definitions.
#pragma once
#include "dsl/OperatorInfo.h"
#include "latile/table.h"
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace latile::docs {

/// An operator with all that any of its options brings in.
struct Described {
  const OperatorRow* row;
  OperatorInfo info;
  std::map<std::string, std::string> with;  ///< tensor or scalar -> "option = value" that brings it in
  std::vector<std::pair<std::string, std::string>> no_prefill;  ///< "option = value" without a chunk body, and why
  std::string formula;
  int code_lines = 0;       ///< of its own file
  std::string own_headers;  ///< headers of ops/ that it includes
};

Described describe_all(const OperatorRow&, const std::filesystem::path& ops);
/// Lines that hold code: neither blank nor a comment alone.
int code_lines(const std::filesystem::path&);

/// One operator's page.
std::string page(const Described&);

/// Whether a variant is offered, as a cell: "yes", "n/a", or the reason of a refusal after "no: ".
struct Capability {
  const char* name;
  std::string (*cell)(const OperatorInfo&);
};
const std::vector<Capability>& capabilities();

/// What another library offers, by operator and column; read from a CSV file with a heading.
using Table = std::map<std::string, std::map<std::string, std::string>>;
Table read_table(const std::filesystem::path&);

/// The page that lists all operators beside `other`. headers: code lines of the shared ones by name.
std::string index(const std::vector<Described>&, const Table& other, const std::map<std::string, int>& headers);

}  // namespace latile::docs
