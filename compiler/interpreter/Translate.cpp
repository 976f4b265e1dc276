// Values, memory and control flow; the ops are in TranslateOps.cpp, the scan in TranslateScan.cpp.
#include "compiler/interpreter/Translate.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Location.h"
#include "llvm/Support/raw_ostream.h"

namespace latile::interpreter {

std::pair<std::int64_t, std::int64_t> extents(mlir::Type type) {
  const auto tensor = mlir::dyn_cast<mlir::RankedTensorType>(type);
  if (!tensor || tensor.getRank() != 2) return {1, 1};
  return {tensor.getDimSize(0), tensor.getDimSize(1)};
}

std::string place_of(mlir::Operation* op) {
  std::string text;
  op->getLoc()->walk([&](mlir::Location location) {
    const auto file = mlir::dyn_cast<mlir::FileLineColLoc>(location);
    if (!file) return mlir::WalkResult::advance();
    text =
        file.getFilename().str() + ":" + std::to_string(file.getLine()) + ":" + std::to_string(file.getColumn()) + ": ";
    return mlir::WalkResult::interrupt();
  });
  return text + op->getName().getStringRef().str();
}

ElementType element_type(mlir::Type type) {
  type = mlir::getElementTypeOrSelf(type);
  if (type.isF32()) return ElementType::f32;
  if (type.isBF16()) return ElementType::bf16;
  if (type.isF16()) return ElementType::f16;
  if (type.isInteger(32)) return ElementType::i32;
  if (type.isInteger(64)) return ElementType::i64;
  return ElementType::f64;
}

Code Translator::finish() {
  code.arena = pool_.size();
  return std::move(code);
}

int Translator::place(mlir::Operation* at) {
  const auto [found, fresh] = places_.try_emplace(at, static_cast<int>(code.places.size()));
  if (fresh) code.places.push_back(place_of(at));
  return found->second;
}

Instruction& Translator::emit(Op op, mlir::Operation* at, std::initializer_list<int> registers) {
  auto& instruction = code.body.emplace_back();
  instruction.op = op;
  instruction.place = place(at);
  std::copy(registers.begin(), registers.end(), instruction.r);
  return instruction;
}

Instruction& Translator::emit_once(Op op, mlir::Operation* at) {
  auto& instruction = code.once.emplace_back();
  instruction.op = op;
  instruction.place = place(at);
  return instruction;
}

int Translator::integer(std::int64_t value, mlir::Operation* at) {
  const int result = new_register();
  auto& instruction = emit_once(Op::int_constant, at);
  instruction.r[0] = result;
  instruction.n = value;
  return result;
}

int Translator::integer(Op op, mlir::Operation* at, int a, int b, std::int64_t n) {
  const int result = new_register();
  emit(op, at, {result, a, b}).n = n;
  return result;
}

void Translator::unsupported(mlir::Operation* op, const std::string& why) {
  problems_.push_back(place_of(op) + " " + why);
}

ElementType Translator::precision(mlir::Type type) const {
  return float64_ || mlir::getElementTypeOrSelf(type).isInteger() ? ElementType::f64 : element_type(type);
}

Tile Translator::tile(mlir::Value value) {
  if (const auto found = tiles_.find(value); found != tiles_.end()) return found->second;
  // A constant of an enclosing region.
  if (auto* definition = value.getDefiningOp(); definition && constants(definition)) return tiles_.lookup(value);
  if (auto* definition = value.getDefiningOp()) unsupported(definition, "defines a value that is out of reach");
  const auto [rows, cols] = extents(value.getType());
  return Tile::dense(0, rows, cols);
}

int Translator::reg(mlir::Value value) {
  if (const auto found = registers_.find(value); found != registers_.end()) return found->second;
  if (auto* definition = value.getDefiningOp(); definition && constants(definition)) return registers_.lookup(value);
  if (auto* definition = value.getDefiningOp()) unsupported(definition, "defines a value that is out of reach");
  return 0;
}

int Translator::memory(mlir::Value value) {
  if (const auto found = memories_.find(value); found != memories_.end()) return found->second;
  problems_.push_back("a view is not an argument of its kernel");
  return 0;
}

void Translator::address(Instruction& access, mlir::Value view) {
  access.memory = memory(view);
  if (const auto found = columns_.find(view); found != columns_.end()) access.column = found->second;
  if (const auto found = row_blocks_.find(view); found != row_blocks_.end()) access.row = found->second;
}

Translator::Rows Translator::rows(mlir::Operation* op, mlir::Value operand) {
  if (operand) return rows_.lookup(operand);
  if (implicit_rows_) return *implicit_rows_;
  unsupported(op, "has no rows: it stands in a kernel and names none");
  return {0, 0, 0, 1};
}

std::int64_t Translator::rate(mlir::Operation* op, mlir::Value rows_operand, std::int64_t tile_rows) {
  const auto size = rows(op, rows_operand).size;
  return tile_rows % size == 0 && tile_rows >= size ? tile_rows / size : 1;
}

Tile Translator::place_value(mlir::Value value, bool pinned) {
  const auto [rows, cols] = extents(value.getType());
  const auto offset = pool_.allocate(rows * cols);
  storage_[value] = offset;
  if (pinned) pinned_.insert(value);
  return tiles_[value] = Tile::dense(offset, rows, cols);
}

Tile Translator::place_constant(mlir::Value value) {
  const auto [rows, cols] = extents(value.getType());
  pinned_.insert(value);
  storage_[value] = pool_.fresh(rows * cols);
  return tiles_[value] = Tile::dense(storage_[value], rows, cols);
}

Tile Translator::result(mlir::Value value, mlir::ValueRange reuse) {
  const auto [rows, cols] = extents(value.getType());
  auto* op = value.getDefiningOp();
  const auto found = preferred_.find(value);
  // A carry may be a row of what is made here: then its storage is too small.
  const bool fits = found != preferred_.end() && pool_.count(found->second) == rows * cols;
  const std::int64_t wanted = fits ? found->second : -1;
  const auto place = [&](std::int64_t offset) {
    storage_[value] = offset;
    return tiles_[value] = Tile::dense(offset, rows, cols);
  };
  const auto reusable = [&](mlir::Value operand) {
    const auto root = lifetimes_.root(operand);
    const auto stored = storage_.find(root);
    const Tile have = tile(operand);
    if (!pool_.reuses() || stored == storage_.end() || pinned_.contains(root) || stolen_.contains(root) ||
        !lifetimes_.dies(root, op) || have.rows != rows || have.cols != cols || !have.dense() ||
        have.offset != stored->second)
      return false;
    const auto [root_rows, root_cols] = extents(root.getType());
    // Another view of the same memory would read what was just written.
    return root_rows * root_cols == rows * cols && llvm::all_of(op->getOperands(), [&](mlir::Value other) {
             return other == operand || lifetimes_.root(other) != root;
           });
  };
  const auto steal = [&](mlir::Value operand) {
    const auto root = lifetimes_.root(operand);
    stolen_.insert(root);
    return place(storage_.lookup(root));
  };
  for (auto operand : reuse)
    if (wanted >= 0 && storage_.lookup(lifetimes_.root(operand)) == wanted && reusable(operand)) return steal(operand);
  if (wanted >= 0 && pool_.take(wanted)) return place(wanted);
  for (auto operand : reuse)
    if (reusable(operand)) return steal(operand);
  return place(pool_.allocate(rows * cols));
}

void Translator::release(mlir::Operation* at) {
  for (auto root : lifetimes_.dying(at))
    if (const auto found = storage_.find(root);
        found != storage_.end() && !pinned_.contains(root) && !stolen_.contains(root))
      pool_.release(found->second);
}

void Translator::copy_all(std::vector<Copy> copies, mlir::Operation* at) {
  std::erase_if(copies, [](const Copy& c) { return c.from.offset == c.to && c.from.dense(); });
  const auto overlaps = [](const Copy& from, const Copy& to) {
    const std::int64_t count = to.from.count();
    const Tile& t = from.from;
    const std::int64_t last = t.offset + (t.rows - 1) * t.row_stride + (t.cols - 1) * t.col_stride;
    return t.offset < to.to + count && last >= to.to;
  };
  std::vector<std::int64_t> lent;
  for (auto& copy : copies)
    if (llvm::any_of(copies, [&](const Copy& other) { return overlaps(copy, other); })) {
      const auto offset = pool_.allocate(copy.from.count());
      lent.push_back(offset);
      auto& instruction = emit(Op::copy, at);
      instruction.in[0] = copy.from;
      instruction.out = copy.from = Tile::dense(offset, copy.from.rows, copy.from.cols);
    }
  for (const auto& copy : copies) {
    auto& instruction = emit(Op::copy, at);
    instruction.in[0] = copy.from;
    instruction.out = Tile::dense(copy.to, copy.from.rows, copy.from.cols);
    instruction.round = copy.round;
  }
  for (auto offset : lent) pool_.release(offset);
}

void Translator::yield(mlir::ValueRange values, llvm::ArrayRef<mlir::Value> targets, mlir::Operation* at) {
  std::vector<Copy> copies;
  std::vector<std::pair<int, int>> moves;
  for (auto [value, target] : llvm::zip_equal(values, targets))
    if (registers_.contains(target))
      moves.emplace_back(reg(value), registers_.lookup(target));
    else
      copies.push_back({tile(value), storage_.lookup(target), ElementType::f64});
  copy_all(std::move(copies), at);
  if (moves.size() == 1) {
    emit(Op::int_copy, at, {moves[0].second, moves[0].first});
    return;
  }
  for (auto& [from, to] : moves) {
    const int kept = new_register();
    emit(Op::int_copy, at, {kept, from});
    from = kept;
  }
  for (auto [from, to] : moves) emit(Op::int_copy, at, {to, from});
}

void Translator::block(mlir::Block& block) {
  for (auto& next : block) {
    if (next.hasTrait<mlir::OpTrait::IsTerminator>()) return;  // whoever owns the region yields
    op(&next);
    release(&next);
  }
}

void Translator::loop(mlir::scf::ForOp loop) {
  auto* at = loop.getOperation();
  std::vector<mlir::Value> carried;
  for (auto [initial, argument, result] :
       llvm::zip_equal(loop.getInitArgs(), loop.getRegionIterArgs(), loop.getResults())) {
    carried.push_back(argument);
    if (!mlir::isa<mlir::FloatType>(mlir::getElementTypeOrSelf(argument.getType()))) {
      registers_[argument] = registers_[result] = new_register();
      emit(Op::int_copy, at, {registers_[argument], reg(initial)});
      continue;
    }
    const auto root = lifetimes_.root(initial);
    if (pool_.reuses() && root == initial && initial.hasOneUse() && storage_.contains(root) &&
        !pinned_.contains(root) && lifetimes_.dies(root, at)) {
      stolen_.insert(root);
      storage_[argument] = storage_.lookup(root);
      tiles_[argument] = tile(initial);
    } else {
      auto& copy = emit(Op::copy, at);
      copy.in[0] = tile(initial);
      copy.out = place_value(argument, false);
    }
    storage_[result] = storage_.lookup(argument);
    tiles_[result] = tiles_.lookup(argument);
  }
  auto* terminator = loop.getBody()->getTerminator();
  for (auto [value, argument] : llvm::zip_equal(terminator->getOperands(), carried))
    if (storage_.contains(argument)) preferred_[lifetimes_.root(value)] = storage_.lookup(argument);
  const int counter = new_register(), upper = reg(loop.getUpperBound()), step = reg(loop.getStep());
  registers_[loop.getInductionVar()] = counter;
  emit(Op::int_copy, at, {counter, reg(loop.getLowerBound())});
  const auto top = here();
  emit(Op::jump_unless_less, at, {counter, upper});
  block(*loop.getBody());
  reserve(carried);
  yield(terminator->getOperands(), carried, terminator);
  release(terminator);
  emit(Op::int_add, at, {counter, counter, step});
  emit(Op::jump, at).m = top;
  code.body[static_cast<std::size_t>(top)].m = here();
  reserve(carried);
}

void Translator::reserve(llvm::ArrayRef<mlir::Value> carried) {
  for (auto argument : carried)
    if (storage_.contains(argument)) pool_.take(storage_.lookup(argument));
}

void Translator::branch(mlir::scf::IfOp branch) {
  auto* at = branch.getOperation();
  std::vector<mlir::Value> results;
  for (auto result : branch.getResults()) {
    results.push_back(result);
    if (mlir::isa<mlir::FloatType>(mlir::getElementTypeOrSelf(result.getType())))
      place_value(result, false);
    else
      registers_[result] = new_register();
  }
  const auto side = [&](mlir::Block& body) {
    auto* terminator = body.getTerminator();
    block(body);
    yield(terminator->getOperands(), results, terminator);
    release(terminator);
  };
  const auto test = here();
  emit(Op::jump_unless, at, {reg(branch.getCondition())});
  side(*branch.thenBlock());
  if (branch.elseBlock()) {
    const auto over = here();
    emit(Op::jump, at);
    code.body[static_cast<std::size_t>(test)].m = here();
    side(*branch.elseBlock());
    code.body[static_cast<std::size_t>(over)].m = here();
  } else {
    code.body[static_cast<std::size_t>(test)].m = here();
  }
}

void Translator::conjugate_gradients(tile::SolveOp solve) {
  auto* at = solve.getOperation();
  auto& body = solve.getMap().front();
  const Tile x = result(solve.getTile());
  const Tile p = place_value(body.getArgument(0), true);
  const Tile r = Tile::dense(pool_.allocate(x.count()), x.rows, x.cols),
             rr = Tile::dense(pool_.allocate(x.rows), x.rows, 1);
  auto& begin = emit(Op::gradients_begin, at);
  begin.in[0] = tile(solve.getRhs()), begin.in[1] = r, begin.in[2] = p, begin.in[3] = rr;
  begin.out = x;
  const int counter = new_register(), one = integer(1, at),
            steps = integer(static_cast<std::int64_t>(solve.getSteps()), at);
  emit(Op::int_copy, at, {counter, integer(0, at)});
  const auto top = here();
  emit(Op::jump_unless_less, at, {counter, steps});
  block(body);
  auto* terminator = body.getTerminator();
  auto& step = emit(Op::gradients_step, at);
  step.in[0] = tile(terminator->getOperand(0)), step.in[1] = r, step.in[2] = p, step.in[3] = rr;
  step.out = x;
  release(terminator);
  emit(Op::int_add, at, {counter, counter, one});
  emit(Op::jump, at).m = top;
  code.body[static_cast<std::size_t>(top)].m = here();
  // The iterate is rounded once, at the end.
  auto& end = emit(Op::copy, at);
  end.in[0] = end.out = x;
  end.round = precision(solve.getTile().getType());
  for (auto offset : {p.offset, r.offset, rr.offset}) pool_.release(offset);
}

void Translator::bind_argument(mlir::Value argument, int number, mlir::Operation* at) {
  if (mlir::isa<tile::ViewType>(argument.getType())) {
    memories_[argument] = number;
  } else if (argument.getType().isF64()) {
    auto& load = emit(Op::scalar, at);
    load.memory = number;
    load.out = place_value(argument, false);
  }
}

void Translator::kernel(tile::KernelOp kernel) {
  auto* at = kernel.getOperation();
  const auto axes = kernel.getGrid().size();
  for (auto axis : kernel.getGrid()) code.grid.push_back(mlir::cast<mlir::StringAttr>(axis).str());
  if (auto slices = kernel->getAttrOfType<mlir::IntegerAttr>("slices")) code.slices = slices.getInt();
  code.registers = static_cast<int>(axes);
  auto& body = kernel.getBody().front();
  for (auto argument : body.getArguments()) {
    const auto number = argument.getArgNumber();
    if (number < axes)
      registers_[argument] = static_cast<int>(number);
    else
      bind_argument(argument, static_cast<int>(number - axes), at);
  }
  kernel.walk([&](tile::ChunkOp chunk) {
    if (const auto argument = mlir::dyn_cast<mlir::BlockArgument>(chunk.getC());
        argument && argument.getOwner() == &body && argument.getArgNumber() < axes &&
        code.grid[argument.getArgNumber()] == "chunks")
      code.chunk = static_cast<std::int64_t>(chunk.getSize());
  });
  block(body);
}

Code translate(tile::KernelOp kernel, const InterpreterOptions& options, std::vector<std::string>& problems) {
  Translator translator(kernel.getBody(), options, problems);
  translator.kernel(kernel);
  return translator.finish();
}

Code translate(tile::ScanOp scan, const InterpreterOptions& options, std::vector<std::string>& problems) {
  Translator translator(scan.getBody(), options, problems);
  translator.scan(scan);
  return translator.finish();
}

}  // namespace latile::interpreter
