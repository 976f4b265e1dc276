// What based and rebased share: states over pairs of key channels.
#pragma once
#include "latile/dsl.h"

namespace latile {

inline constexpr int taylor_limit = 32;
inline constexpr const char* taylor_why =
    "the state of second order has K squared rows, which only small keys make worthwhile";

}  // namespace latile
