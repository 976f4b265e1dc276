// The gated delta rule as recorded: bfloat16 tensors, chunks of 64, K 128, V 96.
module {
  tile.program @gated_delta_rule(%sequences: !tile.sequences<dense>, %q: !tile.view<?x?x?x128xbf16>, %k: !tile.view<?x?x?x128xbf16>, %v: !tile.view<?x?x?x96xbf16>, %g: !tile.view<?x?x?xf32>, %beta: !tile.view<?x?x?xf32>, %o: !tile.view<?x?x?x96xbf16>, %S.initial: !tile.view<?x?x128x96xf32>, %S.final: !tile.view<?x?x128x96xf32>, %scale: f64) attributes {arg_names = ["sequences", "q", "k", "v", "g", "beta", "o", "S.initial", "S.final", "scale"]} {
    tile.scan %sequences chunk 64 axis "HV" in(%q, %k, %v, %g, %beta, %scale) initial(%S.initial) at() final(%S.final) at() out(%o) {carries = ["S"], carry_heads = ["HV"], has_final = array<i1: true>, has_final_index = array<i1: false>, has_initial = array<i1: true>, has_initial_index = array<i1: false>, head_map = 0 : i32, head_ratio = 1 : i64, rates = array<i64: 1, 1, 1, 1, 1, 0>, read_heads = ["H", "H", "HV", "HV", "HV", ""], reads = ["q", "k", "v", "g", "beta", "scale"], write_heads = ["HV"], writes = ["o"]} : <dense>, in (!tile.view<?x?x?x128xbf16>, !tile.view<?x?x?x128xbf16>, !tile.view<?x?x?x96xbf16>, !tile.view<?x?x?xf32>, !tile.view<?x?x?xf32>, f64) initial (!tile.view<?x?x128x96xf32>) at () final (!tile.view<?x?x128x96xf32>) at () out (!tile.view<?x?x?x96xbf16>) {
    ^bb0(%q_0: tensor<64x128xbf16>, %k_1: tensor<64x128xbf16>, %v_2: tensor<64x96xbf16>, %g_3: tensor<64x1xf32>, %beta_4: tensor<64x1xf32>, %scale_5: tensor<1x1xf32>, %S: tensor<128x96xf32>):
      %0 = tile.constant 1.4426950408889634 : tensor<1x1xf32>
      %1 = tile.broadcast %0 : tensor<1x1xf32> -> tensor<64x1xf32>
      %2 = arith.mulf %g_3, %1 : tensor<64x1xf32>
      %3 = tile.constant -1.260000e+02 : tensor<1x1xf32>
      %4 = tile.broadcast %3 : tensor<1x1xf32> -> tensor<64x1xf32>
      %5 = arith.maximumf %2, %4 : tensor<64x1xf32>
      %6 = tile.cumsum %5 : tensor<64x1xf32>
      %7 = math.exp2 %6 : tensor<64x1xf32>
      %8 = tile.cast %S : tensor<128x96xf32> -> tensor<128x96xbf16>
      %9 = tile.dot %q_0, %8 : tensor<64x128xbf16>, tensor<128x96xbf16> -> tensor<64x96xf32>
      %10 = tile.broadcast %7 : tensor<64x1xf32> -> tensor<64x96xf32>
      %11 = arith.mulf %10, %9 : tensor<64x96xf32>
      %12 = tile.transpose %k_1 : tensor<64x128xbf16> -> tensor<128x64xbf16>
      %13 = tile.dot %q_0, %12 : tensor<64x128xbf16>, tensor<128x64xbf16> -> tensor<64x64xf32>
      %14 = tile.decay %6, %6 lower : tensor<64x1xf32>, tensor<64x1xf32> -> tensor<64x64xf32>
      %15 = arith.mulf %13, %14 : tensor<64x64xf32>
      %16 = tile.cast %15 : tensor<64x64xf32> -> tensor<64x64xbf16>
      %17 = tile.dot %k_1, %12 : tensor<64x128xbf16>, tensor<128x64xbf16> -> tensor<64x64xf32>
      %18 = tile.broadcast %beta_4 : tensor<64x1xf32> -> tensor<64x64xf32>
      %19 = arith.mulf %18, %17 : tensor<64x64xf32>
      %20 = tile.decay %6, %6 strict : tensor<64x1xf32>, tensor<64x1xf32> -> tensor<64x64xf32>
      %21 = arith.mulf %19, %20 : tensor<64x64xf32>
      %22 = tile.inverse_unit_lower %21 : tensor<64x64xf32>
      %23 = tile.cast %22 : tensor<64x64xf32> -> tensor<64x64xbf16>
      %24 = tile.cast %v_2 : tensor<64x96xbf16> -> tensor<64x96xf32>
      %25 = tile.dot %k_1, %8 : tensor<64x128xbf16>, tensor<128x96xbf16> -> tensor<64x96xf32>
      %26 = arith.mulf %10, %25 : tensor<64x96xf32>
      %27 = arith.subf %24, %26 : tensor<64x96xf32>
      %28 = tile.broadcast %beta_4 : tensor<64x1xf32> -> tensor<64x96xf32>
      %29 = arith.mulf %28, %27 : tensor<64x96xf32>
      %30 = tile.cast %29 : tensor<64x96xf32> -> tensor<64x96xbf16>
      %31 = tile.dot %23, %30 : tensor<64x64xbf16>, tensor<64x96xbf16> -> tensor<64x96xf32>
      %32 = tile.cast %31 : tensor<64x96xf32> -> tensor<64x96xbf16>
      %33 = tile.dot %16, %32 : tensor<64x64xbf16>, tensor<64x96xbf16> -> tensor<64x96xf32>
      %34 = arith.addf %11, %33 : tensor<64x96xf32>
      %35 = tile.broadcast %scale_5 : tensor<1x1xf32> -> tensor<64x96xf32>
      %36 = arith.mulf %35, %34 : tensor<64x96xf32>
      %37 = tile.cast %36 : tensor<64x96xf32> -> tensor<64x96xbf16>
      %38 = tile.row last %6 : tensor<64x1xf32> -> tensor<1x1xf32>
      %39 = math.exp2 %38 : tensor<1x1xf32>
      %40 = tile.broadcast %39 : tensor<1x1xf32> -> tensor<128x96xf32>
      %41 = arith.mulf %40, %S : tensor<128x96xf32>
      %42 = tile.broadcast %38 : tensor<1x1xf32> -> tensor<64x1xf32>
      %43 = arith.subf %42, %6 : tensor<64x1xf32>
      %44 = math.exp2 %43 : tensor<64x1xf32>
      %45 = tile.cast %k_1 : tensor<64x128xbf16> -> tensor<64x128xf32>
      %46 = tile.broadcast %44 : tensor<64x1xf32> -> tensor<64x128xf32>
      %47 = arith.mulf %46, %45 : tensor<64x128xf32>
      %48 = tile.transpose %47 : tensor<64x128xf32> -> tensor<128x64xf32>
      %49 = tile.cast %48 : tensor<128x64xf32> -> tensor<128x64xbf16>
      %50 = tile.dot %49, %32 : tensor<128x64xbf16>, tensor<64x96xbf16> -> tensor<128x96xf32>
      %51 = arith.addf %41, %50 : tensor<128x96xf32>
      tile.yield %37, %51 : tensor<64x96xbf16>, tensor<128x96xf32>
    }
  }
}

