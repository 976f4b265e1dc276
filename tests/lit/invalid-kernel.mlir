// RUN: latile-opt %s --split-input-file --verify-diagnostics

// constant of many.
tile.kernel @k(%n: index) attributes {grid = ["N"], arg_names = []} {
  // expected-error @+1 {{is a [1, 1] tile, not 16x8}}
  %y = tile.constant 1.0 : tensor<16x8xf32>
}

// -----

// splat of many.
tile.kernel @k(%n: index, %s: f64) attributes {grid = ["N"], arg_names = ["s"]} {
  // expected-error @+1 {{is a [1, 1] tile, not 16x8}}
  %y = tile.splat %s : tensor<16x8xf32>
}

// -----

// valid without rows.
tile.kernel @k(%n: index) attributes {grid = ["N"], arg_names = []} {
  // expected-error @+1 {{outside a scan needs a rows operand}}
  %y = tile.valid -> tensor<16x1xf32>
}

// -----

// count without rows.
tile.kernel @k(%n: index) attributes {grid = ["N"], arg_names = []} {
  // expected-error @+1 {{outside a scan needs a rows operand}}
  %y = tile.count -> tensor<1x1xf32>
}

// -----

// index without rows.
tile.kernel @k(%n: index) attributes {grid = ["N"], arg_names = []} {
  // expected-error @+1 {{outside a scan needs a rows operand}}
  %y = tile.index -> tensor<1x1xf32>
}

// -----

// valid: its size.
tile.kernel @k(%n: index, %r: !tile.rows<16>) attributes {grid = ["N"], arg_names = ["r"]} {
  // expected-error @+1 {{the result must be 'tensor<16x1xf32>'}}
  %y = tile.valid %r : !tile.rows<16> -> tensor<8x1xf32>
}

// -----

// neutral: rows.
tile.kernel @k(%n: index, %r: !tile.rows<8>, %x: tensor<16x8xf32>) attributes {grid = ["N"], arg_names = ["r", "x"]} {
  // expected-error @+1 {{a tile of 8 rows at rate 1 has 8 rows, not 16}}
  %y = tile.neutral %x with 0.0 rows %r : !tile.rows<8> : tensor<16x8xf32>
}

// -----

// slot of a float tensor.
tile.kernel @k(%n: index, %v: !tile.view<?xf32>) attributes {grid = ["N"], arg_names = ["v"]} {
  // expected-error @+1 {{reads a view <?xi32> or <?xi64>, not}}
  %y = tile.slot %v[%n] : !tile.view<?xf32>
}

// -----

// slot: a table without a column.
tile.kernel @k(%n: index, %v: !tile.view<?x?xi32>) attributes {grid = ["N"], arg_names = ["v"]} {
  // expected-error @+1 {{reads a view <?xi32> or <?xi64>, not}}
  %y = tile.slot %v[%n] : !tile.view<?x?xi32>
}

// -----

// load: indices.
tile.kernel @k(%n: index, %v: !tile.view<?x8xf32>) attributes {grid = ["N"], arg_names = ["v"]} {
  // expected-error @+1 {{takes 1 indices, not 2}}
  %y = tile.load %v[%n, %n] : !tile.view<?x8xf32> -> tensor<1x8xf32>
}

// -----

// load: a row is [1, D].
tile.kernel @k(%n: index, %v: !tile.view<?x8xf32>) attributes {grid = ["N"], arg_names = ["v"]} {
  // expected-error @+1 {{the tile must be 'tensor<1x8xf32>', is 'tensor<8x1xf32>'}}
  %y = tile.load %v[%n] : !tile.view<?x8xf32> -> tensor<8x1xf32>
}

// -----

// store: type.
tile.kernel @k(%n: index, %v: !tile.view<?x8xbf16>, %x: tensor<1x8xf32>) attributes {grid = ["N"], arg_names = ["v", "x"]} {
  // expected-error @+1 {{the tile must be 'tensor<1x8xbf16>', is 'tensor<1x8xf32>'}}
  tile.store %x, %v[%n] : tensor<1x8xf32>, !tile.view<?x8xbf16>
}

// -----

// load_rows: heads.
tile.kernel @k(%n: index, %v: !tile.view<?x?x?x8xf32>, %r: !tile.rows<16>) attributes {grid = ["N"], arg_names = ["v", "r"]} {
  // expected-error @+1 {{a view read without a head has 2 dynamic extents (batch, row)}}
  %y = tile.load_rows %v[%n, %r] : !tile.view<?x?x?x8xf32>, !tile.rows<16> -> tensor<16x8xf32>
}

// -----

// load_rows: rate.
tile.kernel @k(%n: index, %v: !tile.view<?x?x8xf32>, %r: !tile.rows<16>) attributes {grid = ["N"], arg_names = ["v", "r"]} {
  // expected-error @+1 {{the tile must be 'tensor<32x8xf32>', is 'tensor<16x8xf32>'}}
  %y = tile.load_rows %v[%n, %r] {rate = 2} : !tile.view<?x?x8xf32>, !tile.rows<16> -> tensor<16x8xf32>
}

// -----

// columns: more than there are.
tile.kernel @k(%n: index, %v: !tile.view<?x?x8xf32>) attributes {grid = ["N"], arg_names = ["v"]} {
  // expected-error @+1 {{takes columns of '!tile.view<?x?x8xf32>', which '!tile.view<?x?x9xf32>' is not}}
  %w = tile.columns %v at %n : !tile.view<?x?x8xf32> -> !tile.view<?x?x9xf32>
}

// -----

// columns: other rows.
tile.kernel @k(%n: index, %v: !tile.view<?x4x8xf32>) attributes {grid = ["N"], arg_names = ["v"]} {
  // expected-error @+1 {{takes columns of '!tile.view<?x4x8xf32>', which '!tile.view<?x3x8xf32>' is not}}
  %w = tile.columns %v at %n : !tile.view<?x4x8xf32> -> !tile.view<?x3x8xf32>
}

// -----

// row_block: other columns.
tile.kernel @k(%n: index, %v: !tile.view<?x8x4xf32>) attributes {grid = ["N"], arg_names = ["v"]} {
  // expected-error @+1 {{takes rows of '!tile.view<?x8x4xf32>', which '!tile.view<?x2x3xf32>' is not}}
  %w = tile.row_block %v at %n : !tile.view<?x8x4xf32> -> !tile.view<?x2x3xf32>
}

// -----

// scratch: more than a tile.
tile.kernel @k(%n: index) attributes {grid = ["N"], arg_names = []} {
  // expected-error @+1 {{holds one tile, in rows without gaps, not '!tile.view<?x8x4xf32, unit 2>'}}
  %w = tile.scratch : !tile.view<?x8x4xf32, unit 2>
}

// -----

// pick_columns: more than there are.
tile.kernel @k(%n: index, %x: tensor<8x4xf32>) attributes {grid = ["N"], arg_names = ["x"]} {
  // expected-error @+1 {{takes columns of 'tensor<8x4xf32>', which 'tensor<8x5xf32>' is not}}
  %w = tile.pick_columns %x at %n : tensor<8x4xf32> -> tensor<8x5xf32>
}

// -----

// store_rows: inner extents.
tile.kernel @k(%n: index, %v: !tile.view<?x?x4x8xf32>, %r: !tile.rows<16>, %x: tensor<16x8xf32>) attributes {grid = ["N"], arg_names = ["v", "r", "x"]} {
  // expected-error @+1 {{a row has at most one inner extent}}
  tile.store_rows %x, %v[%n, %r] : tensor<16x8xf32>, !tile.view<?x?x4x8xf32>, !tile.rows<16>
}

// -----

// types.
// expected-error @+1 {{a view's dynamic extents come before its static ones}}
tile.program @t(%x: !tile.view<8x?xf32>) attributes {arg_names = ["x"]} {
}

// -----

// types: element.
// expected-error @+1 {{a view's element type is f16, bf16, f32, f64, i32 or i64, not 'i8'}}
tile.program @t(%x: !tile.view<8xi8>) attributes {arg_names = ["x"]} {
}

// -----

// types: static extents.
// expected-error @+1 {{a view has at most two static extents, not 3}}
tile.program @t(%x: !tile.view<8x8x8xf32>) attributes {arg_names = ["x"]} {
}

// -----

// types: unit.
// expected-error @+1 {{unit 2 is no axis of a view with 2 axes}}
tile.program @t(%x: !tile.view<8x8xf32, unit 2>) attributes {arg_names = ["x"]} {
}

// -----

// types: sequences.
// expected-error @+1 {{sequences are dense, ragged32 or ragged64, not packed}}
tile.program @t(%x: !tile.sequences<packed>) attributes {arg_names = ["x"]} {
}

// -----

// names of a program.
// expected-error @+1 {{has 1 arguments and 0 names}}
tile.program @t(%x: !tile.view<f32>) attributes {arg_names = []} {
}

// -----

// grid of a kernel.
// expected-error @+1 {{needs one index argument first for each of its 2 grid axes}}
tile.kernel @t(%n: index) attributes {grid = ["N", "H"], arg_names = []} {
}

// -----

// names of a kernel.
// expected-error @+1 {{has 1 arguments after its grid and 2 names}}
tile.kernel @t(%n: index, %x: f64) attributes {grid = ["N"], arg_names = ["a", "b"]} {
}

// -----

// launch of nothing.
tile.program @t(%x: f64) attributes {arg_names = ["x"]} {
  // expected-error @+1 {{no kernel is named @none}}
  tile.launch @none(%x) : f64
}

// -----

// launch: operands.
tile.program @t(%x: f64) attributes {arg_names = ["x"]} {
  // expected-error @+1 {{operands do not have the types of the arguments of @k}}
  tile.launch @k(%x) : f64
}
tile.kernel @k(%n: index) attributes {grid = ["N"], arg_names = []} {
}
