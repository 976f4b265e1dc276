#include "runtime/Cache.h"
#include "runtime/CacheFolder.h"
#include "tools/latile/Commands.h"
#include "tools/latile/UserError.h"
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <unistd.h>

namespace latile {
namespace {

using runtime::CacheFile;
using runtime::CacheFolder;

CacheFolder listed(const std::string& folder) {
  if (folder.empty()) throw UserError("there is no cache folder: neither LATILE_CACHE_DIR nor HOME is set");
  CacheFolder found(folder);
  if (!found.problem.empty()) throw UserError(fmt::format("{}: cannot be listed: {}", folder, found.problem));
  return found;
}

std::string time_text(std::int64_t nanoseconds) {
  return fmt::format("{:%Y-%m-%d %H:%M}", fmt::localtime(static_cast<std::time_t>(nanoseconds / 1'000'000'000)));
}

/// Operator, mode and target of an entry, as far as its key says them.
nlohmann::ordered_json meaning(const CacheFile& file) {
  nlohmann::ordered_json j = {{"file", file.path}, {"bytes", file.bytes}, {"used", time_text(file.used)}};
  const auto key = nlohmann::json::parse(runtime::entry_key(file.path), nullptr, false);
  if (!key.is_object() || !key.contains("specialisation") || !key["specialisation"].is_object()) return j;
  const auto& s = key["specialisation"];
  j["op"] = s.value("op", "?"), j["mode"] = s.value("mode", "?");
  j["target"] = s.contains("device") ? s.value("device", "?") : "host:" + s.value("isa", "?");
  j["compiler"] = key.value("compiler", "?");
  return j;
}

void info(const std::string& folder, bool entries, bool json) {
  const CacheFolder found = listed(folder);
  std::string complaint;
  const std::uint64_t limit = runtime::cache_size_limit(complaint);
  const bool unlimited = limit == std::numeric_limits<std::uint64_t>::max();
  if (json) {
    nlohmann::ordered_json j = {{"folder", folder},
                                {"entries", found.entries.size()},
                                {"bytes", found.bytes()},
                                {"limit", unlimited ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(limit)},
                                {"leftovers", found.leftovers.size()}};
    if (entries)
      for (const CacheFile& file : found.entries) j["list"].push_back(meaning(file));
    return fmt::print("{}\n", j.dump(2));
  }
  if (!complaint.empty()) fmt::print(stderr, "latile: {}\n", complaint);
  fmt::print("{}{}\n", folder, found.exists ? "" : ": does not exist yet");
  fmt::print("  entries    {}\n  bytes      {} of at most {}\n", found.entries.size(), found.bytes(),
             unlimited ? "any number" : std::to_string(limit));
  if (!found.leftovers.empty())
    fmt::print("  leftovers  {} of processes at work, or that died\n", found.leftovers.size());
  if (!found.entries.empty())
    fmt::print("  used       {} to {}\n", time_text(found.entries.front().used), time_text(found.entries.back().used));
  if (!entries) return;
  for (const CacheFile& file : found.entries) {
    const auto j = meaning(file);
    fmt::print("  {}  {:>9}  {} {} {}\n", time_text(file.used), file.bytes, j.value("op", "?"), j.value("mode", "?"),
               j.value("target", "?"));
  }
}

/// Gives whether all entries are whole.
bool verify(const std::string& folder, bool remove) {
  const CacheFolder found = listed(folder);
  std::size_t bad = 0;
  for (const CacheFile& file : found.entries) {
    const std::string why = runtime::verify_entry(file.path);
    if (why.empty()) continue;
    ++bad;
    const bool gone = remove && ::unlink(file.path.c_str()) == 0;
    fmt::print("{}: {}{}\n", file.path, why, gone ? "; removed" : "");
  }
  fmt::print("{} of {} entries are whole\n", found.entries.size() - bad, found.entries.size());
  return bad == 0;
}

void clear(const std::string& folder) {
  const CacheFolder found = listed(folder);
  std::size_t removed = 0;
  for (const CacheFile& file : found.entries)
    if (::unlink(file.path.c_str()) == 0)
      ++removed;
    else if (errno != ENOENT)
      throw UserError(fmt::format("{}: cannot be removed: {}", file.path, std::strerror(errno)));
  runtime::sweep(found);
  fmt::print("{}: {} entries removed, {} bytes\n", folder, removed, found.bytes());
}

}  // namespace

void add_cache(CLI::App& app, int& code) {
  CLI::App* sub = app.add_subcommand("cache", "The folder of compiled plans");
  sub->require_subcommand(1);
  auto folder = std::make_shared<std::string>(runtime::Cache::default_folder());
  auto entries = std::make_shared<bool>(false), json = std::make_shared<bool>(false),
       remove = std::make_shared<bool>(false);
  const auto part = [&](const char* name, const char* help) {
    CLI::App* made = sub->add_subcommand(name, help);
    made->add_option("--dir", *folder, "The folder; default the user's")->capture_default_str();
    return made;
  };
  CLI::App* show = part("info", "How many entries and bytes it has, and its limit (LATILE_CACHE_SIZE)");
  show->add_flag("--entries", *entries, "Each entry, the one used longest ago first");
  show->add_flag("--json", *json, "A JSON object");
  show->callback([=, &code] {
    info(*folder, *entries, *json);
    code = exit_ok;
  });
  CLI::App* check = part("verify", "Reads every entry in full; exit code 1 when one is damaged");
  check->add_flag("--remove", *remove, "Removes those that are");
  check->callback([=, &code] { code = verify(*folder, *remove) ? exit_ok : exit_failed; });
  part("clear", "Removes all entries")->callback([=, &code] {
    clear(*folder);
    code = exit_ok;
  });
}

}  // namespace latile
