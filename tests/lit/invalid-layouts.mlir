// RUN: latile-opt %s --split-input-file --verify-diagnostics --verify-layouts

// A tile without a layout.
#acc = #tile.layout<"r:C1 R8 l:C2 C4 R1 R2 R4">
#sq = #tile.layout<"r:C1 R8 C8 l:C2 C4 R1 R2 R4">
#rows = #tile.layout<"r:C1 C2 C4 l:C8 R1 R2 R4 R8">
tile.kernel @k(%n: index) attributes {grid = ["N"], arg_names = [], threads = 32 : i64} {
  // expected-error @+1 {{has none: 'tensor<16x8xf32>'}}
  %x = arith.constant dense<0.0> : tensor<16x8xf32>
}

// -----

// A block of no whole warps.
#acc = #tile.layout<"r:C1 R8 l:C2 C4 R1 R2 R4">
#sq = #tile.layout<"r:C1 R8 C8 l:C2 C4 R1 R2 R4">
#rows = #tile.layout<"r:C1 C2 C4 l:C8 R1 R2 R4 R8">
// expected-error @+1 {{has 48 threads; a block of sm_80 has warps of 32}}
tile.kernel @k(%n: index) attributes {grid = ["N"], arg_names = [], threads = 48 : i64} {
  %x = arith.constant dense<0.0> : tensor<16x8xf32, #acc>
}

// -----

// Another number of warps.
#acc = #tile.layout<"r:C1 R8 l:C2 C4 R1 R2 R4">
#sq = #tile.layout<"r:C1 R8 C8 l:C2 C4 R1 R2 R4">
#rows = #tile.layout<"r:C1 C2 C4 l:C8 R1 R2 R4 R8">
tile.kernel @k(%n: index) attributes {grid = ["N"], arg_names = [], threads = 64 : i64} {
  // expected-error @+1 {{a layout of 1 warps of 32 lanes in a block of 2 warps of 32}}
  %x = arith.constant dense<0.0> : tensor<16x8xf32, #acc>
}

// -----

// Too small.
#acc = #tile.layout<"r:C1 R8 l:C2 C4 R1 R2 R4">
#sq = #tile.layout<"r:C1 R8 C8 l:C2 C4 R1 R2 R4">
#rows = #tile.layout<"r:C1 C2 C4 l:C8 R1 R2 R4 R8">
tile.kernel @k(%n: index) attributes {grid = ["N"], arg_names = [], threads = 32 : i64} {
  // expected-error @+1 {{a layout of 16x8 for a tile of 16x12}}
  %x = arith.constant dense<0.0> : tensor<16x12xf32, #acc>
}

// -----

// Padding of whole atoms.
#acc = #tile.layout<"r:C1 R8 l:C2 C4 R1 R2 R4">
#sq = #tile.layout<"r:C1 R8 C8 l:C2 C4 R1 R2 R4">
#rows = #tile.layout<"r:C1 C2 C4 l:C8 R1 R2 R4 R8">
tile.kernel @k(%n: index) attributes {grid = ["N"], arg_names = [], threads = 32 : i64} {
  // expected-error @+1 {{a layout of 64x8 for a tile of 16x8}}
  %x = arith.constant dense<0.0> : tensor<16x8xf32, #tile.layout<"r:C1 R8 R16 R32 l:C2 C4 R1 R2 R4">>
}

// -----

// Bits that move along both axes.
#acc = #tile.layout<"r:C1 R8 l:C2 C4 R1 R2 R4">
#sq = #tile.layout<"r:C1 R8 C8 l:C2 C4 R1 R2 R4">
#rows = #tile.layout<"r:C1 C2 C4 l:C8 R1 R2 R4 R8">
tile.kernel @k(%n: index) attributes {grid = ["N"], arg_names = [], threads = 32 : i64} {
  // expected-error @+1 {{moves each bit along one axis}}
  %x = arith.constant dense<0.0> : tensor<16x8xf32, #tile.layout<"r:R8C1 R8 l:C2 C4 R1 R2 R4">>
}

// -----

// A transposition that would move data.
#acc = #tile.layout<"r:C1 R8 l:C2 C4 R1 R2 R4">
#sq = #tile.layout<"r:C1 R8 C8 l:C2 C4 R1 R2 R4">
#rows = #tile.layout<"r:C1 C2 C4 l:C8 R1 R2 R4 R8">
tile.kernel @k(%n: index) attributes {grid = ["N"], arg_names = [], threads = 32 : i64} {
  %x = arith.constant dense<0.0> : tensor<16x16xf32, #sq>
  // expected-error @+1 {{the result's layout is the operand's, transposed}}
  %y = tile.transpose %x : tensor<16x16xf32, #sq> -> tensor<16x16xf32, #sq>
}

// -----

// A broadcast from another layout.
#acc = #tile.layout<"r:C1 R8 l:C2 C4 R1 R2 R4">
#sq = #tile.layout<"r:C1 R8 C8 l:C2 C4 R1 R2 R4">
#rows = #tile.layout<"r:C1 C2 C4 l:C8 R1 R2 R4 R8">
tile.kernel @k(%n: index) attributes {grid = ["N"], arg_names = [], threads = 32 : i64} {
  %x = arith.constant dense<0.0> : tensor<16x1xf32, #tile.layout<"l:R1 R2 R4 R8 0">>
  // expected-error @+1 {{the operand's layout is a slice of the result's}}
  %y = tile.broadcast %x : tensor<16x1xf32, #tile.layout<"l:R1 R2 R4 R8 0">> -> tensor<16x8xf32, #acc>
}

// -----

// A reduction that would move data.
#acc = #tile.layout<"r:C1 R8 l:C2 C4 R1 R2 R4">
#sq = #tile.layout<"r:C1 R8 C8 l:C2 C4 R1 R2 R4">
#rows = #tile.layout<"r:C1 C2 C4 l:C8 R1 R2 R4 R8">
tile.kernel @k(%n: index) attributes {grid = ["N"], arg_names = [], threads = 32 : i64} {
  %x = arith.constant dense<0.0> : tensor<16x8xf32, #acc>
  // expected-error @+1 {{leaves a slice of the operand's layout}}
  %y = tile.reduce sum 1 %x : tensor<16x8xf32, #acc> -> tensor<16x1xf32, #tile.layout<"l:R1 R2 R4 R8 0">>
}

// -----

// A product outside of accumulators.
#acc = #tile.layout<"r:C1 R8 l:C2 C4 R1 R2 R4">
#sq = #tile.layout<"r:C1 R8 C8 l:C2 C4 R1 R2 R4">
#rows = #tile.layout<"r:C1 C2 C4 l:C8 R1 R2 R4 R8">
tile.kernel @k(%n: index) attributes {grid = ["N"], arg_names = [], threads = 32 : i64} {
  %x = arith.constant dense<0.0> : tensor<16x16xbf16, #sq>
  // expected-error @+1 {{the result is not made of accumulators of sm_80}}
  %y = tile.dot %x, %x : tensor<16x16xbf16, #sq>, tensor<16x16xbf16, #sq> -> tensor<16x16xf32, #rows>
}

// -----

// Text that is no layout.
// expected-error @+1 {{its bases depend on each other}}
#twice = #tile.layout<"r:C1 C1">

// -----

// Another spelling of a layout.
// expected-error @+1 {{this layout is written "r:C1 C2"}}
#long = #tile.layout<"r:C1 C*2:r">

// -----

// An unknown target.
// expected-error @+1 {{no target is named "sm_7"}}
module attributes {tile.target = "sm_7"} {}
