// What each op demands beyond what its definition says.
#include "dialect/Tile.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace latile::tile;

namespace {

/// "64x128".
std::string shape_text(RankedTensorType type) {
  return std::to_string(type.getDimSize(0)) + "x" + std::to_string(type.getDimSize(1));
}

RankedTensorType tile_type(ArrayRef<int64_t> shape, Type element) { return RankedTensorType::get(shape, element); }

/// The type without a layout: shapes and element types are a matter of each op, layouts of their own verifier.
Type without_layout(Type type) {
  auto tile = dyn_cast<RankedTensorType>(type);
  return tile ? tile.dropEncoding() : type;
}

/// Checks the type of a result or region value against the one that follows from the rest.
LogicalResult expect(Operation* op, const Twine& what, Type have, Type want) {
  if (without_layout(have) == without_layout(want)) return success();
  return op->emitOpError() << what << " must be " << want << ", is " << have;
}

/// The inner tile of a view: no static extent is [1, 1], one is a row [1, D].
RankedTensorType inner_tile(ViewType view, Type element) {
  auto inner = view.getInner();
  if (inner.empty()) return tile_type({1, 1}, element);
  if (inner.size() == 1) return tile_type({1, inner[0]}, element);
  return tile_type(inner, element);
}

/// Rows of the region or operand that valid, count, index, neutral and row(last_valid) speak about; nothing where an
/// op stands in neither a scan nor next to a rows operand (reported).
FailureOr<int64_t> rows_of(Operation* op, Value rows) {
  if (rows) return cast<RowsType>(rows.getType()).getSize();
  if (auto scan = op->getParentOfType<ScanOp>()) return static_cast<int64_t>(scan.getChunk());
  return op->emitOpError() << "outside a scan needs a rows operand";
}

LogicalResult verify_mask_shape(Operation* op, RankedTensorType type, int64_t stair) {
  if (stair < 1) return op->emitOpError() << "stair must be positive, is " << stair;
  if (type.getDimSize(1) != type.getDimSize(0) * stair)
    return op->emitOpError() << "a mask with stair " << stair << " has " << stair
                             << " times as many columns as rows; the tile is " << shape_text(type);
  return success();
}

/// The row that a recurrence over the rows of `tile` starts from.
LogicalResult verify_start(Operation* op, RankedTensorType start, RankedTensorType tile) {
  return expect(op, "the row it starts from", start, tile_type({1, tile.getDimSize(1)}, tile.getElementType()));
}

LogicalResult verify_rows_access(Operation* op, ViewType view, RowsType rows, bool head, RankedTensorType tile,
                                 int64_t rate) {
  int64_t leading = head ? 3 : 2;
  if (rate < 1) return op->emitOpError() << "rate must be positive, is " << rate;
  if (view.getDynamicRank() != leading)
    return op->emitOpError() << "a view read " << (head ? "with" : "without") << " a head has " << leading
                             << " dynamic extents (batch, row" << (head ? ", head" : "") << "), " << view << " has "
                             << view.getDynamicRank();
  if (view.getInner().size() > 1)
    return op->emitOpError() << "a row has at most one inner extent, " << view << " has two";
  int64_t columns = view.getInner().empty() ? 1 : view.getInner()[0];
  return expect(op, "the tile", tile, tile_type({rows.getSize() * rate, columns}, view.getElementType()));
}

LogicalResult verify_access(Operation* op, ViewType view, size_t indices, RankedTensorType tile) {
  if (static_cast<size_t>(view.getDynamicRank()) != indices)
    return op->emitOpError() << view << " takes " << view.getDynamicRank() << " indices, not " << indices;
  return expect(op, "the tile", tile, inner_tile(view, view.getElementType()));
}

/// A [1, 1] tile that speaks about rows.
LogicalResult verify_number(Operation* op, Value rows, RankedTensorType type) {
  if (failed(rows_of(op, rows))) return failure();
  return expect(op, "the result", type, tile_type({1, 1}, type.getElementType()));
}

/// Which of `extent` rows an op picks.
LogicalResult verify_pick(Operation* op, PickKind pick, Value rows, int64_t at, int64_t extent) {
  if (pick == PickKind::LastValid && failed(rows_of(op, rows))) return failure();
  if (pick != PickKind::LastValid && rows)
    return op->emitOpError() << "takes a rows operand only to find the last valid row";
  if (pick == PickKind::At && (at < 0 || at >= extent))
    return op->emitOpError() << "row " << at << " is outside a tile of " << extent << " rows";
  return success();
}

/// A part of a view along the last axis but `back` - 1; what stands before that axis may be dynamic in it.
LogicalResult verify_part(Operation* op, ViewType from, ViewType to, int64_t back, StringRef what) {
  bool fits = from.getRank() == to.getRank() && from.getElementType() == to.getElementType() &&
              from.getUnit() == to.getUnit() && from.getRank() - from.getDynamicRank() >= back &&
              to.getRank() - to.getDynamicRank() >= back;
  for (int64_t axis = 0; fits && axis < from.getRank(); ++axis) {
    int64_t has = from.getShape()[axis], takes = to.getShape()[axis];
    fits = axis == from.getRank() - back ? takes <= has : ShapedType::isDynamic(takes) || takes == has;
  }
  if (!fits) return op->emitOpError() << "takes " << what << " of " << from << ", which " << to << " is not";
  return success();
}

LogicalResult verify_single(Operation* op, RankedTensorType type) {
  if (type.getNumElements() == 1) return success();
  return op->emitOpError() << "is a [1, 1] tile, not " << shape_text(type);
}

}  // namespace

LogicalResult ProgramOp::verify() {
  if (getArgNames().size() != getArgumentTypes().size())
    return emitOpError() << "has " << getArgumentTypes().size() << " arguments and " << getArgNames().size()
                         << " names";
  return success();
}

LogicalResult KernelOp::verify() {
  auto types = getArgumentTypes();
  size_t axes = getGrid().size();
  if (types.size() < axes || !llvm::all_of(types.take_front(axes), [](Type type) { return type.isIndex(); }))
    return emitOpError() << "needs one index argument first for each of its " << axes << " grid axes";
  if (getArgNames().size() + axes != types.size())
    return emitOpError() << "has " << types.size() - axes << " arguments after its grid and " << getArgNames().size()
                         << " names";
  if (!getResultTypes().empty()) return emitOpError() << "has no results";
  return success();
}

LogicalResult LaunchOp::verifySymbolUses(SymbolTableCollection& symbols) {
  auto kernel = symbols.lookupNearestSymbolFrom<KernelOp>(*this, getKernelAttr());
  if (!kernel) return emitOpError() << "no kernel is named " << getKernelAttr();
  auto wanted = kernel.getArgumentTypes().drop_front(kernel.getGrid().size());
  if (wanted != getOperandTypes())
    return emitOpError() << "operands do not have the types of the arguments of " << getKernelAttr();
  return success();
}

// A view that a scan reads, carries or writes: leading extents, and with them its inner tile.
static LogicalResult verify_view(ScanOp op, const Twine& what, Value value, int64_t leading) {
  auto view = cast<ViewType>(value.getType());
  if (view.getDynamicRank() == leading) return success();
  return op.emitOpError() << what << " needs " << leading << " dynamic extents, " << view << " has "
                          << view.getDynamicRank();
}

static LogicalResult verify_counts(ScanOp op) {
  size_t inputs = op.getInputs().size(), carries = op.getCarries().size(), outputs = op.getOutputs().size();
  if (op.getChunk() < 1) return op.emitOpError() << "chunk must be positive, is " << op.getChunk();
  if (op.getHeadRatio() < 1) return op.emitOpError() << "head_ratio must be positive, is " << op.getHeadRatio();
  if (op.getReads().size() != inputs || op.getReadHeads().size() != inputs || op.getRates().size() != inputs)
    return op.emitOpError() << "has " << inputs << " inputs; reads, read_heads and rates must have as many entries";
  if (op.getWrites().size() != outputs || op.getWriteHeads().size() != outputs)
    return op.emitOpError() << "has " << outputs << " outputs; writes and write_heads must have as many entries";
  auto counts = [&](ArrayRef<bool> has, OperandRange operands) {
    return has.size() == carries && static_cast<size_t>(llvm::count(has, true)) == operands.size();
  };
  if (op.getCarryHeads().size() != carries || !counts(op.getHasInitial(), op.getInitial()) ||
      !counts(op.getHasInitialIndex(), op.getInitialIndex()) || !counts(op.getHasFinal(), op.getFinal()) ||
      !counts(op.getHasFinalIndex(), op.getFinalIndex()))
    return op.emitOpError() << "has " << carries
                            << " carries; carry_heads and has_* must have as many entries, and true ones as operands";
  auto every = op.getEvery().value_or(ArrayRef<int64_t>());
  size_t histories = every.size() - static_cast<size_t>(llvm::count(every, 0));
  if ((!every.empty() && every.size() != carries) || op.getHistory().size() != histories ||
      op.getHistoryIndex().size() != histories)
    return op.emitOpError() << "has " << carries
                            << " carries; every must have as many entries or be absent, and those above 0 a history "
                               "and its index each";
  for (int64_t tokens : every)
    if (tokens < 0 || tokens % static_cast<int64_t>(op.getChunk()) != 0)
      return op.emitOpError() << "history states lie a multiple of the chunk of " << op.getChunk()
                              << " tokens apart, not " << tokens;
  return success();
}

static LogicalResult verify_inputs(ScanOp op) {
  Block& body = op.getBody().front();
  for (auto [i, input] : llvm::enumerate(op.getInputs())) {
    std::string what = "input \"" + cast<StringAttr>(op.getReads()[i]).str() + "\"";
    bool head = !cast<StringAttr>(op.getReadHeads()[i]).empty();
    int64_t rate = op.getRates()[i];
    Type element = Float32Type::get(op.getContext());
    RankedTensorType want;
    if (auto view = dyn_cast<ViewType>(input.getType())) {
      if (failed(verify_view(op, what, input, (rate > 0 ? 2 : 0) + head))) return failure();
      want = inner_tile(view, view.getElementType());
      if (rate > 0 && view.getInner().size() > 1)
        return op.emitOpError() << what << " has two inner extents; a row of a sequence has at most one";
      if (rate > 0)
        want = tile_type({static_cast<int64_t>(op.getChunk()) * rate, want.getDimSize(1)}, view.getElementType());
    } else if (input.getType().isF64()) {
      if (rate != 0) return op.emitOpError() << what << " is a scalar and has rate " << rate;
      want = tile_type({1, 1}, element);
    } else {
      return op.emitOpError() << what << " is a view or an f64, not " << input.getType();
    }
    if (failed(expect(op, "the block argument of " + what, body.getArgument(i).getType(), want))) return failure();
  }
  return success();
}

static LogicalResult verify_carries(ScanOp op) {
  Block& body = op.getBody().front();
  Type f32 = Float32Type::get(op.getContext());
  for (auto [i, name] : llvm::enumerate(op.getCarries())) {
    std::string what = "carry \"" + cast<StringAttr>(name).str() + "\"";
    bool head = !cast<StringAttr>(op.getCarryHeads()[i]).empty();
    Type type = body.getArgument(op.getInputs().size() + i).getType();
    auto tile = dyn_cast<RankedTensorType>(type);
    if (!tile || tile.getRank() != 2 || !tile.getElementType().isF32())
      return op.emitOpError() << "the block argument of " << what << " is a float32 tile, not " << type;
    for (Value view : {op.initialOf(i), op.finalOf(i), op.historyOf(i)}) {
      if (!view) continue;
      if (failed(verify_view(op, what, view, 1 + head))) return failure();
      if (failed(expect(op, "the block argument of " + what, tile, inner_tile(cast<ViewType>(view.getType()), f32))))
        return failure();
    }
    int64_t starts = op.getAccepted() ? 2 : 1;
    for (auto [index, rank] : {std::pair(op.initialIndexOf(i), starts), std::pair(op.finalIndexOf(i), int64_t{1}),
                               std::pair(op.historyIndexOf(i), int64_t{2})}) {
      if (!index) continue;
      auto view = cast<ViewType>(index.getType());
      if (view.getRank() != rank || view.getDynamicRank() != rank || !view.getElementType().isInteger())
        return op.emitOpError() << "the index of " << what << " is a view "
                                << (rank == 1 ? "<?xi32> or <?xi64>" : "<?x?xi32> or <?x?xi64>") << ", not " << view;
    }
    if ((op.initialIndexOf(i) && !op.initialOf(i)) || (op.finalIndexOf(i) && !op.finalOf(i)))
      return op.emitOpError() << what << " has an index but no tensor to index";
  }
  if (!op.getAccepted()) return success();
  auto accepted = cast<ViewType>(op.getAccepted().getType());
  if (accepted.getRank() != 1 || !accepted.getElementType().isInteger())
    return op.emitOpError() << "accepted is a view <?xi32> or <?xi64>, not " << accepted;
  return success();
}

LogicalResult ScanOp::verify() {
  if (failed(verify_counts(*this))) return failure();
  Block& body = getBody().front();
  size_t inputs = getInputs().size(), carries = getCarries().size(), outputs = getOutputs().size();
  if (body.getNumArguments() != inputs + carries)
    return emitOpError() << "has " << inputs << " inputs and " << carries << " carries; its region has "
                         << body.getNumArguments() << " arguments";
  if (failed(verify_inputs(*this)) || failed(verify_carries(*this))) return failure();

  auto yield = body.empty() ? YieldOp() : dyn_cast<YieldOp>(body.back());
  if (!yield) return emitOpError() << "region must end with tile.yield";
  if (yield.getValues().size() != outputs + carries)
    return yield.emitOpError() << "yields " << yield.getValues().size() << " values; the scan has " << outputs
                               << " outputs and " << carries << " carries";
  for (auto [i, output] : llvm::enumerate(getOutputs())) {
    std::string what = "output \"" + cast<StringAttr>(getWrites()[i]).str() + "\"";
    bool head = !cast<StringAttr>(getWriteHeads()[i]).empty();
    if (failed(verify_view(*this, what, output, 2 + head))) return failure();
    auto view = cast<ViewType>(output.getType());
    int64_t columns = view.getInner().empty() ? 1 : view.getInner().back();
    auto want = tile_type({static_cast<int64_t>(getChunk()), columns}, view.getElementType());
    if (failed(expect(*this, "the yielded " + what, yield.getValues()[i].getType(), want))) return failure();
  }
  for (size_t i = 0; i < carries; ++i)
    if (failed(expect(*this, "the yielded carry \"" + cast<StringAttr>(getCarries()[i]).str() + "\"",
                      yield.getValues()[outputs + i].getType(), body.getArgument(inputs + i).getType())))
      return failure();

  auto impure = body.walk([](Operation* op) {
    return isMemoryEffectFree(op)
               ? WalkResult::advance()
               : (op->emitOpError() << "reads or writes memory inside a scan", WalkResult::interrupt());
  });
  return failure(impure.wasInterrupted());
}

LogicalResult LoadRowsOp::verify() {
  return verify_rows_access(*this, getView().getType(), getRows().getType(), getHead() != nullptr, getTile().getType(),
                            getRate());
}
LogicalResult StoreRowsOp::verify() {
  return verify_rows_access(*this, getView().getType(), getRows().getType(), getHead() != nullptr, getTile().getType(),
                            1);
}
LogicalResult LoadOp::verify() {
  return verify_access(*this, getView().getType(), getIndices().size(), getTile().getType());
}
LogicalResult StoreOp::verify() {
  return verify_access(*this, getView().getType(), getIndices().size(), getTile().getType());
}
LogicalResult ConvertLayoutOp::verify() { return expect(*this, "the result", getTile().getType(), getX().getType()); }
LogicalResult ColumnsOp::verify() {
  return verify_part(*this, getView().getType(), getColumns().getType(), 1, "columns");
}
LogicalResult RowBlockOp::verify() { return verify_part(*this, getView().getType(), getBlock().getType(), 2, "rows"); }
LogicalResult ScratchOp::verify() {
  auto view = getView().getType();
  if (view.getDynamicRank() == 0 && view.getRank() > 0 && view.getUnit() == view.getRank() - 1) return success();
  return emitOpError() << "holds one tile, in rows without gaps, not " << view;
}
LogicalResult PickColumnsOp::verify() {
  auto from = getX().getType(), to = getTile().getType();
  if (from.getElementType() == to.getElementType() && from.getDimSize(0) == to.getDimSize(0) &&
      to.getDimSize(1) <= from.getDimSize(1))
    return success();
  return emitOpError() << "takes columns of " << from << ", which " << to << " is not";
}
LogicalResult SlotOp::verify() {
  auto view = getView().getType();
  int64_t rank = getM() ? 2 : 1;
  if (view.getRank() != rank || view.getDynamicRank() != rank || !view.getElementType().isInteger())
    return emitOpError() << "reads a view " << (rank == 1 ? "<?xi32> or <?xi64>" : "<?x?xi32> or <?x?xi64>") << ", not "
                         << view;
  return success();
}

LogicalResult ConstantOp::verify() { return verify_single(*this, getTile().getType()); }
LogicalResult SplatOp::verify() { return verify_single(*this, getTile().getType()); }
LogicalResult ValidOp::verify() {
  auto size = rows_of(*this, getRows());
  if (failed(size)) return failure();
  return expect(*this, "the result", getTile().getType(), tile_type({*size, 1}, getTile().getType().getElementType()));
}
LogicalResult CountOp::verify() { return verify_number(*this, getRows(), getTile().getType()); }
LogicalResult IndexOp::verify() { return verify_number(*this, getRows(), getTile().getType()); }
LogicalResult NeutralOp::verify() {
  auto size = rows_of(*this, getRows());
  if (failed(size)) return failure();
  if (getTile().getType().getDimSize(0) != *size * static_cast<int64_t>(getRate()))
    return emitOpError() << "a tile of " << *size << " rows at rate " << getRate() << " has "
                         << *size * static_cast<int64_t>(getRate()) << " rows, not "
                         << getTile().getType().getDimSize(0);
  return success();
}

LogicalResult CastOp::verify() {
  return expect(*this, "the result", getTile().getType(),
                tile_type(getX().getType().getShape(), getTile().getType().getElementType()));
}
LogicalResult BroadcastOp::verify() {
  auto from = getX().getType(), to = getTile().getType();
  if (from.getElementType() != to.getElementType())
    return emitOpError() << "keeps the element type; " << from << " is not that of " << to;
  for (int axis : {0, 1})
    if (from.getDimSize(axis) != 1 && from.getDimSize(axis) != to.getDimSize(axis))
      return emitOpError() << "repeats extents of 1 only; " << shape_text(from) << " does not broadcast to "
                           << shape_text(to);
  return success();
}
LogicalResult TransposeOp::verify() {
  auto from = getX().getType();
  return expect(*this, "the result", getTile().getType(),
                tile_type({from.getDimSize(1), from.getDimSize(0)}, from.getElementType()));
}
LogicalResult RowOp::verify() {
  auto from = getX().getType();
  if (failed(verify_pick(*this, getPick(), getRows(), getAt(), from.getDimSize(0)))) return failure();
  return expect(*this, "the result", getTile().getType(), tile_type({1, from.getDimSize(1)}, from.getElementType()));
}
LogicalResult PlaceRowOp::verify() {
  auto from = getX().getType(), to = getTile().getType();
  if (from.getDimSize(0) != 1 || from.getDimSize(1) != to.getDimSize(1))
    return emitOpError() << "places one row among rows as long, not " << shape_text(from) << " in " << shape_text(to);
  return verify_pick(*this, getPick(), getRows(), getAt(), to.getDimSize(0));
}
LogicalResult PrevOp::verify() { return verify_start(*this, getFrom().getType(), getTile().getType()); }
LogicalResult CummaxOp::verify() { return verify_start(*this, getFrom().getType(), getTile().getType()); }
LogicalResult LogcumsumexpOp::verify() { return verify_start(*this, getZ().getType(), getTile().getType()); }
LogicalResult AffineScanOp::verify() { return verify_start(*this, getH().getType(), getTile().getType()); }
LogicalResult SumRowsOp::verify() {
  auto from = getX().getType();
  int64_t n = getN();
  if (n < 1 || from.getDimSize(0) % n != 0)
    return emitOpError() << "sums groups of " << n << " rows, into which " << from.getDimSize(0) << " do not divide";
  return expect(*this, "the result", getTile().getType(),
                tile_type({from.getDimSize(0) / n, from.getDimSize(1)}, from.getElementType()));
}
LogicalResult LookupOp::verify() {
  auto square = getTransposed() ? getX().getType() : getTile().getType();
  auto table = getTransposed() ? getTile().getType() : getX().getType();
  int64_t rows = square.getDimSize(0), levels = 1 + llvm::Log2_64_Ceil(rows);
  if (square.getDimSize(1) != rows || table.getDimSize(0) != rows)
    return emitOpError() << "relates a square and as many rows of levels, not " << shape_text(square) << " and "
                         << shape_text(table);
  if (getFrom() && getFrom().getType().getNumElements() != 1)
    return emitOpError() << "counts from a [1, 1] tile, not " << shape_text(getFrom().getType());
  if (!getFrom() && table.getDimSize(1) < levels)
    return emitOpError() << "needs " << levels << " levels for " << rows << " rows, has " << table.getDimSize(1);
  return success();
}
LogicalResult KronRowsOp::verify() {
  auto from = getX().getType(), with = getY() ? getY().getType() : from;
  if (with.getDimSize(0) != from.getDimSize(0))
    return emitOpError() << "takes two tiles with as many rows, not " << shape_text(from) << " and "
                         << shape_text(with);
  return expect(*this, "the result", getTile().getType(),
                tile_type({from.getDimSize(0), from.getDimSize(1) * with.getDimSize(1)}, from.getElementType()));
}
LogicalResult ContractKronOp::verify() {
  auto x = getX().getType();
  int64_t k = x.getDimSize(1);
  return expect(*this, "the first operand", getM().getType(), tile_type({x.getDimSize(0), k * k}, x.getElementType()));
}
LogicalResult RepeatRowsOp::verify() {
  auto from = getX().getType();
  int64_t n = getN();
  if (n < 1) return emitOpError() << "repeats each row at least once, not " << n << " times";
  return expect(*this, "the result", getTile().getType(),
                tile_type({from.getDimSize(0) * n, from.getDimSize(1)}, from.getElementType()));
}
LogicalResult MaskOp::verify() { return verify_mask_shape(*this, getTile().getType(), getStair()); }
LogicalResult DiagonalOp::verify() {
  auto from = getX().getType();
  if (from.getDimSize(1) != 1) return emitOpError() << "takes a column, not a tile of " << shape_text(from);
  return expect(*this, "the result", getTile().getType(),
                tile_type({from.getDimSize(0), from.getDimSize(0)}, from.getElementType()));
}

LogicalResult ReduceOp::verify() {
  auto from = getX().getType();
  int64_t axis = getAxis();
  if (axis != 0 && axis != 1) return emitOpError() << "axis is 0 or 1, not " << axis;
  return expect(
      *this, "the result", getTile().getType(),
      tile_type(axis == 0 ? ArrayRef<int64_t>{1, from.getDimSize(1)} : ArrayRef<int64_t>{from.getDimSize(0), 1},
                from.getElementType()));
}
LogicalResult DotOp::verify() {
  auto a = getA().getType(), b = getB().getType();
  if (a.getDimSize(1) != b.getDimSize(0))
    return emitOpError() << "inner extents differ: " << shape_text(a) << " by " << shape_text(b);
  if (a.getElementType() != b.getElementType())
    return emitOpError() << "operands have one element type, not " << a.getElementType() << " and "
                         << b.getElementType();
  return expect(*this, "the result", getTile().getType(),
                tile_type({a.getDimSize(0), b.getDimSize(1)}, getTile().getType().getElementType()));
}
LogicalResult DecayOp::verify() {
  auto gr = getGr().getType(), gc = getGc().getType();
  if (gr.getDimSize(1) != 1 || gc.getDimSize(1) != 1)
    return emitOpError() << "gates are columns, not " << shape_text(gr) << " and " << shape_text(gc);
  if (failed(expect(*this, "the result", getTile().getType(),
                    tile_type({gr.getDimSize(0), gc.getDimSize(0)}, gr.getElementType()))))
    return failure();
  return getKind() == MaskKind::All ? success() : verify_mask_shape(*this, getTile().getType(), getStair());
}
// Scores [C, C'] between rows [C, D] with gates gr and rows [C', D] with gates gc.
static LogicalResult verify_decayed(Operation* op, RankedTensorType scores, RankedTensorType rows,
                                    RankedTensorType columns, RankedTensorType gr, RankedTensorType gc, MaskKind kind,
                                    int64_t stair) {
  if (failed(expect(op, "the rows' gate", gr, rows)) || failed(expect(op, "the columns' gate", gc, columns)))
    return failure();
  if (rows.getDimSize(1) != columns.getDimSize(1))
    return op->emitOpError() << "inner extents differ: " << shape_text(rows) << " and " << shape_text(columns);
  if (failed(expect(op, "the scores", scores,
                    tile_type({rows.getDimSize(0), columns.getDimSize(0)}, scores.getElementType()))))
    return failure();
  return kind == MaskKind::All ? success() : verify_mask_shape(op, scores, stair);
}
LogicalResult DecayedScoresOp::verify() {
  return verify_decayed(*this, getTile().getType(), getQ().getType(), getK().getType(), getGr().getType(),
                        getGc().getType(), getKind(), getStair());
}
LogicalResult DecayedApplyOp::verify() {
  auto rows = getTransposed() ? getX().getType() : getTile().getType();
  auto columns = getTransposed() ? getTile().getType() : getX().getType();
  return verify_decayed(*this, getA().getType(), rows, columns, getGr().getType(), getGc().getType(), getKind(),
                        getStair());
}
LogicalResult InverseUnitLowerOp::verify() {
  auto type = getTile().getType();
  if (type.getDimSize(0) != type.getDimSize(1)) return emitOpError() << "inverts a square, not " << shape_text(type);
  return success();
}
LogicalResult SolveUnitLowerOp::verify() {
  auto a = getA().getType(), b = getB().getType();
  if (a.getDimSize(0) != a.getDimSize(1)) return emitOpError() << "solves with a square, not " << shape_text(a);
  if (a.getDimSize(1) != b.getDimSize(0))
    return emitOpError() << "system and right-hand side differ in rows: " << shape_text(a) << " and " << shape_text(b);
  return success();
}
LogicalResult SolveOp::verify() {
  Block& map = getMap().front();
  Type type = getTile().getType();
  if (getSteps() < 1) return emitOpError() << "takes at least one step, not " << getSteps();
  auto yield = map.empty() ? YieldOp() : dyn_cast<YieldOp>(map.back());
  if (map.getNumArguments() != 1 || map.getArgument(0).getType() != type || !yield || yield.getValues().size() != 1 ||
      yield.getValues()[0].getType() != type)
    return emitOpError() << "region maps one " << type << " to another";
  return success();
}
LogicalResult CustomOp::verify() {
  Type x = getX().getType(), y = getTile().getType();
  auto maps = [](Block& block, TypeRange from, Type to) {
    auto yield = block.empty() ? YieldOp() : dyn_cast<YieldOp>(block.back());
    return TypeRange(block.getArgumentTypes()) == from && yield && yield.getValues().size() == 1 &&
           yield.getValues()[0].getType() == to;
  };
  if (!maps(getForward().front(), {x}, y)) return emitOpError() << "first region maps " << x << " to " << y;
  if (!maps(getAdjoint().front(), {x, y, y}, x))
    return emitOpError() << "second region maps x, y and the gradient of y to the gradient of x, " << x;
  return success();
}
