// Programs, scans, kernels, and what only kernels do: find positions, read and write memory.
#ifndef LATILE_TILE_STRUCTURE
#define LATILE_TILE_STRUCTURE
include "TileBase.td"

// Programs, scans, kernels

def Tile_ProgramOp : Tile_Op<"program", [FunctionOpInterface, DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>,
    IsolatedFromAbove, Symbol, NoTerminator, SingleBlock]> {
  let summary = "one specialisation of an operator";
  let description = [{
    Arguments are the bound tensors as views, `!tile.sequences`, and run-time scalars as `f64`; `arg_names` names
    them. The body holds one scan (two where states of different head axes are written), or after lowering the launches of its kernels.

    Example: `tile.program @op(%sequences: !tile.sequences<dense>, %x: !tile.view<?x?x8xf32>) attributes {arg_names = ["sequences", "x"]} { … }`.
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

    `reversed`: token j of a sequence of L tokens is its row L - 1 - j, in inputs and outputs alike (at a rate above 1
    the rows of a token keep their order). Nothing else changes.

    `every` gives for each carry the tokens between its history states, a multiple of `chunk`; 0: none are kept. The
    carry after (m + 1) * every tokens, for each m that the sequence is long enough for, goes to
    `history_index[n, m]` of its `history` view (a negative slot: nowhere). With `accepted` the index of every initial
    view has two axes, and sequence n starts from slot `initial_index[n, accepted[n] - 1]`.

    Example: `tile.scan %sequences chunk 64 axis "HV" in(%q, …) initial(%h0) at() final(%ht) at() out(%o) {reads = ["q", …], …} : <dense>, in(…) … { ^bb0(%q: tensor<64x128xbf16>, …, %S: tensor<128x128xf32>): … tile.yield %o, %S1 : … }`.
  }];
  let arguments = (ins Tile_SequencesType:$sequences, Variadic<AnyType>:$inputs,
                       Variadic<Tile_ViewType>:$initial, Variadic<Tile_ViewType>:$initial_index,
                       Variadic<Tile_ViewType>:$final, Variadic<Tile_ViewType>:$final_index,
                       Variadic<Tile_ViewType>:$outputs,
                       Variadic<Tile_ViewType>:$history, Variadic<Tile_ViewType>:$history_index,
                       Optional<Tile_ViewType>:$accepted,
                       I64Attr:$chunk, StrAttr:$axis,
                       StrArrayAttr:$reads, StrArrayAttr:$read_heads, DenseI64ArrayAttr:$rates,
                       StrArrayAttr:$carries, StrArrayAttr:$carry_heads,
                       DenseBoolArrayAttr:$has_initial, DenseBoolArrayAttr:$has_initial_index,
                       DenseBoolArrayAttr:$has_final, DenseBoolArrayAttr:$has_final_index,
                       StrArrayAttr:$writes, StrArrayAttr:$write_heads,
                       I64Attr:$head_ratio, Tile_HeadMap:$head_map,
                       OptionalAttr<DenseI64ArrayAttr>:$every, UnitAttr:$reversed);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $sequences `chunk` $chunk `axis` $axis
    `in` `(` $inputs `)` `initial` `(` $initial `)` `at` `(` $initial_index `)`
    `final` `(` $final `)` `at` `(` $final_index `)` `out` `(` $outputs `)`
    (`history` `(` $history^ `:` type($history) `)` `at` `(` $history_index `:` type($history_index) `)`)?
    (`accepted` `(` $accepted^ `:` type($accepted) `)`)?
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
    ::mlir::Value historyOf(unsigned i);
    ::mlir::Value historyIndexOf(unsigned i);
    /// Tokens between the history states of carry i; 0: it has none.
    int64_t everyOf(unsigned i);
    /// The head axis that all carries live on where it is coarser than `axis` and groups have more than one head; else
    /// `axis`.
    ::llvm::StringRef carryAxis();
    /// Whether slots tell a sequence that is absent from a step: every carry starts from an index, and those that are
    /// written, one at least, go to one.
    bool showsAbsence();
  }];
}

def Tile_YieldOp : Tile_Op<"yield", [Pure, Terminator, ParentOneOf<["ScanOp", "SolveOp", "CustomOp"]>]> {
  let summary = "ends a region with its results";
  let description = "Example: `tile.yield %o, %S : tensor<64x128xbf16>, tensor<128x128xf32>`.";
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

    Example: `tile.kernel @op_fused(%n: index, %head: index, %sequences: !tile.sequences<dense>, …) attributes {grid = ["N", "HV"], arg_names = ["sequences", …]} { … }`.
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
  let description = "Example: `tile.launch @op_fused(%sequences, %q) : !tile.sequences<dense>, !tile.view<?x?x?x128xbf16>`.";
  let arguments = (ins FlatSymbolRefAttr:$kernel, Variadic<AnyType>:$operands);
  let assemblyFormat = "$kernel `(` $operands `)` attr-dict `:` type($operands)";
}
def Tile_WorkspaceOp : Tile_Op<"workspace", [MemoryEffects<[MemAlloc]>]> {
  let summary = "memory of the caller's workspace, one tile for each chunk and head";
  let description = [{
    The view has shape [chunks, heads of `axis`, rows, cols] and is dense. Contents are undefined until stored.

    Example: `%T = tile.workspace "T" %sequences chunk 64 axis "HV" : <dense> -> <?x?x64x64xbf16, unit 3>`.
  }];
  let arguments = (ins Tile_SequencesType:$sequences, StrAttr:$name, StrAttr:$axis, I64Attr:$chunk);
  let results = (outs Tile_ViewType:$view);
  let assemblyFormat = "$name $sequences `chunk` $chunk `axis` $axis attr-dict `:` type($sequences) `->` type($view)";
}

// Positions (kernels)

def Tile_SequenceOp : Tile_Op<"sequence", [MemoryEffects<[MemRead]>]> {
  let summary = "batch entry and row range of sequence n";
  let description = [{
    Dense: (n, 0, T). Ragged: (0, cu_seqlens[n], cu_seqlens[n + 1]).

    Example: `%batch, %begin, %end = tile.sequence %sequences, %n : <ragged32>`.
  }];
  let arguments = (ins Tile_SequencesType:$sequences, Index:$n);
  let results = (outs Index:$batch, Index:$begin, Index:$end);
  let assemblyFormat = "$sequences `,` $n attr-dict `:` type($sequences)";
}
def Tile_ChunkOp : Tile_Op<"chunk", [MemoryEffects<[MemRead]>]> {
  let summary = "sequence and rows of chunk number c of the whole batch";
  let description = [{
    Chunks of all sequences are numbered in order; no chunk straddles two sequences. `position` is the first row.

    Example: `%n, %batch, %begin, %position, %end = tile.chunk %sequences, %c size 64 : <ragged32>`.
  }];
  let arguments = (ins Tile_SequencesType:$sequences, Index:$c, I64Attr:$size);
  let results = (outs Index:$n, Index:$batch, Index:$begin, Index:$position, Index:$end);
  let assemblyFormat = "$sequences `,` $c `size` $size attr-dict `:` type($sequences)";
}
def Tile_ChunkBeginOp : Tile_Op<"chunk_begin", [MemoryEffects<[MemRead]>]> {
  let summary = "number of the first chunk of sequence n";
  let description = "Example: `%c = tile.chunk_begin %sequences, %n size 64 : <ragged32>`.";
  let arguments = (ins Tile_SequencesType:$sequences, Index:$n, I64Attr:$size);
  let results = (outs Index:$c);
  let assemblyFormat = "$sequences `,` $n `size` $size attr-dict `:` type($sequences)";
}
def Tile_RowsOp : Tile_Op<"rows", [Pure]> {
  let summary = "the rows of the chunk at row `position` of the sequence [begin, end)";
  let description = [{
    Count and chunk number are those of the chunk at `position`. Row j of a tile is row `position` + j of memory, or
    with `reversed` row `end` - 1 - (`position` - `begin`) - j: the sequence is read and written from its last row.
    With `back` the tile's row j is row `position` - `back` + j: what lies before `begin` or from `end` on does not
    exist, reads as zero and is not written.

    Example: `%rows = tile.rows %begin, %position, %end : <64>`.
  }];
  let arguments = (ins Index:$begin, Index:$position, Index:$end, UnitAttr:$reversed,
                       DefaultValuedAttr<I64Attr, "0">:$back);
  let results = (outs Tile_RowsType:$rows);
  let assemblyFormat = "$begin `,` $position `,` $end (`reversed` $reversed^)? (`back` $back^)? attr-dict `:` type($rows)";
}
def Tile_HeadOp : Tile_Op<"head", [Pure]> {
  let summary = "the head of the coarser axis that a head of the finer one belongs to";
  let description = [{
    grouped: h div ratio; tiled: h mod (heads / ratio), for which `heads` is the count on the finer axis.

    Example: `%h = tile.head %hv of "H" grouped 2`.
  }];
  let arguments = (ins Index:$fine, I64Attr:$ratio, Tile_HeadMap:$map, StrAttr:$axis);
  let results = (outs Index:$coarse);
  let assemblyFormat = "$fine `of` $axis $map $ratio attr-dict";
}
def Tile_MemberOp : Tile_Op<"member", [Pure]> {
  let summary = "the head of the finer axis that is number `number` of those that belong to a head of the coarser one";
  let description = [{
    grouped: head * ratio + number; tiled: number * heads + head, for which `heads` is the count on the coarser axis,
    `axis`.

    Example: `%hq = tile.member %j, %h of "H" grouped 2`.
  }];
  let arguments = (ins Index:$number, Index:$coarse, I64Attr:$ratio, Tile_HeadMap:$map, StrAttr:$axis);
  let results = (outs Index:$fine);
  let assemblyFormat = "$number `,` $coarse `of` $axis $map $ratio attr-dict";
}
def Tile_SlotOp : Tile_Op<"slot", [MemoryEffects<[MemRead]>]> {
  let summary = "index[n] or index[n, m] of a tensor of slots, in int32 or int64; negative: none";
  let description = "Example: `%slot = tile.slot %index[%n] : <?xi32>`.";
  let arguments = (ins Tile_ViewType:$view, Index:$n, Optional<Index>:$m);
  let results = (outs Index:$slot);
  let assemblyFormat = "$view `[` $n (`,` $m^)? `]` attr-dict `:` type($view)";
  let hasVerifier = 1;
}

// Memory (kernels)

def Tile_ColumnsOp : Tile_Op<"columns", [Pure]> {
  let summary = "columns `at` and following of a view, as a view of its own";
  let description = [{
    As many columns as the result's last extent. Extents before the last may be dynamic in the result: the rows of a
    state are then read and written like those of a sequence, a slot taking the place of the batch entry.

    Example: `%w = tile.columns %x at %j : <?x?x8192xbf16, unit 2> -> <?x?x512xbf16, unit 2>`.
  }];
  let arguments = (ins Tile_ViewType:$view, Index:$at);
  let results = (outs Tile_ViewType:$columns);
  let assemblyFormat = "$view `at` $at attr-dict `:` type($view) `->` type($columns)";
  let hasVerifier = 1;
}

def Tile_RowBlockOp : Tile_Op<"row_block", [Pure]> {
  let summary = "rows `at` and following of the tiles of a view, as a view of its own";
  let description = [{
    As many rows as the result's last extent but one. Memory is that of the view.

    Example: `%b = tile.row_block %S at %i : <?x?x3072x64xf32> -> <?x?x128x64xf32>`.
  }];
  let arguments = (ins Tile_ViewType:$view, Index:$at);
  let results = (outs Tile_ViewType:$block);
  let assemblyFormat = "$view `at` $at attr-dict `:` type($view) `->` type($block)";
  let hasVerifier = 1;
}
def Tile_ScratchOp : Tile_Op<"scratch", [MemoryEffects<[MemAlloc]>]> {
  let summary = "memory of one program of the grid, for one tile";
  let description = [{
    The view has the tile's extents alone and is dense. Contents are undefined until stored; nobody else sees them.

    Example: `%m = tile.scratch : <3072x64xf32, unit 1>`.
  }];
  let results = (outs Tile_ViewType:$view);
  let assemblyFormat = "attr-dict `:` type($view)";
  let hasVerifier = 1;
}

def Tile_LoadRowsOp : Tile_Op<"load_rows", [MemoryEffects<[MemRead]>]> {
  let summary = "reads the rows of a chunk from a sequence tensor";
  let description = [{
    The view is [batch, row, (head,) inner…]; the tile [C * rate, inner or 1]. Rows past the count are zero. Of
    reversed rows the tokens descend; the `rate` rows of one token keep their order. A negative batch entry (a slot
    that is none) reads as zero.

    Example: `%q = tile.load_rows %Q[%batch, %rows, %h] : <?x?x?x128xbf16>, <64> -> tensor<64x128xbf16>`.
  }];
  let arguments = (ins Tile_ViewType:$view, Index:$batch, Tile_RowsType:$rows, Optional<Index>:$head, DefaultValuedAttr<I64Attr, "1">:$rate);
  let results = (outs Tile_AnyTile:$tile);
  let assemblyFormat = "$view `[` $batch `,` $rows (`,` $head^)? `]` attr-dict `:` type($view) `,` type($rows) `->` type($tile)";
  let hasVerifier = 1;
}
def Tile_StoreRowsOp : Tile_Op<"store_rows", [MemoryEffects<[MemWrite]>]> {
  let summary = "writes the valid rows of a chunk to a sequence tensor; to a negative batch entry nothing";
  let description = "Example: `tile.store_rows %o, %O[%batch, %rows, %h] : tensor<64x128xbf16>, <?x?x?x128xbf16>, <64>`.";
  let arguments = (ins Tile_AnyTile:$tile, Tile_ViewType:$view, Index:$batch, Tile_RowsType:$rows, Optional<Index>:$head);
  let assemblyFormat = "$tile `,` $view `[` $batch `,` $rows (`,` $head^)? `]` attr-dict `:` type($tile) `,` type($view) `,` type($rows)";
  let hasVerifier = 1;
}
def Tile_LoadOp : Tile_Op<"load", [MemoryEffects<[MemRead]>]> {
  let summary = "reads the inner tile at the given leading indices";
  let description = [{
    A negative first index reads zeros (a slot that is none). A view with one inner extent gives a row [1, D], with none [1, 1].

    Example: `%S = tile.load %h0[%slot, %h] : <?x?x128x128xf32> -> tensor<128x128xf32>`.
  }];
  let arguments = (ins Tile_ViewType:$view, Variadic<Index>:$indices);
  let results = (outs Tile_AnyTile:$tile);
  let assemblyFormat = "$view `[` $indices `]` attr-dict `:` type($view) `->` type($tile)";
  let hasVerifier = 1;
}
def Tile_StoreOp : Tile_Op<"store", [MemoryEffects<[MemWrite]>]> {
  let summary = "writes the inner tile at the given leading indices";
  let description = [{
    A negative first index writes nothing.

    Example: `tile.store %S, %ht[%slot, %h] : tensor<128x128xf32>, <?x?x128x128xf32>`.
  }];
  let arguments = (ins Tile_AnyTile:$tile, Tile_ViewType:$view, Variadic<Index>:$indices);
  let assemblyFormat = "$tile `,` $view `[` $indices `]` attr-dict `:` type($tile) `,` type($view)";
  let hasVerifier = 1;
}
def Tile_PickColumnsOp : Tile_Op<"pick_columns", [Pure]> {
  let summary = "columns `at` and following of a tile";
  let description = [{
    As many as the result has; all of them exist.

    Example: `%c = tile.pick_columns %x at %i : tensor<64x24xf32> -> tensor<64x1xf32>`.
  }];
  let arguments = (ins Tile_AnyTile:$x, Index:$at);
  let results = (outs Tile_AnyTile:$tile);
  let assemblyFormat = "$x `at` $at attr-dict `:` type($x) `->` type($tile)";
  let hasVerifier = 1;
}
def Tile_ConvertLayoutOp : Tile_Op<"convert_layout", [Pure]> {
  let summary = "the same tile in another layout";
  let description = [{
    Moves elements between registers, lanes or warps; values are unchanged. Elements of the result's padding are zero.

    Example: `%b = tile.convert_layout %a : tensor<16x8xf32, #tile.layout<"r:C1 C2 l:C4 R1 R2 R4 R8">> -> tensor<16x8xf32, #tile.layout<"r:C1 R8 l:C2 C4 R1 R2 R4">>`.
  }];
  let arguments = (ins Tile_AnyTile:$x);
  let results = (outs Tile_AnyTile:$tile);
  let assemblyFormat = "$x attr-dict `:` type($x) `->` type($tile)";
  let hasVerifier = 1;
}

#endif
