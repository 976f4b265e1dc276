// How the runtime says no: a status and one sentence, thrown inside the library and caught at the C border.
#pragma once
#include "latile/latile.h"
#include <cstdint>
#include <fmt/format.h>
#include <string>
#include <vector>

namespace latile::runtime {

struct Failure {
  latile_status status;
  std::string text;
  std::int32_t driver_code = 0;  ///< with LATILE_DRIVER
};

template <class... A> [[noreturn]] void fail(latile_status status, fmt::format_string<A...> text, A&&... arguments) {
  throw Failure{status, fmt::format(text, std::forward<A>(arguments)...), 0};
}

/// ", did you mean 'q'?" for the candidate nearest to `wanted`; else "; there are: 'q', 'k'"; both empty for none.
std::string suggestion(const std::string& wanted, const std::vector<std::string>& candidates);

/// Fills what the caller's structure has room for; `error` may be null.
void fill(latile_error* error, latile_status status, const std::string& text, std::int32_t driver_code = 0) noexcept;

/// The `size` of a caller's structure of which this library knows `known` bytes: refuses smaller ones, and larger ones
/// whose unknown tail is not zero.
void check_size(const void* structure, std::size_t size, std::size_t known, const char* name);

/// Runs `body` at the C border: nothing is thrown past it, `error` is filled, the status returned.
template <class Body> latile_status guarded(latile_error* error, Body&& body) noexcept {
  try {
    body();
    fill(error, LATILE_OK, {});
    return LATILE_OK;
  } catch (const Failure& failure) {
    fill(error, failure.status, failure.text, failure.driver_code);
    return failure.status;
  } catch (const std::bad_alloc&) {
    fill(error, LATILE_OUT_OF_MEMORY, "out of memory");
    return LATILE_OUT_OF_MEMORY;
  } catch (const std::exception& exception) {
    fill(error, LATILE_INTERNAL, exception.what());
    return LATILE_INTERNAL;
  } catch (...) {
    fill(error, LATILE_INTERNAL, "an exception of unknown type");
    return LATILE_INTERNAL;
  }
}

}  // namespace latile::runtime
