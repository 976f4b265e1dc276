#include "compiler/interpreter/Storage.h"
#include "dialect/Tile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace latile::interpreter {
namespace {

bool widens(mlir::Type from, mlir::Type to) {
  from = mlir::getElementTypeOrSelf(from), to = mlir::getElementTypeOrSelf(to);
  return from == to || to.isF64() || (to.isF32() && !from.isF64());
}

}  // namespace

mlir::Value viewed(mlir::Operation* op, bool float64) {
  if (mlir::isa<tile::BroadcastOp, tile::TransposeOp>(op)) return op->getOperand(0);
  if (mlir::isa<tile::CastOp, mlir::arith::ExtFOp, mlir::arith::TruncFOp>(op))
    return float64 || widens(op->getOperand(0).getType(), op->getResult(0).getType()) ? op->getOperand(0)
                                                                                      : mlir::Value();
  if (auto row = mlir::dyn_cast<tile::RowOp>(op); row && row.getPick() != tile::PickKind::LastValid) return row.getX();
  return {};
}

Lifetimes::Lifetimes(mlir::Region& region, bool float64) : float64_(float64) {
  for (auto& block : region) visit(block);
  for (auto root : roots_)
    if (auto* op = last_.lookup(root)) dying_[op].push_back(root);
}

mlir::Value Lifetimes::root(mlir::Value value) const {
  for (auto next = view_of_.find(value); next != view_of_.end(); next = view_of_.find(value)) value = next->second;
  return value;
}

llvm::ArrayRef<mlir::Value> Lifetimes::dying(mlir::Operation* at) const {
  const auto found = dying_.find(at);
  return found == dying_.end() ? llvm::ArrayRef<mlir::Value>() : llvm::ArrayRef<mlir::Value>(found->second);
}

void Lifetimes::define(mlir::Value value, mlir::Operation* at) {
  roots_.push_back(value);
  last_[value] = at;
}

void Lifetimes::use(mlir::Value value, mlir::Operation* by) {
  value = root(value);
  const auto found = last_.find(value);
  if (found == last_.end()) return;
  auto* at = value.getParentBlock()->findAncestorOpInBlock(*by);
  if (at && (!found->second || found->second->isBeforeInBlock(at))) found->second = at;
}

void Lifetimes::visit(mlir::Block& block) {
  // Arguments of a solve's map stay: the step after the map reads them.
  if (!mlir::isa<tile::SolveOp>(block.getParentOp()))
    for (auto argument : block.getArguments()) define(argument, nullptr);
  for (auto& op : block) {
    for (auto operand : op.getOperands()) use(operand, &op);
    for (auto& region : op.getRegions())
      for (auto& nested : region) visit(nested);
    if (auto source = viewed(&op, float64_))
      view_of_[op.getResult(0)] = source;
    else
      for (auto result : op.getResults()) define(result, &op);
  }
}

std::int64_t Pool::allocate(std::int64_t count) {
  if (const auto found = free_.find(count); found != free_.end()) {
    const auto offset = found->second;
    free_.erase(found);
    return offset;
  }
  return fresh(count);
}

std::int64_t Pool::fresh(std::int64_t count) {
  const auto offset = size_;
  counts_[offset] = count;
  size_ += (count + 7) / 8 * 8;
  return offset;
}

void Pool::release(std::int64_t offset) {
  if (reuse_) free_.emplace(counts_.at(offset), offset);
}

bool Pool::take(std::int64_t offset) {
  auto [begin, end] = free_.equal_range(counts_.at(offset));
  for (; begin != end; ++begin)
    if (begin->second == offset) {
      free_.erase(begin);
      return true;
    }
  return false;
}

}  // namespace latile::interpreter
