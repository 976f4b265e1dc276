// One op, one instruction (or none, for a view).
#include "compiler/interpreter/Translate.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/StringMap.h"

namespace latile::interpreter {
namespace {

const llvm::StringMap<Op>& element_wise_ops() {
  static const llvm::StringMap<Op> ops = {
      {"arith.negf", Op::negate}, {"math.absf", Op::absolute},     {"math.exp", Op::exp},
      {"math.exp2", Op::exp2},    {"math.log", Op::log},           {"math.log2", Op::log2},
      {"math.floor", Op::floor},  {"math.sqrt", Op::sqrt},         {"math.rsqrt", Op::rsqrt},
      {"math.tanh", Op::tanh},    {"tile.sigmoid", Op::sigmoid},   {"tile.softplus", Op::softplus},
      {"arith.addf", Op::add},    {"arith.subf", Op::subtract},    {"arith.mulf", Op::multiply},
      {"arith.divf", Op::divide}, {"arith.maximumf", Op::maximum}, {"arith.minimumf", Op::minimum},
      {"math.fma", Op::fma},      {"tile.cast", Op::copy},         {"tile.convert_layout", Op::copy},
      {"arith.truncf", Op::copy}, {"arith.extf", Op::copy},
  };
  return ops;
}

const llvm::StringMap<Op>& integer_ops() {
  static const llvm::StringMap<Op> ops = {
      {"arith.addi", Op::int_add},
      {"arith.subi", Op::int_subtract},
      {"arith.muli", Op::int_multiply},
      {"arith.divsi", Op::int_divide},
      {"arith.ceildivsi", Op::int_ceil_divide},
      {"arith.remsi", Op::int_remainder},
      {"arith.minsi", Op::int_minimum},
      {"arith.maxsi", Op::int_maximum},
      {"arith.andi", Op::int_and},
      {"arith.ori", Op::int_or},
      {"arith.xori", Op::int_xor},
      {"arith.cmpi", Op::int_compare},
      {"arith.index_cast", Op::int_copy},
      {"arith.extsi", Op::int_copy},
      {"arith.extui", Op::int_copy},
      {"arith.trunci", Op::int_copy},
  };
  return ops;
}

bool scalar_integer(mlir::Type type) { return mlir::isa<mlir::IntegerType, mlir::IndexType>(type); }

}  // namespace

void Translator::op(mlir::Operation* op) {
  if (auto source = viewed(op, float64_)) return view(op, source);
  if (auto inner = mlir::dyn_cast<mlir::scf::ForOp>(op)) return loop(inner);
  if (auto inner = mlir::dyn_cast<mlir::scf::IfOp>(op)) return branch(inner);
  if (auto inner = mlir::dyn_cast<tile::SolveOp>(op)) return conjugate_gradients(inner);
  if (auto inner = mlir::dyn_cast<tile::CustomOp>(op)) return custom(inner);
  if (constants(op) || element_wise(op) || integers(op) || tiles(op) || positions(op) || accesses(op)) return;
  unsupported(op);
}

void Translator::view(mlir::Operation* op, mlir::Value source) {
  Tile from = tile(source);
  const auto [rows, cols] = extents(op->getResult(0).getType());
  if (mlir::isa<tile::TransposeOp>(op)) {
    std::swap(from.row_stride, from.col_stride);
  } else if (auto row = mlir::dyn_cast<tile::RowOp>(op)) {
    const auto number = row.getPick() == tile::PickKind::Last ? from.rows - 1 : static_cast<std::int64_t>(row.getAt());
    from.offset += number * from.row_stride;
  } else {
    if (from.rows == 1 && rows != 1) from.row_stride = 0;
    if (from.cols == 1 && cols != 1) from.col_stride = 0;
  }
  from.rows = rows;
  from.cols = cols;
  tiles_[op->getResult(0)] = from;
}

bool Translator::constants(mlir::Operation* op) {
  double value = 0;
  if (auto constant = mlir::dyn_cast<tile::ConstantOp>(op)) {
    value = constant.getValue().convertToDouble();
  } else if (auto constant = mlir::dyn_cast<mlir::arith::ConstantOp>(op)) {
    const mlir::Attribute attribute = constant.getValue();
    if (const auto number = mlir::dyn_cast<mlir::IntegerAttr>(attribute)) {
      registers_[constant] = integer(
          number.getType().isInteger(1) ? static_cast<std::int64_t>(number.getValue().getZExtValue()) : number.getInt(),
          op);
      return true;
    }
    const auto wide = [](llvm::APFloat number) {
      bool inexact = false;
      number.convert(llvm::APFloat::IEEEdouble(), llvm::APFloat::rmNearestTiesToEven, &inexact);
      return number.convertToDouble();
    };
    if (const auto number = mlir::dyn_cast<mlir::FloatAttr>(attribute)) {
      value = wide(number.getValue());
    } else if (const auto dense = mlir::dyn_cast<mlir::DenseFPElementsAttr>(attribute)) {
      const Tile whole = place_constant(constant);
      std::int64_t at = 0;
      for (const auto& number : dense.getValues<llvm::APFloat>()) {
        auto& fill = emit_once(Op::fill, op);
        fill.value = wide(number);
        if (dense.isSplat()) {
          fill.out = whole;
          break;
        }
        fill.out = Tile::dense(whole.offset + at++, 1, 1);
      }
      return true;
    } else {
      return false;
    }
  } else {
    return false;
  }
  auto& fill = emit_once(Op::fill, op);
  fill.out = place_constant(op->getResult(0));
  fill.value = value;
  fill.round = precision(op->getResult(0).getType());
  return true;
}

void Translator::select(mlir::Operation* op) {
  auto choice = mlir::cast<mlir::arith::SelectOp>(op);
  const auto value = choice.getResult();
  if (scalar_integer(value.getType())) {
    registers_[value] = new_register();
    emit(Op::int_select, op,
         {registers_[value], reg(choice.getCondition()), reg(choice.getTrueValue()), reg(choice.getFalseValue())});
    return;
  }
  const bool whole = scalar_integer(choice.getCondition().getType());
  Tile sources[3] = {whole ? Tile() : tile(choice.getCondition()), tile(choice.getTrueValue()),
                     tile(choice.getFalseValue())};
  const Tile target = result(value, {choice.getTrueValue(), choice.getFalseValue()});
  auto& instruction = emit(whole ? Op::select_whole : Op::select, op);
  if (whole) instruction.r[0] = reg(choice.getCondition());
  std::copy(whole ? sources + 1 : sources, sources + 3, instruction.in);
  instruction.out = target;
}

bool Translator::element_wise(mlir::Operation* op) {
  if (mlir::isa<mlir::arith::SelectOp>(op)) return select(op), true;
  const auto name = op->getName().getStringRef();
  const bool compares = name == "arith.cmpf";
  const auto found = element_wise_ops().find(name);
  if (!compares && found == element_wise_ops().end()) return false;
  const auto value = op->getResult(0);
  if (compares && !mlir::isa<mlir::RankedTensorType>(value.getType())) return false;
  Tile sources[3];
  for (auto [operand, source] : llvm::zip(op->getOperands(), sources)) source = tile(operand);
  const Tile target = result(value, op->getOperands());
  auto& instruction = emit(compares ? Op::compare : found->second, op);
  std::copy(std::begin(sources), std::end(sources), instruction.in);
  instruction.out = target;
  instruction.round = precision(value.getType());
  if (compares) {
    // As bits, equal 1, greater 2, less 4, unordered 8: the predicates are numbered so only up to `ord`.
    static constexpr std::int64_t holds[] = {0, 1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13, 14, 8, 15};
    instruction.n = holds[static_cast<std::size_t>(mlir::cast<mlir::arith::CmpFOp>(op).getPredicate())];
  }
  return true;
}

bool Translator::integers(mlir::Operation* op) {
  const auto found = integer_ops().find(op->getName().getStringRef());
  if (found == integer_ops().end() || !scalar_integer(op->getResult(0).getType())) {
    if (!mlir::isa<mlir::arith::SIToFPOp, mlir::arith::UIToFPOp>(op) || !scalar_integer(op->getOperand(0).getType()))
      return false;
    const Tile target = result(op->getResult(0));
    auto& instruction = emit(Op::from_integer, op, {reg(op->getOperand(0))});
    instruction.out = target;
    instruction.round = precision(op->getResult(0).getType());
    return true;
  }
  const int target = registers_[op->getResult(0)] = new_register();
  const int a = reg(op->getOperand(0)), b = op->getNumOperands() > 1 ? reg(op->getOperand(1)) : -1;
  auto& instruction = emit(found->second, op, {target, a, b});
  if (auto compare = mlir::dyn_cast<mlir::arith::CmpIOp>(op))
    instruction.n = static_cast<std::int64_t>(compare.getPredicate());
  return true;
}

bool Translator::positions(mlir::Operation* op) {
  const auto define = [&](mlir::Value value) { return registers_[value] = new_register(); };
  if (auto sequence = mlir::dyn_cast<tile::SequenceOp>(op)) {
    const int b = define(sequence.getBatch()), begin = define(sequence.getBegin()), end = define(sequence.getEnd());
    emit(Op::sequence, op, {b, begin, end, reg(sequence.getN())});
  } else if (auto chunk = mlir::dyn_cast<tile::ChunkOp>(op)) {
    const int n = define(chunk.getN()), b = define(chunk.getBatch()), begin = define(chunk.getBegin());
    const int position = define(chunk.getPosition()), end = define(chunk.getEnd());
    emit(Op::chunk, op, {n, b, begin, position, end, reg(chunk.getC())}).m = static_cast<std::int64_t>(chunk.getSize());
  } else if (auto begin = mlir::dyn_cast<tile::ChunkBeginOp>(op)) {
    const int c = define(begin.getC());
    emit(Op::chunk_begin, op, {c, reg(begin.getN())}).m = static_cast<std::int64_t>(begin.getSize());
  } else if (auto rows = mlir::dyn_cast<tile::RowsOp>(op)) {
    const auto size = mlir::cast<tile::RowsType>(rows.getRows().getType()).getSize();
    const Rows made{new_register(), new_register(), new_register(), size, rows.getReversed()};
    auto& instruction =
        emit(Op::rows, op,
             {made.first, made.count, made.number, reg(rows.getBegin()), reg(rows.getPosition()), reg(rows.getEnd())});
    instruction.m = size;
    instruction.n = made.reversed;
    rows_[rows.getRows()] = made;
    if (const auto back = static_cast<std::int64_t>(rows.getBack()); back != 0) {
      const int zero = integer(0, op), moved = integer(back, op), most = integer(size, op);
      const int first = integer(Op::int_subtract, op, reg(rows.getPosition()), moved);
      const int left = integer(Op::int_subtract, op, reg(rows.getEnd()), first);
      const int count = integer(Op::int_maximum, op, integer(Op::int_minimum, op, left, most), zero);
      const int before = integer(Op::int_maximum, op, integer(Op::int_subtract, op, reg(rows.getBegin()), first), zero);
      if (made.reversed) return unsupported(op, "goes back in reversed rows"), true;
      rows_[rows.getRows()] = {first, count, made.number, size, false, before};
    }
  } else if (auto head = mlir::dyn_cast<tile::HeadOp>(op)) {
    const int coarse = define(head.getCoarse());
    auto& instruction = emit(Op::head, op, {coarse, reg(head.getFine())});
    instruction.n = static_cast<std::int64_t>(head.getRatio());
    instruction.m = head.getMap() == tile::HeadMap::Tiled ? 1 : 0;
  } else if (auto member = mlir::dyn_cast<tile::MemberOp>(op)) {
    const int fine = define(member.getFine());
    auto& instruction = emit(Op::member, op, {fine, reg(member.getNumber()), reg(member.getCoarse())});
    instruction.n = static_cast<std::int64_t>(member.getRatio());
    instruction.m = member.getMap() == tile::HeadMap::Tiled ? 1 : 0;
  } else if (auto slot = mlir::dyn_cast<tile::SlotOp>(op)) {
    const int target = define(slot.getSlot());
    auto& instruction = emit(Op::slot, op, {target, reg(slot.getN())});
    if (slot.getM()) instruction.r[2] = reg(slot.getM());
    instruction.memory = memory(slot.getView());
  } else {
    return false;
  }
  return true;
}

bool Translator::accesses(mlir::Operation* op) {
  if (mlir::isa<tile::ColumnsOp, tile::RowBlockOp>(op)) {
    const mlir::Value from = op->getOperand(0), part = op->getResult(0);
    memories_[part] = memory(from);
    for (auto* starts : {&columns_, &row_blocks_})
      if (const auto found = starts->find(from); found != starts->end()) starts->insert({part, found->second});
    auto& starts = mlir::isa<tile::ColumnsOp>(op) ? columns_ : row_blocks_;
    const auto found = starts.find(part);
    const int at = reg(op->getOperand(1));
    starts[part] = found == starts.end() ? at : integer(Op::int_add, op, found->second, at);
    return true;
  }
  if (auto scratch = mlir::dyn_cast<tile::ScratchOp>(op)) {
    memories_[scratch.getView()] = -2 - static_cast<int>(code.scratch.size());
    const auto view = scratch.getView().getType();
    code.scratch.push_back({view.getShape().vec(), float64_ ? ElementType::f64 : element_type(view.getElementType())});
    return true;
  }
  if (auto load = mlir::dyn_cast<tile::LoadOp>(op)) {
    const Tile target = result(load.getTile());
    auto& instruction = emit(Op::load, op);
    address(instruction, load.getView());
    instruction.out = target;
    for (auto [number, index] : llvm::enumerate(load.getIndices())) instruction.r[number] = reg(index);
    instruction.n = static_cast<std::int64_t>(load.getIndices().size());
  } else if (auto store = mlir::dyn_cast<tile::StoreOp>(op)) {
    auto& instruction = emit(Op::store, op);
    address(instruction, store.getView());
    instruction.in[0] = tile(store.getTile());
    for (auto [number, index] : llvm::enumerate(store.getIndices())) instruction.r[number] = reg(index);
    instruction.n = static_cast<std::int64_t>(store.getIndices().size());
  } else if (auto load = mlir::dyn_cast<tile::LoadRowsOp>(op)) {
    const Tile target = result(load.getTile());
    const auto from = rows(op, load.getRows());
    auto& instruction = emit(Op::load_rows, op, {reg(load.getBatch()), from.first, from.count});
    if (load.getHead()) instruction.r[3] = reg(load.getHead());
    instruction.r[4] = from.before;
    address(instruction, load.getView());
    instruction.out = target;
    instruction.n = static_cast<std::int64_t>(load.getRate());
    instruction.m = from.reversed;
  } else if (auto store = mlir::dyn_cast<tile::StoreRowsOp>(op)) {
    const auto to = rows(op, store.getRows());
    auto& instruction = emit(Op::store_rows, op, {reg(store.getBatch()), to.first, to.count});
    if (store.getHead()) instruction.r[3] = reg(store.getHead());
    instruction.r[4] = to.before;
    address(instruction, store.getView());
    instruction.in[0] = tile(store.getTile());
    instruction.n = rate(op, store.getRows(), instruction.in[0].rows);
    instruction.m = to.reversed;
  } else {
    return false;
  }
  return true;
}

}  // namespace latile::interpreter
