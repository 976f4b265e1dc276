// Integers of a kernel: positions, heads, slots, and where a kernel over chunks stands in a batch.
#include "codegen/Comparison.h"
#include "codegen/simt/KernelEmitter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

namespace latile::simt {

using namespace tile;

/// cu_seqlens[k] of a ragged batch.
Ir KernelEmitter::border(const Sequences& q, Ir k) {
  Ir at = t_.mul(k, q.stride);
  if (q.bits == 64) return b_.CreateLoad(b_.getInt64Ty(), t_.at(q.lengths, t_.mul(at, 8)));
  return b_.CreateSExt(b_.CreateLoad(b_.getInt32Ty(), t_.at(q.lengths, t_.mul(at, 4))), b_.getInt64Ty());
}

/// Chunks of a sequence of `rows` rows: the last one may be partial, an empty sequence has none.
Ir KernelEmitter::chunks_of(Ir rows, std::int64_t size) { return b_.CreateSDiv(t_.add(rows, size - 1), t_.i64(size)); }

/// Number of the first chunk of sequence n of a ragged batch: cu_seqlens[n] div size + n. It needs no sum over the
/// sequences before. A sequence has at most one chunk more than size divides its rows into, so numbers never meet;
/// those that no chunk has are up to N, and the launch has T div size + N blocks (Program::most_chunks).
Ir KernelEmitter::first_chunk(const Sequences& q, Ir n, std::int64_t size) {
  return t_.add(b_.CreateUDiv(border(q, n), t_.i64(size)), n);
}

// In a ragged batch the sequence of chunk c is the last one whose first chunk is not behind c. First chunks rise with
// the sequences, so each step asks for one a lane and goes on between two: with 32 lanes one step for 32
// sequences, two for 1024, four for a million. Blocks whose number no chunk has leave.
void KernelEmitter::emit_chunk(ChunkOp op) {
  const Sequences& q = sequences_[op.getSequences()];
  auto size = static_cast<std::int64_t>(op.getSize());
  Ir c = indices_.lookup(op.getC());
  facts_.chunk = size;
  if (!q.lengths) {
    Ir each = chunks_of(q.rows, size), n = b_.CreateSDiv(c, each);
    indices_[op.getN()] = indices_[op.getBatch()] = n;
    indices_[op.getBegin()] = t_.i64(0);
    indices_[op.getPosition()] = t_.mul(b_.CreateSub(c, t_.mul(n, each)), size);
    indices_[op.getEnd()] = q.rows;
    return;
  }
  llvm::LLVMContext& context = module_.getContext();
  auto block = [&](const char* name) { return llvm::BasicBlock::Create(context, name, function_, exit_); };
  llvm::BasicBlock *before = b_.GetInsertBlock(), *search = block("search"), *ask = block("ask"),
                   *found = block("found"), *inside = block("inside");
  Ir sequences = dim("N"), lane = t_.wide(t_.lane);
  b_.CreateBr(search);
  b_.SetInsertPoint(search);
  llvm::PHINode *low = b_.CreatePHI(b_.getInt64Ty(), 2), *span = b_.CreatePHI(b_.getInt64Ty(), 2);
  low->addIncoming(t_.i64(0), before);
  span->addIncoming(sequences, before);
  b_.CreateCondBr(b_.CreateICmpSGT(span, t_.i64(1)), ask, found);
  b_.SetInsertPoint(ask);
  Ir step = b_.CreateUDiv(t_.add(span, t_.lanes - 1), t_.i64(t_.lanes)), along = t_.mul(lane, step);
  Ir last = b_.CreateSub(span, t_.i64(1));
  Ir asked = t_.add(low, b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, along, last));
  Ir reached = b_.CreateAnd(b_.CreateICmpSLE(along, last), b_.CreateICmpSLE(first_chunk(q, asked, size), c));
  Ir count = b_.CreateZExt(reached, b_.getInt32Ty());
  for (int k = 1; k < t_.lanes; k *= 2) count = b_.CreateAdd(count, t_.shuffle_xor(count, k));
  Ir passed = t_.mul(t_.wide(t_.add(count, -1)), step);
  low->addIncoming(t_.add(low, passed), ask);
  span->addIncoming(b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, step, b_.CreateSub(span, passed)), ask);
  b_.CreateBr(search);
  b_.SetInsertPoint(found);
  Ir begin = border(q, low), end = border(q, t_.add(low, 1));
  Ir position = t_.add(begin, t_.mul(b_.CreateSub(c, first_chunk(q, low, size)), size));
  b_.CreateCondBr(b_.CreateICmpSLT(position, end), inside, exit_);
  b_.SetInsertPoint(inside);
  indices_[op.getN()] = low;
  indices_[op.getBatch()] = t_.i64(0);
  indices_[op.getBegin()] = begin;
  indices_[op.getPosition()] = position;
  indices_[op.getEnd()] = end;
}

void KernelEmitter::emit_chunk_begin(ChunkBeginOp op) {
  const Sequences& q = sequences_[op.getSequences()];
  auto size = static_cast<std::int64_t>(op.getSize());
  Ir n = indices_.lookup(op.getN());
  indices_[op.getC()] = q.lengths ? first_chunk(q, n, size) : t_.mul(n, chunks_of(q.rows, size));
}

/// The number of a row that an op picks, 64 bits.
Ir KernelEmitter::row_place(PickKind pick, mlir::Value x, std::uint64_t at, mlir::Value rows) {
  std::int64_t extent = extents(x)[0];
  if (pick == PickKind::Last) return t_.i64(extent - 1);
  if (pick == PickKind::At) return t_.i64(static_cast<std::int64_t>(at));
  std::int64_t rate = extent / mlir::cast<RowsType>(rows.getType()).getSize();
  Ir last = b_.CreateSub(t_.mul(rows_[rows].count, rate), t_.i64(1));
  return b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, last, t_.i64(0));
}

bool KernelEmitter::emit_index(mlir::Operation* op) {
  auto in = [&](unsigned k) { return indices_.lookup(op->getOperand(k)); };
  if (auto c = mlir::dyn_cast<mlir::arith::ConstantOp>(op)) {
    auto i = mlir::dyn_cast<mlir::IntegerAttr>(c.getValue());
    if (!i) return false;
    indices_[c] = c.getType().isInteger(1) ? static_cast<Ir>(b_.getInt1(i.getValue().getBoolValue()))
                                           : t_.i64(i.getValue().getSExtValue());
    return true;
  }
  if (auto s = mlir::dyn_cast<SequenceOp>(op)) {
    const Sequences& q = sequences_[s.getSequences()];
    Ir n = in(1);
    indices_[s.getBatch()] = q.lengths ? t_.i64(0) : n;
    indices_[s.getBegin()] = q.lengths ? border(q, n) : t_.i64(0);
    indices_[s.getEnd()] = q.lengths ? border(q, t_.add(n, 1)) : q.rows;
    return true;
  }
  if (mlir::isa<ColumnsOp, RowBlockOp>(op)) return emit_part(op), true;
  if (auto c = mlir::dyn_cast<ChunkOp>(op)) return emit_chunk(c), true;
  if (auto c = mlir::dyn_cast<ChunkBeginOp>(op)) return emit_chunk_begin(c), true;
  if (auto s = mlir::dyn_cast<SlotOp>(op)) {
    const View& v = views_[s.getView()];
    Ir at = t_.mul(in(1), v.strides[0]);
    if (s.getM()) at = t_.add(at, t_.mul(indices_.lookup(s.getM()), v.strides[1]));
    indices_[s.getSlot()] = t_.wide(b_.CreateLoad(v.element, t_.at(v.pointer, t_.mul(at, bytes_of(v.element)))));
    return true;
  }
  if (auto h = mlir::dyn_cast<HeadOp>(op)) {
    indices_[h.getCoarse()] = h.getMap() == HeadMap::Grouped ? t_.div(in(0), static_cast<std::int64_t>(h.getRatio()))
                                                             : b_.CreateSRem(in(0), dim(h.getAxis().str()));
    return true;
  }
  if (auto m = mlir::dyn_cast<MemberOp>(op)) {
    indices_[m.getFine()] = m.getMap() == HeadMap::Grouped
                                ? b_.CreateAdd(t_.mul(in(1), static_cast<std::int64_t>(m.getRatio())), in(0))
                                : b_.CreateAdd(b_.CreateMul(in(0), dim(m.getAxis().str())), in(1));
    return true;
  }
  if (auto r = mlir::dyn_cast<RowsOp>(op)) {
    std::int64_t size = r.getRows().getType().getSize();
    Ir left = b_.CreateSub(in(2), in(1));
    Rows rows;
    rows.reversed = r.getReversed();
    rows.count = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, left, t_.i64(size));
    Ir passed = b_.CreateSub(in(1), in(0));
    rows.number = b_.CreateSDiv(passed, t_.i64(size));
    rows.first = rows.reversed ? b_.CreateSub(t_.add(in(2), -1), passed) : in(1);
    // A turn of a loop over a sequence and a chunk of the batch have a row at least.
    mlir::Value position = r.getPosition();
    auto argument = mlir::dyn_cast<mlir::BlockArgument>(position);
    rows.never_empty = (argument && mlir::isa<mlir::scf::ForOp>(argument.getOwner()->getParentOp())) ||
                       position.getDefiningOp<ChunkOp>();
    rows.here = rows.count;
    if (auto back = static_cast<std::int64_t>(r.getBack())) {
      // Rows before the sequence's first do not exist; those up to its end do, however many the chunk has.
      Ir zero = t_.i64(0);
      rows.first = rows.reversed ? t_.add(rows.first, back) : t_.add(rows.first, -back);
      rows.missing = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, b_.CreateSub(t_.i64(back), passed), zero);
      rows.here = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, t_.add(left, back), t_.i64(size));
      rows.never_empty = false;
    }
    rows_[r.getRows()] = rows;
    return true;
  }
  if (op->getNumResults() != 1 || is_tile(op->getResult(0))) return false;
  Ir& out = indices_[op->getResult(0)];
  if (auto c = mlir::dyn_cast<mlir::arith::CmpIOp>(op)) {
    const auto predicate = signed_comparison(c.getPredicate());
    if (!predicate) return fail(op, "unsigned comparison"), true;
    out = b_.CreateICmp(*predicate, in(0), in(1));
    return true;
  }
  out = llvm::TypeSwitch<mlir::Operation*, Ir>(op)
            .Case<mlir::arith::AddIOp>([&](auto) { return t_.add(in(0), in(1)); })
            .Case<mlir::arith::SubIOp>([&](auto) { return b_.CreateSub(in(0), in(1)); })
            .Case<mlir::arith::MulIOp>([&](auto) { return t_.mul(in(0), in(1)); })
            .Case<mlir::arith::DivSIOp>([&](auto) { return b_.CreateSDiv(in(0), in(1)); })
            .Case<mlir::arith::RemSIOp>([&](auto) { return b_.CreateSRem(in(0), in(1)); })
            .Case<mlir::arith::AndIOp>([&](auto) { return b_.CreateAnd(in(0), in(1)); })
            .Case<mlir::arith::OrIOp>([&](auto) { return b_.CreateOr(in(0), in(1)); })
            .Case<mlir::arith::MinSIOp>(
                [&](auto) { return b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, in(0), in(1)); })
            .Case<mlir::arith::MaxSIOp>(
                [&](auto) { return b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, in(0), in(1)); })
            .Case<mlir::arith::SelectOp>([&](auto) { return b_.CreateSelect(in(0), in(1), in(2)); })
            .Default([&](mlir::Operation* o) {
              fail(o, "has no lowering");
              return t_.i64(0);
            });
  return true;
}

}  // namespace latile::simt
