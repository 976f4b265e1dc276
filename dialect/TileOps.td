// The tile dialect: pure chunk bodies inside a scan, and the kernels that a scan lowers to.
#ifndef LATILE_TILE_OPS
#define LATILE_TILE_OPS

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/FunctionInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "TileInterfaces.td"

def Tile_Dialect : Dialect {
  let name = "tile";
  let cppNamespace = "::latile::tile";
  let summary = "Tiles, scans over chunks of a sequence, and the kernels they lower to";
  let description = [{
    A tile is a two-dimensional `tensor` with static extents; element-wise work on tiles is done with the
    `arith` and `math` dialects on equal shapes. The dialect adds what they lack: views of tensors in memory,
    the scan whose region is a pure function of (chunk inputs, carries), the closed set of primitives that
    linear attention needs, and kernels with a grid, loads and stores.
  }];
  let useDefaultTypePrinterParser = 1;
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect", "::mlir::scf::SCFDialect"];
  let extraClassDeclaration = "void registerTypes();";
  let hasCanonicalizer = 1;
}

// Types

class Tile_Type<string name, string mnem> : TypeDef<Tile_Dialect, name> { let mnemonic = mnem; }

def Tile_ViewType : Tile_Type<"View", "view"> {
  let summary = "a strided tensor in memory";
  let description = [{
    Leading extents are dynamic (batch or slot, row, head); trailing ones are the static extents of the tile
    that one load reads. `unit` names the axis whose stride is known to be 1, or is absent.

    Example: `!tile.view<?x?x?x128xbf16, unit 3>`.
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$shape, "::mlir::Type":$elementType, "int64_t":$unit);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    int64_t getRank() const { return static_cast<int64_t>(getShape().size()); }
    int64_t getDynamicRank() const;
    /// The static trailing extents: none, one or two.
    ::llvm::ArrayRef<int64_t> getInner() const { return getShape().drop_front(getDynamicRank()); }
  }];
}
def Tile_SequencesType : Tile_Type<"Sequences", "sequences"> {
  let summary = "the sequences of a batch: N row ranges";
  let description = [{
    `!tile.sequences<dense>` is B sequences of T rows each; `!tile.sequences<ragged32>` and `<ragged64>` are N row
    ranges of one packed batch entry, given by cumulative lengths of 32 or 64 bits in memory ("cu_seqlens").
  }];
  let parameters = (ins "int64_t":$bits);
  let hasCustomAssemblyFormat = 1;
  let extraClassDeclaration = "bool isRagged() const { return getBits() != 0; }";
}
def Tile_RowsType : Tile_Type<"Rows", "rows"> {
  let summary = "the rows of one chunk: first row, count of valid rows (at most C), chunk number";
  let parameters = (ins "int64_t":$size);
  let assemblyFormat = "`<` $size `>`";
}

def Tile_AnyTile : Type<And<[CPred<"::mlir::isa<::mlir::RankedTensorType>($_self)">,
                             CPred<"::mlir::cast<::mlir::RankedTensorType>($_self).getRank() == 2">,
                             CPred<"::mlir::cast<::mlir::RankedTensorType>($_self).hasStaticShape()">,
                             CPred<"::mlir::isa<::mlir::FloatType>(::mlir::cast<::mlir::RankedTensorType>($_self).getElementType())">]>,
                        "tile (static two-dimensional float tensor)", "::mlir::RankedTensorType">;
def Tile_F32Tile : Type<And<[Tile_AnyTile.predicate,
                             CPred<"::mlir::cast<::mlir::RankedTensorType>($_self).getElementType().isF32()">]>,
                        "float32 tile", "::mlir::RankedTensorType">;

def Tile_Mask : I32EnumAttr<"MaskKind", "which entries (row i, column j) of a square of rows are kept", [
    I32EnumAttrCase<"All", 0, "all">, I32EnumAttrCase<"Lower", 1, "lower">, I32EnumAttrCase<"Strict", 2, "strict">]> {
  let cppNamespace = "::latile::tile";
}
def Tile_ReduceKind : I32EnumAttr<"ReduceKind", "reduction", [
    I32EnumAttrCase<"Sum", 0, "sum">, I32EnumAttrCase<"Mean", 1, "mean">, I32EnumAttrCase<"Max", 2, "max">]> {
  let cppNamespace = "::latile::tile";
}
def Tile_Pick : I32EnumAttr<"PickKind", "which row", [
    I32EnumAttrCase<"Last", 0, "last">, I32EnumAttrCase<"LastValid", 1, "last_valid">, I32EnumAttrCase<"At", 2, "at">]> {
  let cppNamespace = "::latile::tile";
}
def Tile_HeadMap : I32EnumAttr<"HeadMap", "how a head of the finer axis finds its head on the coarser one", [
    I32EnumAttrCase<"Grouped", 0, "grouped">, I32EnumAttrCase<"Tiled", 1, "tiled">]> {
  let cppNamespace = "::latile::tile";
}

class Tile_Op<string mnem, list<Trait> traits = []> : Op<Tile_Dialect, mnem, traits>;
/// A pure op on tiles.
class Tile_Pure<string mnem, list<Trait> traits = []> : Tile_Op<mnem, !listconcat([Pure], traits)>;

// Programs, scans, kernels

def Tile_ProgramOp : Tile_Op<"program", [FunctionOpInterface, DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>,
    IsolatedFromAbove, Symbol, NoTerminator, SingleBlock]> {
  let summary = "one specialisation of an operator";
  let description = [{
    Arguments are the bound tensors as views, `!tile.sequences`, and run-time scalars as `f64`; `arg_names` names
    them. The body holds one scan, or after lowering the launches of its kernels.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttrOf<FunctionType>:$function_type, StrArrayAttr:$arg_names,
                       OptionalAttr<DictArrayAttr>:$arg_attrs, OptionalAttr<DictArrayAttr>:$res_attrs);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::llvm::ArrayRef<::mlir::Type> getArgumentTypes() { return getFunctionType().getInputs(); }
    ::llvm::ArrayRef<::mlir::Type> getResultTypes() { return getFunctionType().getResults(); }
    ::mlir::Region *getCallableRegion() { return &getBody(); }
  }];
}

def Tile_ScanOp : Tile_Op<"scan", [AttrSizedOperandSegments, SingleBlock,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>]> {
  let summary = "a pure body run over the chunks of every sequence and head";
  let description = [{
    For each sequence n and each head of `axis`, the region is run over chunks of `chunk` rows, first to last. Its
    block arguments are one tile for each input (in the storage type of a view; [1,1] f32 for a scalar), then one
    f32 tile for each carry. It yields one tile for each output (in the output's storage type), then the new carries.

    `reads`, `carries`, `writes` name the operands; the `*_heads` arrays name the head axis of each, empty for none.
    `rates` gives the rows per token of each input; a scalar or parameter has rate 0. A carry starts from its
    `initial` view, at slot n or at `initial_index[n]` (a negative slot: zero), or from zero when it has none; its
    last value goes to `final`, at slot n or `final_index[n]` (a negative slot: nowhere). Rows past the end of a
    sequence read as zero; outputs of those rows are not written. An empty sequence copies its carries through.
  }];
  let arguments = (ins Tile_SequencesType:$sequences, Variadic<AnyType>:$inputs,
                       Variadic<Tile_ViewType>:$initial, Variadic<Tile_ViewType>:$initial_index,
                       Variadic<Tile_ViewType>:$final, Variadic<Tile_ViewType>:$final_index,
                       Variadic<Tile_ViewType>:$outputs,
                       I64Attr:$chunk, StrAttr:$axis,
                       StrArrayAttr:$reads, StrArrayAttr:$read_heads, DenseI64ArrayAttr:$rates,
                       StrArrayAttr:$carries, StrArrayAttr:$carry_heads,
                       DenseBoolArrayAttr:$has_initial, DenseBoolArrayAttr:$has_initial_index,
                       DenseBoolArrayAttr:$has_final, DenseBoolArrayAttr:$has_final_index,
                       StrArrayAttr:$writes, StrArrayAttr:$write_heads,
                       I64Attr:$head_ratio, Tile_HeadMap:$head_map);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $sequences `chunk` $chunk `axis` $axis
    `in` `(` $inputs `)` `initial` `(` $initial `)` `at` `(` $initial_index `)`
    `final` `(` $final `)` `at` `(` $final_index `)` `out` `(` $outputs `)`
    attr-dict `:` type($sequences) `,` `in` custom<Types>(type($inputs)) `initial` custom<Types>(type($initial)) `at` custom<Types>(type($initial_index))
    `final` custom<Types>(type($final)) `at` custom<Types>(type($final_index)) `out` custom<Types>(type($outputs)) $body
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The operand of carry i, or null when it has none.
    ::mlir::Value initialOf(unsigned i);
    ::mlir::Value initialIndexOf(unsigned i);
    ::mlir::Value finalOf(unsigned i);
    ::mlir::Value finalIndexOf(unsigned i);
  }];
}

def Tile_YieldOp : Tile_Op<"yield", [Pure, Terminator, ParentOneOf<["ScanOp", "SolveOp"]>]> {
  let summary = "ends a region with its results";
  let arguments = (ins Variadic<AnyType>:$values);
  let assemblyFormat = "attr-dict ($values^ `:` type($values))?";
}

def Tile_KernelOp : Tile_Op<"kernel", [FunctionOpInterface, DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>,
    IsolatedFromAbove, Symbol, NoTerminator, SingleBlock]> {
  let summary = "a grid of independent programs with explicit loads and stores";
  let description = [{
    The first block arguments are one `index` for each axis of `grid`; then come the arguments of the launch, named by
    `arg_names`. The axes are "N" (sequences), a head axis, or "chunks". Programs may run in any order and at the
    same time.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttrOf<FunctionType>:$function_type, StrArrayAttr:$grid,
                       StrArrayAttr:$arg_names,
                       OptionalAttr<DictArrayAttr>:$arg_attrs, OptionalAttr<DictArrayAttr>:$res_attrs);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::llvm::ArrayRef<::mlir::Type> getArgumentTypes() { return getFunctionType().getInputs(); }
    ::llvm::ArrayRef<::mlir::Type> getResultTypes() { return getFunctionType().getResults(); }
    ::mlir::Region *getCallableRegion() { return &getBody(); }
  }];
}
def Tile_LaunchOp : Tile_Op<"launch", [DeclareOpInterfaceMethods<SymbolUserOpInterface>, MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "runs a kernel over its whole grid";
  let arguments = (ins FlatSymbolRefAttr:$kernel, Variadic<AnyType>:$operands);
  let assemblyFormat = "$kernel `(` $operands `)` attr-dict `:` type($operands)";
}
def Tile_WorkspaceOp : Tile_Op<"workspace", [MemoryEffects<[MemAlloc]>]> {
  let summary = "memory of the caller's workspace, one tile for each chunk and head";
  let description = [{
    The view has shape [chunks, heads of `axis`, rows, cols] and is dense. Contents are undefined until stored.
  }];
  let arguments = (ins Tile_SequencesType:$sequences, StrAttr:$name, StrAttr:$axis, I64Attr:$chunk);
  let results = (outs Tile_ViewType:$view);
  let assemblyFormat = "$name $sequences `chunk` $chunk `axis` $axis attr-dict `:` type($sequences) `->` type($view)";
}

// Positions (kernels)

def Tile_SequenceOp : Tile_Op<"sequence", [MemoryEffects<[MemRead]>]> {
  let summary = "batch entry and row range of sequence n";
  let description = "Dense: (n, 0, T). Ragged: (0, cu_seqlens[n], cu_seqlens[n + 1]).";
  let arguments = (ins Tile_SequencesType:$sequences, Index:$n);
  let results = (outs Index:$batch, Index:$begin, Index:$end);
  let assemblyFormat = "$sequences `,` $n attr-dict `:` type($sequences)";
}
def Tile_ChunkOp : Tile_Op<"chunk", [MemoryEffects<[MemRead]>]> {
  let summary = "sequence and rows of chunk number c of the whole batch";
  let description = [{
    Chunks of all sequences are numbered in order; no chunk straddles two sequences. `position` is the first row.
  }];
  let arguments = (ins Tile_SequencesType:$sequences, Index:$c, I64Attr:$size);
  let results = (outs Index:$n, Index:$batch, Index:$begin, Index:$position, Index:$end);
  let assemblyFormat = "$sequences `,` $c `size` $size attr-dict `:` type($sequences)";
}
def Tile_ChunkBeginOp : Tile_Op<"chunk_begin", [MemoryEffects<[MemRead]>]> {
  let summary = "number of the first chunk of sequence n";
  let arguments = (ins Tile_SequencesType:$sequences, Index:$n, I64Attr:$size);
  let results = (outs Index:$c);
  let assemblyFormat = "$sequences `,` $n `size` $size attr-dict `:` type($sequences)";
}
def Tile_RowsOp : Tile_Op<"rows", [Pure]> {
  let summary = "the rows of the chunk at row `position` of the sequence [begin, end)";
  let arguments = (ins Index:$begin, Index:$position, Index:$end);
  let results = (outs Tile_RowsType:$rows);
  let assemblyFormat = "$begin `,` $position `,` $end attr-dict `:` type($rows)";
}
def Tile_HeadOp : Tile_Op<"head", [Pure]> {
  let summary = "the head of the coarser axis that a head of the finer one belongs to";
  let description = "grouped: h div ratio; tiled: h mod (heads / ratio), for which `heads` is the count on the finer axis.";
  let arguments = (ins Index:$fine, I64Attr:$ratio, Tile_HeadMap:$map, StrAttr:$axis);
  let results = (outs Index:$coarse);
  let assemblyFormat = "$fine `of` $axis $map $ratio attr-dict";
}
def Tile_SlotOp : Tile_Op<"slot", [MemoryEffects<[MemRead]>]> {
  let summary = "index[n] of a tensor of slots, in int32 or int64; negative: none";
  let arguments = (ins Tile_ViewType:$view, Index:$n);
  let results = (outs Index:$slot);
  let assemblyFormat = "$view `[` $n `]` attr-dict `:` type($view)";
  let hasVerifier = 1;
}

// Memory (kernels)

def Tile_LoadRowsOp : Tile_Op<"load_rows", [MemoryEffects<[MemRead]>]> {
  let summary = "reads the rows of a chunk from a sequence tensor";
  let description = [{
    The view is [batch, row, (head,) inner…]; the tile [C * rate, inner or 1]. Rows past the count are zero.
  }];
  let arguments = (ins Tile_ViewType:$view, Index:$batch, Tile_RowsType:$rows, Optional<Index>:$head, DefaultValuedAttr<I64Attr, "1">:$rate);
  let results = (outs Tile_AnyTile:$tile);
  let assemblyFormat = "$view `[` $batch `,` $rows (`,` $head^)? `]` attr-dict `:` type($view) `,` type($rows) `->` type($tile)";
  let hasVerifier = 1;
}
def Tile_StoreRowsOp : Tile_Op<"store_rows", [MemoryEffects<[MemWrite]>]> {
  let summary = "writes the valid rows of a chunk to a sequence tensor";
  let arguments = (ins Tile_AnyTile:$tile, Tile_ViewType:$view, Index:$batch, Tile_RowsType:$rows, Optional<Index>:$head);
  let assemblyFormat = "$tile `,` $view `[` $batch `,` $rows (`,` $head^)? `]` attr-dict `:` type($tile) `,` type($view) `,` type($rows)";
  let hasVerifier = 1;
}
def Tile_LoadOp : Tile_Op<"load", [MemoryEffects<[MemRead]>]> {
  let summary = "reads the inner tile at the given leading indices";
  let description = "A negative first index reads zeros (a slot that is none). A view with one inner extent gives a row [1, D], with none [1, 1].";
  let arguments = (ins Tile_ViewType:$view, Variadic<Index>:$indices);
  let results = (outs Tile_AnyTile:$tile);
  let assemblyFormat = "$view `[` $indices `]` attr-dict `:` type($view) `->` type($tile)";
  let hasVerifier = 1;
}
def Tile_StoreOp : Tile_Op<"store", [MemoryEffects<[MemWrite]>]> {
  let summary = "writes the inner tile at the given leading indices";
  let description = "A negative first index writes nothing.";
  let arguments = (ins Tile_AnyTile:$tile, Tile_ViewType:$view, Variadic<Index>:$indices);
  let assemblyFormat = "$tile `,` $view `[` $indices `]` attr-dict `:` type($tile) `,` type($view)";
  let hasVerifier = 1;
}

// Sources of values

def Tile_ConstantOp : Tile_Pure<"constant"> {
  let summary = "a [1,1] tile with a value of 64 bits until codegen";
  let description = "Example: `tile.constant 1.0 : tensor<1x1xf32>`.";
  let arguments = (ins F64Attr:$value);
  let results = (outs Tile_F32Tile:$tile);
  let assemblyFormat = "$value attr-dict `:` type($tile)";
  let hasVerifier = 1;
}
def Tile_SplatOp : Tile_Pure<"splat"> {
  let summary = "a run-time scalar as a [1,1] tile";
  let arguments = (ins F64:$scalar);
  let results = (outs Tile_F32Tile:$tile);
  let assemblyFormat = "$scalar attr-dict `:` type($tile)";
  let hasVerifier = 1;
}
def Tile_ValidOp : Tile_Pure<"valid"> {
  let summary = "a column [C,1]: 1 for rows below the chunk's count, 0 for the rest";
  let description = "Inside a scan the rows are the region's own; in a kernel they are an operand.";
  let arguments = (ins Optional<Tile_RowsType>:$rows);
  let results = (outs Tile_F32Tile:$tile);
  let assemblyFormat = "($rows^ `:` type($rows))? attr-dict `->` type($tile)";
  let hasVerifier = 1;
}
def Tile_CountOp : Tile_Pure<"count"> {
  let summary = "the count of valid rows as a [1,1] tile";
  let arguments = (ins Optional<Tile_RowsType>:$rows);
  let results = (outs Tile_F32Tile:$tile);
  let assemblyFormat = "($rows^ `:` type($rows))? attr-dict `->` type($tile)";
  let hasVerifier = 1;
}
def Tile_IndexOp : Tile_Pure<"index"> {
  let summary = "the number of the chunk in its sequence as a [1,1] tile";
  let arguments = (ins Optional<Tile_RowsType>:$rows);
  let results = (outs Tile_F32Tile:$tile);
  let assemblyFormat = "($rows^ `:` type($rows))? attr-dict `->` type($tile)";
  let hasVerifier = 1;
}
def Tile_NeutralOp : Tile_Pure<"neutral", [AllTypesMatch<["x", "tile"]>]> {
  let summary = "x with rows past the chunk's count (times `rate`) replaced by a value";
  let description = "Applied to the result of a sequence's prologue, so that a partial chunk leaves the carry alone.";
  let arguments = (ins Tile_F32Tile:$x, Optional<Tile_RowsType>:$rows, F64Attr:$value, DefaultValuedAttr<I64Attr, "1">:$rate);
  let results = (outs Tile_F32Tile:$tile);
  let assemblyFormat = "$x `with` $value (`rows` $rows^ `:` type($rows))? attr-dict `:` type($tile)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

// Shape

def Tile_CastOp : Tile_Pure<"cast", [Elementwise]> {
  let summary = "converts between float types; every rounding in a body is a cast or a store";
  let description = "Round to nearest even. In float64 interpretation it is the identity.";
  let arguments = (ins Tile_AnyTile:$x);
  let results = (outs Tile_AnyTile:$tile);
  let assemblyFormat = "$x attr-dict `:` type($x) `->` type($tile)";
  let hasVerifier = 1;
  let hasFolder = 1;
}
def Tile_BroadcastOp : Tile_Pure<"broadcast"> {
  let summary = "repeats along extents of 1";
  let arguments = (ins Tile_AnyTile:$x);
  let results = (outs Tile_AnyTile:$tile);
  let assemblyFormat = "$x attr-dict `:` type($x) `->` type($tile)";
  let hasVerifier = 1;
  let hasFolder = 1;
}
def Tile_TransposeOp : Tile_Pure<"transpose"> {
  let summary = "exchanges rows and columns";
  let arguments = (ins Tile_AnyTile:$x);
  let results = (outs Tile_AnyTile:$tile);
  let assemblyFormat = "$x attr-dict `:` type($x) `->` type($tile)";
  let hasVerifier = 1;
  let hasFolder = 1;
}
def Tile_RowOp : Tile_Pure<"row"> {
  let summary = "one row: the last, the last valid one, or the one at a given place";
  let description = "Example: `tile.row last %G : tensor<64x1xf32> -> tensor<1x1xf32>`.";
  let arguments = (ins Tile_Pick:$pick, Tile_AnyTile:$x, Optional<Tile_RowsType>:$rows, DefaultValuedAttr<I64Attr, "0">:$at);
  let results = (outs Tile_AnyTile:$tile);
  let assemblyFormat = "$pick $x (`rows` $rows^ `:` type($rows))? attr-dict `:` type($x) `->` type($tile)";
  let hasVerifier = 1;
  let hasFolder = 1;
}
def Tile_RepeatRowsOp : Tile_Pure<"repeat_rows"> {
  let summary = "each row `n` times in a row";
  let arguments = (ins Tile_AnyTile:$x, I64Attr:$n);
  let results = (outs Tile_AnyTile:$tile);
  let assemblyFormat = "$x `times` $n attr-dict `:` type($x) `->` type($tile)";
  let hasVerifier = 1;
  let hasFolder = 1;
}
def Tile_MaskOp : Tile_Pure<"mask", [AllTypesMatch<["x", "tile"]>]> {
  let summary = "x where the mask holds, 0 elsewhere";
  let description = "lower: j div stair <= i; strict: j div stair < i.";
  let arguments = (ins Tile_Mask:$kind, Tile_F32Tile:$x, DefaultValuedAttr<I64Attr, "1">:$stair);
  let results = (outs Tile_F32Tile:$tile);
  let assemblyFormat = "$kind $x attr-dict `:` type($tile)";
  let hasVerifier = 1;
  let hasFolder = 1;
}
def Tile_DiagonalOp : Tile_Pure<"diagonal"> {
  let summary = "a column [C,1] on the diagonal of a [C,C] tile of zeros";
  let arguments = (ins Tile_F32Tile:$x);
  let results = (outs Tile_F32Tile:$tile);
  let assemblyFormat = "$x attr-dict `:` type($x) `->` type($tile)";
  let hasVerifier = 1;
}

// Arithmetic that arith and math lack

def Tile_SigmoidOp : Tile_Pure<"sigmoid", [Elementwise, AllTypesMatch<["x", "tile"]>]> {
  let summary = "1 / (1 + e^-x), stable at both ends";
  let arguments = (ins Tile_F32Tile:$x);
  let results = (outs Tile_F32Tile:$tile);
  let assemblyFormat = "$x attr-dict `:` type($tile)";
}
def Tile_SoftplusOp : Tile_Pure<"softplus", [Elementwise, AllTypesMatch<["x", "tile"]>]> {
  let summary = "ln(1 + e^x) = max(x, 0) + log1p(e^-|x|)";
  let arguments = (ins Tile_F32Tile:$x);
  let results = (outs Tile_F32Tile:$tile);
  let assemblyFormat = "$x attr-dict `:` type($tile)";
}
def Tile_ReduceOp : Tile_Pure<"reduce"> {
  let summary = "sum, mean or maximum along one axis, in a fixed order";
  let description = "axis 1 reduces the columns of each row to [R,1]; axis 0 the rows to [1,C].";
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
  }];
  let arguments = (ins Tile_AnyTile:$a, Tile_AnyTile:$b, UnitAttr:$precise);
  let results = (outs Tile_F32Tile:$tile);
  let assemblyFormat = "$a `,` $b (`precise` $precise^)? attr-dict `:` type($a) `,` type($b) `->` type($tile)";
  let hasVerifier = 1;
}
def Tile_CumsumOp : Tile_Pure<"cumsum", [AllTypesMatch<["x", "tile"]>]> {
  let summary = "running sum over rows, inclusive, or exclusive, or from the last row";
  let arguments = (ins Tile_F32Tile:$x, UnitAttr:$exclusive, UnitAttr:$reverse);
  let results = (outs Tile_F32Tile:$tile);
  let assemblyFormat = "$x (`exclusive` $exclusive^)? (`reverse` $reverse^)? attr-dict `:` type($tile)";
  let hasFolder = 1;
}
def Tile_DecayOp : Tile_Pure<"decay"> {
  let summary = "exp2(Gr_i - Gc_j) where the mask holds, 0 elsewhere";
  let description = [{
    The mask comes before the exponential, so no entry overflows and no gradient is NaN. Gates are columns in
    log2 units, cumulative over the chunk.
  }];
  let arguments = (ins Tile_F32Tile:$gr, Tile_F32Tile:$gc, Tile_Mask:$kind, DefaultValuedAttr<I64Attr, "1">:$stair);
  let results = (outs Tile_F32Tile:$tile);
  let assemblyFormat = "$gr `,` $gc $kind attr-dict `:` type($gr) `,` type($gc) `->` type($tile)";
  let hasVerifier = 1;
}
def Tile_InverseUnitLowerOp : Tile_Pure<"inverse_unit_lower", [AllTypesMatch<["x", "tile"]>]> {
  let summary = "(I + A)^-1 of the strictly lower triangle of A";
  let description = "Blocks of 16 rows by substitution in float32, merged by products; what lies on or above the diagonal of A is not read.";
  let arguments = (ins Tile_F32Tile:$x);
  let results = (outs Tile_F32Tile:$tile);
  let assemblyFormat = "$x attr-dict `:` type($tile)";
  let hasVerifier = 1;
}
def Tile_SolveUnitLowerOp : Tile_Pure<"solve_unit_lower", [AllTypesMatch<["b", "tile"]>]> {
  let summary = "(I + A)^-1 b by forward substitution in float32, A's strictly lower triangle";
  let description = "What `dot(inverse_unit_lower(A), b)` becomes where the inverse has no other use.";
  let arguments = (ins Tile_F32Tile:$a, Tile_F32Tile:$b);
  let results = (outs Tile_F32Tile:$tile);
  let assemblyFormat = "$a `,` $b attr-dict `:` type($a) `,` type($tile)";
  let hasVerifier = 1;
}
def Tile_SolveOp : Tile_Op<"solve", [Pure, SingleBlock, AllTypesMatch<["rhs", "tile"]>]> {
  let summary = "batched conjugate gradients, one symmetric system a row, a fixed number of steps";
  let description = "The region maps x to its image; the result solves map(x) = rhs.";
  let arguments = (ins Tile_F32Tile:$rhs, I64Attr:$steps);
  let regions = (region SizedRegion<1>:$map);
  let results = (outs Tile_F32Tile:$tile);
  let assemblyFormat = "$rhs `steps` $steps attr-dict `:` type($tile) $map";
  let hasVerifier = 1;
}
#endif
