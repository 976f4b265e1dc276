// RUN: latile-opt %S/Inputs/gated_delta_rule.mlir --tile-canonicalize --cut-prepare | FileCheck %s --check-prefix=PAIR
// RUN: latile-opt %S/Inputs/gated_delta_rule.mlir --tile-canonicalize --cut | FileCheck %s --check-prefix=CHAIN
// RUN: latile-opt %S/Inputs/linear_attn.mlir --tile-canonicalize --cut | FileCheck %s --check-prefix=LINEAR

// Two kernels: the inverse and the scores (in the type of the products) cross, and what they are scaled by; a serial
// kernel repeats nothing that is dear.
// PAIR: tile.kernel @gated_delta_rule_prepare(%c: index, %head: index,
// PAIR-SAME: grid = ["chunks", "HV"]
// PAIR: %n, %batch, %begin, %position, %end = tile.chunk %sequences, %c size 64
// PAIR: tile.rows %begin, %position, %end
// PAIR: %[[T:.*]] = tile.inverse_unit_lower
// PAIR: %[[T16:.*]] = tile.cast %[[T]]
// PAIR: tile.store %{{.*}}, %exp2_0[%c, %head] : tensor<64x1xf32>
// PAIR: tile.store %{{.*}}, %cast_1[%c, %head] : tensor<64x64xbf16>
// PAIR: tile.store %[[T16]], %cast_2[%c, %head] : tensor<64x64xbf16>
// PAIR: tile.kernel @gated_delta_rule_serial(%n: index, %head: index,
// PAIR: %[[FIRST:.*]] = tile.chunk_begin %sequences, %n size 64
// PAIR: scf.for
// PAIR: %[[C:.*]] = arith.addi %[[FIRST]]
// PAIR-NOT: tile.inverse_unit_lower
// PAIR: tile.load %exp2_0[%[[C]], %head]
// PAIR: tile.load %cast_2[%[[C]], %head]
// PAIR: tile.load %cast_1[%[[C]], %head]
// PAIR: tile.store_rows %{{.*}}, %o
// PAIR: scf.yield
// PAIR: tile.program @gated_delta_rule
// PAIR-NEXT: tile.workspace "exp2_0" %sequences chunk 64 axis "HV" : <dense> -> <?x?x64x1xf32, unit 3>
// PAIR-NEXT: tile.workspace "cast_1" %sequences chunk 64 axis "HV" : <dense> -> <?x?x64x64xbf16, unit 3>
// PAIR-NEXT: tile.workspace "cast_2" %sequences chunk 64 axis "HV" : <dense> -> <?x?x64x64xbf16, unit 3>
// PAIR: tile.launch @gated_delta_rule_prepare
// PAIR-NEXT: tile.launch @gated_delta_rule_serial
// PAIR-NOT: tile.scan

// Three: the serial kernel has no output, and leaves the state before each chunk in the type of the product.
// CHAIN: tile.kernel @gated_delta_rule_serial
// CHAIN-NOT: tile.store_rows
// CHAIN: tile.store %{{.*}}, %cast_2[%{{.*}}, %head] : tensor<128x96xbf16>
// CHAIN-NOT: tile.store_rows
// CHAIN: tile.kernel @gated_delta_rule_finish(%c: index, %head: index,
// CHAIN: tile.load %cast_2[%c, %head]
// CHAIN: tile.store_rows %{{.*}}, %o

// The normaliser's rows are computed again from the row that is carried: a row is stored, not a chunk.
// LINEAR: tile.workspace "carry_{{[0-9]}}" {{.*}} -> <?x?x1x128xf32, unit 3>
// LINEAR: tile.launch @linear_attn_prepare
// LINEAR-NEXT: tile.launch @linear_attn_serial
// LINEAR-NEXT: tile.launch @linear_attn_finish
