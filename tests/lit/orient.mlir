// RUN: latile-opt %s --orient --tile-canonicalize | FileCheck %s --check-prefix=A
// RUN: sed 's/sm_80/gfx90a/' %s | latile-opt --orient --tile-canonicalize | FileCheck %s --check-prefix=B

// q S with a state in registers: on NVIDIA the state is held transposed and is operand A; on AMD it is operand B as it is.
// A: %[[S0:.*]] = tile.transpose %{{.*}} : tensor<128x64xf32> -> tensor<64x128xf32>
// A: scf.for {{.*}} iter_args(%[[S:.*]] = %[[S0]]) -> (tensor<64x128xf32>)
// A-DAG: %[[S16:.*]] = tile.cast %[[S]] : tensor<64x128xf32> -> tensor<64x128xbf16>
// A-DAG: %[[QT:.*]] = tile.transpose %{{.*}} : tensor<64x128xbf16> -> tensor<128x64xbf16>
// A: %[[O:.*]] = tile.dot %[[S16]], %[[QT]] : tensor<64x128xbf16>, tensor<128x64xbf16> -> tensor<64x64xf32>
// A: tile.transpose
// A: tile.dot {{.*}} -> tensor<64x128xf32>
// A: scf.yield %{{.*}} : tensor<64x128xf32>
// A: tile.transpose %{{.*}} : tensor<64x128xf32> -> tensor<128x64xf32>

// B: scf.for {{.*}} iter_args(%[[S:.*]] = %{{.*}}) -> (tensor<128x64xf32>)
// B: %[[S16:.*]] = tile.cast %[[S]]
// B: tile.dot %{{.*}}, %[[S16]] : tensor<64x128xbf16>, tensor<128x64xbf16> -> tensor<64x64xf32>
module attributes {tile.target = "sm_80"} {
  tile.kernel @serial(%n: index, %h: index, %sequences: !tile.sequences<dense>, %q: !tile.view<?x?x?x128xbf16, unit 3>,
      %v: !tile.view<?x?x?x64xbf16, unit 3>, %o: !tile.view<?x?x?x64xbf16, unit 3>, %S: !tile.view<?x?x128x64xf32>)
      attributes {grid = ["N", "H"], arg_names = ["sequences", "q", "v", "o", "S"]} {
    %batch, %begin, %end = tile.sequence %sequences, %n : <dense>
    %S0 = tile.load %S[%n, %h] : <?x?x128x64xf32> -> tensor<128x64xf32>
    %c64 = arith.constant 64 : index
    %all = scf.for %t = %begin to %end step %c64 iter_args(%s = %S0) -> (tensor<128x64xf32>) {
      %rows = tile.rows %begin, %t, %end : <64>
      %qc = tile.load_rows %q[%batch, %rows, %h] : <?x?x?x128xbf16, unit 3>, <64> -> tensor<64x128xbf16>
      %vc = tile.load_rows %v[%batch, %rows, %h] : <?x?x?x64xbf16, unit 3>, <64> -> tensor<64x64xbf16>
      %s16 = tile.cast %s : tensor<128x64xf32> -> tensor<128x64xbf16>
      %qs = tile.dot %qc, %s16 : tensor<64x128xbf16>, tensor<128x64xbf16> -> tensor<64x64xf32>
      %qs16 = tile.cast %qs : tensor<64x64xf32> -> tensor<64x64xbf16>
      tile.store_rows %qs16, %o[%batch, %rows, %h] : tensor<64x64xbf16>, <?x?x?x64xbf16, unit 3>, <64>
      %qt = tile.transpose %qc : tensor<64x128xbf16> -> tensor<128x64xbf16>
      %kv = tile.dot %qt, %vc : tensor<128x64xbf16>, tensor<64x64xbf16> -> tensor<128x64xf32>
      %s1 = arith.addf %s, %kv : tensor<128x64xf32>
      scf.yield %s1 : tensor<128x64xf32>
    }
    tile.store %all, %S[%n, %h] : tensor<128x64xf32>, <?x?x128x64xf32>
  }
}
