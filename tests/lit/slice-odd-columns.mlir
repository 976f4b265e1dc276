// RUN: latile-opt %s --slice-columns | FileCheck %s

// Slices of any number of columns from 8 to 16: as few as divide the columns.
module attributes {tile.slice_columns = 16 : i64, tile.slice_granule = 1 : i64} {
  // CHECK-LABEL: tile.kernel @hundred(
  // CHECK-SAME: grid = ["N", "H", "slice"], slices = 10 : i64
  // CHECK: tile.load {{.*}} : <?x?x32x10xf32> -> tensor<32x10xf32>
  tile.kernel @hundred(%n: index, %h: index, %S: !tile.view<?x?x32x100xf32>) attributes {grid = ["N", "H"], arg_names = ["S"]} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %S0 = tile.load %S[%n, %h] : <?x?x32x100xf32> -> tensor<32x100xf32>
    %all = scf.for %t = %c0 to %n step %c1 iter_args(%s = %S0) -> (tensor<32x100xf32>) {
      %s1 = arith.addf %s, %s : tensor<32x100xf32>
      scf.yield %s1 : tensor<32x100xf32>
    }
    tile.store %all, %S[%n, %h] : tensor<32x100xf32>, <?x?x32x100xf32>
  }
  // 37 is divided by nothing.
  // CHECK-LABEL: tile.kernel @prime(
  // CHECK-SAME: grid = ["N", "H"]}
  tile.kernel @prime(%n: index, %h: index, %S: !tile.view<?x?x32x37xf32>) attributes {grid = ["N", "H"], arg_names = ["S"]} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %S0 = tile.load %S[%n, %h] : <?x?x32x37xf32> -> tensor<32x37xf32>
    %all = scf.for %t = %c0 to %n step %c1 iter_args(%s = %S0) -> (tensor<32x37xf32>) {
      %s1 = arith.addf %s, %s : tensor<32x37xf32>
      scf.yield %s1 : tensor<32x37xf32>
    }
    tile.store %all, %S[%n, %h] : tensor<32x37xf32>, <?x?x32x37xf32>
  }
}
