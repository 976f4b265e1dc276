// RUN: latile-opt %s --assign-layouts | FileCheck %s
// RUN: latile-opt %s --assign-layouts | latile-opt --verify-layouts | FileCheck %s
// RUN: sed 's/sm_80/gfx90a/' %s | latile-opt --assign-layouts | latile-opt --verify-layouts | FileCheck %s --check-prefix=AMD

// Accumulators of mma.sync for tiles, slices of them for vectors, pieces of 16 bytes for what only products read. A value
// loaded in the other shape is converted once; the loop's state keeps one layout.
// CHECK-DAG: #[[ACC:.*]] = #tile.layout<"r:C1 R8 C8 C16 C32 l:C2 C4 R1 R2 R4 w:R16 R32">
// CHECK-DAG: #[[COLUMN:.*]] = #tile.layout<"r:R8 l:0 0 R1 R2 R4 w:R16 R32">
// CHECK-DAG: #[[ROW:.*]] = #tile.layout<"r:C1 C8 C16 C32 l:C2 C4 0 0 0 w:0 0">
// On AMD warps go along columns, so that all terms of operand B are in one; columns lie beside tiles as wide as that.
// AMD-DAG: #[[ACC:.*]] = #tile.layout<"r:R1 R2 R16 R32 l:C1 C2 C4 C8 R4 R8 w:C16 C32">
// AMD-DAG: #[[COLUMN:.*]] = #tile.layout<"r:R1 R2 R16 R32 l:0 0 0 0 R4 R8 w:0 0">
// AMD: threads = 256 : i64
// AMD: tile.load_rows %b{{.*}} -> tensor<64x1xf32, #[[COLUMN]]>
// AMD-NOT: tile.convert_layout
// AMD: tile.broadcast {{.*}} : tensor<64x1xf32, #[[COLUMN]]> -> tensor<64x64xf32, #[[ACC]]>
// CHECK: tile.kernel @serial
// CHECK-SAME: threads = 128 : i64
module attributes {tile.target = "sm_80"} {
  tile.kernel @serial(%n: index, %h: index, %sequences: !tile.sequences<dense>, %q: !tile.view<?x?x?x64xbf16, unit 3>,
      %b: !tile.view<?x?x?xf32>, %w: !tile.view<?x64xf32>, %o: !tile.view<?x?x?x64xf32, unit 3>, %S: !tile.view<?x?x64x64xf32>)
      attributes {grid = ["N", "H"], arg_names = ["sequences", "q", "b", "w", "o", "S"]} {
    %batch, %begin, %end = tile.sequence %sequences, %n : <dense>
    // CHECK: tile.load %S{{.*}} -> tensor<64x64xf32, #[[ACC]]>
    %S0 = tile.load %S[%n, %h] : <?x?x64x64xf32> -> tensor<64x64xf32>
    // CHECK: tile.load %w{{.*}} -> tensor<1x64xf32, #[[SPREAD:.*]]>
    %w0 = tile.load %w[%h] : <?x64xf32> -> tensor<1x64xf32>
    %c64 = arith.constant 64 : index
    // CHECK: scf.for {{.*}} -> (tensor<64x64xf32, #[[ACC]]>)
    %all = scf.for %t = %begin to %end step %c64 iter_args(%s = %S0) -> (tensor<64x64xf32>) {
      %rows = tile.rows %begin, %t, %end : <64>
      // CHECK: tile.load_rows %q{{.*}} -> tensor<64x64xbf16, #[[STAGE:.*]]>
      %qc = tile.load_rows %q[%batch, %rows, %h] : <?x?x?x64xbf16, unit 3>, <64> -> tensor<64x64xbf16>
      // CHECK: tile.load_rows %b{{.*}} -> tensor<64x1xf32, #[[COLUMN]]>
      %bc = tile.load_rows %b[%batch, %rows, %h] : <?x?x?xf32>, <64> -> tensor<64x1xf32>
      %s16 = tile.cast %s : tensor<64x64xf32> -> tensor<64x64xbf16>
      // CHECK: tile.dot {{.*}} : tensor<64x64xbf16, #[[STAGE]]>, tensor<64x64xbf16, #[[ACC]]> -> tensor<64x64xf32, #[[ACC]]>
      %qs = tile.dot %qc, %s16 : tensor<64x64xbf16>, tensor<64x64xbf16> -> tensor<64x64xf32>
      // CHECK-NOT: tile.convert_layout
      // CHECK: tile.broadcast {{.*}} : tensor<64x1xf32, #[[COLUMN]]> -> tensor<64x64xf32, #[[ACC]]>
      %bw = tile.broadcast %bc : tensor<64x1xf32> -> tensor<64x64xf32>
      // CHECK: %[[W:.*]] = tile.convert_layout %{{.*}} : tensor<1x64xf32, #[[SPREAD]]> -> tensor<1x64xf32, #[[ROW]]>
      // CHECK: tile.broadcast %[[W]] : tensor<1x64xf32, #[[ROW]]> -> tensor<64x64xf32, #[[ACC]]>
      %ww = tile.broadcast %w0 : tensor<1x64xf32> -> tensor<64x64xf32>
      %x = arith.mulf %qs, %bw : tensor<64x64xf32>
      %y = arith.mulf %x, %ww : tensor<64x64xf32>
      tile.store_rows %y, %o[%batch, %rows, %h] : tensor<64x64xf32>, <?x?x?x64xf32, unit 3>, <64>
      // CHECK: %[[T:.*]] = tile.transpose %{{.*}} : tensor<64x64xf32, #[[ACC]]> -> tensor<64x64xf32, #[[TURNED:.*]]>
      // CHECK: %[[U:.*]] = tile.convert_layout %[[T]] : tensor<64x64xf32, #[[TURNED]]> -> tensor<64x64xf32, #[[ACC]]>
      // CHECK: arith.addf %{{.*}}, %[[U]]
      %yt = tile.transpose %y : tensor<64x64xf32> -> tensor<64x64xf32>
      %s1 = arith.addf %s, %yt : tensor<64x64xf32>
      scf.yield %s1 : tensor<64x64xf32>
    }
    tile.store %all, %S[%n, %h] : tensor<64x64xf32>, <?x?x64x64xf32>
  }
}
