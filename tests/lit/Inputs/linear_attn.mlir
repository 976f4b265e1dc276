// Linear attention with its normaliser as recorded: two carries.
module {
  tile.program @linear_attn(%sequences: !tile.sequences<dense>, %q: !tile.view<?x?x?x128xbf16>, %k: !tile.view<?x?x?x128xbf16>, %v: !tile.view<?x?x?x96xbf16>, %o: !tile.view<?x?x?x96xbf16>, %S.initial: !tile.view<?x?x128x96xf32>, %z.initial: !tile.view<?x?x128xf32>, %scale: f64) attributes {arg_names = ["sequences", "q", "k", "v", "o", "S.initial", "z.initial", "scale"]} {
    tile.scan %sequences chunk 64 axis "HV" in(%q, %k, %v, %scale) initial(%S.initial, %z.initial) at() final() at() out(%o) {carries = ["S", "z"], carry_heads = ["HV", "HV"], has_final = array<i1: false, false>, has_final_index = array<i1: false, false>, has_initial = array<i1: true, true>, has_initial_index = array<i1: false, false>, head_map = 0 : i32, head_ratio = 1 : i64, rates = array<i64: 1, 1, 1, 0>, read_heads = ["H", "H", "HV", ""], reads = ["q", "k", "v", "scale"], write_heads = ["HV"], writes = ["o"]} : <dense>, in (!tile.view<?x?x?x128xbf16>, !tile.view<?x?x?x128xbf16>, !tile.view<?x?x?x96xbf16>, f64) initial (!tile.view<?x?x128x96xf32>, !tile.view<?x?x128xf32>) at () final () at () out (!tile.view<?x?x?x96xbf16>) {
    ^bb0(%q_0: tensor<64x128xbf16>, %k_1: tensor<64x128xbf16>, %v_2: tensor<64x96xbf16>, %scale_3: tensor<1x1xf32>, %S: tensor<128x96xf32>, %z: tensor<1x128xf32>):
      %0 = tile.cast %S : tensor<128x96xf32> -> tensor<128x96xbf16>
      %1 = tile.dot %q_0, %0 : tensor<64x128xbf16>, tensor<128x96xbf16> -> tensor<64x96xf32>
      %2 = tile.transpose %k_1 : tensor<64x128xbf16> -> tensor<128x64xbf16>
      %3 = tile.dot %q_0, %2 : tensor<64x128xbf16>, tensor<128x64xbf16> -> tensor<64x64xf32>
      %4 = tile.mask lower %3 : tensor<64x64xf32>
      %5 = tile.cast %4 : tensor<64x64xf32> -> tensor<64x64xbf16>
      %6 = tile.dot %5, %v_2 : tensor<64x64xbf16>, tensor<64x96xbf16> -> tensor<64x96xf32>
      %7 = arith.addf %1, %6 : tensor<64x96xf32>
      %8 = tile.broadcast %scale_3 : tensor<1x1xf32> -> tensor<64x96xf32>
      %9 = arith.mulf %8, %7 : tensor<64x96xf32>
      %10 = tile.cast %q_0 : tensor<64x128xbf16> -> tensor<64x128xf32>
      %11 = tile.cast %k_1 : tensor<64x128xbf16> -> tensor<64x128xf32>
      %12 = tile.cumsum %11 : tensor<64x128xf32>
      %13 = tile.broadcast %z : tensor<1x128xf32> -> tensor<64x128xf32>
      %14 = arith.addf %13, %12 : tensor<64x128xf32>
      %15 = arith.mulf %10, %14 : tensor<64x128xf32>
      %16 = tile.reduce sum 1 %15 : tensor<64x128xf32> -> tensor<64x1xf32>
      %17 = tile.broadcast %scale_3 : tensor<1x1xf32> -> tensor<64x1xf32>
      %18 = arith.mulf %17, %16 : tensor<64x1xf32>
      %19 = tile.constant 1.000000e-10 : tensor<1x1xf32>
      %20 = tile.broadcast %19 : tensor<1x1xf32> -> tensor<64x1xf32>
      %21 = arith.addf %18, %20 : tensor<64x1xf32>
      %22 = tile.broadcast %21 : tensor<64x1xf32> -> tensor<64x96xf32>
      %23 = arith.divf %9, %22 : tensor<64x96xf32>
      %24 = tile.cast %23 : tensor<64x96xf32> -> tensor<64x96xbf16>
      %25 = tile.dot %2, %v_2 : tensor<128x64xbf16>, tensor<64x96xbf16> -> tensor<128x96xf32>
      %26 = arith.addf %S, %25 : tensor<128x96xf32>
      %27 = tile.row last %14 : tensor<64x128xf32> -> tensor<1x128xf32>
      tile.yield %24, %26, %27 : tensor<64x96xbf16>, tensor<128x96xf32>, tensor<1x128xf32>
    }
  }
}

