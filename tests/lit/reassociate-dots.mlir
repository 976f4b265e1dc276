// RUN: latile-opt %S/Inputs/step.mlir --tile-canonicalize --reassociate-dots --tile-canonicalize | FileCheck %s

// Both dots with the state read the carry itself; the update is the only other use of it.
// CHECK: ^bb0({{.*}}%S: tensor<8x24xf32>):
// CHECK: %[[E:.*]] = math.exp2
// CHECK: %[[KS:.*]] = tile.dot %k{{.*}}, %S precise
// CHECK: %[[EB:.*]] = tile.broadcast %[[E]] : tensor<1x1xf32> -> tensor<1x24xf32>
// CHECK: arith.mulf %[[EB]], %[[KS]]
// CHECK: %[[U:.*]] = arith.mulf %{{.*}} : tensor<1x24xf32>
// CHECK: %[[QS:.*]] = tile.dot %q{{.*}}, %S precise
// CHECK: %[[EQS:.*]] = arith.mulf %[[EB]], %[[QS]]
// CHECK: %[[QK:.*]] = tile.dot %q{{.*}} -> tensor<1x1xf32>
// CHECK: %[[QKB:.*]] = tile.broadcast %[[QK]]
// CHECK: %[[QKU:.*]] = arith.mulf %[[QKB]], %[[U]]
// CHECK: arith.addf %[[EQS]], %[[QKU]]
