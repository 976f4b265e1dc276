#include "compiler/passes/Cut.h"
#include "compiler/passes/CutPlan.h"
#include "compiler/passes/KernelBuilder.h"
#include "compiler/passes/Members.h"
#include "compiler/passes/SharedCarries.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace latile::tile;

namespace latile {
namespace {

/// Where a kernel stands: the rows of one chunk and the chunk's number in the whole batch.
struct Place {
  Value batch, rows, chunk;
};

class Cutter {
public:
  Cutter(ProgramOp program, ScanOp scan, CutPlan plan)
      : program_(program), scan_(scan), plan_(std::move(plan)), members_(scan), region_(scan.getBody().front()),
        results_(llvm::to_vector(cast<YieldOp>(region_.getTerminator()).getValues())) {}

  void run(bool finish) {
    make_workspaces();
    outputs_in_serial_ = !finish;
    if (!plan_.from_prepare.empty()) prepare();
    serial();
    if (finish) this->finish();
    scan_.erase();
  }

private:
  ArrayRef<Value> outputs() { return ArrayRef(results_).take_front(scan_.getOutputs().size()); }
  ArrayRef<Value> updates() { return ArrayRef(results_).drop_front(scan_.getOutputs().size()); }

  /// The head axis that a tile of the workspace has an entry for each head of.
  StringRef axis_of(Value value) { return members_.contains(value) ? scan_.getAxis() : scan_.carryAxis(); }

  void make_workspaces() {
    OpBuilder builder(scan_);
    unsigned count = 0;
    SmallVector<Value> stored(plan_.from_prepare.getArrayRef());
    stored.append(plan_.from_serial.begin(), plan_.from_serial.end());
    for (Value value : stored) {
      auto type = cast<RankedTensorType>(value.getType());
      SmallVector<int64_t> shape(scan_.getAxis().empty() ? 1 : 2, ShapedType::kDynamic);
      llvm::append_range(shape, type.getShape());
      auto view =
          ViewType::get(builder.getContext(), shape, type.getElementType(), static_cast<int64_t>(shape.size()) - 1);
      StringRef source = value.getDefiningOp() ? value.getDefiningOp()->getName().stripDialect() : "carry";
      std::string name = source.str() + "_" + std::to_string(count++);
      workspaces_[value] = WorkspaceOp::create(builder, scan_.getLoc(), view, scan_.getSequences(), name,
                                               axis_of(value), scan_.getChunk());
      names_[value] = name;
    }
  }

  KernelBuilder open(StringRef suffix, StringRef first_axis) {
    SmallVector<StringRef> grid{first_axis}, names;
    if (!scan_.carryAxis().empty()) grid.push_back(scan_.carryAxis());
    SmallVector<Value> operands(program_.getArguments());
    for (Attribute name : program_.getArgNames()) names.push_back(cast<StringAttr>(name).getValue());
    for (auto* part : {&plan_.from_prepare, &plan_.from_serial})
      for (Value value : *part) {
        operands.push_back(workspaces_[value]);
        names.push_back(names_[value]);
      }
    operands_ = operands;
    return KernelBuilder(program_, scan_, suffix, grid, operands, names);
  }

  /// Launches the kernel with those operands that it uses.
  void close(KernelBuilder& kernel) {
    OpBuilder builder(scan_);
    auto used = kernel.drop_unused_arguments(operands_);
    LaunchOp::create(builder, scan_.getLoc(), kernel.kernel().getSymName(), used);
  }

  SmallVector<Value> tile_indices(KernelBuilder& kernel, const Place& place, Value value) {
    SmallVector<Value> indices{place.chunk};
    if (Value head = kernel.head(axis_of(value))) indices.push_back(head);
    return indices;
  }

  /// Computes `roots` at a place: `crossing` values are read from the workspace, the rest from inputs. Of the roots,
  /// `stored` go to the workspace, and all outputs among them to their tensors.
  void emit(KernelBuilder& kernel, const Place& place, ArrayRef<Value> roots,
            ArrayRef<const llvm::SetVector<Value>*> crossing, ArrayRef<Value> constants, IRMapping& mapping,
            const llvm::SetVector<Value>& stored, bool outputs) {
    auto crosses = [&](Value value) { return llvm::any_of(crossing, [&](auto* set) { return set->contains(value); }); };
    auto bring = [&](Value value) {
      if (mapping.contains(value)) return;
      auto argument = dyn_cast<BlockArgument>(value);
      if (crosses(value)) {
        mapping.map(value, LoadOp::create(kernel.builder(), kernel.loc(), value.getType(),
                                          kernel.operand(workspaces_[value]), tile_indices(kernel, place, value)));
      } else if (argument && argument.getOwner() == &region_) {
        unsigned i = argument.getArgNumber();
        mapping.map(value, constants[i] ? constants[i] : kernel.load_input(i, place.batch, place.rows));
      }
    };
    auto compute = [&](ArrayRef<Operation*> ops) {
      for (Operation* op : ops) {
        for (Value value : values_read(op)) bring(value);
        kernel.clone(op, mapping, place.rows);
      }
    };
    auto store = [&](bool with_members) {
      for (Value value : stored)
        if (members_.contains(value) == with_members)
          StoreOp::create(kernel.builder(), kernel.loc(), mapping.lookup(value), kernel.operand(workspaces_[value]),
                          tile_indices(kernel, place, value));
      if (!outputs) return;
      for (auto [i, head] : llvm::enumerate(scan_.getWriteHeads()))
        if (has_members(scan_, head) == with_members)
          kernel.store_output(i, mapping.lookup(results_[i]), place.batch, place.rows);
    };
    auto ops = ops_for(region_, roots, crosses);
    auto is_member = [&](Value value) { return members_.contains(value); };
    bool loops = !members_.none() && (outputs || llvm::any_of(roots, is_member));
    if (!loops) {
      compute(ops);
    } else {
      ArrayRef<Value> shared = outputs ? this->outputs() : ArrayRef<Value>();
      auto parts = members_.split(ops, shared);
      compute(parts.before);
      // What one member reads others read as well: it is brought before the loop.
      for (Operation* op : parts.each)
        for (Value value : values_read(op))
          if (!is_member(value)) bring(value);
      for (Value value : shared)
        if (!is_member(value)) bring(value);
      kernel.members([&] {
        compute(parts.each);
        for (Value root : roots)
          if (is_member(root)) bring(root);
        store(true);
      });
      compute(parts.after);
    }
    for (Value root : roots)
      if (!is_member(root)) bring(root);
    store(false);
  }

  SmallVector<Value> constants(KernelBuilder& kernel) {
    SmallVector<Value> values;
    for (size_t i = 0; i < scan_.getInputs().size(); ++i) values.push_back(kernel.load_constant_input(i));
    return values;
  }

  Place chunk_place(KernelBuilder& kernel) {
    auto& builder = kernel.builder();
    Value c = kernel.axis(0);
    auto chunk = ChunkOp::create(builder, kernel.loc(), kernel.operand(scan_.getSequences()), c, scan_.getChunk());
    Value rows = kernel.rows(chunk.getBegin(), chunk.getPosition(), chunk.getEnd());
    return {chunk.getBatch(), rows, c};
  }

  void prepare() {
    auto kernel = open("_prepare", "chunks");
    Place place = chunk_place(kernel);
    IRMapping mapping;
    emit(kernel, place, plan_.from_prepare.getArrayRef(), {}, constants(kernel), mapping, plan_.from_prepare, false);
    close(kernel);
  }

  void serial() {
    auto kernel = open("_serial", "N");
    auto& builder = kernel.builder();
    Location loc = kernel.loc();
    Value n = kernel.axis(0), sequences = kernel.operand(scan_.getSequences());
    auto sequence = SequenceOp::create(builder, loc, sequences, n);
    Value first = ChunkBeginOp::create(builder, loc, sequences, n, scan_.getChunk());
    auto fixed = constants(kernel);
    SmallVector<Value> carries;
    for (size_t i = 0; i < scan_.getCarries().size(); ++i) carries.push_back(kernel.load_carry(i, n));
    Value step = kernel.index(scan_.getChunk());
    auto loop = scf::ForOp::create(builder, loc, sequence.getBegin(), sequence.getEnd(), step, carries);
    {
      OpBuilder::InsertionGuard guard(builder);
      Block* body = loop.getBody();
      if (!body->empty()) body->back().erase();
      builder.setInsertionPointToStart(body);
      Value position = loop.getInductionVar();
      for (auto [i, carry] : llvm::enumerate(loop.getRegionIterArgs()))
        kernel.store_history(i, carry, n, sequence.getBegin(), position);
      Value rows = kernel.rows(sequence.getBegin(), position, sequence.getEnd());
      Value done = arith::SubIOp::create(builder, loc, position, sequence.getBegin());
      Value number = arith::DivSIOp::create(builder, loc, done, step);
      Place place{sequence.getBatch(), rows, arith::AddIOp::create(builder, loc, first, number)};
      IRMapping mapping;
      for (auto [i, carry] : llvm::enumerate(loop.getRegionIterArgs()))
        mapping.map(region_.getArgument(scan_.getInputs().size() + i), carry);
      SmallVector<Value> roots(updates());
      llvm::append_range(roots, plan_.from_serial);
      if (outputs_in_serial_) llvm::append_range(roots, outputs());
      emit(kernel, place, roots, {&plan_.from_prepare}, fixed, mapping, plan_.from_serial, outputs_in_serial_);
      scf::YieldOp::create(builder, loc, llvm::map_to_vector(updates(), [&](Value v) { return mapping.lookup(v); }));
    }
    for (auto [i, carry] : llvm::enumerate(loop.getResults())) {
      kernel.store_history(i, carry, n, sequence.getBegin(), sequence.getEnd());
      kernel.store_carry(i, carry, n);
    }
    close(kernel);
  }

  void finish() {
    auto kernel = open("_finish", "chunks");
    Place place = chunk_place(kernel);
    IRMapping mapping;
    emit(kernel, place, outputs(), {&plan_.from_prepare, &plan_.from_serial}, constants(kernel), mapping, {}, true);
    close(kernel);
  }

  ProgramOp program_;
  ScanOp scan_;
  CutPlan plan_;
  Members members_;
  Block& region_;
  SmallVector<Value> results_, operands_;
  bool outputs_in_serial_ = true;
  llvm::DenseMap<Value, Value> workspaces_;
  llvm::DenseMap<Value, std::string> names_;
};

}  // namespace

LogicalResult cut(ModuleOp module, const CutOptions& options) {
  note_coarse_heads(module);
  separate_shared_carries(module);
  SmallVector<ScanOp> scans;
  module.walk([&](ScanOp scan) {
    if (scan.getChunk() > 1 && !scan.getOutputs().empty()) scans.push_back(scan);
  });
  for (ScanOp scan : scans) {
    auto program = dyn_cast<ProgramOp>(scan->getParentOp());
    if (!program) return scan.emitOpError() << "is not directly in a program";
    Cutter(program, scan, plan_cut(scan, options)).run(options.finish);
  }
  return success();
}

}  // namespace latile
