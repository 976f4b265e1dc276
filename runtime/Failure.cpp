#include "runtime/Failure.h"
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <fmt/ranges.h>
#include <numeric>

namespace latile::runtime {
namespace {

std::size_t edits(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row.back();
}

}  // namespace

std::string suggestion(const std::string& wanted, const std::vector<std::string>& candidates) {
  const std::string* best = nullptr;
  std::size_t distance = std::max<std::size_t>(2, wanted.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    const std::size_t d = edits(wanted, candidate);
    if (d < distance && d < std::max(wanted.size(), candidate.size())) best = &candidate, distance = d;
  }
  if (best != nullptr) return fmt::format(", did you mean '{}'?", *best);
  if (candidates.empty()) return {};
  return fmt::format("; there are: '{}'", fmt::join(candidates, "', '"));
}

void fill(latile_error* error, latile_status status, const std::string& text, std::int32_t driver_code) noexcept {
  if (error == nullptr) return;
  const std::size_t room = std::min(error->size, sizeof(latile_error));
  if (room >= offsetof(latile_error, driver_code)) error->status = status;
  if (room >= offsetof(latile_error, text)) error->driver_code = driver_code;
  if (room <= offsetof(latile_error, text)) return;
  std::size_t length = std::min(text.size(), room - offsetof(latile_error, text) - 1);
  // Never end within a UTF-8 sequence.
  if (length < text.size())
    while (length > 0 && (static_cast<unsigned char>(text[length]) & 0xc0u) == 0x80u) --length;
  std::memcpy(error->text, text.data(), length);
  error->text[length] = 0;
}

void check_size(const void* structure, std::size_t size, std::size_t known, const char* name) {
  if (size < known)
    fail(LATILE_BAD_ARGUMENT, "{}.size is {}, below the {} bytes of this version; set it to sizeof({})", name, size,
         known, name);
  // A size field that was never set is rarely a plausible one: reading megabytes of tail would be a fault of its own.
  if (size > known + 4096)
    fail(LATILE_BAD_ARGUMENT, "{}.size is {}, which no version has; set it to sizeof({})", name, size, name);
  const char* bytes = static_cast<const char*>(structure);
  if (std::any_of(bytes + known, bytes + size, [](char byte) { return byte != 0; }))
    fail(LATILE_UNSUPPORTED, "{} has a field set that this version of latile does not know; use a newer library", name);
}

}  // namespace latile::runtime
