#include "latile/tool.h"
#include "compiler/Compile.h"
#include "runtime/EmulatedDevice.h"
#include "tools/latile/Commands.h"
#include "tools/latile/UserError.h"
#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <numeric>

namespace latile {
namespace {

std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t keep = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({keep, diagonal + 1, row[j] + 1});
    }
  }
  return row.back();
}

/// The name closest to a misspelt one.
std::string nearest(std::string_view name, const std::vector<std::string>& known) {
  return *std::min_element(known.begin(), known.end(), [&](const std::string& a, const std::string& b) {
    return distance(name, a) < distance(name, b);
  });
}

void need_command(const CLI::App& app, std::string_view word) {
  std::vector<std::string> known;
  for (const CLI::App* sub : app.get_subcommands({})) known.push_back(sub->get_name());
  if (word.starts_with('-') || std::find(known.begin(), known.end(), word) != known.end()) return;
  throw UserError(fmt::format("there is no command '{}'; did you mean '{}'? `latile --help` names all", word,
                              nearest(word, known)));
}

}  // namespace

const OperatorRow& operator_named(const std::string& name) {
  if (const OperatorRow* row = find_operator(name)) return *row;
  std::vector<std::string> known;
  for (const OperatorRow& row : operators()) known.emplace_back(row.name);
  if (known.empty()) throw UserError(fmt::format("there is no operator '{}'", name));
  throw UserError(
      fmt::format("there is no operator '{}'; did you mean '{}'? `latile list` names all", name, nearest(name, known)));
}

std::pair<std::string, std::string> split_pair(const std::string& text, const char* flag) {
  const std::size_t at = text.find('=');
  if (at == std::string::npos || at == 0 || at + 1 == text.size())
    throw UserError(fmt::format("{} '{}' is not of the form NAME=VALUE", flag, text));
  return {text.substr(0, at), text.substr(at + 1)};
}

double number_in(const std::string& word, const std::string& what) {
  std::size_t used = 0;
  double value = NAN;
  try {
    value = std::stod(word, &used);
  } catch (const std::exception&) { used = 0; }
  if (used == 0 || used != word.size() || !std::isfinite(value))
    throw UserError(fmt::format("{} is '{}', which is not a finite number", what, word));
  return value;
}

std::int64_t integer_in(const std::string& word, const std::string& what) {
  const double value = number_in(word, what);
  if (value != std::floor(value) || std::fabs(value) > 0x1p53)
    throw UserError(fmt::format("{} is '{}', which is not a whole number", what, word));
  return static_cast<std::int64_t>(value);
}

int tool_main(int argc, char** argv) {
  install_compiler();
  runtime::install_emulated_devices();
  CLI::App app("latile: linear-attention operators, written once, compiled for this machine", "latile");
  app.set_version_flag("--version", std::string("latile " LATILE_VERSION));
  app.require_subcommand(1);
  app.footer("Exit codes: 0 done; 1 `check` found an error above its tolerance; 2 a command line, file or argument is "
             "refused; 3 a fault of latile.");
  int code = exit_ok;
  add_list(app, code);
  add_check(app, code);
  add_run(app, code);
  add_bench(app, code);
  add_compile(app, code);
  add_doctor(app, code);
  add_bundle(app, code);
  add_cache(app, code);
  try {
    if (argc > 1) need_command(app, argv[1]);
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp& e) { return app.exit(e); } catch (const CLI::CallForAllHelp& e) {
    return app.exit(e);
  } catch (const CLI::CallForVersion& e) { return app.exit(e); } catch (const CLI::ParseError& e) {
    fmt::print(stderr, "latile: {} (see `latile --help`)\n", e.what());
    return exit_bad_use;
  } catch (const DefinitionError& e) {
    fmt::print(stderr, "{}\n", e.what());
    return e.code;
  } catch (const UserError& e) {
    fmt::print(stderr, "latile: {}\n", e.what());
    return e.code;
  } catch (const std::exception& e) {
    fmt::print(stderr, "latile: internal fault: {}\n", e.what());
    return exit_internal;
  }
  return code;
}

}  // namespace latile
