#include "compiler/passes/ScanToKernels.h"
#include "compiler/passes/KernelBuilder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace latile::tile;

namespace latile {
namespace {

/// The region at one chunk: the outputs are stored, the new carries returned.
SmallVector<Value> emit_chunk(KernelBuilder& kernel, ScanOp scan, ArrayRef<Value> constants, ValueRange carries,
                              Value batch, Value rows) {
  Block& region = scan.getBody().front();
  size_t inputs = scan.getInputs().size();
  IRMapping mapping;
  for (size_t i = 0; i < inputs; ++i)
    mapping.map(region.getArgument(i), constants[i] ? constants[i] : kernel.load_rows_input(i, batch, rows));
  for (auto [i, carry] : llvm::enumerate(carries)) mapping.map(region.getArgument(inputs + i), carry);
  for (Operation& op : region.without_terminator()) kernel.clone(&op, mapping, rows);
  auto results = cast<YieldOp>(region.getTerminator()).getValues();
  size_t outputs = scan.getOutputs().size();
  for (size_t i = 0; i < outputs; ++i) kernel.store_output(i, mapping.lookupOrDefault(results[i]), batch, rows);
  return llvm::map_to_vector(results.drop_front(outputs), [&](Value value) { return mapping.lookupOrDefault(value); });
}

SmallVector<Value> load_carries(KernelBuilder& kernel, ScanOp scan, Value n) {
  SmallVector<Value> carries;
  for (size_t i = 0; i < scan.getCarries().size(); ++i) carries.push_back(kernel.load_carry(i, n));
  return carries;
}

void store_carries(KernelBuilder& kernel, ValueRange carries, Value n) {
  for (auto [i, carry] : llvm::enumerate(carries)) kernel.store_carry(i, carry, n);
}

// A chunk begins by keeping the carries that the one before it left: they lie in memory then, in one place.
void store_history(KernelBuilder& kernel, ValueRange carries, Value n, Value begin, Value position) {
  for (auto [i, carry] : llvm::enumerate(carries)) kernel.store_history(i, carry, n, begin, position);
}

void emit_loop(KernelBuilder& kernel, ScanOp scan, ArrayRef<Value> constants, Value n, SequenceOp sequence) {
  auto& builder = kernel.builder();
  auto carries = load_carries(kernel, scan, n);
  Value step = kernel.index(scan.getChunk());
  auto loop = scf::ForOp::create(builder, kernel.loc(), sequence.getBegin(), sequence.getEnd(), step, carries);
  {
    OpBuilder::InsertionGuard guard(builder);
    Block* body = loop.getBody();
    if (!body->empty()) body->back().erase();
    builder.setInsertionPointToStart(body);
    store_history(kernel, loop.getRegionIterArgs(), n, sequence.getBegin(), loop.getInductionVar());
    Value rows = kernel.rows(sequence.getBegin(), loop.getInductionVar(), sequence.getEnd());
    auto next = emit_chunk(kernel, scan, constants, loop.getRegionIterArgs(), sequence.getBatch(), rows);
    scf::YieldOp::create(builder, kernel.loc(), next);
  }
  store_history(kernel, loop.getResults(), n, sequence.getBegin(), sequence.getEnd());
  store_carries(kernel, loop.getResults(), n);
}

/// True for a sequence that is absent from a step; null where that cannot be told from slots.
Value is_absent(KernelBuilder& kernel, ScanOp scan, Value n) {
  auto& builder = kernel.builder();
  size_t carries = scan.getCarries().size();
  for (size_t i = 0; i < carries; ++i)
    if (!scan.initialIndexOf(i) || !scan.finalIndexOf(i)) return nullptr;
  Value all;
  Value zero = carries ? kernel.index(0) : Value();
  for (size_t i = 0; i < carries; ++i)
    for (Value slot : {kernel.initial_slot(i, n), kernel.final_slot(i, n)}) {
      Value none = arith::CmpIOp::create(builder, kernel.loc(), arith::CmpIPredicate::slt, slot, zero);
      all = all ? Value(arith::AndIOp::create(builder, kernel.loc(), all, none)) : none;
    }
  return all;
}

void emit_step(KernelBuilder& kernel, ScanOp scan, ArrayRef<Value> constants, Value n, SequenceOp sequence) {
  auto& builder = kernel.builder();
  OpBuilder::InsertionGuard guard(builder);
  Value rows = kernel.rows(sequence.getBegin(), sequence.getBegin(), sequence.getEnd());
  if (Value absent = is_absent(kernel, scan, n)) {
    auto branch = scf::IfOp::create(builder, kernel.loc(), absent, /*withElseRegion=*/true);
    builder.setInsertionPointToStart(branch.thenBlock());
    auto results = cast<YieldOp>(scan.getBody().front().getTerminator()).getValues();
    for (size_t i = 0; i < scan.getOutputs().size(); ++i)
      kernel.store_output(i, kernel.zeros(cast<RankedTensorType>(results[i].getType())), sequence.getBatch(), rows);
    builder.setInsertionPointToStart(branch.elseBlock());
  }
  auto next = emit_chunk(kernel, scan, constants, load_carries(kernel, scan, n), sequence.getBatch(), rows);
  store_carries(kernel, next, n);
}

LogicalResult lower(ProgramOp program, ScanOp scan) {
  SmallVector<StringRef> grid{"N"}, names;
  if (!scan.getAxis().empty()) grid.push_back(scan.getAxis());
  for (Attribute name : program.getArgNames()) names.push_back(cast<StringAttr>(name).getValue());
  SmallVector<Value> operands(program.getArguments());
  for (Value operand : scan->getOperands())
    if (!isa<BlockArgument>(operand)) return scan.emitOpError() << "takes arguments of its program only";

  KernelBuilder kernel(program, scan, "_fused", grid, operands, names);
  auto& builder = kernel.builder();
  Value n = kernel.axis(0);
  auto sequence = SequenceOp::create(builder, kernel.loc(), kernel.operand(scan.getSequences()), n);
  SmallVector<Value> constants;
  for (size_t i = 0; i < scan.getInputs().size(); ++i) constants.push_back(kernel.load_constant_input(i));
  if (program->hasAttr("step"))
    emit_step(kernel, scan, constants, n, sequence);
  else
    emit_loop(kernel, scan, constants, n, sequence);

  OpBuilder at(scan);
  LaunchOp::create(at, scan.getLoc(), kernel.kernel().getSymName(), operands);
  scan.erase();
  return success();
}

}  // namespace

LogicalResult scan_to_kernels(ModuleOp module) {
  SmallVector<ScanOp> scans;
  module.walk([&](ScanOp scan) { scans.push_back(scan); });
  for (ScanOp scan : scans) {
    auto program = dyn_cast<ProgramOp>(scan->getParentOp());
    if (!program) return scan.emitOpError() << "is not directly in a program";
    if (failed(lower(program, scan))) return failure();
  }
  return success();
}

}  // namespace latile
