// Element types as an operator declares them. Part of the language's public headers.
#pragma once
#include <cstdint>

namespace latile {

/// Element type of a tensor as declared: `io` is the operator's one tensor type, `any` is io or float32 as bound.
enum class Type : std::uint8_t { io, any, f32, i32, i64 };

}  // namespace latile
