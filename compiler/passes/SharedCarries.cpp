#include "compiler/passes/SharedCarries.h"
#include "compiler/passes/CutPlan.h"
#include "dialect/Tile.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace latile::tile;

namespace latile {
namespace {

/// What the scan gets for each carry that it has.
struct Tensors {
  SmallVector<Value> operands;
  SmallVector<bool> has;

  void add(Value operand) {
    has.push_back(operand != nullptr);
    if (operand) operands.push_back(operand);
  }
};

/// A copy of `scan` over head axis `axis` with these carries and without outputs.
void copy_carries(ScanOp scan, StringRef axis, ArrayRef<unsigned> carries) {
  OpBuilder builder(scan->getContext());
  builder.setInsertionPointAfter(scan);
  Block& region = scan.getBody().front();
  auto results = cast<YieldOp>(region.getTerminator()).getValues();
  size_t outputs = scan.getOutputs().size(), scan_inputs = scan.getInputs().size();
  SmallVector<Value> updates;
  for (unsigned i : carries) updates.push_back(results[outputs + i]);
  auto ops = ops_for(region, updates, [](Value) { return false; });
  llvm::DenseSet<Value> read(updates.begin(), updates.end());
  for (Operation* op : ops)
    for (Value value : values_read(op)) read.insert(value);

  Region body;
  Block& block = body.emplaceBlock();
  IRMapping mapping;
  auto bind = [&](BlockArgument argument) {
    mapping.map(argument, block.addArgument(argument.getType(), argument.getLoc()));
  };
  SmallVector<Value> inputs;
  SmallVector<Attribute> reads, read_heads, names, heads;
  SmallVector<int64_t> rates, every;
  for (size_t i = 0; i < scan_inputs; ++i) {
    if (!read.contains(region.getArgument(i))) continue;
    inputs.push_back(scan.getInputs()[i]);
    reads.push_back(scan.getReads()[i]);
    read_heads.push_back(scan.getReadHeads()[i]);
    rates.push_back(scan.getRates()[i]);
    bind(region.getArgument(i));
  }
  Tensors initial, initial_index, final, final_index, history, history_index;
  for (unsigned i : carries) {
    names.push_back(scan.getCarries()[i]);
    heads.push_back(scan.getCarryHeads()[i]);
    initial.add(scan.initialOf(i));
    initial_index.add(scan.initialIndexOf(i));
    final.add(scan.finalOf(i));
    final_index.add(scan.finalIndexOf(i));
    history.add(scan.historyOf(i));
    history_index.add(scan.historyIndexOf(i));
    every.push_back(scan.everyOf(i));
    bind(region.getArgument(scan_inputs + i));
  }
  OpBuilder inner(scan->getContext());
  inner.setInsertionPointToEnd(&block);
  for (Operation* op : ops) inner.clone(*op, mapping);
  YieldOp::create(inner, scan.getLoc(), llvm::map_to_vector(updates, [&](Value v) { return mapping.lookup(v); }));

  auto copy = ScanOp::create(
      builder, scan.getLoc(), scan.getSequences(), inputs, initial.operands, initial_index.operands, final.operands,
      final_index.operands, ValueRange(), history.operands, history_index.operands, scan.getAccepted(),
      scan.getChunkAttr(), builder.getStringAttr(axis), builder.getArrayAttr(reads), builder.getArrayAttr(read_heads),
      builder.getDenseI64ArrayAttr(rates), builder.getArrayAttr(names), builder.getArrayAttr(heads),
      builder.getDenseBoolArrayAttr(initial.has), builder.getDenseBoolArrayAttr(initial_index.has),
      builder.getDenseBoolArrayAttr(final.has), builder.getDenseBoolArrayAttr(final_index.has),
      builder.getArrayAttr({}), builder.getArrayAttr({}), builder.getI64IntegerAttr(1), scan.getHeadMapAttr(),
      history.operands.empty() ? DenseI64ArrayAttr() : builder.getDenseI64ArrayAttr(every), scan.getReversedAttr());
  copy.getBody().takeBody(body);
}

/// Takes final and history tensors away from these carries.
void forget_results(ScanOp scan, ArrayRef<unsigned> carries) {
  Builder builder(scan->getContext());
  Tensors final, final_index, history, history_index;
  SmallVector<int64_t> every;
  for (unsigned i = 0; i < scan.getCarries().size(); ++i) {
    bool kept = !llvm::is_contained(carries, i);
    final.add(kept ? scan.finalOf(i) : Value());
    final_index.add(kept ? scan.finalIndexOf(i) : Value());
    history.add(kept ? scan.historyOf(i) : Value());
    history_index.add(kept ? scan.historyIndexOf(i) : Value());
    every.push_back(kept ? scan.everyOf(i) : 0);
  }
  scan.getFinalMutable().assign(final.operands);
  scan.getFinalIndexMutable().assign(final_index.operands);
  scan.getHistoryMutable().assign(history.operands);
  scan.getHistoryIndexMutable().assign(history_index.operands);
  scan.setHasFinal(final.has);
  scan.setHasFinalIndex(final_index.has);
  if (history.operands.empty())
    scan.removeEveryAttr();
  else
    scan.setEvery(every);
}

}  // namespace

void separate_shared_carries(ModuleOp module) {
  module.walk([](ScanOp scan) {
    if (scan.carryAxis() != scan.getAxis() || scan.getHeadRatio() == 1) return;
    StringRef axis;
    SmallVector<unsigned> shared;
    for (unsigned i = 0; i < scan.getCarries().size(); ++i) {
      StringRef head = cast<StringAttr>(scan.getCarryHeads()[i]).getValue();
      if (head.empty() || head == scan.getAxis() || (!scan.finalOf(i) && scan.everyOf(i) == 0)) continue;
      axis = head;
      shared.push_back(i);
    }
    if (shared.empty()) return;
    copy_carries(scan, axis, shared);
    forget_results(scan, shared);
  });
}

}  // namespace latile
