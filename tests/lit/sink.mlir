// RUN: latile-opt %s --sink | FileCheck %s

// A product that is only added at the end moves there with its operands' casts; loads stay. A cast to 16 bits stays where
// its operand ends: it frees registers.
// CHECK: tile.load %a
// CHECK-NEXT: tile.load %b
// CHECK-NEXT: tile.load %c
// CHECK-NEXT: math.exp2
// CHECK-NEXT: %[[NARROW:.*]] = tile.cast
// CHECK-NEXT: %[[Y:.*]] = math.tanh
// CHECK-NEXT: %[[D:.*]] = tile.dot
// CHECK-NEXT: %[[S:.*]] = arith.addf %[[Y]], %[[D]]
// CHECK-NEXT: tile.store %[[S]]
// CHECK-NEXT: tile.store %[[NARROW]]
tile.kernel @k(%n: index, %a: !tile.view<?x16x16xf32>, %b: !tile.view<?x16x16xf32>, %c: !tile.view<?x16x16xf32>, %o: !tile.view<?x16x16xf32>, %p: !tile.view<?x16x16xbf16>)
    attributes {grid = ["N"], arg_names = ["a", "b", "c", "o", "p"]} {
  %x = tile.load %a[%n] : <?x16x16xf32> -> tensor<16x16xf32>
  %y = tile.load %b[%n] : <?x16x16xf32> -> tensor<16x16xf32>
  %z = tile.load %c[%n] : <?x16x16xf32> -> tensor<16x16xf32>
  %d = tile.dot %x, %z : tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
  %e = math.exp2 %y : tensor<16x16xf32>
  %narrow = tile.cast %e : tensor<16x16xf32> -> tensor<16x16xbf16>
  %t = math.tanh %y : tensor<16x16xf32>
  %s = arith.addf %t, %d : tensor<16x16xf32>
  tile.store %s, %o[%n] : tensor<16x16xf32>, <?x16x16xf32>
  tile.store %narrow, %p[%n] : tensor<16x16xbf16>, <?x16x16xbf16>
}
