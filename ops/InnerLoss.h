// What ttt and titans share: layer normalisation, and the gradient of the loss of their inner model.
#pragma once
#include "latile/dsl.h"

namespace latile {

/// (x − mean) / √(var + eps) of each row.
inline Tile standardised(Tile x, const Operand& eps) { return (x - rowmean(x)) * rsqrt(rowvar(x) + eps); }

/// Gradient of ½ ‖w x̂ + b − target‖² with respect to y, where x̂ is y standardised.
inline Tile inner_gradient(Tile y, Tile target, const Input& w, const Input& b, const Operand& eps) {
  Tile x = standardised(y, eps), g = w * (w * x + b - target);
  return (g - rowmean(g) - x * rowmean(g * x)) * rsqrt(rowvar(y) + eps);
}

}  // namespace latile
