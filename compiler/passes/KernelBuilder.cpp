#include "compiler/passes/KernelBuilder.h"
#include "compiler/passes/Members.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace latile::tile;

namespace latile {

void note_coarse_heads(ModuleOp module) {
  module.walk([](ScanOp scan) {
    if (scan.getHeadRatio() == 1) return;
    NamedAttrList ratios;
    if (auto known = scan->getParentOp()->getAttrOfType<DictionaryAttr>("coarse_heads")) ratios = NamedAttrList(known);
    for (ArrayAttr heads : {scan.getReadHeads(), scan.getCarryHeads(), scan.getWriteHeads()})
      for (auto name : heads.getAsRange<StringAttr>())
        if (!name.empty() && name.getValue() != scan.getAxis()) ratios.set(name, scan.getHeadRatioAttr());
    if (!ratios.empty()) scan->getParentOp()->setAttr("coarse_heads", ratios.getDictionary(scan.getContext()));
  });
}

KernelBuilder::KernelBuilder(ProgramOp program, ScanOp scan, StringRef suffix, ArrayRef<StringRef> grid,
                             ArrayRef<Value> operands, ArrayRef<StringRef> names)
    : scan_(scan), builder_(program), loc_(scan.getLoc()) {
  SmallVector<Type> types(grid.size(), builder_.getIndexType());
  for (Value operand : operands) types.push_back(operand.getType());
  kernel_ = KernelOp::create(builder_, loc_, (program.getSymName() + suffix).str(), builder_.getFunctionType(types, {}),
                             builder_.getStrArrayAttr(grid), builder_.getStrArrayAttr(names), ArrayAttr(), ArrayAttr());
  Block& body = kernel_.getBody().emplaceBlock();
  for (Type type : types) body.addArgument(type, loc_);
  for (auto [i, operand] : llvm::enumerate(operands)) values_.map(operand, body.getArgument(grid.size() + i));
  for (auto [i, name] : llvm::enumerate(grid))
    if (name == scan.carryAxis()) head_axis_ = i;
  builder_.setInsertionPointToStart(&body);
}

Value KernelBuilder::head(StringRef name) {
  if (name.empty()) return nullptr;
  Value fine = axis(head_axis_);
  if (name == scan_.carryAxis() || scan_.getHeadRatio() == 1) return fine;
  if (name == scan_.getAxis()) return member_;
  Value& coarse = heads_[name];
  if (!coarse) {
    OpBuilder::InsertionGuard guard(builder_);
    builder_.setInsertionPointToStart(&kernel_.getBody().front());
    coarse = HeadOp::create(builder_, loc_, fine, scan_.getHeadRatio(), scan_.getHeadMap(), name);
  }
  return coarse;
}

void KernelBuilder::members(function_ref<void()> body) {
  OpBuilder::InsertionGuard guard(builder_);
  Value zero = index(0), ratio = index(static_cast<std::int64_t>(scan_.getHeadRatio())), one = index(1);
  auto loop = scf::ForOp::create(builder_, loc_, zero, ratio, one);
  builder_.setInsertionPointToStart(loop.getBody());
  member_ = MemberOp::create(builder_, loc_, loop.getInductionVar(), axis(head_axis_), scan_.getHeadRatio(),
                             scan_.getHeadMap(), scan_.carryAxis());
  body();
  member_ = nullptr;
}

Value KernelBuilder::index(std::int64_t value) { return arith::ConstantIndexOp::create(builder_, loc_, value); }

Value KernelBuilder::zeros(RankedTensorType type) {
  auto f32 = builder_.getF32Type();
  Value zero = ConstantOp::create(builder_, loc_, RankedTensorType::get({1, 1}, f32), builder_.getF64FloatAttr(0));
  Value tile = type.getNumElements() == 1
                   ? zero
                   : Value(BroadcastOp::create(builder_, loc_, RankedTensorType::get(type.getShape(), f32), zero));
  return cast(tile, type.getElementType());
}

Value KernelBuilder::cast(Value tile, Type element) {
  auto type = mlir::cast<RankedTensorType>(tile.getType());
  if (type.getElementType() == element) return tile;
  return CastOp::create(builder_, loc_, RankedTensorType::get(type.getShape(), element), tile);
}

// A tile read through a view: no inner extent is [1, 1], one is a row.
static RankedTensorType loaded(ViewType view) {
  auto inner = view.getInner();
  if (inner.size() == 2) return RankedTensorType::get(inner, view.getElementType());
  return RankedTensorType::get({1, inner.empty() ? 1 : inner[0]}, view.getElementType());
}

Value KernelBuilder::load_constant_input(unsigned i) {
  bool varies = scan_.getRates()[i] != 0 || has_members(scan_, scan_.getReadHeads()[i]);
  return varies ? Value() : load_parameter(i);
}

Value KernelBuilder::load_input(unsigned i, Value batch, Value rows) {
  return scan_.getRates()[i] != 0 ? load_rows_input(i, batch, rows) : load_parameter(i);
}

Value KernelBuilder::load_parameter(unsigned i) {
  Value input = scan_.getInputs()[i];
  if (input.getType().isF64())
    return SplatOp::create(builder_, loc_, RankedTensorType::get({1, 1}, builder_.getF32Type()), operand(input));
  SmallVector<Value> indices;
  if (Value at = head(mlir::cast<StringAttr>(scan_.getReadHeads()[i]).getValue())) indices.push_back(at);
  return LoadOp::create(builder_, loc_, loaded(mlir::cast<ViewType>(input.getType())), operand(input), indices);
}

Value KernelBuilder::load_rows_input(unsigned i, Value batch, Value rows) {
  Type type = scan_.getBody().getArgument(i).getType();
  return LoadRowsOp::create(builder_, loc_, type, operand(scan_.getInputs()[i]), batch, rows,
                            head(mlir::cast<StringAttr>(scan_.getReadHeads()[i]).getValue()), scan_.getRates()[i]);
}

void KernelBuilder::store_output(unsigned i, Value tile, Value batch, Value rows) {
  StoreRowsOp::create(builder_, loc_, tile, operand(scan_.getOutputs()[i]), batch, rows,
                      head(mlir::cast<StringAttr>(scan_.getWriteHeads()[i]).getValue()));
}

Value KernelBuilder::rows(Value begin, Value position, Value end) {
  auto type = RowsType::get(builder_.getContext(), static_cast<std::int64_t>(scan_.getChunk()));
  return RowsOp::create(builder_, loc_, type, begin, position, end, scan_.getReversed());
}

// A slot read once serves every later use: nothing writes an index tensor.
Value KernelBuilder::slot(Value index, Value n, Value column) {
  if (!index) return n;
  Value& known = slots_[index];
  if (!known) known = SlotOp::create(builder_, loc_, operand(index), n, column);
  return known;
}
Value KernelBuilder::initial_slot(unsigned i, Value n) {
  Value index = scan_.initialIndexOf(i);
  if (!index || !scan_.getAccepted()) return slot(index, n);
  if (!last_accepted_) {
    Value accepted = SlotOp::create(builder_, loc_, operand(scan_.getAccepted()), n, Value());
    last_accepted_ = arith::SubIOp::create(builder_, loc_, accepted, this->index(1));
  }
  return slot(index, n, last_accepted_);
}
Value KernelBuilder::final_slot(unsigned i, Value n) { return slot(scan_.finalIndexOf(i), n); }

Value KernelBuilder::load_carry(unsigned i, Value n) {
  auto type = mlir::cast<RankedTensorType>(scan_.getBody().getArgument(scan_.getInputs().size() + i).getType());
  Value view = scan_.initialOf(i);
  if (!view) return zeros(type);
  SmallVector<Value> indices{initial_slot(i, n)};
  if (Value at = head(mlir::cast<StringAttr>(scan_.getCarryHeads()[i]).getValue())) indices.push_back(at);
  Value tile = LoadOp::create(builder_, loc_, loaded(mlir::cast<ViewType>(view.getType())), operand(view), indices);
  return cast(tile, type.getElementType());
}

void KernelBuilder::store_carry(unsigned i, Value tile, Value n) {
  if (Value view = scan_.finalOf(i)) store_state(i, tile, view, final_slot(i, n));
}

void KernelBuilder::store_history(unsigned i, Value tile, Value n, Value begin, Value position) {
  std::int64_t every = scan_.everyOf(i);
  if (every == 0) return;
  Value tokens = arith::SubIOp::create(builder_, loc_, position, begin), zero = index(0), distance = index(every);
  Value some = arith::CmpIOp::create(builder_, loc_, arith::CmpIPredicate::sgt, tokens, zero);
  Value rest = arith::RemSIOp::create(builder_, loc_, tokens, distance);
  Value whole = arith::CmpIOp::create(builder_, loc_, arith::CmpIPredicate::eq, rest, zero);
  Value keeps = arith::AndIOp::create(builder_, loc_, some, whole);
  Value number =
      arith::SubIOp::create(builder_, loc_, arith::DivSIOp::create(builder_, loc_, tokens, distance), index(1));
  // Where nothing is kept the slot of the first state is read, which always exists, and not used.
  Value column = arith::SelectOp::create(builder_, loc_, keeps, number, zero);
  Value slot = SlotOp::create(builder_, loc_, operand(scan_.historyIndexOf(i)), n, column);
  store_state(i, tile, scan_.historyOf(i), arith::SelectOp::create(builder_, loc_, keeps, slot, index(-1)));
}

void KernelBuilder::store_state(unsigned i, Value tile, Value view, Value slot) {
  SmallVector<Value> indices{slot};
  if (Value at = head(mlir::cast<StringAttr>(scan_.getCarryHeads()[i]).getValue())) indices.push_back(at);
  Value stored = cast(tile, mlir::cast<ViewType>(view.getType()).getElementType());
  StoreOp::create(builder_, loc_, stored, operand(view), indices);
}

void KernelBuilder::clone(Operation* op, IRMapping& mapping, Value rows) {
  builder_.clone(*op, mapping)->walk([&](Operation* copy) {
    if (auto valid = dyn_cast<ValidOp>(copy)) valid.getRowsMutable().assign(rows);
    if (auto count = dyn_cast<CountOp>(copy)) count.getRowsMutable().assign(rows);
    if (auto index = dyn_cast<IndexOp>(copy)) index.getRowsMutable().assign(rows);
    if (auto neutral = dyn_cast<NeutralOp>(copy)) neutral.getRowsMutable().assign(rows);
    if (auto placed = dyn_cast<PlaceRowOp>(copy); placed && placed.getPick() == PickKind::LastValid)
      placed.getRowsMutable().assign(rows);
    if (auto row = dyn_cast<RowOp>(copy); row && row.getPick() == PickKind::LastValid)
      row.getRowsMutable().assign(rows);
  });
}

SmallVector<Value> KernelBuilder::drop_unused_arguments(ArrayRef<Value> operands) {
  Block& body = kernel_.getBody().front();
  for (Operation& op : llvm::make_early_inc_range(llvm::reverse(body)))
    if (isOpTriviallyDead(&op)) op.erase();
  unsigned axes = kernel_.getGrid().size();
  SmallVector<Value> kept;
  SmallVector<Attribute> names;
  BitVector unused(body.getNumArguments());
  for (auto [i, operand] : llvm::enumerate(operands)) {
    if (body.getArgument(axes + i).use_empty()) {
      unused.set(axes + i);
      continue;
    }
    kept.push_back(operand);
    names.push_back(kernel_.getArgNames()[i]);
  }
  body.eraseArguments(unused);
  kernel_.setFunctionType(builder_.getFunctionType(body.getArgumentTypes(), {}));
  kernel_.setArgNamesAttr(builder_.getArrayAttr(names));
  return kept;
}

}  // namespace latile
