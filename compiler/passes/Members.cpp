#include "compiler/passes/Members.h"
#include "compiler/passes/CutPlan.h"

using namespace mlir;
using namespace latile::tile;

namespace latile {

bool has_members(ScanOp scan, Attribute head) {
  return scan.carryAxis() != scan.getAxis() && cast<StringAttr>(head).getValue() == scan.getAxis();
}

Members::Members(ScanOp scan) {
  if (scan.carryAxis() == scan.getAxis()) return;
  Block& region = scan.getBody().front();
  for (auto [argument, head] : llvm::zip(region.getArguments(), scan.getReadHeads()))
    if (has_members(scan, head)) values_.insert(argument);
  for (Operation& op : region.without_terminator())
    if (llvm::any_of(values_read(&op), [&](Value value) { return contains(value); }))
      values_.insert(op.result_begin(), op.result_end());
  stores_ = llvm::any_of(scan.getWriteHeads(), [&](Attribute head) { return has_members(scan, head); });
}

bool Members::contains(Operation* op) const {
  return llvm::any_of(op->getResults(), [&](Value value) { return contains(value); });
}

Members::Parts Members::split(ArrayRef<Operation*> ops, ArrayRef<Value> stored) const {
  Parts parts;
  llvm::DenseSet<Value> needed(stored.begin(), stored.end());
  for (Operation* op : llvm::reverse(ops)) {
    bool each = contains(op);
    bool before = !each && llvm::any_of(op->getResults(), [&](Value value) { return needed.contains(value); });
    if (each || before)
      for (Value value : values_read(op)) needed.insert(value);
    (each ? parts.each : before ? parts.before : parts.after).push_back(op);
  }
  for (auto* part : {&parts.before, &parts.each, &parts.after}) std::reverse(part->begin(), part->end());
  return parts;
}

}  // namespace latile
