// The tile dialect's own primitives.
#include "compiler/interpreter/Translate.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/TypeSwitch.h"

namespace latile::interpreter {
namespace {

/// What a primitive's instruction needs beyond its operands and result.
struct Made {
  Op op = Op::copy;
  std::int64_t n = 0, m = 0;
  double value = 0;
  mlir::Value reuse{};     ///< an operand whose memory the result may take
  bool count = false;      ///< r0 is the count of valid rows,
  mlir::Value rows{};      ///< of these or the region's own,
  mlir::Value sized{};     ///< whose rows a token are those of this tile,
  bool rate_in_m = false;  ///< in m instead of n
  bool number = false;     ///< r0 is the chunk's number
};

template <class Mask> std::int64_t kind(Mask op) { return static_cast<std::int64_t>(op.getKind()); }
template <class Stair> std::int64_t stair(Stair op) { return static_cast<std::int64_t>(op.getStair()); }

Made positions(mlir::Operation* op) {
  return llvm::TypeSwitch<mlir::Operation*, Made>(op)
      .Case([](tile::ValidOp op) {
        return Made{.op = Op::valid, .count = true, .rows = op.getRows(), .sized = op.getTile()};
      })
      .Case([](tile::CountOp op) { return Made{.op = Op::from_integer, .count = true, .rows = op.getRows()}; })
      .Case([](tile::IndexOp op) { return Made{.op = Op::from_integer, .rows = op.getRows(), .number = true}; })
      .Case([](tile::NeutralOp op) {
        return Made{.op = Op::neutral,
                    .n = static_cast<std::int64_t>(op.getRate()),
                    .value = op.getValue().convertToDouble(),
                    .reuse = op.getX(),
                    .count = true,
                    .rows = op.getRows()};
      })
      // Fixed rows are views.
      .Case([](tile::RowOp op) {
        return Made{.op = Op::last_valid, .count = true, .rows = op.getRows(), .sized = op.getX()};
      })
      .Case([](tile::PlaceRowOp op) {
        if (op.getPick() == tile::PickKind::LastValid)
          return Made{.op = Op::place_row,
                      .n = -1,
                      .count = true,
                      .rows = op.getRows(),
                      .sized = op.getTile(),
                      .rate_in_m = true};
        const auto rows = op.getTile().getType().getDimSize(0);
        return Made{.op = Op::place_row,
                    .n = op.getPick() == tile::PickKind::Last ? rows - 1 : static_cast<std::int64_t>(op.getAt())};
      })
      .Default(Made{});
}

Made recurrences(mlir::Operation* op) {
  return llvm::TypeSwitch<mlir::Operation*, Made>(op)
      .Case([](tile::CumsumOp op) {
        return Made{.op = Op::cumsum, .n = op.getExclusive(), .m = op.getReverse(), .reuse = op.getX()};
      })
      .Case([](tile::CummaxOp) { return Made{.op = Op::running_maximum}; })
      .Case([](tile::LogcumsumexpOp) { return Made{.op = Op::running_logsumexp}; })
      .Case([](tile::AffineScanOp op) { return Made{.op = Op::affine_scan, .n = op.getReverse()}; })
      .Case([](tile::PrevOp op) { return Made{.op = Op::shift_rows, .n = op.getReverse()}; })
      .Case([](tile::DecayOp op) { return Made{.op = Op::decay, .n = kind(op), .m = stair(op)}; })
      .Case([](tile::DecayedScoresOp op) { return Made{.op = Op::decayed_scores, .n = kind(op), .m = stair(op)}; })
      .Case([](tile::DecayedApplyOp op) {
        return Made{
            .op = op.getTransposed() ? Op::decayed_apply_transposed : Op::decayed_apply, .n = kind(op), .m = stair(op)};
      })
      .Case([](tile::InverseUnitLowerOp) { return Made{.op = Op::inverse}; })
      .Case([](tile::SolveUnitLowerOp op) { return Made{.op = Op::solve, .reuse = op.getB()}; })
      .Default(Made{});
}

/// `known` is false when the op is none of these.
Made primitive(mlir::Operation* op, bool& known) {
  known = true;
  if (mlir::isa<tile::ValidOp, tile::CountOp, tile::IndexOp, tile::NeutralOp, tile::RowOp, tile::PlaceRowOp>(op))
    return positions(op);
  if (const auto made = recurrences(op); made.op != Op::copy) return made;
  return llvm::TypeSwitch<mlir::Operation*, Made>(op)
      .Case([](tile::SplatOp) { return Made{}; })
      .Case(
          [](tile::RepeatRowsOp op) { return Made{.op = Op::repeat_rows, .n = static_cast<std::int64_t>(op.getN())}; })
      .Case([](tile::SumRowsOp op) { return Made{.op = Op::sum_rows, .n = static_cast<std::int64_t>(op.getN())}; })
      .Case([](tile::MaskOp op) { return Made{.op = Op::mask, .n = kind(op), .m = stair(op), .reuse = op.getX()}; })
      .Case([](tile::DiagonalOp) { return Made{.op = Op::diagonal}; })
      .Case([](tile::LookupOp op) {
        return Made{.op = Op::lookup, .n = (op.getTransposed() ? 1 : 0) + (op.getFrom() ? 2 : 0)};
      })
      .Case([](tile::ReduceOp op) {
        return Made{.op = Op::reduce, .n = kind(op), .m = static_cast<std::int64_t>(op.getAxis())};
      })
      .Case([](tile::DotOp) { return Made{.op = Op::dot}; })
      .Case([](tile::KronRowsOp op) { return Made{.op = Op::kron_rows, .n = op.getY() ? 1 : 0}; })
      .Case([](tile::ContractKronOp) { return Made{.op = Op::contract_kron}; })
      .Default([&](mlir::Operation*) {
        known = false;
        return Made{};
      });
}

}  // namespace

bool Translator::tiles(mlir::Operation* op) {
  if (auto pick = mlir::dyn_cast<tile::PickColumnsOp>(op)) {
    const Tile from = tile(pick.getX());
    const Tile to = result(pick.getTile());
    auto& instruction = emit(Op::pick_columns, op, {reg(pick.getAt())});
    instruction.in[0] = from;
    instruction.out = to;
    return true;
  }
  bool known = false;
  const auto made = primitive(op, known);
  if (!known) return false;
  Instruction instruction;
  instruction.op = made.op;
  instruction.n = made.n;
  instruction.m = made.m;
  instruction.value = made.value;
  if (made.count || made.number) {
    const auto rows_here = rows(op, made.rows);
    instruction.r[0] = made.number ? rows_here.number : rows_here.count;
    if (made.sized)
      (made.rate_in_m ? instruction.m : instruction.n) = rate(op, made.rows, extents(made.sized.getType()).first);
  }
  int number = 0;
  for (auto operand : op->getOperands())
    if (!mlir::isa<tile::RowsType>(operand.getType())) instruction.in[number++] = tile(operand);
  const auto value = op->getResult(0);
  instruction.out = made.reuse ? result(value, made.reuse) : result(value);
  instruction.round = precision(value.getType());
  instruction.place = place(op);
  code.body.push_back(instruction);
  return true;
}

void Translator::custom(tile::CustomOp custom) {
  auto& body = custom.getForward().front();
  auto* terminator = body.getTerminator();
  tiles_[body.getArgument(0)] = tile(custom.getX());
  block(body);
  auto& copy = emit(Op::copy, custom);
  copy.in[0] = tile(terminator->getOperand(0));
  copy.out = result(custom.getTile());
  release(terminator);
}

}  // namespace latile::interpreter
