// The subcommands. Each function adds one to the application; its work runs as the subcommand's callback and leaves
// the exit code in `code`.
#pragma once
#include "latile/table.h"
#include <CLI/CLI.hpp>
#include <string>
#include <utility>
#include <vector>

namespace latile {

void add_list(CLI::App&, int& code);
void add_check(CLI::App&, int& code);
void add_run(CLI::App&, int& code);
void add_bench(CLI::App&, int& code);
void add_compile(CLI::App&, int& code);
void add_doctor(CLI::App&, int& code);
void add_bundle(CLI::App&, int& code);
void add_cache(CLI::App&, int& code);

/// The row of that name; throws UserError that names the nearest one.
const OperatorRow& operator_named(const std::string&);
/// "name=value" split at the first '='; throws UserError that quotes `flag`.
std::pair<std::string, std::string> split_pair(const std::string& text, const char* flag);
/// A number that fills the whole word; throws UserError.
double number_in(const std::string& word, const std::string& what);
std::int64_t integer_in(const std::string& word, const std::string& what);
/// Throws UserError when there is no such level or this CPU lacks it. "": native.
void need_isa(const std::string& level);

}  // namespace latile
