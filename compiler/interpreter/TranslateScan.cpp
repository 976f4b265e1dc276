// The scan: what its region leaves unsaid (positions, loads, stores, slots, the carry) as instructions.
#include "compiler/interpreter/Translate.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/BuiltinTypes.h"

namespace latile::interpreter {

void Translator::scan(tile::ScanOp scan) {
  auto* at = scan.getOperation();
  auto& body = scan.getBody().front();
  auto* terminator = body.getTerminator();
  const auto inputs = scan.getInputs().size(), carries = scan.getCarries().size(), outputs = scan.getOutputs().size();
  const auto axis = scan.getAxis();
  const auto size = static_cast<std::int64_t>(scan.getChunk()), ratio = static_cast<std::int64_t>(scan.getHeadRatio());
  const bool tiled = scan.getHeadMap() == tile::HeadMap::Tiled;
  const auto program = at->getParentOfType<tile::ProgramOp>();
  const bool step = program && program->hasAttr("step");
  for (auto [number, operand] : llvm::enumerate(scan->getOperands()))
    if (mlir::isa<tile::ViewType>(operand.getType())) memories_[operand] = static_cast<int>(number);

  code.grid = {"N", axis.str()};
  code.registers = 2;
  const int n = 0, fine = 1;
  const int zero = integer(0, at), one = integer(1, at), chunk = integer(size, at);
  const int coarse = new_register();
  auto& head = emit(Op::head, at, {coarse, fine});
  head.n = ratio;
  head.m = tiled ? 1 : 0;
  const auto head_of = [&](mlir::Attribute axis_of) {
    const auto name = mlir::cast<mlir::StringAttr>(axis_of).getValue();
    return name.empty() ? -1 : name == axis ? fine : coarse;
  };
  const int batch = new_register(), begin = new_register(), end = new_register(), position = new_register();
  emit(Op::sequence, at, {batch, begin, end, n});
  const Rows rows{new_register(), new_register(), new_register(), size, scan.getReversed()};
  implicit_rows_ = rows;
  const auto find_rows = [&](int from) {
    auto& instruction = emit(Op::rows, at, {rows.first, rows.count, rows.number, begin, from, end});
    instruction.m = size;
    instruction.n = rows.reversed;
  };

  const auto access = [&](Op op, mlir::Value view, std::initializer_list<int> indices) -> Instruction& {
    auto& instruction = emit(op, at);
    instruction.memory = memory(view);
    for (int index : indices)
      if (index >= 0) instruction.r[instruction.n++] = index;
    return instruction;
  };
  const auto store_rows = [&](std::size_t output, const Tile& tile) {
    auto& store = emit(Op::store_rows, at, {batch, rows.first, rows.count, head_of(scan.getWriteHeads()[output])});
    store.memory = memory(scan.getOutputs()[output]);
    store.in[0] = tile;
    store.n = rate(at, {}, tile.rows);
    store.m = rows.reversed;
  };
  const auto slot = [&](mlir::Value index, int column = -1) {
    if (!index) return n;
    const int found = new_register();
    emit(Op::slot, at, {found, n, column}).memory = memory(index);
    return found;
  };
  const int last_accepted = scan.getAccepted() ? integer(Op::int_subtract, at, slot(scan.getAccepted()), one) : -1;

  std::vector<int> from, to;
  for (unsigned carry = 0; carry < carries; ++carry) {
    from.push_back(slot(scan.initialIndexOf(carry), last_accepted));
    to.push_back(slot(scan.finalIndexOf(carry)));
  }
  std::int64_t skip = -1;
  if (step && scan.showsAbsence()) {
    // A sequence without slots: its row becomes 0 and nothing else is touched.
    int absent = one;
    for (unsigned carry = 0; carry < carries; ++carry)
      for (int which : {from[carry], scan.finalOf(carry) ? to[carry] : from[carry]})
        absent = integer(
            Op::int_and, at, absent,
            integer(Op::int_compare, at, which, zero, static_cast<std::int64_t>(mlir::arith::CmpIPredicate::slt)));
    const auto present = here();
    emit(Op::jump_unless, at, {absent});
    find_rows(begin);
    for (std::size_t output = 0; output < outputs; ++output) {
      const auto [r, c] = extents(terminator->getOperand(static_cast<unsigned>(output)).getType());
      const Tile zeros = Tile::dense(pool_.allocate(r * c), r, c);
      emit(Op::fill, at).out = zeros;
      store_rows(output, zeros);
      pool_.release(zeros.offset);
    }
    skip = here();
    emit(Op::jump, at);
    code.body[static_cast<std::size_t>(present)].m = here();
  }

  // Parameters and scalars stay for the whole loop.
  for (std::size_t input = 0; input < inputs; ++input) {
    const auto operand = scan.getInputs()[input];
    const auto argument = body.getArgument(static_cast<unsigned>(input));
    if (scan.getRates()[input] != 0) continue;
    if (mlir::isa<tile::ViewType>(operand.getType())) {
      access(Op::load, operand, {head_of(scan.getReadHeads()[input])}).out = place_value(argument, true);
    } else {
      auto& load = emit(Op::scalar, at);
      load.memory = static_cast<int>(input) + 1;  // operand 0 is the sequences
      load.out = place_value(argument, true);
      load.round = precision(argument.getType());
    }
  }
  std::vector<mlir::Value> carried;
  for (unsigned carry = 0; carry < carries; ++carry) {
    const auto argument = body.getArgument(static_cast<unsigned>(inputs) + carry);
    const Tile tile = place_value(argument, false);
    carried.push_back(argument);
    preferred_[lifetimes_.root(terminator->getOperand(static_cast<unsigned>(outputs) + carry))] = tile.offset;
    if (const auto initial = scan.initialOf(carry))
      access(Op::load, initial, {from[carry], head_of(scan.getCarryHeads()[carry])}).out = tile;
    else
      emit(Op::fill, at).out = tile;
  }

  const auto compare = [&](mlir::arith::CmpIPredicate how, int a, int b) {
    return integer(Op::int_compare, at, a, b, static_cast<std::int64_t>(how));
  };
  const auto store_state = [&](unsigned carry, mlir::Value view, int to_slot) {
    const int which = head_of(scan.getCarryHeads()[carry]);
    std::int64_t others = -1;
    if (which == coarse) {
      // Every fine head of the group holds the same carry; the first writes it.
      const int first = tiled ? coarse : integer(Op::int_multiply, at, coarse, integer(ratio, at));
      const int writes = compare(mlir::arith::CmpIPredicate::eq, first, fine);
      others = here();
      emit(Op::jump_unless, at, {writes});
    }
    access(Op::store, view, {to_slot, which}).in[0] = tiles_.lookup(carried[carry]);
    if (others >= 0) code.body[static_cast<std::size_t>(others)].m = here();
  };
  // What the carry is once a whole number of chunks is done; after a partial one `position` lies past the end.
  const auto store_history = [&](unsigned carry) {
    const int every = integer(scan.everyOf(carry), at), done = integer(Op::int_subtract, at, position, begin);
    const int number = integer(Op::int_divide, at, done, every), rest = integer(Op::int_remainder, at, done, every);
    const int keeps = integer(Op::int_and, at, compare(mlir::arith::CmpIPredicate::sle, position, end),
                              compare(mlir::arith::CmpIPredicate::eq, rest, zero));
    const auto skips = here();
    emit(Op::jump_unless, at, {keeps});
    store_state(carry, scan.historyOf(carry),
                slot(scan.historyIndexOf(carry), integer(Op::int_subtract, at, number, one)));
    code.body[static_cast<std::size_t>(skips)].m = here();
  };

  emit(Op::int_copy, at, {position, begin});
  const auto top = here();
  emit(Op::jump_unless_less, at, {position, end});
  find_rows(position);
  for (std::size_t input = 0; input < inputs; ++input) {
    if (scan.getRates()[input] == 0) continue;
    auto& load = emit(Op::load_rows, at, {batch, rows.first, rows.count, head_of(scan.getReadHeads()[input])});
    load.memory = memory(scan.getInputs()[input]);
    load.n = scan.getRates()[input];
    load.m = rows.reversed;
    load.out = place_value(body.getArgument(static_cast<unsigned>(input)), false);
  }
  block(body);
  for (std::size_t output = 0; output < outputs; ++output)
    store_rows(output, tile(terminator->getOperand(static_cast<unsigned>(output))));
  reserve(carried);
  yield(terminator->getOperands().drop_front(outputs), carried, terminator);
  emit(Op::int_add, at, {position, position, chunk});
  for (unsigned carry = 0; carry < carries; ++carry)
    if (scan.everyOf(carry) != 0) store_history(carry);
  emit(Op::jump, at).m = top;
  code.body[static_cast<std::size_t>(top)].m = here();

  for (unsigned carry = 0; carry < carries; ++carry)
    if (const auto final = scan.finalOf(carry)) store_state(carry, final, to[carry]);
  if (skip >= 0) code.body[static_cast<std::size_t>(skip)].m = here();
}

}  // namespace latile::interpreter
