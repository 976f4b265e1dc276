// Values: what is allowed in the region of a scan, and in kernels as well.
#ifndef LATILE_TILE_OPS
#define LATILE_TILE_OPS
include "TileStructure.td"
include "TileRecurrence.td"

// Sources

def Tile_ConstantOp : Tile_Pure<"constant"> {
  let summary = "a [1,1] tile with a value of 64 bits until codegen";
  let description = "Example: `%one = tile.constant 1.0 : tensor<1x1xf32>`.";
  let arguments = (ins F64Attr:$value);
  let results = (outs Tile_F32Tile:$tile);
  let assemblyFormat = "$value attr-dict `:` type($tile)";
  let hasVerifier = 1;
}
def Tile_SplatOp : Tile_Pure<"splat"> {
  let summary = "a run-time scalar as a [1,1] tile";
  let description = "Example: `%s = tile.splat %scale : tensor<1x1xf32>`. The scalar has no gradient.";
  let arguments = (ins F64:$scalar);
  let results = (outs Tile_F32Tile:$tile);
  let assemblyFormat = "$scalar attr-dict `:` type($tile)";
  let hasVerifier = 1;
}
def Tile_ValidOp : Tile_Pure<"valid"> {
  let summary = "a column [C,1]: 1 for rows below the chunk's count, 0 for the rest";
  let description = [{
    Inside a scan the rows are the region's own; in a kernel they are an operand.

    Example: `%m = tile.valid -> tensor<64x1xf32>`, in a kernel `tile.valid %rows : !tile.rows<64> -> tensor<64x1xf32>`.
  }];
  let arguments = (ins Optional<Tile_RowsType>:$rows);
  let results = (outs Tile_F32Tile:$tile);
  let assemblyFormat = "($rows^ `:` type($rows))? attr-dict `->` type($tile)";
  let hasVerifier = 1;
}
def Tile_CountOp : Tile_Pure<"count"> {
  let summary = "the count of valid rows as a [1,1] tile";
  let description = "Example: `%n = tile.count -> tensor<1x1xf32>`.";
  let arguments = (ins Optional<Tile_RowsType>:$rows);
  let results = (outs Tile_F32Tile:$tile);
  let assemblyFormat = "($rows^ `:` type($rows))? attr-dict `->` type($tile)";
  let hasVerifier = 1;
}
def Tile_IndexOp : Tile_Pure<"index"> {
  let summary = "the number of the chunk in its sequence as a [1,1] tile";
  let description = "Example: `%i = tile.index -> tensor<1x1xf32>`.";
  let arguments = (ins Optional<Tile_RowsType>:$rows);
  let results = (outs Tile_F32Tile:$tile);
  let assemblyFormat = "($rows^ `:` type($rows))? attr-dict `->` type($tile)";
  let hasVerifier = 1;
}
def Tile_NeutralOp : Tile_Pure<"neutral", [AllTypesMatch<["x", "tile"]>]> {
  let summary = "x with rows past the chunk's count (times `rate`) replaced by a value";
  let description = [{
    Applied to the result of a sequence's prologue, so that a partial chunk leaves the carry alone.

    Example: `%g = tile.neutral %x with 0.0 : tensor<64x1xf32>`.
  }];
  let arguments = (ins Tile_F32Tile:$x, Optional<Tile_RowsType>:$rows, F64Attr:$value, DefaultValuedAttr<I64Attr, "1">:$rate);
  let results = (outs Tile_F32Tile:$tile);
  let assemblyFormat = "$x `with` $value (`rows` $rows^ `:` type($rows))? attr-dict `:` type($tile)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

// Shape

def Tile_CastOp : Tile_Pure<"cast", [Elementwise]> {
  let summary = "converts between float types; every rounding in a body is a cast or a store";
  let description = [{
    Round to nearest even. In float64 interpretation it is the identity.

    Example: `%b = tile.cast %a : tensor<64x128xf32> -> tensor<64x128xbf16>`.
  }];
  let arguments = (ins Tile_AnyTile:$x);
  let results = (outs Tile_AnyTile:$tile);
  let assemblyFormat = "$x attr-dict `:` type($x) `->` type($tile)";
  let hasVerifier = 1;
  let hasFolder = 1;
}
def Tile_BroadcastOp : Tile_Pure<"broadcast"> {
  let summary = "repeats along extents of 1";
  let description = "Example: `%b = tile.broadcast %beta : tensor<64x1xf32> -> tensor<64x128xf32>`.";
  let arguments = (ins Tile_AnyTile:$x);
  let results = (outs Tile_AnyTile:$tile);
  let assemblyFormat = "$x attr-dict `:` type($x) `->` type($tile)";
  let hasVerifier = 1;
  let hasFolder = 1;
}
def Tile_TransposeOp : Tile_Pure<"transpose"> {
  let summary = "exchanges rows and columns";
  let description = "Example: `%t = tile.transpose %k : tensor<64x128xbf16> -> tensor<128x64xbf16>`.";
  let arguments = (ins Tile_AnyTile:$x);
  let results = (outs Tile_AnyTile:$tile);
  let assemblyFormat = "$x attr-dict `:` type($x) `->` type($tile)";
  let hasVerifier = 1;
  let hasFolder = 1;
}
def Tile_RowOp : Tile_Pure<"row"> {
  let summary = "one row: the last, the last valid one, or the one at a given place";
  let description = "Example: `%l = tile.row last %G : tensor<64x1xf32> -> tensor<1x1xf32>`.";
  let arguments = (ins Tile_Pick:$pick, Tile_AnyTile:$x, Optional<Tile_RowsType>:$rows, DefaultValuedAttr<I64Attr, "0">:$at);
  let results = (outs Tile_AnyTile:$tile);
  let assemblyFormat = "$pick $x (`rows` $rows^ `:` type($rows))? attr-dict `:` type($x) `->` type($tile)";
  let hasVerifier = 1;
  let hasFolder = 1;
}
def Tile_PlaceRowOp : Tile_Pure<"place_row"> {
  let summary = "a row in a tile of zeros, at the place that `row` picks from: its adjoint";
  let description = "Example: `%d = tile.place_row last %g : tensor<1x1xf32> -> tensor<64x1xf32>`.";
  let arguments = (ins Tile_Pick:$pick, Tile_F32Tile:$x, Optional<Tile_RowsType>:$rows, DefaultValuedAttr<I64Attr, "0">:$at);
  let results = (outs Tile_F32Tile:$tile);
  let assemblyFormat = "$pick $x (`rows` $rows^ `:` type($rows))? attr-dict `:` type($x) `->` type($tile)";
  let hasVerifier = 1;
}
def Tile_PrevOp : Tile_Pure<"prev", [AllTypesMatch<["x", "tile"]>]> {
  let summary = "rows moved down by one behind the row `from`; with `reverse`, up by one before it";
  let description = "Example: `%p = tile.prev %m from %m0 : tensor<1x128xf32>, tensor<64x128xf32>`.";
  let arguments = (ins Tile_F32Tile:$x, Tile_F32Tile:$from, UnitAttr:$reverse);
  let results = (outs Tile_F32Tile:$tile);
  let assemblyFormat = "$x `from` $from (`reverse` $reverse^)? attr-dict `:` type($from) `,` type($tile)";
  let hasVerifier = 1;
}
def Tile_RepeatRowsOp : Tile_Pure<"repeat_rows"> {
  let summary = "each row `n` times in a row";
  let description = "Example: `%r = tile.repeat_rows %G times 2 : tensor<64x1xf32> -> tensor<128x1xf32>`.";
  let arguments = (ins Tile_AnyTile:$x, I64Attr:$n);
  let results = (outs Tile_AnyTile:$tile);
  let assemblyFormat = "$x `times` $n attr-dict `:` type($x) `->` type($tile)";
  let hasVerifier = 1;
  let hasFolder = 1;
}
def Tile_SumRowsOp : Tile_Pure<"sum_rows"> {
  let summary = "sums of `n` rows in a row: the adjoint of repeat_rows";
  let description = "Example: `%s = tile.sum_rows %g by 2 : tensor<128x1xf32> -> tensor<64x1xf32>`.";
  let arguments = (ins Tile_F32Tile:$x, I64Attr:$n);
  let results = (outs Tile_F32Tile:$tile);
  let assemblyFormat = "$x `by` $n attr-dict `:` type($x) `->` type($tile)";
  let hasVerifier = 1;
}
def Tile_MaskOp : Tile_Pure<"mask", [AllTypesMatch<["x", "tile"]>]> {
  let summary = "x where the mask holds, 0 elsewhere";
  let description = [{
    lower: j div stair <= i; strict: j div stair < i.

    Example: `%m = tile.mask lower %s : tensor<64x64xf32>`.
  }];
  let arguments = (ins Tile_Mask:$kind, Tile_F32Tile:$x, DefaultValuedAttr<I64Attr, "1">:$stair);
  let results = (outs Tile_F32Tile:$tile);
  let assemblyFormat = "$kind $x attr-dict `:` type($tile)";
  let hasVerifier = 1;
  let hasFolder = 1;
}
def Tile_DiagonalOp : Tile_Pure<"diagonal"> {
  let summary = "a column [C,1] on the diagonal of a [C,C] tile of zeros";
  let description = "Example: `%d = tile.diagonal %x : tensor<64x1xf32> -> tensor<64x64xf32>`.";
  let arguments = (ins Tile_F32Tile:$x);
  let results = (outs Tile_F32Tile:$tile);
  let assemblyFormat = "$x attr-dict `:` type($x) `->` type($tile)";
  let hasVerifier = 1;
}
def Tile_LookupOp : Tile_Pure<"lookup"> {
  let summary = "entry (i, j) is x(i, table(i, j)), for j <= i; 0 elsewhere";
  let description = [{
    fenwick: 0 on the diagonal, else 1 + the number of the highest bit in which i and j differ. Both count from `from`,
    a [1,1] tile with a whole number; without it from 0. What no column stands for is 0. `transposed` marks the
    adjoint: entry (i, l) is the sum of x(i, j) over those j <= i with table(i, j) = l.

    Example: `%w = tile.lookup fenwick %lambda : tensor<64x7xf32> -> tensor<64x64xf32>`.
  }];
  let arguments = (ins Tile_Table:$table, Tile_F32Tile:$x, Optional<Tile_F32Tile>:$from, UnitAttr:$transposed);
  let results = (outs Tile_F32Tile:$tile);
  let assemblyFormat = "$table $x (`from` $from^ `:` type($from))? (`transposed` $transposed^)? attr-dict `:` type($x) `->` type($tile)";
  let hasVerifier = 1;
}

// Arithmetic that arith and math lack

def Tile_SigmoidOp : Tile_Pure<"sigmoid", [Elementwise, AllTypesMatch<["x", "tile"]>]> {
  let summary = "1 / (1 + e^-x), stable at both ends";
  let description = "Example: `%b = tile.sigmoid %x : tensor<64x1xf32>`.";
  let arguments = (ins Tile_F32Tile:$x);
  let results = (outs Tile_F32Tile:$tile);
  let assemblyFormat = "$x attr-dict `:` type($tile)";
}
def Tile_SoftplusOp : Tile_Pure<"softplus", [Elementwise, AllTypesMatch<["x", "tile"]>]> {
  let summary = "ln(1 + e^x) = max(x, 0) + log1p(e^-|x|)";
  let description = "Example: `%g = tile.softplus %x : tensor<64x1xf32>`.";
  let arguments = (ins Tile_F32Tile:$x);
  let results = (outs Tile_F32Tile:$tile);
  let assemblyFormat = "$x attr-dict `:` type($tile)";
}
def Tile_ReduceOp : Tile_Pure<"reduce"> {
  let summary = "sum, mean or maximum along one axis, in a fixed order";
  let description = [{
    axis 1 reduces the columns of each row to [R,1]; axis 0 the rows to [1,C]. The gradient of a maximum is shared
    evenly by the entries that attain it.

    Example: `%s = tile.reduce sum 1 %x : tensor<64x128xf32> -> tensor<64x1xf32>`.
  }];
  let arguments = (ins Tile_ReduceKind:$kind, I64Attr:$axis, Tile_F32Tile:$x);
  let results = (outs Tile_F32Tile:$tile);
  let assemblyFormat = "$kind $axis $x attr-dict `:` type($x) `->` type($tile)";
  let hasVerifier = 1;
  let hasFolder = 1;
}
def Tile_DotOp : Tile_Pure<"dot"> {
  let summary = "matrix product with float32 accumulation";
  let description = [{
    Operands have one element type. `precise` (operands in float32 that must not be rounded further, as by tf32)
    is set for products of a reference and for those the author asked for.

    Example: `%s = tile.dot %q, %kT : tensor<64x128xbf16>, tensor<128x64xbf16> -> tensor<64x64xf32>`.
  }];
  let arguments = (ins Tile_AnyTile:$a, Tile_AnyTile:$b, UnitAttr:$precise);
  let results = (outs Tile_F32Tile:$tile);
  let assemblyFormat = "$a `,` $b (`precise` $precise^)? attr-dict `:` type($a) `,` type($b) `->` type($tile)";
  let hasVerifier = 1;
}
def Tile_KronRowsOp : Tile_Pure<"kron_rows"> {
  let summary = "[C,K] and [C,L] to [C,K·L]: rows times rows, entry k·L + l is x_k y_l; without y it is x";
  let description = "Example: `%p = tile.kron_rows %k : tensor<64x16xf32> -> tensor<64x256xf32>`.";
  let arguments = (ins Tile_F32Tile:$x, Optional<Tile_F32Tile>:$y);
  let results = (outs Tile_F32Tile:$tile);
  let assemblyFormat = "$x (`,` $y^ `:` type($y))? attr-dict `:` type($x) `->` type($tile)";
  let hasVerifier = 1;
}
def Tile_ContractKronOp : Tile_Pure<"contract_kron", [AllTypesMatch<["x", "tile"]>]> {
  let summary = "row by row, entry k is the sum over l of (m[k·K + l] + m[l·K + k]) x_l: the adjoint of kron_rows";
  let description = "Example: `%d = tile.contract_kron %g, %k : tensor<64x256xf32>, tensor<64x16xf32>`.";
  let arguments = (ins Tile_F32Tile:$m, Tile_F32Tile:$x);
  let results = (outs Tile_F32Tile:$tile);
  let assemblyFormat = "$m `,` $x attr-dict `:` type($m) `,` type($tile)";
  let hasVerifier = 1;
}

// Ops with regions

def Tile_SolveOp : Tile_Op<"solve", [Pure, SingleBlock, AllTypesMatch<["rhs", "tile"]>,
    DeclareOpInterfaceMethods<Tile_AdjointInterface, ["buildCapturedAdjoints"]>]> {
  let summary = "batched conjugate gradients, one symmetric system a row, a fixed number of steps";
  let description = [{
    The region maps x to its image, linearly; the result solves map(x) = rhs. What the region captures gets its
    gradient through the region's own adjoint at x, with minus the gradient of rhs from above.

    Example:
    ```mlir
    %x = tile.solve %q steps 10 : tensor<64x128xf32> {
    ^bb0(%p: tensor<64x128xf32>):
      %a = tile.dot %p, %A precise : tensor<64x128xf32>, tensor<128x128xf32> -> tensor<64x128xf32>
      tile.yield %a : tensor<64x128xf32>
    }
    ```
  }];
  let arguments = (ins Tile_F32Tile:$rhs, I64Attr:$steps);
  let regions = (region SizedRegion<1>:$map);
  let results = (outs Tile_F32Tile:$tile);
  let assemblyFormat = "$rhs `steps` $steps attr-dict `:` type($tile) $map";
  let hasVerifier = 1;
}
def Tile_CustomOp : Tile_Op<"custom", [Pure, SingleBlock, DeclareOpInterfaceMethods<Tile_AdjointInterface>]> {
  let summary = "y = f(x) with an adjoint of the author's: dx = g(x, y, dy)";
  let description = [{
    The first region is f, the second g. What g captures has no gradient.

    Example:
    ```mlir
    %y = tile.custom %x : tensor<64x128xf32> -> tensor<64x128xf32> {
    ^bb0(%a: tensor<64x128xf32>):
      %b = math.exp %a : tensor<64x128xf32>
      tile.yield %b : tensor<64x128xf32>
    } adjoint {
    ^bb0(%a: tensor<64x128xf32>, %b: tensor<64x128xf32>, %g: tensor<64x128xf32>):
      %d = arith.mulf %b, %g : tensor<64x128xf32>
      tile.yield %d : tensor<64x128xf32>
    }
    ```
  }];
  let arguments = (ins Tile_F32Tile:$x);
  let regions = (region SizedRegion<1>:$forward, SizedRegion<1>:$adjoint);
  let results = (outs Tile_F32Tile:$tile);
  let assemblyFormat = "$x attr-dict `:` type($x) `->` type($tile) $forward `adjoint` $adjoint";
  let hasVerifier = 1;
}
#endif
