// RUN: latile-opt %s | latile-opt | FileCheck %s

// Every op in its text form, read, printed and read again.

// CHECK-LABEL: tile.program @types
// CHECK-SAME: !tile.sequences<dense>, %r: !tile.sequences<ragged32>, %s: !tile.sequences<ragged64>
// CHECK-SAME: !tile.view<?x?x?x128xbf16, unit 3>
// CHECK-SAME: !tile.view<8x24xf16>
// CHECK-SAME: !tile.view<f32>
// CHECK-SAME: !tile.view<?xi64, unit 0>
tile.program @types(%d: !tile.sequences<dense>, %r: !tile.sequences<ragged32>, %s: !tile.sequences<ragged64>,
    %q: !tile.view<?x?x?x128xbf16, unit 3>, %w: !tile.view<8x24xf16>, %x: !tile.view<f32>, %i: !tile.view<?xi64, unit 0>)
    attributes {arg_names = ["d", "r", "s", "q", "w", "x", "i"]} {
}

// CHECK-LABEL: tile.kernel @positions(%c: index, %head: index, %sequences: !tile.sequences<ragged32>, %index: !tile.view<?xi32>)
tile.kernel @positions(%c: index, %h: index, %seq: !tile.sequences<ragged32>, %index: !tile.view<?xi32>)
    attributes {grid = ["chunks", "HV"], arg_names = ["sequences", "index"]} {
  // CHECK: %n, %batch, %begin, %position, %end = tile.chunk %sequences, %c size 16 : <ragged32>
  %n, %b, %begin, %position, %end = tile.chunk %seq, %c size 16 : !tile.sequences<ragged32>
  // CHECK: tile.sequence %sequences, %n : <ragged32>
  %b2, %begin2, %end2 = tile.sequence %seq, %n : !tile.sequences<ragged32>
  // CHECK: tile.chunk_begin %sequences, %n size 16 : <ragged32>
  %first = tile.chunk_begin %seq, %n size 16 : !tile.sequences<ragged32>
  // CHECK: %[[ROWS:.*]] = tile.rows %begin, %position, %end : <16>
  %rows = tile.rows %begin, %position, %end : !tile.rows<16>
  // CHECK: tile.head %head of "H" tiled 4
  %coarse = tile.head %h of "H" tiled 4
  // CHECK: tile.member %c, %{{.*}} of "H" tiled 4
  %fine = tile.member %c, %coarse of "H" tiled 4
  // CHECK: tile.slot %index[%n] : <?xi32>
  %slot = tile.slot %index[%n] : !tile.view<?xi32>
  // CHECK: tile.valid %[[ROWS]] : !tile.rows<16> -> tensor<16x1xf32>
  %v = tile.valid %rows : !tile.rows<16> -> tensor<16x1xf32>
  // CHECK: tile.count %[[ROWS]] : !tile.rows<16> -> tensor<1x1xf32>
  %count = tile.count %rows : !tile.rows<16> -> tensor<1x1xf32>
  // CHECK: tile.index %[[ROWS]] : !tile.rows<16> -> tensor<1x1xf32>
  %index_of = tile.index %rows : !tile.rows<16> -> tensor<1x1xf32>
  // CHECK: %[[N:.*]] = tile.neutral %{{.*}} with -1.000000e+00 rows %[[ROWS]] : !tile.rows<16> : tensor<16x1xf32>
  %neutral = tile.neutral %v with -1.0 rows %rows : !tile.rows<16> : tensor<16x1xf32>
  // CHECK: tile.row last_valid %[[N]] rows %[[ROWS]] : !tile.rows<16> : tensor<16x1xf32> -> tensor<1x1xf32>
  %last = tile.row last_valid %neutral rows %rows : !tile.rows<16> : tensor<16x1xf32> -> tensor<1x1xf32>
  // CHECK: tile.place_row last_valid %{{.*}} rows %[[ROWS]] : !tile.rows<16> : tensor<1x1xf32> -> tensor<16x1xf32>
  %placed = tile.place_row last_valid %last rows %rows : !tile.rows<16> : tensor<1x1xf32> -> tensor<16x1xf32>
}

// CHECK-LABEL: tile.kernel @memory
tile.kernel @memory(%n: index, %q: !tile.view<?x?x8xbf16>, %S: !tile.view<?x8x24xf32>, %w: !tile.view<8xf32>, %g: !tile.view<f32>)
    attributes {grid = ["N"], arg_names = ["q", "S", "w", "g"]} {
  %zero = arith.constant 0 : index
  %rows = tile.rows %zero, %zero, %n : !tile.rows<16>
  // CHECK: %[[Q:.*]] = tile.load_rows %q[%n, %{{.*}}] {rate = 2 : i64} : <?x?x8xbf16>, <16> -> tensor<32x8xbf16>
  %Q = tile.load_rows %q[%n, %rows] {rate = 2} : !tile.view<?x?x8xbf16>, !tile.rows<16> -> tensor<32x8xbf16>
  %q1 = tile.load_rows %q[%n, %rows] : !tile.view<?x?x8xbf16>, !tile.rows<16> -> tensor<16x8xbf16>
  // CHECK: tile.rows %{{.*}}, %{{.*}}, %n back 3 : <16>
  %earlier = tile.rows %zero, %zero, %n back 3 : !tile.rows<16>
  // CHECK: %[[SOME:.*]] = tile.columns %q at %n : <?x?x8xbf16> -> <?x?x4xbf16>
  %some = tile.columns %q at %n : !tile.view<?x?x8xbf16> -> !tile.view<?x?x4xbf16>
  // CHECK: tile.columns %S at %{{.*}} : <?x8x24xf32> -> <?x?x24xf32>
  %state = tile.columns %S at %zero : !tile.view<?x8x24xf32> -> !tile.view<?x?x24xf32>
  // CHECK: tile.load_rows %[[SOME]][%n, %{{.*}}] : <?x?x4xbf16>, <16> -> tensor<16x4xbf16>
  %q2 = tile.load_rows %some[%n, %earlier] : !tile.view<?x?x4xbf16>, !tile.rows<16> -> tensor<16x4xbf16>
  // CHECK: tile.store_rows %{{.*}}, %q[%n, %{{.*}}] : tensor<16x8xbf16>, <?x?x8xbf16>, <16>
  tile.store_rows %q1, %q[%n, %rows] : tensor<16x8xbf16>, !tile.view<?x?x8xbf16>, !tile.rows<16>
  // CHECK: tile.load %S[%n] : <?x8x24xf32> -> tensor<8x24xf32>
  %s = tile.load %S[%n] : !tile.view<?x8x24xf32> -> tensor<8x24xf32>
  // CHECK: tile.load %w[] : <8xf32> -> tensor<1x8xf32>
  %row = tile.load %w[] : !tile.view<8xf32> -> tensor<1x8xf32>
  // CHECK: tile.load %g[] : <f32> -> tensor<1x1xf32>
  %one = tile.load %g[] : !tile.view<f32> -> tensor<1x1xf32>
  // CHECK: tile.row_block %S at %n : <?x8x24xf32> -> <?x4x24xf32>
  %block = tile.row_block %S at %n : !tile.view<?x8x24xf32> -> !tile.view<?x4x24xf32>
  // CHECK: tile.scratch : <8x24xf32, unit 1>
  %own = tile.scratch : !tile.view<8x24xf32, unit 1>
  // CHECK: tile.pick_columns %{{.*}} at %n : tensor<8x24xf32> -> tensor<8x3xf32>
  %picked = tile.pick_columns %s at %n : tensor<8x24xf32> -> tensor<8x3xf32>
  // CHECK: tile.store %{{.*}}, %S[%n] : tensor<8x24xf32>, <?x8x24xf32>
  tile.store %s, %S[%n] : tensor<8x24xf32>, !tile.view<?x8x24xf32>
}

// CHECK-LABEL: tile.kernel @values
tile.kernel @values(%scale: f64, %x: !tile.view<16x8xf32>, %a: !tile.view<16x16xf32>, %c: !tile.view<16x1xf32>, %r: !tile.view<8xf32>)
    attributes {grid = [], arg_names = ["scale", "x", "a", "c", "r"]} {
  %X = tile.load %x[] : !tile.view<16x8xf32> -> tensor<16x8xf32>
  %A = tile.load %a[] : !tile.view<16x16xf32> -> tensor<16x16xf32>
  %G = tile.load %c[] : !tile.view<16x1xf32> -> tensor<16x1xf32>
  %R = tile.load %r[] : !tile.view<8xf32> -> tensor<1x8xf32>
  // CHECK: tile.constant 1.4426950408889634 : tensor<1x1xf32>
  %0 = tile.constant 1.4426950408889634 : tensor<1x1xf32>
  // CHECK: tile.splat %scale : tensor<1x1xf32>
  %1 = tile.splat %scale : tensor<1x1xf32>
  // CHECK: tile.cast %{{.*}} : tensor<16x8xf32> -> tensor<16x8xbf16>
  %2 = tile.cast %X : tensor<16x8xf32> -> tensor<16x8xbf16>
  // CHECK: tile.broadcast %{{.*}} : tensor<16x1xf32> -> tensor<16x8xf32>
  %3 = tile.broadcast %G : tensor<16x1xf32> -> tensor<16x8xf32>
  // CHECK: tile.transpose %{{.*}} : tensor<16x8xbf16> -> tensor<8x16xbf16>
  %4 = tile.transpose %2 : tensor<16x8xbf16> -> tensor<8x16xbf16>
  // CHECK: tile.row at %{{.*}} {at = 3 : i64} : tensor<16x8xf32> -> tensor<1x8xf32>
  %5 = tile.row at %X {at = 3} : tensor<16x8xf32> -> tensor<1x8xf32>
  // CHECK: tile.place_row last %{{.*}} : tensor<1x8xf32> -> tensor<16x8xf32>
  %6 = tile.place_row last %R : tensor<1x8xf32> -> tensor<16x8xf32>
  // CHECK: tile.prev %{{.*}} from %{{.*}} reverse : tensor<1x8xf32>, tensor<16x8xf32>
  %7 = tile.prev %X from %R reverse : tensor<1x8xf32>, tensor<16x8xf32>
  // CHECK: %[[TWICE:.*]] = tile.repeat_rows %{{.*}} times 2 : tensor<16x8xf32> -> tensor<32x8xf32>
  %8 = tile.repeat_rows %X times 2 : tensor<16x8xf32> -> tensor<32x8xf32>
  // CHECK: tile.sum_rows %[[TWICE]] by 2 : tensor<32x8xf32> -> tensor<16x8xf32>
  %9 = tile.sum_rows %8 by 2 : tensor<32x8xf32> -> tensor<16x8xf32>
  // CHECK: tile.mask strict %{{.*}} : tensor<16x16xf32>
  %10 = tile.mask strict %A : tensor<16x16xf32>
  // CHECK: tile.diagonal %{{.*}} : tensor<16x1xf32> -> tensor<16x16xf32>
  %11 = tile.diagonal %G : tensor<16x1xf32> -> tensor<16x16xf32>
  // CHECK: tile.lookup fenwick %{{.*}} : tensor<16x8xf32> -> tensor<16x16xf32>
  %12 = tile.lookup fenwick %X : tensor<16x8xf32> -> tensor<16x16xf32>
  // CHECK: tile.lookup fenwick %{{.*}} from %{{.*}} : tensor<1x1xf32> : tensor<16x8xf32> -> tensor<16x16xf32>
  %from = tile.constant 5.0 : tensor<1x1xf32>
  %levels = tile.lookup fenwick %X from %from : tensor<1x1xf32> : tensor<16x8xf32> -> tensor<16x16xf32>
  // CHECK: tile.kron_rows %{{.*}}, %{{.*}} : tensor<16x16xf32> : tensor<16x8xf32> -> tensor<16x128xf32>
  %products = tile.kron_rows %X, %A : tensor<16x16xf32> : tensor<16x8xf32> -> tensor<16x128xf32>
  // CHECK: tile.lookup fenwick %{{.*}} transposed : tensor<16x16xf32> -> tensor<16x8xf32>
  %13 = tile.lookup fenwick %A transposed : tensor<16x16xf32> -> tensor<16x8xf32>
  // CHECK: tile.sigmoid %{{.*}} : tensor<16x8xf32>
  %14 = tile.sigmoid %X : tensor<16x8xf32>
  // CHECK: tile.softplus %{{.*}} : tensor<16x8xf32>
  %15 = tile.softplus %X : tensor<16x8xf32>
  // CHECK: tile.reduce mean 0 %{{.*}} : tensor<16x8xf32> -> tensor<1x8xf32>
  %16 = tile.reduce mean 0 %X : tensor<16x8xf32> -> tensor<1x8xf32>
  // CHECK: tile.dot %{{.*}}, %{{.*}} precise : tensor<16x8xbf16>, tensor<8x16xbf16> -> tensor<16x16xf32>
  %17 = tile.dot %2, %4 precise : tensor<16x8xbf16>, tensor<8x16xbf16> -> tensor<16x16xf32>
  // CHECK: %[[KRON:.*]] = tile.kron_rows %{{.*}} : tensor<16x8xf32> -> tensor<16x64xf32>
  %18 = tile.kron_rows %X : tensor<16x8xf32> -> tensor<16x64xf32>
  // CHECK: tile.contract_kron %[[KRON]], %{{.*}} : tensor<16x64xf32>, tensor<16x8xf32>
  %19 = tile.contract_kron %18, %X : tensor<16x64xf32>, tensor<16x8xf32>
  // CHECK: tile.cumsum %{{.*}} exclusive reverse : tensor<16x8xf32>
  %20 = tile.cumsum %X exclusive reverse : tensor<16x8xf32>
  // CHECK: tile.cummax %{{.*}} from %{{.*}} : tensor<1x8xf32>, tensor<16x8xf32>
  %21 = tile.cummax %X from %R : tensor<1x8xf32>, tensor<16x8xf32>
  // CHECK: tile.logcumsumexp %{{.*}} from %{{.*}} : tensor<1x8xf32>, tensor<16x8xf32>
  %22 = tile.logcumsumexp %X from %R : tensor<1x8xf32>, tensor<16x8xf32>
  // CHECK: tile.affine_scan %{{.*}}, %{{.*}} from %{{.*}} reverse : tensor<1x8xf32>, tensor<16x8xf32>
  %23 = tile.affine_scan %X, %X from %R reverse : tensor<1x8xf32>, tensor<16x8xf32>
  // CHECK: tile.decay %{{.*}}, %{{.*}} lower {stair = 2 : i64} : tensor<16x1xf32>, tensor<32x1xf32> -> tensor<16x32xf32>
  %G2 = tile.repeat_rows %G times 2 : tensor<16x1xf32> -> tensor<32x1xf32>
  %24 = tile.decay %G, %G2 lower {stair = 2} : tensor<16x1xf32>, tensor<32x1xf32> -> tensor<16x32xf32>
  // CHECK: tile.decayed_scores %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} strict {bound = -5.000000e+00 : f64, operand = bf16} : tensor<16x8xf32>, tensor<16x8xf32>, tensor<16x8xf32>, tensor<16x8xf32> -> tensor<16x16xf32>
  %25 = tile.decayed_scores %X, %X, %X, %X strict {operand = bf16, bound = -5.0 : f64} : tensor<16x8xf32>, tensor<16x8xf32>, tensor<16x8xf32>, tensor<16x8xf32> -> tensor<16x16xf32>
  // CHECK: tile.decayed_apply %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} lower transposed : tensor<16x16xf32>, tensor<16x8xf32>, tensor<16x8xf32>, tensor<16x8xf32> -> tensor<16x8xf32>
  %26 = tile.decayed_apply %A, %X, %X, %X lower transposed : tensor<16x16xf32>, tensor<16x8xf32>, tensor<16x8xf32>, tensor<16x8xf32> -> tensor<16x8xf32>
  // CHECK: tile.inverse_unit_lower %{{.*}} : tensor<16x16xf32>
  %27 = tile.inverse_unit_lower %A : tensor<16x16xf32>
  // CHECK: tile.solve_unit_lower %{{.*}}, %{{.*}} : tensor<16x16xf32>, tensor<16x8xf32>
  %28 = tile.solve_unit_lower %A, %X : tensor<16x16xf32>, tensor<16x8xf32>
  // CHECK: tile.solve %{{.*}} steps 4 : tensor<16x8xf32> {
  // CHECK: tile.yield
  %29 = tile.solve %X steps 4 : tensor<16x8xf32> {
  ^bb0(%p: tensor<16x8xf32>):
    tile.yield %p : tensor<16x8xf32>
  }
  // CHECK: tile.custom %{{.*}} : tensor<16x8xf32> -> tensor<16x8xf32> {
  // CHECK: } adjoint {
  %30 = tile.custom %X : tensor<16x8xf32> -> tensor<16x8xf32> {
  ^bb0(%p: tensor<16x8xf32>):
    tile.yield %p : tensor<16x8xf32>
  } adjoint {
  ^bb0(%p: tensor<16x8xf32>, %y: tensor<16x8xf32>, %g: tensor<16x8xf32>):
    tile.yield %g : tensor<16x8xf32>
  }
}

// CHECK-LABEL: tile.program @launches
tile.program @launches(%seq: !tile.sequences<dense>, %scale: f64, %x: !tile.view<16x8xf32>, %c: !tile.view<16x1xf32>, %r: !tile.view<8xf32>)
    attributes {step, arg_names = ["sequences", "scale", "x", "c", "r"]} {
  // CHECK: %[[W:.*]] = tile.workspace "T" %sequences chunk 16 axis "HV" : <dense> -> <?x?x16x16xf32, unit 3>
  %w = tile.workspace "T" %seq chunk 16 axis "HV" : !tile.sequences<dense> -> !tile.view<?x?x16x16xf32, unit 3>
  // CHECK: tile.launch @uses(%[[W]]) : !tile.view<?x?x16x16xf32, unit 3>
  tile.launch @uses(%w) : !tile.view<?x?x16x16xf32, unit 3>
}
tile.kernel @uses(%n: index, %w: !tile.view<?x?x16x16xf32, unit 3>) attributes {grid = ["N"], arg_names = ["w"]} {
}

// A scan without parameters, carries or head axis.
// CHECK-LABEL: tile.program @scan
// CHECK: tile.scan %sequences chunk 4 axis "" in(%x) initial() at() final() at() out(%y)
// CHECK-SAME: initial () at () final () at () out (!tile.view<?x?x8xf32>) {
tile.program @scan(%seq: !tile.sequences<dense>, %x: !tile.view<?x?x8xf32>, %y: !tile.view<?x?x8xf32>)
    attributes {arg_names = ["sequences", "x", "y"]} {
  tile.scan %seq chunk 4 axis "" in(%x) initial() at() final() at() out(%y)
    {reads = ["x"], read_heads = [""], rates = array<i64: 1>, carries = [], carry_heads = [], has_initial = array<i1>,
     has_initial_index = array<i1>, has_final = array<i1>, has_final_index = array<i1>, writes = ["y"], write_heads = [""],
     head_ratio = 1, head_map = 0 : i32}
    : !tile.sequences<dense>, in(!tile.view<?x?x8xf32>) initial() at() final() at() out(!tile.view<?x?x8xf32>) {
  ^bb0(%xc: tensor<4x8xf32>):
    tile.yield %xc : tensor<4x8xf32>
  }
}
