// RUN: lower_kernels %s sm_80 asm | FileCheck %s

// Rows that a loop walks block by block come a turn ahead, those of a block's own memory too: a turn stores its own rows
// alone.
// CHECK-LABEL: .entry walked(
// CHECK: cp.async.cg.shared.global
// CHECK: cp.async.wait_all
// CHECK: cp.async.cg.shared.global
// CHECK: ret
module {
  tile.kernel @walked(%n: index, %S: !tile.view<?x256x64xf32, unit 2>) attributes {arg_names = ["S"], grid = ["N"]} {
    %c0 = arith.constant 0 : index
    %c128 = arith.constant 128 : index
    %c256 = arith.constant 256 : index
    %m = tile.scratch : <256x64xf32, unit 1>
    scf.for %i = %c0 to %c256 step %c128 {
      %from = tile.row_block %S at %i : <?x256x64xf32, unit 2> -> <?x128x64xf32, unit 2>
      %to = tile.row_block %m at %i : <256x64xf32, unit 1> -> <128x64xf32, unit 1>
      %x = tile.load %from[%n] : <?x128x64xf32, unit 2> -> tensor<128x64xf32>
      tile.store %x, %to[] : tensor<128x64xf32>, <128x64xf32, unit 1>
    }
    scf.for %i = %c0 to %c256 step %c128 {
      %own = tile.row_block %m at %i : <256x64xf32, unit 1> -> <128x64xf32, unit 1>
      %x = tile.load %own[] : <128x64xf32, unit 1> -> tensor<128x64xf32>
      %y = arith.addf %x, %x : tensor<128x64xf32>
      tile.store %y, %own[] : tensor<128x64xf32>, <128x64xf32, unit 1>
    }
  }

// What a turn stores may be what the next one reads.
// CHECK-LABEL: .entry overlapping(
// CHECK-NOT: cp.async
// CHECK: ret
  tile.kernel @overlapping(%n: index, %S: !tile.view<?x256x64xf32, unit 2>) attributes {arg_names = ["S"], grid = ["N"]} {
    %c0 = arith.constant 0 : index
    %c64 = arith.constant 64 : index
    %c128 = arith.constant 128 : index
    scf.for %i = %c0 to %c128 step %c64 {
      %own = tile.row_block %S at %i : <?x256x64xf32, unit 2> -> <?x128x64xf32, unit 2>
      %x = tile.load %own[%n] : <?x128x64xf32, unit 2> -> tensor<128x64xf32>
      %y = arith.addf %x, %x : tensor<128x64xf32>
      tile.store %y, %own[%n] : tensor<128x64xf32>, <?x128x64xf32, unit 2>
    }
  }
  tile.program @p(%S: !tile.view<?x256x64xf32, unit 2>) attributes {arg_names = ["S"]} {
    tile.launch @walked(%S) : !tile.view<?x256x64xf32, unit 2>
    tile.launch @overlapping(%S) : !tile.view<?x256x64xf32, unit 2>
  }
}
