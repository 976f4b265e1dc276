// RUN: lower_kernels %s sm_80 asm | FileCheck %s
// Tiles of 16 bits come to shared memory 16 bytes a lane and are read by ldmatrix; products are m16n8k16; what is written is
// gathered to 16 bytes a lane. A product that is added to something takes it as its first sum.

// CHECK-LABEL: .entry scores(
// CHECK: ld.global.v4
// CHECK: st.shared.v4
// CHECK: ldmatrix.sync.aligned.m8n8.x4.shared.b16
// CHECK: mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32
// CHECK: st.global.v4
module {
  tile.kernel @scores(%c: index, %head: index, %sequences: !tile.sequences<dense>, %q: !tile.view<?x?x?x128xbf16, unit 3>, %k: !tile.view<?x?x?x128xbf16, unit 3>, %s: !tile.view<?x?x64x64xbf16, unit 3>) attributes {arg_names = ["sequences", "q", "k", "s"], grid = ["chunks", "H"]} {
    %n, %batch, %begin, %position, %end = tile.chunk %sequences, %c size 64 : <dense>
    %rows = tile.rows %begin, %position, %end : <64>
    %a = tile.load_rows %q[%batch, %rows, %head] : <?x?x?x128xbf16, unit 3>, <64> -> tensor<64x128xbf16>
    %b = tile.load_rows %k[%batch, %rows, %head] : <?x?x?x128xbf16, unit 3>, <64> -> tensor<64x128xbf16>
    %t = tile.transpose %b : tensor<64x128xbf16> -> tensor<128x64xbf16>
    %d = tile.dot %a, %t : tensor<64x128xbf16>, tensor<128x64xbf16> -> tensor<64x64xf32>
    %o = tile.cast %d : tensor<64x64xf32> -> tensor<64x64xbf16>
    tile.store %o, %s[%c, %head] : tensor<64x64xbf16>, <?x?x64x64xbf16, unit 3>
  }

// The state is the operand of a product as it is; its update starts from it. Tiles come a turn ahead.
// CHECK-LABEL: .entry serial(
// CHECK: .reqntid 128
// CHECK-DAG: cp.async.wait_all
// CHECK-DAG: cp.async.cg.shared.global
// CHECK-DAG: mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32
// CHECK: ret
  tile.kernel @serial(%n: index, %head: index, %sequences: !tile.sequences<dense>, %k: !tile.view<?x?x?x64xbf16, unit 3>, %v: !tile.view<?x?x?x64xbf16, unit 3>, %o: !tile.view<?x?x?x64xbf16, unit 3>, %h: !tile.view<?x?x64x64xf32, unit 3>) attributes {arg_names = ["sequences", "k", "v", "o", "h"], grid = ["N", "H"]} {
    %batch, %begin, %end = tile.sequence %sequences, %n : <dense>
    %c64 = arith.constant 64 : index
    %S = tile.load %h[%n, %head] : <?x?x64x64xf32, unit 3> -> tensor<64x64xf32>
    %last = scf.for %i = %begin to %end step %c64 iter_args(%s = %S) -> (tensor<64x64xf32>) {
      %rows = tile.rows %begin, %i, %end : <64>
      %a = tile.load_rows %k[%batch, %rows, %head] : <?x?x?x64xbf16, unit 3>, <64> -> tensor<64x64xbf16>
      %b = tile.load_rows %v[%batch, %rows, %head] : <?x?x?x64xbf16, unit 3>, <64> -> tensor<64x64xbf16>
      %w = tile.cast %s : tensor<64x64xf32> -> tensor<64x64xbf16>
      %p = tile.dot %w, %a : tensor<64x64xbf16>, tensor<64x64xbf16> -> tensor<64x64xf32>
      %q = tile.cast %p : tensor<64x64xf32> -> tensor<64x64xbf16>
      %u = tile.dot %q, %b : tensor<64x64xbf16>, tensor<64x64xbf16> -> tensor<64x64xf32>
      %next = arith.addf %s, %u : tensor<64x64xf32>
      scf.yield %next : tensor<64x64xf32>
    }
    tile.store %last, %h[%n, %head] : tensor<64x64xf32>, <?x?x64x64xf32, unit 3>
  }
  tile.program @op(%sequences: !tile.sequences<dense>, %q: !tile.view<?x?x?x128xbf16, unit 3>, %k: !tile.view<?x?x?x128xbf16, unit 3>, %k64: !tile.view<?x?x?x64xbf16, unit 3>, %v: !tile.view<?x?x?x64xbf16, unit 3>, %o: !tile.view<?x?x?x64xbf16, unit 3>, %h: !tile.view<?x?x64x64xf32, unit 3>) attributes {arg_names = ["sequences", "q", "k", "k64", "v", "o", "h"]} {
    %s = tile.workspace "s" %sequences chunk 64 axis "H" : <dense> -> <?x?x64x64xbf16, unit 3>
    tile.launch @scores(%sequences, %q, %k, %s) : !tile.sequences<dense>, !tile.view<?x?x?x128xbf16, unit 3>, !tile.view<?x?x?x128xbf16, unit 3>, !tile.view<?x?x64x64xbf16, unit 3>
    tile.launch @serial(%sequences, %k64, %v, %o, %h) : !tile.sequences<dense>, !tile.view<?x?x?x64xbf16, unit 3>, !tile.view<?x?x?x64xbf16, unit 3>, !tile.view<?x?x?x64xbf16, unit 3>, !tile.view<?x?x64x64xf32, unit 3>
  }
}
