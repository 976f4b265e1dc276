// RUN: latile-opt %s --scores-first --tile-canonicalize | FileCheck %s

// Both scores side by side and before what they do not need, of tiles as they were loaded; a sign goes behind the cast,
// and the exclusive sum is the row above.
// CHECK-LABEL: tile.kernel @scores
// CHECK: %[[K:.*]] = tile.load %k
// CHECK-NOT: math.tanh
// CHECK: %[[G:.*]] = tile.cumsum
// CHECK-NOT: tile.cumsum
// CHECK: %[[B:.*]] = tile.prev %[[G]]
// CHECK: %[[KW:.*]] = tile.cast %[[K]]
// CHECK: %[[A:.*]] = tile.load %a
// CHECK: %[[AW:.*]] = tile.cast %[[A]]
// CHECK: %[[X:.*]] = tile.decayed_scores %[[KW]], %[[KW]], %[[G]], %[[G]] lower
// CHECK: %[[Y:.*]] = tile.decayed_scores %[[AW]], %[[KW]], %[[B]], %[[G]] strict
// CHECK: math.tanh
// CHECK: %[[C:.*]] = tile.cast %[[Y]]
// CHECK: arith.negf %[[C]]
tile.kernel @scores(%n: index, %k: !tile.view<?x16x32xbf16>, %a: !tile.view<?x16x32xbf16>, %g: !tile.view<?x16x32xf32>,
                    %o: !tile.view<?x16x16xf32>, %p: !tile.view<?x16x16xbf16>, %r: !tile.view<?x16x32xf32>)
    attributes {grid = ["N"], arg_names = ["k", "a", "g", "o", "p", "r"]} {
  %kl = tile.load %k[%n] : <?x16x32xbf16> -> tensor<16x32xbf16>
  %kt = tile.transpose %kl : tensor<16x32xbf16> -> tensor<32x16xbf16>
  %kw = tile.cast %kt : tensor<32x16xbf16> -> tensor<32x16xf32>
  %kr = tile.transpose %kw : tensor<32x16xf32> -> tensor<16x32xf32>
  %gl = tile.load %g[%n] : <?x16x32xf32> -> tensor<16x32xf32>
  %before = tile.cumsum %gl exclusive : tensor<16x32xf32>
  %sum = tile.cumsum %gl : tensor<16x32xf32>
  %x = tile.decayed_scores %kr, %kr, %sum, %sum lower : tensor<16x32xf32>, tensor<16x32xf32>, tensor<16x32xf32>, tensor<16x32xf32> -> tensor<16x16xf32>
  %rest = math.tanh %before : tensor<16x32xf32>
  %al = tile.load %a[%n] : <?x16x32xbf16> -> tensor<16x32xbf16>
  %at = tile.transpose %al : tensor<16x32xbf16> -> tensor<32x16xbf16>
  %aw = tile.cast %at : tensor<32x16xbf16> -> tensor<32x16xf32>
  %minus = arith.negf %aw : tensor<32x16xf32>
  %ar = tile.transpose %minus : tensor<32x16xf32> -> tensor<16x32xf32>
  %y = tile.decayed_scores %ar, %kr, %before, %sum strict : tensor<16x32xf32>, tensor<16x32xf32>, tensor<16x32xf32>, tensor<16x32xf32> -> tensor<16x16xf32>
  %yc = tile.cast %y : tensor<16x16xf32> -> tensor<16x16xbf16>
  tile.store %x, %o[%n] : tensor<16x16xf32>, <?x16x16xf32>
  tile.store %yc, %p[%n] : tensor<16x16xbf16>, <?x16x16xbf16>
  tile.store %rest, %r[%n] : tensor<16x32xf32>, <?x16x32xf32>
}
