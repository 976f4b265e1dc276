// Running sums, decays and triangular systems: the closed set of linear recurrences. Gates are cumulative over the
// chunk, in log2 units, and Gr_i <= Gc_j wherever a mask holds.
#ifndef LATILE_TILE_RECURRENCE
#define LATILE_TILE_RECURRENCE
include "TileBase.td"

def Tile_CumsumOp : Tile_Pure<"cumsum", [AllTypesMatch<["x", "tile"]>]> {
  let summary = "running sum over rows, inclusive, or exclusive, or from the last row";
  let description = "Example: `%G = tile.cumsum %g : tensor<64x1xf32>`.";
  let arguments = (ins Tile_F32Tile:$x, UnitAttr:$exclusive, UnitAttr:$reverse);
  let results = (outs Tile_F32Tile:$tile);
  let assemblyFormat = "$x (`exclusive` $exclusive^)? (`reverse` $reverse^)? attr-dict `:` type($tile)";
  let hasFolder = 1;
}
def Tile_CummaxOp : Tile_Pure<"cummax", [AllTypesMatch<["x", "tile"]>]> {
  let summary = "running maximum over rows, from the row `from`";
  let description = [{
    It is used as a shift that cancels, so it passes no gradient.

    Example: `%m = tile.cummax %x from %m0 : tensor<1x128xf32>, tensor<64x128xf32>`.
  }];
  let arguments = (ins Tile_F32Tile:$x, Tile_F32Tile:$from);
  let results = (outs Tile_F32Tile:$tile);
  let assemblyFormat = "$x `from` $from attr-dict `:` type($from) `,` type($tile)";
  let hasVerifier = 1;
}
def Tile_LogcumsumexpOp : Tile_Pure<"logcumsumexp", [AllTypesMatch<["s", "tile"]>]> {
  let summary = "running ln(e^z + sum of e^s) over rows, from the row z";
  let description = "Example: `%Z = tile.logcumsumexp %s from %z : tensor<1x64xf32>, tensor<64x64xf32>`.";
  let arguments = (ins Tile_F32Tile:$s, Tile_F32Tile:$z);
  let results = (outs Tile_F32Tile:$tile);
  let assemblyFormat = "$s `from` $z attr-dict `:` type($z) `,` type($tile)";
  let hasVerifier = 1;
}
def Tile_AffineScanOp : Tile_Pure<"affine_scan", [AllTypesMatch<["g", "x", "tile"]>]> {
  let summary = "y_i = exp2(g_i) y_(i-1) + x_i over rows, y before the first row is h";
  let description = [{
    With `reverse`: y_i = exp2(g_i) y_(i+1) + x_i, from the last row up. Gates are those of single rows.

    Example: `%y = tile.affine_scan %g, %x from %h : tensor<1x128xf32>, tensor<64x128xf32>`.
  }];
  let arguments = (ins Tile_F32Tile:$g, Tile_F32Tile:$x, Tile_F32Tile:$h, UnitAttr:$reverse);
  let results = (outs Tile_F32Tile:$tile);
  let assemblyFormat = "$g `,` $x `from` $h (`reverse` $reverse^)? attr-dict `:` type($h) `,` type($tile)";
  let hasVerifier = 1;
}
def Tile_DecayOp : Tile_Pure<"decay"> {
  let summary = "exp2(Gr_i - Gc_j) where the mask holds, 0 elsewhere";
  let description = [{
    The mask comes before the exponential, so no entry overflows and no gradient is NaN. Gates are columns.

    Example: `%D = tile.decay %G, %G lower : tensor<64x1xf32>, tensor<64x1xf32> -> tensor<64x64xf32>`.
  }];
  let arguments = (ins Tile_F32Tile:$gr, Tile_F32Tile:$gc, Tile_Mask:$kind, DefaultValuedAttr<I64Attr, "1">:$stair);
  let results = (outs Tile_F32Tile:$tile);
  let assemblyFormat = "$gr `,` $gc $kind attr-dict `:` type($gr) `,` type($gc) `->` type($tile)";
  let hasVerifier = 1;
}
def Tile_DecayedScoresOp : Tile_Pure<"decayed_scores"> {
  let summary = "sum over d of q_id k_jd exp2(Gr_id - Gc_jd) where the mask holds, 0 elsewhere";
  let description = [{
    The products of a lowering take operands of `operand` type (float32 when absent) scaled by exponentials that are
    at most 1; near the diagonal they are exact. `bound` states that no gate of a single row is below it.

    Example: `%A = tile.decayed_scores %q, %k, %G, %G lower : tensor<64x128xf32>, tensor<64x128xf32>, tensor<64x128xf32>, tensor<64x128xf32> -> tensor<64x64xf32>`.
  }];
  let arguments = (ins Tile_F32Tile:$q, Tile_F32Tile:$k, Tile_F32Tile:$gr, Tile_F32Tile:$gc, Tile_Mask:$kind,
                       DefaultValuedAttr<I64Attr, "1">:$stair, OptionalAttr<TypeAttr>:$operand, OptionalAttr<F64Attr>:$bound);
  let results = (outs Tile_F32Tile:$tile);
  let assemblyFormat = [{
    $q `,` $k `,` $gr `,` $gc $kind attr-dict `:` type($q) `,` type($k) `,` type($gr) `,` type($gc) `->` type($tile)
  }];
  let hasVerifier = 1;
}
def Tile_DecayedApplyOp : Tile_Pure<"decayed_apply"> {
  let summary = "sum over j of A_ij x_jd exp2(Gr_id - Gc_jd) where the mask holds";
  let description = [{
    `transposed`: the sum over i of A_ij x_id exp2(Gr_id - Gc_jd), one row for each j. With `decayed_scores` these are
    the partial derivatives of one trilinear form, so the three are closed under differentiation.

    Example: `%o = tile.decayed_apply %A, %x, %G, %G lower : tensor<64x64xf32>, tensor<64x128xf32>, tensor<64x128xf32>, tensor<64x128xf32> -> tensor<64x128xf32>`.
  }];
  let arguments = (ins Tile_F32Tile:$a, Tile_F32Tile:$x, Tile_F32Tile:$gr, Tile_F32Tile:$gc, Tile_Mask:$kind,
                       DefaultValuedAttr<I64Attr, "1">:$stair, UnitAttr:$transposed, OptionalAttr<TypeAttr>:$operand,
                       OptionalAttr<F64Attr>:$bound);
  let results = (outs Tile_F32Tile:$tile);
  let assemblyFormat = [{
    $a `,` $x `,` $gr `,` $gc $kind (`transposed` $transposed^)? attr-dict
    `:` type($a) `,` type($x) `,` type($gr) `,` type($gc) `->` type($tile)
  }];
  let hasVerifier = 1;
}
def Tile_InverseUnitLowerOp : Tile_Pure<"inverse_unit_lower", [AllTypesMatch<["x", "tile"]>]> {
  let summary = "(I + A)^-1 of the strictly lower triangle of A";
  let description = [{
    Blocks of 16 rows by substitution in float32, merged by products; what lies on or above the diagonal of A is not
    read.

    Example: `%T = tile.inverse_unit_lower %A : tensor<64x64xf32>`.
  }];
  let arguments = (ins Tile_F32Tile:$x);
  let results = (outs Tile_F32Tile:$tile);
  let assemblyFormat = "$x attr-dict `:` type($tile)";
  let hasVerifier = 1;
}
def Tile_SolveUnitLowerOp : Tile_Pure<"solve_unit_lower", [AllTypesMatch<["b", "tile"]>]> {
  let summary = "(I + A)^-1 b by forward substitution in float32, A's strictly lower triangle";
  let description = [{
    What `dot(inverse_unit_lower(A), b)` becomes where the inverse has no other use.

    Example: `%x = tile.solve_unit_lower %A, %b : tensor<64x64xf32>, tensor<64x128xf32>`.
  }];
  let arguments = (ins Tile_F32Tile:$a, Tile_F32Tile:$b);
  let results = (outs Tile_F32Tile:$tile);
  let assemblyFormat = "$a `,` $b attr-dict `:` type($a) `,` type($tile)";
  let hasVerifier = 1;
}
#endif
