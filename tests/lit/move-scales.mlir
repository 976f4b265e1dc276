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

// A factor of the rows of the result is none of the terms; both operands from memory stay as they are.
// CHECK-LABEL: tile.kernel @others
// CHECK-NOT: tile.transpose
// CHECK: tile.dot
// CHECK: tile.dot
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
  %s = arith.addf %d, %e : tensor<32x64xf32>
  tile.store %s, %o[%n] : tensor<32x64xf32>, <?x32x64xf32>
}
