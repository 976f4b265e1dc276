// RUN: latile-opt %s --tile-canonicalize | FileCheck %s

// CHECK-LABEL: tile.kernel @folds
// CHECK: %[[X:.*]] = tile.load %x
// CHECK: %[[W:.*]] = tile.load %w
// CHECK: %[[G:.*]] = tile.load %g
// CHECK-NEXT: tile.store %[[X]], %y
// A widening is undone by the narrowing after it; a narrowing is not undone.
// CHECK-NEXT: tile.store %[[W]], %v
// CHECK: %[[NARROW:.*]] = tile.cast %[[X]] : tensor<16x8xf32> -> tensor<16x8xbf16>
// CHECK: %[[WIDE:.*]] = tile.cast %[[NARROW]]
// CHECK: tile.store %[[WIDE]], %y
// A broadcast of a broadcast is one.
// CHECK: %[[B:.*]] = tile.broadcast %[[G]] : tensor<1x1xf32> -> tensor<16x8xf32>
// CHECK: tile.store %[[B]], %y
// Element-wise work is done before its operands are repeated.
// CHECK: %[[E:.*]] = math.exp2 %[[G]] : tensor<1x1xf32>
// CHECK: %[[P:.*]] = arith.mulf %[[E]], %[[G]] : tensor<1x1xf32>
// CHECK: %[[PB:.*]] = tile.broadcast %[[P]] : tensor<1x1xf32> -> tensor<16x8xf32>
// CHECK: tile.store %[[PB]], %y
// Folds by extents of 1.
// CHECK: tile.store %[[G]], %g
// CHECK-NOT: tile.cumsum
tile.kernel @folds(%x: !tile.view<16x8xf32>, %w: !tile.view<16x8xbf16>, %g: !tile.view<f32>, %y: !tile.view<16x8xf32>, %v: !tile.view<16x8xbf16>)
    attributes {grid = [], arg_names = ["x", "w", "g", "y", "v"]} {
  %X = tile.load %x[] : !tile.view<16x8xf32> -> tensor<16x8xf32>
  %W = tile.load %w[] : !tile.view<16x8xbf16> -> tensor<16x8xbf16>
  %G = tile.load %g[] : !tile.view<f32> -> tensor<1x1xf32>
  %t = tile.transpose %X : tensor<16x8xf32> -> tensor<8x16xf32>
  %tt = tile.transpose %t : tensor<8x16xf32> -> tensor<16x8xf32>
  tile.store %tt, %y[] : tensor<16x8xf32>, !tile.view<16x8xf32>
  %wide = tile.cast %W : tensor<16x8xbf16> -> tensor<16x8xf32>
  %back = tile.cast %wide : tensor<16x8xf32> -> tensor<16x8xbf16>
  tile.store %back, %v[] : tensor<16x8xbf16>, !tile.view<16x8xbf16>
  %narrow = tile.cast %X : tensor<16x8xf32> -> tensor<16x8xbf16>
  %again = tile.cast %narrow : tensor<16x8xbf16> -> tensor<16x8xf32>
  tile.store %again, %y[] : tensor<16x8xf32>, !tile.view<16x8xf32>
  %c = tile.broadcast %G : tensor<1x1xf32> -> tensor<16x1xf32>
  %b = tile.broadcast %c : tensor<16x1xf32> -> tensor<16x8xf32>
  tile.store %b, %y[] : tensor<16x8xf32>, !tile.view<16x8xf32>
  %e = math.exp2 %b : tensor<16x8xf32>
  %p = arith.mulf %e, %b : tensor<16x8xf32>
  tile.store %p, %y[] : tensor<16x8xf32>, !tile.view<16x8xf32>
  %s = tile.cumsum %G : tensor<1x1xf32>
  %l = tile.row last %s : tensor<1x1xf32> -> tensor<1x1xf32>
  %m = tile.mask lower %l : tensor<1x1xf32>
  %r = tile.reduce max 1 %m : tensor<1x1xf32> -> tensor<1x1xf32>
  tile.store %r, %g[] : tensor<1x1xf32>, !tile.view<f32>
}
