// RUN: latile-opt %s --assign-layouts | FileCheck %s
// RUN: latile-opt %s --assign-layouts | latile-opt --verify-layouts | FileCheck %s

// Where no product makes a tile, it is held in pieces of rows from its load to the operand of the product, and the sum of
// a row stays in the lanes of the row. What is made of the product is held as an accumulator.
// CHECK-DAG: #[[PIECES:.*]] = #tile.layout<"r:C1 C2 C4 R16 R32 l:C8 C16 C32 R1 R2 w:R4 R8">
// CHECK: tile.kernel @prepare
// CHECK: tile.load_rows %k{{.*}} -> tensor<64x64xbf16, #[[PIECES]]>
// CHECK: arith.mulf {{.*}} : tensor<64x64xf32, #[[PIECES]]>
// CHECK: tile.reduce sum 1 {{.*}} : tensor<64x64xf32, #[[PIECES]]>
// CHECK: tile.dot {{.*}} : tensor<64x64xbf16, #[[PIECES]]>, {{.*}} -> tensor<64x64xf32, #[[PRODUCT:.*]]>
// CHECK: arith.addf {{.*}} : tensor<64x64xf32, #[[PRODUCT]]>
module attributes {tile.target = "sm_80"} {
  tile.kernel @prepare(%c: index, %h: index, %sequences: !tile.sequences<dense>, %k: !tile.view<?x?x?x64xbf16, unit 3>,
      %n: !tile.view<?x?x64x1xf32, unit 3>, %w: !tile.view<?x?x64x64xf32, unit 3>)
      attributes {grid = ["chunks", "H"], arg_names = ["sequences", "k", "n", "w"]} {
    %s, %batch, %begin, %position, %end = tile.chunk %sequences, %c size 64 : <dense>
    %rows = tile.rows %begin, %position, %end : <64>
    %kc = tile.load_rows %k[%batch, %rows, %h] : <?x?x?x64xbf16, unit 3>, <64> -> tensor<64x64xbf16>
    %kw = tile.cast %kc : tensor<64x64xbf16> -> tensor<64x64xf32>
    %k2 = arith.mulf %kw, %kw : tensor<64x64xf32>
    %norm = tile.reduce sum 1 %k2 : tensor<64x64xf32> -> tensor<64x1xf32>
    %k16 = tile.cast %k2 : tensor<64x64xf32> -> tensor<64x64xbf16>
    %kt = tile.transpose %k16 : tensor<64x64xbf16> -> tensor<64x64xbf16>
    %kk = tile.dot %k16, %kt : tensor<64x64xbf16>, tensor<64x64xbf16> -> tensor<64x64xf32>
    %sum = arith.addf %kk, %kk : tensor<64x64xf32>
    tile.store %norm, %n[%c, %h] : tensor<64x1xf32>, <?x?x64x1xf32, unit 3>
    tile.store %sum, %w[%c, %h] : tensor<64x64xf32>, <?x?x64x64xf32, unit 3>
  }
}
