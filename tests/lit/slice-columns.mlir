// RUN: latile-opt %s --slice-columns | FileCheck %s
// RUN: latile-opt %s --slice-columns | latile-opt | FileCheck %s

// Value columns never meet: 128 of them are two slices of 64. The normaliser `z` belongs to no slice: where no output
// needs it, slices do not carry it.
// CHECK-LABEL: tile.kernel @serial(
// CHECK-SAME: grid = ["N", "H", "slice"], narrow = @serial_narrow, slices = 2 : i64
// CHECK: %[[AT:.*]] = arith.muli %slice, %c64
// CHECK: %[[S:.*]] = tile.columns %S at %[[AT]]
// CHECK: tile.load %[[S]][%n, %head] : <?x?x32x64xf32> -> tensor<32x64xf32>
// CHECK-NOT: tile.load %z
// CHECK: %[[V:.*]] = tile.columns %v at %[[AT]] : <?x?x?x128xbf16, unit 3> -> <?x?x?x64xbf16, unit 3>
// CHECK: tile.load_rows %k[{{.*}}] : <?x?x?x32xbf16, unit 3>
// CHECK: tile.load_rows %[[V]][
// CHECK: tile.dot {{.*}} : tensor<32x16xbf16>, tensor<16x64xbf16> -> tensor<32x64xf32>
// CHECK: tile.store %{{.*}}, %[[S]][
// CHECK-NOT: tile.store
// It may be updated in place, and slices that need it read it when they come: a kernel behind them all stores it.
// CHECK-LABEL: tile.kernel @serial_states(
// CHECK-SAME: grid = ["N", "H"]}
// CHECK: tile.load %z[%n, %head] : <?x?x32xf32> -> tensor<1x32xf32>
// CHECK: scf.for {{.*}} -> (tensor<1x32xf32>)
// CHECK-NOT: tile.dot
// CHECK: tile.store %{{.*}}, %zt[
// CHECK-NOT: tile.store
// Its twin for small grids, in slices of 32.
// CHECK-LABEL: tile.kernel @serial_narrow(
// CHECK-SAME: grid = ["N", "H", "slice"], slices = 4 : i64
// CHECK: tile.load %{{.*}}[%n, %head] : <?x?x32x32xf32> -> tensor<32x32xf32>
tile.kernel @serial(%n: index, %h: index, %sequences: !tile.sequences<dense>, %k: !tile.view<?x?x?x32xbf16, unit 3>,
    %v: !tile.view<?x?x?x128xbf16, unit 3>, %S: !tile.view<?x?x32x128xf32>, %z: !tile.view<?x?x32xf32>, %zt: !tile.view<?x?x32xf32>)
    attributes {grid = ["N", "H"], arg_names = ["sequences", "k", "v", "S", "z", "zt"]} {
  %batch, %begin, %end = tile.sequence %sequences, %n : <dense>
  %S0 = tile.load %S[%n, %h] : <?x?x32x128xf32> -> tensor<32x128xf32>
  %z0 = tile.load %z[%n, %h] : <?x?x32xf32> -> tensor<1x32xf32>
  %c16 = arith.constant 16 : index
  %all:2 = scf.for %t = %begin to %end step %c16 iter_args(%s = %S0, %y = %z0) -> (tensor<32x128xf32>, tensor<1x32xf32>) {
    %rows = tile.rows %begin, %t, %end : <16>
    %kc = tile.load_rows %k[%batch, %rows, %h] : <?x?x?x32xbf16, unit 3>, <16> -> tensor<16x32xbf16>
    %vc = tile.load_rows %v[%batch, %rows, %h] : <?x?x?x128xbf16, unit 3>, <16> -> tensor<16x128xbf16>
    %kt = tile.transpose %kc : tensor<16x32xbf16> -> tensor<32x16xbf16>
    %kv = tile.dot %kt, %vc : tensor<32x16xbf16>, tensor<16x128xbf16> -> tensor<32x128xf32>
    %s1 = arith.addf %s, %kv : tensor<32x128xf32>
    %kf = tile.cast %kc : tensor<16x32xbf16> -> tensor<16x32xf32>
    %ks = tile.reduce sum 0 %kf : tensor<16x32xf32> -> tensor<1x32xf32>
    %y1 = arith.addf %y, %ks : tensor<1x32xf32>
    scf.yield %s1, %y1 : tensor<32x128xf32>, tensor<1x32xf32>
  }
  tile.store %all#0, %S[%n, %h] : tensor<32x128xf32>, <?x?x32x128xf32>
  tile.store %all#1, %zt[%n, %h] : tensor<1x32xf32>, <?x?x32xf32>
}

// Columns that a norm sums are not shared out.
// CHECK-LABEL: tile.kernel @summed(
// CHECK-SAME: grid = ["N", "H"]}
tile.kernel @summed(%n: index, %h: index, %S: !tile.view<?x?x32x128xf32>) attributes {grid = ["N", "H"], arg_names = ["S"]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %S0 = tile.load %S[%n, %h] : <?x?x32x128xf32> -> tensor<32x128xf32>
  %all = scf.for %t = %c0 to %n step %c1 iter_args(%s = %S0) -> (tensor<32x128xf32>) {
    %norm = tile.reduce sum 1 %s : tensor<32x128xf32> -> tensor<32x1xf32>
    %wide = tile.broadcast %norm : tensor<32x1xf32> -> tensor<32x128xf32>
    %s1 = arith.mulf %s, %wide : tensor<32x128xf32>
    scf.yield %s1 : tensor<32x128xf32>
  }
  tile.store %all, %S[%n, %h] : tensor<32x128xf32>, <?x?x32x128xf32>
}
