#include "compiler/passes/ScanToKernels.h"
#include "compiler/passes/KernelBuilder.h"
#include "compiler/passes/Members.h"
#include "compiler/passes/SharedCarries.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace latile::tile;

namespace latile {
namespace {

/// The numbers of the outputs that have a value for each member, or of the others.
void for_outputs(ScanOp scan, bool with_members, function_ref<void(unsigned)> body) {
  for (auto [i, head] : llvm::enumerate(scan.getWriteHeads()))
    if (has_members(scan, head) == with_members) body(static_cast<unsigned>(i));
}

/// The region at one chunk: the outputs are stored, the new carries returned.
SmallVector<Value> emit_chunk(KernelBuilder& kernel, ScanOp scan, ArrayRef<Value> constants, ValueRange carries,
                              Value batch, Value rows) {
  Block& region = scan.getBody().front();
  Members members(scan);
  size_t inputs = scan.getInputs().size(), outputs = scan.getOutputs().size();
  auto results = llvm::to_vector(cast<YieldOp>(region.getTerminator()).getValues());
  IRMapping mapping;
  auto load = [&](bool with_members) {
    for (unsigned i = 0; i < inputs; ++i)
      if (members.contains(region.getArgument(i)) == with_members)
        mapping.map(region.getArgument(i), constants[i] ? constants[i] : kernel.load_input(i, batch, rows));
  };
  auto clone = [&](ArrayRef<Operation*> ops) {
    for (Operation* op : ops) kernel.clone(op, mapping, rows);
  };
  auto store = [&](bool with_members) {
    for_outputs(scan, with_members,
                [&](unsigned i) { kernel.store_output(i, mapping.lookupOrDefault(results[i]), batch, rows); });
  };
  load(false);
  for (auto [i, carry] : llvm::enumerate(carries)) mapping.map(region.getArgument(inputs + i), carry);
  auto ops = llvm::map_to_vector(region.without_terminator(), [](Operation& op) { return &op; });
  if (members.none()) {
    clone(ops);
  } else {
    auto parts = members.split(ops, ArrayRef(results).take_front(outputs));
    clone(parts.before);
    kernel.members([&] {
      load(true);
      clone(parts.each);
      store(true);
    });
    clone(parts.after);
  }
  store(false);
  return llvm::map_to_vector(ArrayRef(results).drop_front(outputs),
                             [&](Value value) { return mapping.lookupOrDefault(value); });
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
  if (!scan.showsAbsence()) return nullptr;
  Value all;
  Value zero = carries ? kernel.index(0) : Value();
  for (size_t i = 0; i < carries; ++i)
    for (Value slot : {kernel.initial_slot(i, n), scan.finalOf(i) ? kernel.final_slot(i, n) : Value()}) {
      if (!slot) continue;
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
    auto clear = [&](unsigned i) {
      kernel.store_output(i, kernel.zeros(cast<RankedTensorType>(results[i].getType())), sequence.getBatch(), rows);
    };
    if (!Members(scan).none()) kernel.members([&] { for_outputs(scan, true, clear); });
    for_outputs(scan, false, clear);
    builder.setInsertionPointToStart(branch.elseBlock());
  }
  auto next = emit_chunk(kernel, scan, constants, load_carries(kernel, scan, n), sequence.getBatch(), rows);
  store_carries(kernel, next, n);
}

LogicalResult lower(ProgramOp program, ScanOp scan) {
  SmallVector<StringRef> grid{"N"}, names;
  if (!scan.carryAxis().empty()) grid.push_back(scan.carryAxis());
  for (Attribute name : program.getArgNames()) names.push_back(cast<StringAttr>(name).getValue());
  SmallVector<Value> operands(program.getArguments());
  for (Value operand : scan->getOperands())
    if (!isa<BlockArgument>(operand)) return scan.emitOpError() << "takes arguments of its program only";

  KernelBuilder kernel(program, scan, scan.getOutputs().empty() ? "_carries" : "_fused", grid, operands, names);
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
  note_coarse_heads(module);
  separate_shared_carries(module);
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
