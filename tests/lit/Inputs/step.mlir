// One token of the gated delta rule, in place on a pool of states.
tile.program @step(%seq: !tile.sequences<dense>, %q: !tile.view<?x?x?x8xf32>, %k: !tile.view<?x?x?x8xf32>,
    %v: !tile.view<?x?x?x24xf32>, %g: !tile.view<?x?x?xf32>, %beta: !tile.view<?x?x?xf32>, %o: !tile.view<?x?x?x24xf32>,
    %pool: !tile.view<?x?x8x24xf32>, %at: !tile.view<?xi32>, %scale: f64)
    attributes {step, arg_names = ["sequences", "q", "k", "v", "g", "beta", "o", "S.initial", "S.initial_index", "scale"]} {
  tile.scan %seq chunk 1 axis "H" in(%q, %k, %v, %g, %beta, %scale) initial(%pool) at(%at) final(%pool) at(%at) out(%o)
    {reads = ["q", "k", "v", "g", "beta", "scale"], read_heads = ["H", "H", "H", "H", "H", ""],
     rates = array<i64: 1, 1, 1, 1, 1, 0>, carries = ["S"], carry_heads = ["H"], has_initial = array<i1: true>,
     has_initial_index = array<i1: true>, has_final = array<i1: true>, has_final_index = array<i1: true>,
     writes = ["o"], write_heads = ["H"], head_ratio = 1, head_map = 0 : i32}
    : !tile.sequences<dense>, in(!tile.view<?x?x?x8xf32>, !tile.view<?x?x?x8xf32>, !tile.view<?x?x?x24xf32>,
      !tile.view<?x?x?xf32>, !tile.view<?x?x?xf32>, f64)
      initial(!tile.view<?x?x8x24xf32>) at(!tile.view<?xi32>) final(!tile.view<?x?x8x24xf32>) at(!tile.view<?xi32>)
      out(!tile.view<?x?x?x24xf32>) {
  ^bb0(%qc: tensor<1x8xf32>, %kc: tensor<1x8xf32>, %vc: tensor<1x24xf32>, %gc: tensor<1x1xf32>, %bc: tensor<1x1xf32>, %sc: tensor<1x1xf32>, %S: tensor<8x24xf32>):
    %eg = math.exp2 %gc : tensor<1x1xf32>
    %egB = tile.broadcast %eg : tensor<1x1xf32> -> tensor<8x24xf32>
    %S0 = arith.mulf %egB, %S : tensor<8x24xf32>
    %kS = tile.dot %kc, %S0 precise : tensor<1x8xf32>, tensor<8x24xf32> -> tensor<1x24xf32>
    %r = arith.subf %vc, %kS : tensor<1x24xf32>
    %bB = tile.broadcast %bc : tensor<1x1xf32> -> tensor<1x24xf32>
    %u = arith.mulf %bB, %r : tensor<1x24xf32>
    %kT = tile.transpose %kc : tensor<1x8xf32> -> tensor<8x1xf32>
    %ku = tile.dot %kT, %u precise : tensor<8x1xf32>, tensor<1x24xf32> -> tensor<8x24xf32>
    %S1 = arith.addf %S0, %ku : tensor<8x24xf32>
    %qS = tile.dot %qc, %S1 precise : tensor<1x8xf32>, tensor<8x24xf32> -> tensor<1x24xf32>
    %scB = tile.broadcast %sc : tensor<1x1xf32> -> tensor<1x24xf32>
    %y = arith.mulf %scB, %qS : tensor<1x24xf32>
    tile.yield %y, %S1 : tensor<1x24xf32>, tensor<8x24xf32>
  }
}
