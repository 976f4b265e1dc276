// RUN: latile-opt %S/Inputs/step.mlir --scan-to-kernels | FileCheck %s

// A step has no loop, and a sequence without slots writes zeros only.
// CHECK-LABEL: tile.kernel @step_fused
// CHECK-NOT: scf.for
// CHECK: %[[ROWS:.*]] = tile.rows %begin, %begin, %end : <1>
// CHECK: %[[SLOT:.*]] = tile.slot %S.initial_index[%n]
// CHECK: arith.cmpi slt, %[[SLOT]]
// CHECK: %[[ABSENT:.*]] = arith.andi
// CHECK: scf.if %[[ABSENT]] {
// CHECK:   %[[ZERO:.*]] = tile.broadcast %{{.*}} -> tensor<1x24xf32>
// CHECK:   tile.store_rows %[[ZERO]], %o[%batch, %[[ROWS]], %head]
// CHECK-NOT: tile.store {{.*}}S.initial
// CHECK: } else {
// CHECK:   tile.load %S.initial[%[[SLOT]], %head]
// CHECK:   tile.store_rows %{{.*}}, %o
// CHECK:   tile.store %{{.*}}, %S.initial[%[[SLOT]], %head]
// CHECK: }
// CHECK: tile.program @step
// CHECK-NEXT: tile.launch @step_fused
// CHECK-NOT: tile.scan
