// RUN: latile-opt %s --solve-instead-of-inverse | FileCheck %s

// An inverse used once, rounded for its product, becomes a float32 solve on the unrounded right-hand side.
// CHECK-LABEL: tile.kernel @once
// CHECK-NOT: inverse_unit_lower
// CHECK: %[[A:.*]] = tile.load %a
// CHECK: %[[B:.*]] = tile.load %b
// CHECK: %[[X:.*]] = tile.solve_unit_lower %[[A]], %[[B]]
// CHECK: tile.store %[[X]], %x
tile.kernel @once(%a: !tile.view<16x16xf32>, %b: !tile.view<16x8xf32>, %x: !tile.view<16x8xf32>)
    attributes {grid = [], arg_names = ["a", "b", "x"]} {
  %A = tile.load %a[] : !tile.view<16x16xf32> -> tensor<16x16xf32>
  %T = tile.inverse_unit_lower %A : tensor<16x16xf32>
  %T16 = tile.cast %T : tensor<16x16xf32> -> tensor<16x16xbf16>
  %B = tile.load %b[] : !tile.view<16x8xf32> -> tensor<16x8xf32>
  %B16 = tile.cast %B : tensor<16x8xf32> -> tensor<16x8xbf16>
  %X = tile.dot %T16, %B16 : tensor<16x16xbf16>, tensor<16x8xbf16> -> tensor<16x8xf32>
  tile.store %X, %x[] : tensor<16x8xf32>, !tile.view<16x8xf32>
}

// A right-hand side that is bfloat16 by itself is widened.
// CHECK-LABEL: tile.kernel @raw
// CHECK: %[[B:.*]] = tile.load %b
// CHECK: %[[WIDE:.*]] = tile.cast %[[B]] : tensor<16x8xbf16> -> tensor<16x8xf32>
// CHECK: tile.solve_unit_lower %{{.*}}, %[[WIDE]]
tile.kernel @raw(%a: !tile.view<16x16xf32>, %b: !tile.view<16x8xbf16>, %x: !tile.view<16x8xf32>)
    attributes {grid = [], arg_names = ["a", "b", "x"]} {
  %A = tile.load %a[] : !tile.view<16x16xf32> -> tensor<16x16xf32>
  %T = tile.inverse_unit_lower %A : tensor<16x16xf32>
  %T16 = tile.cast %T : tensor<16x16xf32> -> tensor<16x16xbf16>
  %B = tile.load %b[] : !tile.view<16x8xbf16> -> tensor<16x8xbf16>
  %X = tile.dot %T16, %B : tensor<16x16xbf16>, tensor<16x8xbf16> -> tensor<16x8xf32>
  tile.store %X, %x[] : tensor<16x8xf32>, !tile.view<16x8xf32>
}

// Used twice, it stays.
// CHECK-LABEL: tile.kernel @twice
// CHECK: tile.inverse_unit_lower
// CHECK-NOT: tile.solve_unit_lower
tile.kernel @twice(%a: !tile.view<16x16xf32>, %b: !tile.view<16x8xf32>, %x: !tile.view<16x8xf32>)
    attributes {grid = [], arg_names = ["a", "b", "x"]} {
  %A = tile.load %a[] : !tile.view<16x16xf32> -> tensor<16x16xf32>
  %T = tile.inverse_unit_lower %A : tensor<16x16xf32>
  %B = tile.load %b[] : !tile.view<16x8xf32> -> tensor<16x8xf32>
  %X = tile.dot %T, %B : tensor<16x16xf32>, tensor<16x8xf32> -> tensor<16x8xf32>
  %Y = tile.dot %T, %X : tensor<16x16xf32>, tensor<16x8xf32> -> tensor<16x8xf32>
  tile.store %Y, %x[] : tensor<16x8xf32>, !tile.view<16x8xf32>
}
