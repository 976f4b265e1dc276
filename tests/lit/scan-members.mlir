// RUN: latile-opt %s --scan-to-kernels | FileCheck %s
// RUN: latile-opt %s --cut | FileCheck %s --check-prefix=CUT

// A carry on the coarser axis: the grid runs over that one, the queries of a group are a loop, and what replaces the
// carry comes after it.
// CHECK-LABEL: tile.kernel @queries_fused(%n: index, %head: index,
// CHECK-SAME: grid = ["N", "H"]
// CHECK: tile.load %c.initial[%n, %head]
// CHECK: scf.for %{{.*}} = %begin to %end
// CHECK: tile.load_rows %x[%batch, %[[ROWS:.*]], %head]
// CHECK: tile.cumsum
// CHECK: scf.for %[[J:.*]] = %c0 to %c2
// CHECK: %[[HQ:.*]] = tile.member %[[J]], %head of "H" tiled 2
// CHECK: tile.load_rows %q[%batch, %[[ROWS]], %[[HQ]]]
// CHECK: tile.store_rows %{{.*}}, %o[%batch, %[[ROWS]], %[[HQ]]]
// CHECK: tile.row last
// CHECK: scf.yield
// CHECK: tile.store %{{.*}}, %c.final[%n, %head]
//
// CUT-LABEL: tile.kernel @queries_serial(%n: index, %head: index,
// CUT-SAME: grid = ["N", "H"]
// CUT-LABEL: tile.kernel @queries_finish(%c: index, %head: index,
// CUT-SAME: grid = ["chunks", "H"]
// CUT: tile.member
tile.program @queries(%seq: !tile.sequences<dense>, %x: !tile.view<?x?x?x3xf32>, %q: !tile.view<?x?x?x3xf32>,
    %o: !tile.view<?x?x?x3xf32>, %c0: !tile.view<?x?x3xf32>, %c1: !tile.view<?x?x3xf32>)
    attributes {arg_names = ["sequences", "x", "q", "o", "c.initial", "c.final"]} {
  tile.scan %seq chunk 2 axis "HQ" in(%x, %q) initial(%c0) at() final(%c1) at() out(%o)
    {reads = ["x", "q"], read_heads = ["H", "HQ"], rates = array<i64: 1, 1>, carries = ["c"], carry_heads = ["H"],
     has_initial = array<i1: true>, has_initial_index = array<i1: false>, has_final = array<i1: true>,
     has_final_index = array<i1: false>, writes = ["o"], write_heads = ["HQ"], head_ratio = 2, head_map = 1 : i32}
    : !tile.sequences<dense>, in(!tile.view<?x?x?x3xf32>, !tile.view<?x?x?x3xf32>) initial(!tile.view<?x?x3xf32>) at()
      final(!tile.view<?x?x3xf32>) at() out(!tile.view<?x?x?x3xf32>) {
  ^bb0(%xc: tensor<2x3xf32>, %qc: tensor<2x3xf32>, %c: tensor<1x3xf32>):
    %sums = tile.cumsum %xc : tensor<2x3xf32>
    %cB = tile.broadcast %c : tensor<1x3xf32> -> tensor<2x3xf32>
    %all = arith.addf %sums, %cB : tensor<2x3xf32>
    %last = tile.row last %all : tensor<2x3xf32> -> tensor<1x3xf32>
    %y = arith.mulf %qc, %all : tensor<2x3xf32>
    tile.yield %y, %last : tensor<2x3xf32>, tensor<1x3xf32>
  }
}

// Carries of both axes: the coarser one is read by the first kernel and written by one of its own.
// CHECK-LABEL: tile.kernel @both_fused(%n: index, %head: index,
// CHECK-SAME: grid = ["N", "HQ"]
// CHECK: %[[H:.*]] = tile.head %head of "H" grouped 2
// CHECK: tile.load %c.initial[%n, %[[H]]]
// CHECK: tile.store %{{.*}}, %d.final[%n, %head]
// CHECK-NOT: tile.store
// CHECK-LABEL: tile.kernel @both_carries(%n: index, %head: index,
// CHECK-SAME: grid = ["N", "H"]
// CHECK-NOT: tile.load_rows %q
// CHECK: tile.store %{{.*}}, %c.final[%n, %head]
// CHECK-LABEL: tile.program @both
// CHECK: tile.launch @both_fused
// CHECK-NEXT: tile.launch @both_carries
//
// CUT-LABEL: tile.kernel @both_serial
// CUT: tile.launch @both_serial
// CUT: tile.scan %sequences chunk 2 axis "H" in(%x) initial(%c.initial) at() final(%c.final) at() out()
tile.program @both(%seq: !tile.sequences<dense>, %x: !tile.view<?x?x?x3xf32>, %q: !tile.view<?x?x?x3xf32>,
    %o: !tile.view<?x?x?x3xf32>, %c0: !tile.view<?x?x3xf32>, %c1: !tile.view<?x?x3xf32>, %d1: !tile.view<?x?x3xf32>)
    attributes {arg_names = ["sequences", "x", "q", "o", "c.initial", "c.final", "d.final"]} {
  tile.scan %seq chunk 2 axis "HQ" in(%x, %q) initial(%c0) at() final(%c1, %d1) at() out(%o)
    {reads = ["x", "q"], read_heads = ["H", "HQ"], rates = array<i64: 1, 1>, carries = ["c", "d"],
     carry_heads = ["H", "HQ"], has_initial = array<i1: true, false>, has_initial_index = array<i1: false, false>,
     has_final = array<i1: true, true>, has_final_index = array<i1: false, false>, writes = ["o"],
     write_heads = ["HQ"], head_ratio = 2, head_map = 0 : i32}
    : !tile.sequences<dense>, in(!tile.view<?x?x?x3xf32>, !tile.view<?x?x?x3xf32>) initial(!tile.view<?x?x3xf32>) at()
      final(!tile.view<?x?x3xf32>, !tile.view<?x?x3xf32>) at() out(!tile.view<?x?x?x3xf32>) {
  ^bb0(%xc: tensor<2x3xf32>, %qc: tensor<2x3xf32>, %c: tensor<1x3xf32>, %d: tensor<1x3xf32>):
    %sums = tile.cumsum %xc : tensor<2x3xf32>
    %cB = tile.broadcast %c : tensor<1x3xf32> -> tensor<2x3xf32>
    %all = arith.addf %sums, %cB : tensor<2x3xf32>
    %last = tile.row last %all : tensor<2x3xf32> -> tensor<1x3xf32>
    %dB = tile.broadcast %d : tensor<1x3xf32> -> tensor<2x3xf32>
    %y0 = arith.mulf %qc, %all : tensor<2x3xf32>
    %y = arith.addf %y0, %dB : tensor<2x3xf32>
    %dl = tile.row last %y : tensor<2x3xf32> -> tensor<1x3xf32>
    tile.yield %y, %last, %dl : tensor<2x3xf32>, tensor<1x3xf32>, tensor<1x3xf32>
  }
}
