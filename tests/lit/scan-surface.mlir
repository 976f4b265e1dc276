// RUN: latile-opt %s --scan-to-kernels | FileCheck %s
// RUN: latile-opt %s --scan-to-kernels | latile-opt | FileCheck %s

// A scan from the last row that starts from accepted states and keeps one every second chunk.
// CHECK-LABEL: tile.kernel @sums_fused(%n: index,
// CHECK: %batch, %begin, %end = tile.sequence %sequences, %n
// CHECK: %[[COUNT:.*]] = tile.slot %accepted[%n]
// CHECK: %[[FROM:.*]] = arith.subi %[[COUNT]]
// CHECK: %[[SLOT:.*]] = tile.slot %S.initial_index[%n, %[[FROM]]]
// CHECK: tile.load %S.initial[%[[SLOT]]]
// The state that the chunk before left is kept before it is read.
// CHECK: scf.for %[[T:.*]] = %begin to %end
// CHECK: %[[DONE:.*]] = arith.subi %[[T]], %begin
// CHECK: arith.remsi %[[DONE]]
// CHECK: %[[TO:.*]] = tile.slot %S.history_index[%n, %{{.*}}]
// CHECK: %[[KEPT:.*]] = arith.select %{{.*}}, %[[TO]], %{{.*}} : index
// CHECK: tile.store %{{.*}}, %S.history[%[[KEPT]]]
// CHECK: %[[ROWS:.*]] = tile.rows %begin, %[[T]], %end reversed : <4>
// CHECK: tile.load_rows %x[%batch, %[[ROWS]]]
// CHECK: tile.store_rows %{{.*}}, %y[%batch, %[[ROWS]]]
// CHECK: scf.yield
// The last one lies behind the loop.
// CHECK: arith.subi %end, %begin
// CHECK: tile.slot %S.history_index[%n, %{{.*}}]
// CHECK: tile.store %{{.*}}, %S.history[%{{.*}}]
tile.program @sums(%seq: !tile.sequences<ragged32>, %x: !tile.view<?x?x8xf32>, %y: !tile.view<?x?x8xf32>,
    %pool: !tile.view<?x8xf32>, %from: !tile.view<?x?xi32>, %kept: !tile.view<?x8xf32>, %to: !tile.view<?x?xi64>, %a: !tile.view<?xi32>)
    attributes {arg_names = ["sequences", "x", "y", "S.initial", "S.initial_index", "S.history", "S.history_index", "accepted"]} {
  tile.scan %seq chunk 4 axis "" in(%x) initial(%pool) at(%from) final() at() out(%y)
    history(%kept : !tile.view<?x8xf32>) at(%to : !tile.view<?x?xi64>) accepted(%a : !tile.view<?xi32>)
    {reads = ["x"], read_heads = [""], rates = array<i64: 1>, carries = ["S"], carry_heads = [""],
     has_initial = array<i1: true>, has_initial_index = array<i1: true>, has_final = array<i1: false>,
     has_final_index = array<i1: false>, writes = ["y"], write_heads = [""], head_ratio = 1, head_map = 0 : i32,
     every = array<i64: 8>, reversed}
    : !tile.sequences<ragged32>, in(!tile.view<?x?x8xf32>) initial(!tile.view<?x8xf32>) at(!tile.view<?x?xi32>)
      final() at() out(!tile.view<?x?x8xf32>) {
  ^bb0(%xc: tensor<4x8xf32>, %S: tensor<1x8xf32>):
    %r = tile.reduce sum 0 %xc : tensor<4x8xf32> -> tensor<1x8xf32>
    %S1 = arith.addf %S, %r : tensor<1x8xf32>
    tile.yield %xc, %S1 : tensor<4x8xf32>, tensor<1x8xf32>
  }
}
