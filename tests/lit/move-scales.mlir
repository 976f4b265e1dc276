// RUN: latile-opt %s --move-scales --tile-canonicalize | FileCheck %s

// vᵀ (w ∘ k): the factor of the tokens goes to the computed operand, the keys are read as they lie in memory.
// CHECK-LABEL: tile.kernel @update
// CHECK: %[[K:.*]] = tile.load %k
// CHECK: %[[W:.*]] = tile.load %w
// CHECK: %[[V:.*]] = math.tanh
// CHECK: %[[T:.*]] = tile.transpose %[[W]] : tensor<16x1xf32> -> tensor<1x16xf32>
// CHECK: %[[B:.*]] = tile.broadcast %[[T]] : tensor<1x16xf32> -> tensor<32x16xf32>
// CHECK: %[[S:.*]] = arith.mulf %[[B]], %[[V]]
// CHECK: %[[C:.*]] = tile.cast %[[S]] : tensor<32x16xf32> -> tensor<32x16xbf16>
// CHECK: tile.dot %[[C]], %[[K]]
tile.kernel @update(%n: index, %k: !tile.view<?x16x64xbf16>, %v: !tile.view<?x32x16xf32>, %w: !tile.view<?x16x1xf32>, %o: !tile.view<?x32x64xf32>)
    attributes {grid = ["N"], arg_names = ["k", "v", "w", "o"]} {
  %kc = tile.load %k[%n] : <?x16x64xbf16> -> tensor<16x64xbf16>
  %wc = tile.load %w[%n] : <?x16x1xf32> -> tensor<16x1xf32>
  %vl = tile.load %v[%n] : <?x32x16xf32> -> tensor<32x16xf32>
  %vc = math.tanh %vl : tensor<32x16xf32>
  %v16 = tile.cast %vc : tensor<32x16xf32> -> tensor<32x16xbf16>
  %kf = tile.cast %kc : tensor<16x64xbf16> -> tensor<16x64xf32>
  %wb = tile.broadcast %wc : tensor<16x1xf32> -> tensor<16x64xf32>
  %ks = arith.mulf %wb, %kf : tensor<16x64xf32>
  %k16 = tile.cast %ks : tensor<16x64xf32> -> tensor<16x64xbf16>
  %d = tile.dot %v16, %k16 : tensor<32x16xbf16>, tensor<16x64xbf16> -> tensor<32x64xf32>
  tile.store %d, %o[%n] : tensor<32x64xf32>, <?x32x64xf32>
}

// Of two tiles from memory the smaller one takes the factor of the terms; a factor of the result's columns is multiplied
// there, and combined with the one that already is.
// CHECK-LABEL: tile.kernel @others
// CHECK: %[[K:.*]] = tile.load %k
// CHECK: %[[V:.*]] = tile.load %v
// CHECK: %[[VF:.*]] = tile.cast %[[V]]
// CHECK: %[[VW:.*]] = arith.mulf %{{.*}}, %[[VF]]
// CHECK: %[[VW16:.*]] = tile.cast %[[VW]]
// CHECK: tile.dot %[[VW16]], %[[K]]
// CHECK: %[[R:.*]] = tile.load %r
// CHECK: %[[T:.*]] = math.tanh
// CHECK: %[[T16:.*]] = tile.cast %[[T]]
// CHECK: %[[E:.*]] = tile.dot %[[T16]], %[[K]]
// CHECK: %[[RR:.*]] = arith.mulf %[[R]], %[[R]] : tensor<1x64xf32>
// CHECK: %[[RB:.*]] = tile.broadcast %[[RR]] : tensor<1x64xf32> -> tensor<32x64xf32>
// CHECK: arith.mulf %[[RB]], %[[E]]
tile.kernel @others(%n: index, %k: !tile.view<?x16x64xbf16>, %v: !tile.view<?x32x16xbf16>, %w: !tile.view<?x16x1xf32>, %r: !tile.view<?x64xf32>, %o: !tile.view<?x32x64xf32>)
    attributes {grid = ["N"], arg_names = ["k", "v", "w", "r", "o"]} {
  %kc = tile.load %k[%n] : <?x16x64xbf16> -> tensor<16x64xbf16>
  %wc = tile.load %w[%n] : <?x16x1xf32> -> tensor<16x1xf32>
  %vc = tile.load %v[%n] : <?x32x16xbf16> -> tensor<32x16xbf16>
  %kf = tile.cast %kc : tensor<16x64xbf16> -> tensor<16x64xf32>
  %wb = tile.broadcast %wc : tensor<16x1xf32> -> tensor<16x64xf32>
  %ks = arith.mulf %wb, %kf : tensor<16x64xf32>
  %k16 = tile.cast %ks : tensor<16x64xf32> -> tensor<16x64xbf16>
  %d = tile.dot %vc, %k16 : tensor<32x16xbf16>, tensor<16x64xbf16> -> tensor<32x64xf32>
  %rc = tile.load %r[%n] : <?x64xf32> -> tensor<1x64xf32>
  %rb = tile.broadcast %rc : tensor<1x64xf32> -> tensor<16x64xf32>
  %kr = arith.mulf %rb, %kf : tensor<16x64xf32>
  %kr16 = tile.cast %kr : tensor<16x64xf32> -> tensor<16x64xbf16>
  %vf = tile.cast %vc : tensor<32x16xbf16> -> tensor<32x16xf32>
  %vt = math.tanh %vf : tensor<32x16xf32>
  %v16 = tile.cast %vt : tensor<32x16xf32> -> tensor<32x16xbf16>
  %e = tile.dot %v16, %kr16 : tensor<32x16xbf16>, tensor<16x64xbf16> -> tensor<32x64xf32>
  %rw = tile.broadcast %rc : tensor<1x64xf32> -> tensor<32x64xf32>
  %er = arith.mulf %rw, %e : tensor<32x64xf32>
  %s = arith.addf %d, %er : tensor<32x64xf32>
  tile.store %s, %o[%n] : tensor<32x64xf32>, <?x32x64xf32>
}

// A tile that something else reads as it was computed keeps its factor.
// CHECK-LABEL: tile.kernel @kept
// CHECK: %[[S:.*]] = arith.mulf
// CHECK: tile.dot %[[S]]
tile.kernel @kept(%n: index, %k: !tile.view<?x16x16xf32>, %w: !tile.view<?x16x1xf32>, %o: !tile.view<?x16x16xf32>, %p: !tile.view<?x16x16xf32>)
    attributes {grid = ["N"], arg_names = ["k", "w", "o", "p"]} {
  %kc = tile.load %k[%n] : <?x16x16xf32> -> tensor<16x16xf32>
  %wc = tile.load %w[%n] : <?x16x1xf32> -> tensor<16x1xf32>
  %wb = tile.broadcast %wc : tensor<16x1xf32> -> tensor<16x16xf32>
  %ks = arith.mulf %wb, %kc : tensor<16x16xf32>
  %d = tile.dot %ks, %kc : tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
  tile.store %ks, %p[%n] : tensor<16x16xf32>, <?x16x16xf32>
  tile.store %d, %o[%n] : tensor<16x16xf32>, <?x16x16xf32>
}
