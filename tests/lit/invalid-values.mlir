// RUN: latile-opt %s --split-input-file --verify-diagnostics

// dot: inner extents.
tile.kernel @k(%n: index, %_x: !tile.view<16x8xf32>, %_a: !tile.view<16x16xf32>) attributes {grid = ["N"], arg_names = ["x", "a"]} {
  %x = tile.load %_x[] : !tile.view<16x8xf32> -> tensor<16x8xf32>
  %a = tile.load %_a[] : !tile.view<16x16xf32> -> tensor<16x16xf32>
  // expected-error @+1 {{inner extents differ: 16x8 by 16x16}}
  %y = tile.dot %x, %a : tensor<16x8xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
}

// -----

// dot: element types.
tile.kernel @k(%n: index, %_x: !tile.view<16x8xf32>, %_b: !tile.view<8x16xbf16>) attributes {grid = ["N"], arg_names = ["x", "b"]} {
  %x = tile.load %_x[] : !tile.view<16x8xf32> -> tensor<16x8xf32>
  %b = tile.load %_b[] : !tile.view<8x16xbf16> -> tensor<8x16xbf16>
  // expected-error @+1 {{operands have one element type, not 'f32' and 'bf16'}}
  %y = tile.dot %x, %b : tensor<16x8xf32>, tensor<8x16xbf16> -> tensor<16x16xf32>
}

// -----

// dot: result.
tile.kernel @k(%n: index, %_a: !tile.view<16x16xf32>) attributes {grid = ["N"], arg_names = ["a"]} {
  %a = tile.load %_a[] : !tile.view<16x16xf32> -> tensor<16x16xf32>
  // expected-error @+1 {{the result must be 'tensor<16x16xf32>', is 'tensor<16x8xf32>'}}
  %y = tile.dot %a, %a : tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x8xf32>
}

// -----

// broadcast of an extent that is not 1.
tile.kernel @k(%n: index, %_x: !tile.view<16x8xf32>) attributes {grid = ["N"], arg_names = ["x"]} {
  %x = tile.load %_x[] : !tile.view<16x8xf32> -> tensor<16x8xf32>
  // expected-error @+1 {{repeats extents of 1 only; 16x8 does not broadcast to 16x16}}
  %y = tile.broadcast %x : tensor<16x8xf32> -> tensor<16x16xf32>
}

// -----

// broadcast keeps the type.
tile.kernel @k(%n: index, %_g: !tile.view<16x1xf32>) attributes {grid = ["N"], arg_names = ["g"]} {
  %g = tile.load %_g[] : !tile.view<16x1xf32> -> tensor<16x1xf32>
  // expected-error @+1 {{keeps the element type}}
  %y = tile.broadcast %g : tensor<16x1xf32> -> tensor<16x8xbf16>
}

// -----

// cast keeps the shape.
tile.kernel @k(%n: index, %_x: !tile.view<16x8xf32>) attributes {grid = ["N"], arg_names = ["x"]} {
  %x = tile.load %_x[] : !tile.view<16x8xf32> -> tensor<16x8xf32>
  // expected-error @+1 {{operands/results must have the same shape}}
  %y = tile.cast %x : tensor<16x8xf32> -> tensor<8x16xbf16>
}

// -----

// transpose.
tile.kernel @k(%n: index, %_x: !tile.view<16x8xf32>) attributes {grid = ["N"], arg_names = ["x"]} {
  %x = tile.load %_x[] : !tile.view<16x8xf32> -> tensor<16x8xf32>
  // expected-error @+1 {{the result must be 'tensor<8x16xf32>'}}
  %y = tile.transpose %x : tensor<16x8xf32> -> tensor<16x8xf32>
}

// -----

// row outside.
tile.kernel @k(%n: index, %_x: !tile.view<16x8xf32>) attributes {grid = ["N"], arg_names = ["x"]} {
  %x = tile.load %_x[] : !tile.view<16x8xf32> -> tensor<16x8xf32>
  // expected-error @+1 {{row 16 is outside a tile of 16 rows}}
  %y = tile.row at %x {at = 16} : tensor<16x8xf32> -> tensor<1x8xf32>
}

// -----

// last valid row of what.
tile.kernel @k(%n: index, %_x: !tile.view<16x8xf32>) attributes {grid = ["N"], arg_names = ["x"]} {
  %x = tile.load %_x[] : !tile.view<16x8xf32> -> tensor<16x8xf32>
  // expected-error @+1 {{outside a scan needs a rows operand}}
  %y = tile.row last_valid %x : tensor<16x8xf32> -> tensor<1x8xf32>
}

// -----

// place_row outside.
tile.kernel @k(%n: index, %_r: !tile.view<1x8xf32>) attributes {grid = ["N"], arg_names = ["r"]} {
  %r = tile.load %_r[] : !tile.view<1x8xf32> -> tensor<1x8xf32>
  // expected-error @+1 {{row 20 is outside a tile of 16 rows}}
  %y = tile.place_row at %r {at = 20} : tensor<1x8xf32> -> tensor<16x8xf32>
}

// -----

// place_row of several rows.
tile.kernel @k(%n: index, %_x: !tile.view<16x8xf32>) attributes {grid = ["N"], arg_names = ["x"]} {
  %x = tile.load %_x[] : !tile.view<16x8xf32> -> tensor<16x8xf32>
  // expected-error @+1 {{places one row among rows as long, not 16x8 in 16x8}}
  %y = tile.place_row last %x : tensor<16x8xf32> -> tensor<16x8xf32>
}

// -----

// prev.
tile.kernel @k(%n: index, %_x: !tile.view<16x8xf32>, %_g: !tile.view<16x1xf32>) attributes {grid = ["N"], arg_names = ["x", "g"]} {
  %x = tile.load %_x[] : !tile.view<16x8xf32> -> tensor<16x8xf32>
  %g = tile.load %_g[] : !tile.view<16x1xf32> -> tensor<16x1xf32>
  // expected-error @+1 {{the row it starts from must be 'tensor<1x8xf32>', is 'tensor<16x1xf32>'}}
  %y = tile.prev %x from %g : tensor<16x1xf32>, tensor<16x8xf32>
}

// -----

// repeat_rows.
tile.kernel @k(%n: index, %_x: !tile.view<16x8xf32>) attributes {grid = ["N"], arg_names = ["x"]} {
  %x = tile.load %_x[] : !tile.view<16x8xf32> -> tensor<16x8xf32>
  // expected-error @+1 {{repeats each row at least once, not 0 times}}
  %y = tile.repeat_rows %x times 0 : tensor<16x8xf32> -> tensor<16x8xf32>
}

// -----

// sum_rows.
tile.kernel @k(%n: index, %_x: !tile.view<16x8xf32>) attributes {grid = ["N"], arg_names = ["x"]} {
  %x = tile.load %_x[] : !tile.view<16x8xf32> -> tensor<16x8xf32>
  // expected-error @+1 {{sums groups of 3 rows, into which 16 do not divide}}
  %y = tile.sum_rows %x by 3 : tensor<16x8xf32> -> tensor<5x8xf32>
}

// -----

// mask of a tile that is no square.
tile.kernel @k(%n: index, %_x: !tile.view<16x8xf32>) attributes {grid = ["N"], arg_names = ["x"]} {
  %x = tile.load %_x[] : !tile.view<16x8xf32> -> tensor<16x8xf32>
  // expected-error @+1 {{a mask with stair 1 has 1 times as many columns as rows; the tile is 16x8}}
  %y = tile.mask lower %x : tensor<16x8xf32>
}

// -----

// mask: stair.
tile.kernel @k(%n: index, %_a: !tile.view<16x16xf32>) attributes {grid = ["N"], arg_names = ["a"]} {
  %a = tile.load %_a[] : !tile.view<16x16xf32> -> tensor<16x16xf32>
  // expected-error @+1 {{stair must be positive, is 0}}
  %y = tile.mask lower %a {stair = 0} : tensor<16x16xf32>
}

// -----

// diagonal.
tile.kernel @k(%n: index, %_x: !tile.view<16x8xf32>) attributes {grid = ["N"], arg_names = ["x"]} {
  %x = tile.load %_x[] : !tile.view<16x8xf32> -> tensor<16x8xf32>
  // expected-error @+1 {{takes a column, not a tile of 16x8}}
  %y = tile.diagonal %x : tensor<16x8xf32> -> tensor<16x16xf32>
}

// -----

// lookup: levels.
tile.kernel @k(%n: index, %_g: !tile.view<16x1xf32>) attributes {grid = ["N"], arg_names = ["g"]} {
  %g = tile.load %_g[] : !tile.view<16x1xf32> -> tensor<16x1xf32>
  // expected-error @+1 {{needs 5 levels for 16 rows, has 1}}
  %y = tile.lookup fenwick %g : tensor<16x1xf32> -> tensor<16x16xf32>
}

// -----

// lookup: rows.
tile.kernel @k(%n: index, %_x: !tile.view<16x8xf32>) attributes {grid = ["N"], arg_names = ["x"]} {
  %x = tile.load %_x[] : !tile.view<16x8xf32> -> tensor<16x8xf32>
  // expected-error @+1 {{relates a square and as many rows of levels, not 16x8 and 16x8}}
  %y = tile.lookup fenwick %x : tensor<16x8xf32> -> tensor<16x8xf32>
}

// -----

// reduce: axis.
tile.kernel @k(%n: index, %_x: !tile.view<16x8xf32>) attributes {grid = ["N"], arg_names = ["x"]} {
  %x = tile.load %_x[] : !tile.view<16x8xf32> -> tensor<16x8xf32>
  // expected-error @+1 {{axis is 0 or 1, not 2}}
  %y = tile.reduce sum 2 %x : tensor<16x8xf32> -> tensor<16x1xf32>
}

// -----

// reduce: result.
tile.kernel @k(%n: index, %_x: !tile.view<16x8xf32>) attributes {grid = ["N"], arg_names = ["x"]} {
  %x = tile.load %_x[] : !tile.view<16x8xf32> -> tensor<16x8xf32>
  // expected-error @+1 {{the result must be 'tensor<16x1xf32>'}}
  %y = tile.reduce sum 1 %x : tensor<16x8xf32> -> tensor<1x8xf32>
}

// -----

// kron_rows.
tile.kernel @k(%n: index, %_x: !tile.view<16x8xf32>) attributes {grid = ["N"], arg_names = ["x"]} {
  %x = tile.load %_x[] : !tile.view<16x8xf32> -> tensor<16x8xf32>
  // expected-error @+1 {{the result must be 'tensor<16x64xf32>'}}
  %y = tile.kron_rows %x : tensor<16x8xf32> -> tensor<16x16xf32>
}

// -----

// kron_rows of two.
tile.kernel @k(%n: index, %_x: !tile.view<16x8xf32>, %_y: !tile.view<8x8xf32>) attributes {grid = ["N"], arg_names = ["x", "y"]} {
  %x = tile.load %_x[] : !tile.view<16x8xf32> -> tensor<16x8xf32>
  %y = tile.load %_y[] : !tile.view<8x8xf32> -> tensor<8x8xf32>
  // expected-error @+1 {{takes two tiles with as many rows, not 16x8 and 8x8}}
  %z = tile.kron_rows %x, %y : tensor<8x8xf32> : tensor<16x8xf32> -> tensor<16x64xf32>
}

// -----

// lookup: where it counts from.
tile.kernel @k(%n: index, %_x: !tile.view<16x8xf32>) attributes {grid = ["N"], arg_names = ["x"]} {
  %x = tile.load %_x[] : !tile.view<16x8xf32> -> tensor<16x8xf32>
  // expected-error @+1 {{counts from a [1, 1] tile, not 16x8}}
  %y = tile.lookup fenwick %x from %x : tensor<16x8xf32> : tensor<16x8xf32> -> tensor<16x16xf32>
}

// -----

// contract_kron.
tile.kernel @k(%n: index, %_x: !tile.view<16x8xf32>, %_a: !tile.view<16x16xf32>) attributes {grid = ["N"], arg_names = ["x", "a"]} {
  %x = tile.load %_x[] : !tile.view<16x8xf32> -> tensor<16x8xf32>
  %a = tile.load %_a[] : !tile.view<16x16xf32> -> tensor<16x16xf32>
  // expected-error @+1 {{the first operand must be 'tensor<16x64xf32>'}}
  %y = tile.contract_kron %a, %x : tensor<16x16xf32>, tensor<16x8xf32>
}

// -----

// cummax.
tile.kernel @k(%n: index, %_x: !tile.view<16x8xf32>) attributes {grid = ["N"], arg_names = ["x"]} {
  %x = tile.load %_x[] : !tile.view<16x8xf32> -> tensor<16x8xf32>
  // expected-error @+1 {{the row it starts from}}
  %y = tile.cummax %x from %x : tensor<16x8xf32>, tensor<16x8xf32>
}

// -----

// logcumsumexp.
tile.kernel @k(%n: index, %_x: !tile.view<16x8xf32>, %_g: !tile.view<16x1xf32>) attributes {grid = ["N"], arg_names = ["x", "g"]} {
  %x = tile.load %_x[] : !tile.view<16x8xf32> -> tensor<16x8xf32>
  %g = tile.load %_g[] : !tile.view<16x1xf32> -> tensor<16x1xf32>
  // expected-error @+1 {{the row it starts from}}
  %y = tile.logcumsumexp %x from %g : tensor<16x1xf32>, tensor<16x8xf32>
}

// -----

// affine_scan.
tile.kernel @k(%n: index, %_x: !tile.view<16x8xf32>, %_g: !tile.view<16x1xf32>) attributes {grid = ["N"], arg_names = ["x", "g"]} {
  %x = tile.load %_x[] : !tile.view<16x8xf32> -> tensor<16x8xf32>
  %g = tile.load %_g[] : !tile.view<16x1xf32> -> tensor<16x1xf32>
  // expected-error @+1 {{the row it starts from}}
  %y = tile.affine_scan %x, %x from %g : tensor<16x1xf32>, tensor<16x8xf32>
}

// -----

// decay of tiles.
tile.kernel @k(%n: index, %_x: !tile.view<16x8xf32>, %_g: !tile.view<16x1xf32>) attributes {grid = ["N"], arg_names = ["x", "g"]} {
  %x = tile.load %_x[] : !tile.view<16x8xf32> -> tensor<16x8xf32>
  %g = tile.load %_g[] : !tile.view<16x1xf32> -> tensor<16x1xf32>
  // expected-error @+1 {{gates are columns, not 16x8 and 16x1}}
  %y = tile.decay %x, %g lower : tensor<16x8xf32>, tensor<16x1xf32> -> tensor<16x16xf32>
}

// -----

// decay: the mask needs a square.
tile.kernel @k(%n: index, %_g: !tile.view<16x1xf32>, %_h: !tile.view<8x1xf32>) attributes {grid = ["N"], arg_names = ["g", "h"]} {
  %g = tile.load %_g[] : !tile.view<16x1xf32> -> tensor<16x1xf32>
  %h = tile.load %_h[] : !tile.view<8x1xf32> -> tensor<8x1xf32>
  // expected-error @+1 {{a mask with stair 1}}
  %y = tile.decay %g, %h lower : tensor<16x1xf32>, tensor<8x1xf32> -> tensor<16x8xf32>
}

// -----

// decayed_scores: gates.
tile.kernel @k(%n: index, %_x: !tile.view<16x8xf32>, %_g: !tile.view<16x1xf32>) attributes {grid = ["N"], arg_names = ["x", "g"]} {
  %x = tile.load %_x[] : !tile.view<16x8xf32> -> tensor<16x8xf32>
  %g = tile.load %_g[] : !tile.view<16x1xf32> -> tensor<16x1xf32>
  // expected-error @+1 {{the rows' gate must be 'tensor<16x8xf32>', is 'tensor<16x1xf32>'}}
  %y = tile.decayed_scores %x, %x, %g, %x lower : tensor<16x8xf32>, tensor<16x8xf32>, tensor<16x1xf32>, tensor<16x8xf32> -> tensor<16x16xf32>
}

// -----

// decayed_apply: scores.
tile.kernel @k(%n: index, %_x: !tile.view<16x8xf32>) attributes {grid = ["N"], arg_names = ["x"]} {
  %x = tile.load %_x[] : !tile.view<16x8xf32> -> tensor<16x8xf32>
  // expected-error @+1 {{the scores must be 'tensor<16x16xf32>', is 'tensor<16x8xf32>'}}
  %y = tile.decayed_apply %x, %x, %x, %x lower : tensor<16x8xf32>, tensor<16x8xf32>, tensor<16x8xf32>, tensor<16x8xf32> -> tensor<16x8xf32>
}

// -----

// inverse of what is no square.
tile.kernel @k(%n: index, %_x: !tile.view<16x8xf32>) attributes {grid = ["N"], arg_names = ["x"]} {
  %x = tile.load %_x[] : !tile.view<16x8xf32> -> tensor<16x8xf32>
  // expected-error @+1 {{inverts a square, not 16x8}}
  %y = tile.inverse_unit_lower %x : tensor<16x8xf32>
}

// -----

// solve_unit_lower: rows.
tile.kernel @k(%n: index, %_a: !tile.view<16x16xf32>, %_b: !tile.view<8x16xf32>) attributes {grid = ["N"], arg_names = ["a", "b"]} {
  %a = tile.load %_a[] : !tile.view<16x16xf32> -> tensor<16x16xf32>
  %b = tile.load %_b[] : !tile.view<8x16xf32> -> tensor<8x16xf32>
  // expected-error @+1 {{system and right-hand side differ in rows: 16x16 and 8x16}}
  %y = tile.solve_unit_lower %a, %b : tensor<16x16xf32>, tensor<8x16xf32>
}

// -----

// solve_unit_lower: no square.
tile.kernel @k(%n: index, %_x: !tile.view<16x8xf32>) attributes {grid = ["N"], arg_names = ["x"]} {
  %x = tile.load %_x[] : !tile.view<16x8xf32> -> tensor<16x8xf32>
  // expected-error @+1 {{solves with a square, not 16x8}}
  %y = tile.solve_unit_lower %x, %x : tensor<16x8xf32>, tensor<16x8xf32>
}

// -----

// solve: steps.
tile.kernel @k(%n: index, %_x: !tile.view<16x8xf32>) attributes {grid = ["N"], arg_names = ["x"]} {
  %x = tile.load %_x[] : !tile.view<16x8xf32> -> tensor<16x8xf32>
  // expected-error @+1 {{takes at least one step, not 0}}
  %y = tile.solve %x steps 0 : tensor<16x8xf32> {
  ^bb0(%p: tensor<16x8xf32>):
    tile.yield %p : tensor<16x8xf32>
  }
}

// -----

// solve: the region.
tile.kernel @k(%n: index, %_x: !tile.view<16x8xf32>) attributes {grid = ["N"], arg_names = ["x"]} {
  %x = tile.load %_x[] : !tile.view<16x8xf32> -> tensor<16x8xf32>
  // expected-error @+1 {{region maps one 'tensor<16x8xf32>' to another}}
  %y = tile.solve %x steps 1 : tensor<16x8xf32> {
  ^bb0(%p: tensor<16x16xf32>):
    tile.yield %p : tensor<16x16xf32>
  }
}

// -----

// custom: the second region.
tile.kernel @k(%n: index, %_x: !tile.view<16x8xf32>) attributes {grid = ["N"], arg_names = ["x"]} {
  %x = tile.load %_x[] : !tile.view<16x8xf32> -> tensor<16x8xf32>
  // expected-error @+1 {{second region maps x, y and the gradient of y}}
  %y = tile.custom %x : tensor<16x8xf32> -> tensor<16x8xf32> {
  ^bb0(%p: tensor<16x8xf32>):
    tile.yield %p : tensor<16x8xf32>
  } adjoint {
  ^bb0(%p: tensor<16x8xf32>):
    tile.yield %p : tensor<16x8xf32>
  }
}
