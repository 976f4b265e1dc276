// RUN: latile-opt %s --walk-states | FileCheck %s
// RUN: latile-opt %s --walk-states | latile-opt | FileCheck %s

module attributes {tile.walk_elements = 1024 : i64} {

// 8 groups of 64 rows, two of them a turn. What the state starts from goes to a scratch, and from there, in a loop for
// each chunk, the sum over the rows and the state's next value; what is left of it ends in memory.
// CHECK-LABEL: tile.kernel @levels(
// CHECK: %[[S:.*]] = tile.scratch : <512x32xf32, unit 1>
// CHECK: scf.for %[[I:.*]] = %{{.*}} to %c512{{.*}} step %c128
// CHECK: %[[FROM:.*]] = tile.row_block %initial at %[[I]] : <?x?x512x32xf32, unit 3> -> <?x?x128x32xf32, unit 3>
// CHECK: %[[START:.*]] = tile.load %[[FROM]][%n, %head]
// CHECK: %[[TO:.*]] = tile.row_block %[[S]] at %[[I]] : <512x32xf32, unit 1> -> <128x32xf32, unit 1>
// CHECK: tile.store %[[START]], %[[TO]][]
// CHECK: scf.for %{{.*}} = %begin to %end step
// CHECK-NOT: iter_args
// CHECK: %[[SUM:.*]] = scf.for %[[ROW:.*]] = %{{.*}} iter_args(%[[ACC:.*]] = %{{.*}}) -> (tensor<16x32xf32>)
// CHECK: %[[GROUP:.*]] = arith.divsi %[[ROW]], %c64
// CHECK: %[[A:.*]] = tile.pick_columns %{{.*}} at %[[GROUP]] : tensor<16x8xf32> -> tensor<16x2xf32>
// CHECK: %[[QA:.*]] = tile.kron_rows %[[A]], %{{.*}} : tensor<16x64xf32> : tensor<16x2xf32> -> tensor<16x128xf32>
// CHECK: %[[OLD:.*]] = tile.load %{{.*}}[] : <128x32xf32, unit 1>
// CHECK: %[[PART:.*]] = tile.dot %[[QA]], %[[OLD]]
// CHECK: %[[NEXT:.*]] = arith.addf %[[ACC]], %[[PART]]
// CHECK: %[[NEW:.*]] = arith.addf %[[OLD]], %{{.*}} : tensor<128x32xf32>
// CHECK: tile.store %[[NEW]], %{{.*}}[] : tensor<128x32xf32>, <128x32xf32, unit 1>
// CHECK: scf.yield %[[NEXT]]
// CHECK: tile.store_rows %[[SUM]], %o
// CHECK: scf.for
// CHECK: tile.store %{{.*}}, %{{.*}}[%n, %head] : tensor<128x32xf32>, <?x?x128x32xf32, unit 3>
// CHECK-NOT: tensor<512x32xf32>
tile.kernel @levels(%n: index, %head: index, %sequences: !tile.sequences<dense>, %q: !tile.view<?x?x?x64xf32, unit 3>,
    %a: !tile.view<?x?x?x8xf32, unit 3>, %v: !tile.view<?x?x?x32xf32, unit 3>, %initial: !tile.view<?x?x512x32xf32, unit 3>,
    %final: !tile.view<?x?x512x32xf32, unit 3>, %o: !tile.view<?x?x?x32xf32, unit 3>)
    attributes {grid = ["N", "H"], arg_names = ["sequences", "q", "a", "v", "initial", "final", "o"]} {
  %batch, %begin, %end = tile.sequence %sequences, %n : <dense>
  %S0 = tile.load %initial[%n, %head] : <?x?x512x32xf32, unit 3> -> tensor<512x32xf32>
  %c16 = arith.constant 16 : index
  %last = scf.for %t = %begin to %end step %c16 iter_args(%S = %S0) -> (tensor<512x32xf32>) {
    %rows = tile.rows %begin, %t, %end : <16>
    %x = tile.load_rows %q[%batch, %rows, %head] : <?x?x?x64xf32, unit 3>, <16> -> tensor<16x64xf32>
    %y = tile.load_rows %a[%batch, %rows, %head] : <?x?x?x8xf32, unit 3>, <16> -> tensor<16x8xf32>
    %xy = tile.kron_rows %y, %x : tensor<16x64xf32> : tensor<16x8xf32> -> tensor<16x512xf32>
    %sum = tile.dot %xy, %S : tensor<16x512xf32>, tensor<512x32xf32> -> tensor<16x32xf32>
    tile.store_rows %sum, %o[%batch, %rows, %head] : tensor<16x32xf32>, <?x?x?x32xf32, unit 3>, <16>
    %z = tile.load_rows %v[%batch, %rows, %head] : <?x?x?x32xf32, unit 3>, <16> -> tensor<16x32xf32>
    %xyt = tile.transpose %xy : tensor<16x512xf32> -> tensor<512x16xf32>
    %add = tile.dot %xyt, %z : tensor<512x16xf32>, tensor<16x32xf32> -> tensor<512x32xf32>
    %S1 = arith.addf %S, %add : tensor<512x32xf32>
    scf.yield %S1 : tensor<512x32xf32>
  }
  tile.store %last, %final[%n, %head] : tensor<512x32xf32>, <?x?x512x32xf32, unit 3>
}

// A step has the state where it is; one column of the first operand is a factor of the second. What the update needs of
// the state is summed in a loop before.
// CHECK-LABEL: tile.kernel @step(
// CHECK-NOT: tile.scratch
// CHECK: %[[U:.*]] = scf.for %{{.*}} step %c128
// CHECK: %[[F:.*]] = tile.pick_columns %{{.*}} : tensor<1x8xf32> -> tensor<1x1xf32>
// CHECK: %[[B:.*]] = tile.broadcast %[[F]] : tensor<1x1xf32> -> tensor<1x128xf32>
// CHECK: arith.mulf %[[B]], %{{.*}} : tensor<1x128xf32>
// CHECK-NOT: tile.store
// CHECK: scf.yield
// CHECK: arith.subf %{{.*}}, %[[U]]
// CHECK: scf.for %{{.*}} step %c128
// CHECK: tile.dot %{{.*}} : tensor<128x1xf32>, tensor<1x32xf32> -> tensor<128x32xf32>
// CHECK: tile.store %{{.*}}, %{{.*}}[%n] : tensor<128x32xf32>, <?x128x32xf32, unit 2>
// CHECK-NOT: tensor<1024x32xf32>
tile.kernel @step(%n: index, %k: !tile.view<?x128xf32, unit 1>, %a: !tile.view<?x8xf32, unit 1>, %v: !tile.view<?x32xf32, unit 1>,
    %state: !tile.view<?x1024x32xf32, unit 2>) attributes {grid = ["N"], arg_names = ["k", "a", "v", "state"]} {
  %S = tile.load %state[%n] : <?x1024x32xf32, unit 2> -> tensor<1024x32xf32>
  %x = tile.load %k[%n] : <?x128xf32, unit 1> -> tensor<1x128xf32>
  %y = tile.load %a[%n] : <?x8xf32, unit 1> -> tensor<1x8xf32>
  %z = tile.load %v[%n] : <?x32xf32, unit 1> -> tensor<1x32xf32>
  %xy = tile.kron_rows %y, %x : tensor<1x128xf32> : tensor<1x8xf32> -> tensor<1x1024xf32>
  %old = tile.dot %xy, %S : tensor<1x1024xf32>, tensor<1024x32xf32> -> tensor<1x32xf32>
  %u = arith.subf %z, %old : tensor<1x32xf32>
  %xyt = tile.transpose %xy : tensor<1x1024xf32> -> tensor<1024x1xf32>
  %add = tile.dot %xyt, %u : tensor<1024x1xf32>, tensor<1x32xf32> -> tensor<1024x32xf32>
  %S1 = arith.addf %S, %add : tensor<1024x32xf32>
  tile.store %S1, %state[%n] : tensor<1024x32xf32>, <?x1024x32xf32, unit 2>
}

// Rows that something looks at as a whole stay together, and so do those that are few.
// CHECK-LABEL: tile.kernel @whole(
// CHECK: tile.kron_rows {{.*}} -> tensor<16x512xf32>
// CHECK: tile.reduce max 1
tile.kernel @whole(%n: index, %q: !tile.view<?x16x64xf32, unit 2>, %a: !tile.view<?x16x8xf32, unit 2>, %o: !tile.view<?x16x1xf32, unit 2>)
    attributes {grid = ["N"], arg_names = ["q", "a", "o"]} {
  %x = tile.load %q[%n] : <?x16x64xf32, unit 2> -> tensor<16x64xf32>
  %y = tile.load %a[%n] : <?x16x8xf32, unit 2> -> tensor<16x8xf32>
  %xy = tile.kron_rows %y, %x : tensor<16x64xf32> : tensor<16x8xf32> -> tensor<16x512xf32>
  %m = tile.reduce max 1 %xy : tensor<16x512xf32> -> tensor<16x1xf32>
  tile.store %m, %o[%n] : tensor<16x1xf32>, <?x16x1xf32, unit 2>
}
// CHECK-LABEL: tile.kernel @few(
// CHECK: tile.kron_rows {{.*}} -> tensor<16x32xf32>
// CHECK-NOT: scf.for
tile.kernel @few(%n: index, %q: !tile.view<?x16x4xf32, unit 2>, %a: !tile.view<?x16x8xf32, unit 2>, %o: !tile.view<?x16x1xf32, unit 2>)
    attributes {grid = ["N"], arg_names = ["q", "a", "o"]} {
  %x = tile.load %q[%n] : <?x16x4xf32, unit 2> -> tensor<16x4xf32>
  %y = tile.load %a[%n] : <?x16x8xf32, unit 2> -> tensor<16x8xf32>
  %xy = tile.kron_rows %y, %x : tensor<16x4xf32> : tensor<16x8xf32> -> tensor<16x32xf32>
  %m = tile.reduce sum 1 %xy : tensor<16x32xf32> -> tensor<16x1xf32>
  tile.store %m, %o[%n] : tensor<16x1xf32>, <?x16x1xf32, unit 2>
}

}
