// The tile dialect itself, its types, enumerations and classes of ops.
#ifndef LATILE_TILE_BASE
#define LATILE_TILE_BASE

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
  let useDefaultAttributePrinterParser = 1;
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

def Tile_LayoutAttr : AttrDef<Tile_Dialect, "Layout"> {
  let mnemonic = "layout";
  let summary = "which register, lane and warp holds which element of a tile";
  let description = [{
    The encoding of a tile type in a kernel for a GPU, in the text form of `codegen/simt/Layout.h`: bases of the bits of
    register, lane and warp, low to high, then repetitions. It carries no meaning, only a place. A layout may be larger
    than its tile (padding).

    Example: `tensor<16x8xf32, #tile.layout<"r:C1 R8 l:C2 C4 R1 R2 R4">>`.
  }];
  let parameters = (ins StringRefParameter<>:$text);
  let assemblyFormat = "`<` $text `>`";
  let genVerifyDecl = 1;
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

def Tile_Table : I32EnumAttr<"TableKind", "a static table over (row, column)", [
    I32EnumAttrCase<"Fenwick", 0, "fenwick">]> {
  let cppNamespace = "::latile::tile";
}

class Tile_Op<string mnem, list<Trait> traits = []> : Op<Tile_Dialect, mnem, traits>;
/// A pure op on tiles, differentiable through AdjointInterface.
class Tile_Pure<string mnem, list<Trait> traits = []>
    : Tile_Op<mnem, !listconcat([Pure, DeclareOpInterfaceMethods<Tile_AdjointInterface>], traits)>;

#endif
