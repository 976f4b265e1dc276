// The rules that layouts of a kernel keep.
#include "codegen/simt/AssignLayouts.h"
#include "codegen/simt/Fragments.h"
#include "codegen/simt/Orient.h"

using namespace mlir;

namespace latile::simt {

using namespace tile;

namespace {

class Verifier {
public:
  Verifier(KernelOp kernel, const Target& target) : kernel_(kernel), target_(target) {
    if (auto threads = kernel->getAttrOfType<IntegerAttr>("threads")) threads_ = static_cast<int>(threads.getInt());
  }

  LogicalResult run() {
    if (threads_ < target_.lanes || threads_ > target_.most_threads || threads_ % target_.lanes)
      return kernel_.emitOpError() << "has " << threads_ << " threads; a block of " << target_.name << " has warps of "
                                   << target_.lanes << ", at most " << target_.most_threads << " threads in all";
    auto result = kernel_.walk([&](Operation* op) {
      for (Region& region : op->getRegions())
        for (Block& block : region)
          for (Value v : block.getArguments())
            if (failed(value(op, v))) return WalkResult::interrupt();
      for (Value v : op->getResults())
        if (failed(value(op, v))) return WalkResult::interrupt();
      return failed(operation(op)) ? WalkResult::interrupt() : WalkResult::advance();
    });
    return failure(result.wasInterrupted());
  }

private:
  LogicalResult value(Operation* op, Value v) {
    auto type = dyn_cast<RankedTensorType>(v.getType());
    if (!type) return success();
    auto layout = layout_of(type);
    if (!layout) return op->emitOpError() << "a tile in a kernel with layouts has none: " << type;
    if (layout->lanes() != target_.lanes || layout->threads() != threads_)
      return op->emitOpError() << "a layout of " << layout->warps() << " warps of " << layout->lanes()
                               << " lanes in a block of " << threads_ / target_.lanes << " warps of " << target_.lanes;
    if (!layout->separable()) return op->emitOpError() << "a register layout moves each bit along one axis";
    Place shape = layout->shape();
    std::int64_t rows = type.getDimSize(0), columns = type.getDimSize(1);
    auto fits = [](std::int64_t padded, std::int64_t extent) {
      return padded >= extent && padded < 2 * std::max<std::int64_t>(extent, 16);
    };
    if (!fits(shape.row, rows) || !fits(shape.column, columns))
      return op->emitOpError() << "a layout of " << shape.row << "x" << shape.column << " for a tile of " << rows << "x"
                               << columns;
    return success();
  }

  LogicalResult operation(Operation* op) {
    if (auto transpose = dyn_cast<TransposeOp>(op)) {
      if (layout_of(transpose.getX().getType())->transposed() == *layout_of(transpose.getTile().getType()))
        return success();
      return op->emitOpError() << "moves no data: the result's layout is the operand's, transposed";
    }
    if (auto broadcast = dyn_cast<BroadcastOp>(op)) {
      Layout slice = *layout_of(broadcast.getTile().getType());
      auto from = broadcast.getX().getType(), to = broadcast.getTile().getType();
      if (from.getDimSize(0) == 1 && to.getDimSize(0) > 1) slice = slice.slice(Axis::rows);
      if (from.getDimSize(1) == 1 && to.getDimSize(1) > 1) slice = slice.slice(Axis::columns);
      if (slice == *layout_of(from)) return success();
      return op->emitOpError() << "moves no data: the operand's layout is a slice of the result's";
    }
    if (auto reduce = dyn_cast<ReduceOp>(op)) {
      Layout slice = layout_of(reduce.getX().getType())->slice(reduce.getAxis() ? Axis::columns : Axis::rows);
      if (slice == *layout_of(reduce.getTile().getType())) return success();
      return op->emitOpError() << "leaves a slice of the operand's layout";
    }
    if (auto dot = dyn_cast<DotOp>(op)) {
      auto type = dot.getTile().getType();
      if (type.getDimSize(0) == 1 || type.getDimSize(1) == 1 || dot.getA().getType().getDimSize(1) == 1)
        return success();
      for (const MatrixProduct& p : target_.products)
        if (fragments_of(*layout_of(type), p.instruction.c)) return success();
      return op->emitOpError() << "the result is not made of accumulators of " << target_.name;
    }
    return success();
  }

  KernelOp kernel_;
  const Target& target_;
  int threads_ = 0;
};

}  // namespace

LogicalResult verify_layouts(ModuleOp module) {
  const Target* target = target_of(module);
  if (!target) return failure();
  auto result = module.walk([&](KernelOp kernel) {
    return failed(Verifier(kernel, *target).run()) ? WalkResult::interrupt() : WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

}  // namespace latile::simt
