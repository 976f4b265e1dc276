// RUN: latile-opt %s --sink-transposes --tile-canonicalize | FileCheck %s

// The keys in the type of products, both ways round: one tile.
// CHECK-LABEL: tile.kernel @scores
// CHECK: %[[K:.*]] = math.tanh
// CHECK: %[[C:.*]] = tile.cast %[[K]] : tensor<16x32xf32> -> tensor<16x32xbf16>
// CHECK-NOT: tile.cast
// CHECK: %[[T:.*]] = tile.transpose %[[C]]
// CHECK: tile.dot %[[C]], %[[T]]
tile.kernel @scores(%n: index, %k: !tile.view<?x16x32xf32>, %o: !tile.view<?x16x16xf32>)
    attributes {grid = ["N"], arg_names = ["k", "o"]} {
  %kl = tile.load %k[%n] : <?x16x32xf32> -> tensor<16x32xf32>
  %kc = math.tanh %kl : tensor<16x32xf32>
  %kt = tile.transpose %kc : tensor<16x32xf32> -> tensor<32x16xf32>
  %left = tile.cast %kc : tensor<16x32xf32> -> tensor<16x32xbf16>
  %right = tile.cast %kt : tensor<32x16xf32> -> tensor<32x16xbf16>
  %d = tile.dot %left, %right : tensor<16x32xbf16>, tensor<32x16xbf16> -> tensor<16x16xf32>
  tile.store %d, %o[%n] : tensor<16x16xf32>, <?x16x16xf32>
}
