// RUN: latile-opt %s --scan-to-kernels | FileCheck %s
// RUN: latile-opt %s --scan-to-kernels | latile-opt | FileCheck %s

// Scalar decay with grouped heads, ragged rows and a pool of bfloat16 states by index.
// CHECK-LABEL: tile.kernel @simple_gla_fused(%n: index, %head: index,
// CHECK-SAME: grid = ["N", "HV"]
// CHECK: %[[H:.*]] = tile.head %head of "H" grouped 2
// CHECK: %batch, %begin, %end = tile.sequence %sequences, %n
// CHECK: %[[GAMMA:.*]] = tile.load %g_gamma[%head]
// CHECK: %[[SCALE:.*]] = tile.splat %scale
// CHECK: %[[FROM:.*]] = tile.slot %S.initial_index[%n]
// CHECK: %[[S16:.*]] = tile.load %S.initial[%[[FROM]], %head]
// CHECK: %[[S:.*]] = tile.cast %[[S16]]
// CHECK: %[[C:.*]] = arith.constant 16 : index
// CHECK: %[[LAST:.*]] = scf.for %[[T:.*]] = %begin to %end step %[[C]] iter_args(%{{.*}} = %[[S]])
// CHECK: %[[ROWS:.*]] = tile.rows %begin, %[[T]], %end : <16>
// CHECK: tile.load_rows %q[%batch, %[[ROWS]], %[[H]]]
// CHECK: tile.load_rows %v[%batch, %[[ROWS]], %head]
// CHECK: tile.broadcast %[[GAMMA]]
// CHECK: tile.neutral %{{.*}} with 0.000000e+00 rows %[[ROWS]]
// CHECK: tile.broadcast %[[SCALE]]
// CHECK: tile.store_rows %{{.*}}, %o[%batch, %[[ROWS]], %head]
// CHECK: scf.yield
// CHECK: %[[TO:.*]] = tile.slot %S.final_index[%n]
// CHECK: %[[LAST16:.*]] = tile.cast %[[LAST]]
// CHECK: tile.store %[[LAST16]], %S.initial[%[[TO]], %head]
// CHECK: tile.program @simple_gla
// CHECK-NEXT: tile.launch @simple_gla_fused
tile.program @simple_gla(%seq: !tile.sequences<ragged32>, %q: !tile.view<?x?x?x8xbf16, unit 3>,
    %k: !tile.view<?x?x?x8xbf16, unit 3>, %v: !tile.view<?x?x?x24xbf16, unit 3>, %g: !tile.view<?x?x?xf32>,
    %gamma: !tile.view<?xf32>, %o: !tile.view<?x?x?x24xbf16, unit 3>, %pool: !tile.view<?x?x8x24xbf16>,
    %from: !tile.view<?xi32>, %to: !tile.view<?xi64>, %scale: f64)
    attributes {arg_names = ["sequences", "q", "k", "v", "g", "g_gamma", "o", "S.initial", "S.initial_index", "S.final_index", "scale"]} {
  tile.scan %seq chunk 16 axis "HV" in(%q, %k, %v, %g, %gamma, %scale) initial(%pool) at(%from) final(%pool) at(%to) out(%o)
    {reads = ["q", "k", "v", "g", "g_gamma", "scale"], read_heads = ["H", "H", "HV", "HV", "HV", ""],
     rates = array<i64: 1, 1, 1, 1, 0, 0>, carries = ["S"], carry_heads = ["HV"], has_initial = array<i1: true>,
     has_initial_index = array<i1: true>, has_final = array<i1: true>, has_final_index = array<i1: true>,
     writes = ["o"], write_heads = ["HV"], head_ratio = 2, head_map = 0 : i32}
    : !tile.sequences<ragged32>, in(!tile.view<?x?x?x8xbf16, unit 3>, !tile.view<?x?x?x8xbf16, unit 3>,
      !tile.view<?x?x?x24xbf16, unit 3>, !tile.view<?x?x?xf32>, !tile.view<?xf32>, f64)
      initial(!tile.view<?x?x8x24xbf16>) at(!tile.view<?xi32>) final(!tile.view<?x?x8x24xbf16>) at(!tile.view<?xi64>)
      out(!tile.view<?x?x?x24xbf16, unit 3>) {
  ^bb0(%qc: tensor<16x8xbf16>, %kc: tensor<16x8xbf16>, %vc: tensor<16x24xbf16>, %gc: tensor<16x1xf32>, %gm: tensor<1x1xf32>, %sc: tensor<1x1xf32>, %S: tensor<8x24xf32>):
    %gmB = tile.broadcast %gm : tensor<1x1xf32> -> tensor<16x1xf32>
    %g0 = arith.addf %gc, %gmB : tensor<16x1xf32>
    %gn = tile.neutral %g0 with 0.0 : tensor<16x1xf32>
    %G = tile.cumsum %gn : tensor<16x1xf32>
    %Gl = tile.row last %G : tensor<16x1xf32> -> tensor<1x1xf32>
    %S16 = tile.cast %S : tensor<8x24xf32> -> tensor<8x24xbf16>
    %qS = tile.dot %qc, %S16 : tensor<16x8xbf16>, tensor<8x24xbf16> -> tensor<16x24xf32>
    %eG = math.exp2 %G : tensor<16x1xf32>
    %eGB = tile.broadcast %eG : tensor<16x1xf32> -> tensor<16x24xf32>
    %inter = arith.mulf %eGB, %qS : tensor<16x24xf32>
    %kT = tile.transpose %kc : tensor<16x8xbf16> -> tensor<8x16xbf16>
    %qk = tile.dot %qc, %kT : tensor<16x8xbf16>, tensor<8x16xbf16> -> tensor<16x16xf32>
    %D = tile.decay %G, %G lower : tensor<16x1xf32>, tensor<16x1xf32> -> tensor<16x16xf32>
    %P = arith.mulf %qk, %D : tensor<16x16xf32>
    %P16 = tile.cast %P : tensor<16x16xf32> -> tensor<16x16xbf16>
    %intra = tile.dot %P16, %vc : tensor<16x16xbf16>, tensor<16x24xbf16> -> tensor<16x24xf32>
    %y = arith.addf %inter, %intra : tensor<16x24xf32>
    %scB = tile.broadcast %sc : tensor<1x1xf32> -> tensor<16x24xf32>
    %oy = arith.mulf %scB, %y : tensor<16x24xf32>
    %o16 = tile.cast %oy : tensor<16x24xf32> -> tensor<16x24xbf16>
    %GlB = tile.broadcast %Gl : tensor<1x1xf32> -> tensor<16x1xf32>
    %d = arith.subf %GlB, %G : tensor<16x1xf32>
    %ed = math.exp2 %d : tensor<16x1xf32>
    %edB = tile.broadcast %ed : tensor<16x1xf32> -> tensor<16x8xf32>
    %k32 = tile.cast %kc : tensor<16x8xbf16> -> tensor<16x8xf32>
    %kd = arith.mulf %edB, %k32 : tensor<16x8xf32>
    %kd16 = tile.cast %kd : tensor<16x8xf32> -> tensor<16x8xbf16>
    %kdT = tile.transpose %kd16 : tensor<16x8xbf16> -> tensor<8x16xbf16>
    %kv = tile.dot %kdT, %vc : tensor<8x16xbf16>, tensor<16x24xbf16> -> tensor<8x24xf32>
    %eGl = math.exp2 %Gl : tensor<1x1xf32>
    %eGlB = tile.broadcast %eGl : tensor<1x1xf32> -> tensor<8x24xf32>
    %eS = arith.mulf %eGlB, %S : tensor<8x24xf32>
    %S1 = arith.addf %eS, %kv : tensor<8x24xf32>
    tile.yield %o16, %S1 : tensor<16x24xbf16>, tensor<8x24xf32>
  }
}
