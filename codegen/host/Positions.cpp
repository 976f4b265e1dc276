// Where a kernel over chunks stands: the number of a chunk in the whole batch to its sequence and rows, and back.
#include "codegen/host/KernelEmitter.h"

namespace latile::host {

using namespace tile;

/// cu_seqlens[k] of a ragged batch.
Ir KernelEmitter::border(const Sequences& q, Ir k) {
  auto& b = builder_;
  if (q.bits == 64) return b.CreateLoad(b.getInt64Ty(), l_.at(q.lengths, l_.mul(k, 8)));
  return b.CreateSExt(b.CreateLoad(b.getInt32Ty(), l_.at(q.lengths, l_.mul(k, 4))), b.getInt64Ty());
}

/// Chunks of a sequence of `rows` rows: the last one may be partial, an empty sequence has none.
Ir KernelEmitter::chunks_of(Ir rows, std::int64_t size) {
  return builder_.CreateSDiv(l_.add(rows, size - 1), l_.index(size));
}

// A ragged batch is searched from its first sequence: one addition and division a sequence beside the work of a chunk.
void KernelEmitter::emit_chunk(ChunkOp op) {
  auto& b = builder_;
  const Sequences& q = sequences_[op.getSequences()];
  auto size = static_cast<std::int64_t>(op.getSize());
  Ir c = indices_.lookup(op.getC());
  facts_.chunk = size;
  if (!q.lengths) {
    Ir each = chunks_of(q.rows, size), n = b.CreateSDiv(c, each);
    indices_[op.getN()] = indices_[op.getBatch()] = n;
    indices_[op.getBegin()] = l_.index(0);
    indices_[op.getPosition()] = l_.mul(b.CreateSub(c, l_.mul(n, each)), size);
    indices_[op.getEnd()] = q.rows;
    return;
  }
  llvm::LLVMContext& context = module_.getContext();
  llvm::BasicBlock* before = b.GetInsertBlock();
  auto* search = llvm::BasicBlock::Create(context, "search", function_);
  auto* found = llvm::BasicBlock::Create(context, "found", function_);
  Ir first = border(q, l_.index(0));
  b.CreateBr(search);
  b.SetInsertPoint(search);
  auto phi = [&](Ir start) {
    llvm::PHINode* p = b.CreatePHI(b.getInt64Ty(), 2);
    p->addIncoming(start, before);
    return p;
  };
  llvm::PHINode *n = phi(l_.index(0)), *left = phi(c), *begin = phi(first);
  Ir next = l_.add(n, 1), end = border(q, next), count = chunks_of(b.CreateSub(end, begin), size);
  n->addIncoming(next, search);
  left->addIncoming(b.CreateSub(left, count), search);
  begin->addIncoming(end, search);
  b.CreateCondBr(b.CreateICmpSLT(left, count), found, search);
  b.SetInsertPoint(found);
  indices_[op.getN()] = n;
  indices_[op.getBatch()] = l_.index(0);
  indices_[op.getBegin()] = begin;
  indices_[op.getPosition()] = l_.add(begin, l_.mul(left, size));
  indices_[op.getEnd()] = end;
}

void KernelEmitter::emit_chunk_begin(ChunkBeginOp op) {
  const Sequences& q = sequences_[op.getSequences()];
  auto size = static_cast<std::int64_t>(op.getSize());
  Ir n = indices_.lookup(op.getN());
  if (!q.lengths) {
    indices_[op.getC()] = l_.mul(n, chunks_of(q.rows, size));
    return;
  }
  SmallVector<Ir> sums =
      l_.loop(l_.index(0), n, 1, {l_.index(0), border(q, l_.index(0))}, [&](Ir k, ArrayRef<Ir> so_far) {
        Ir end = border(q, l_.add(k, 1));
        return SmallVector<Ir>{l_.add(so_far[0], chunks_of(builder_.CreateSub(end, so_far[1]), size)), end};
      });
  indices_[op.getC()] = sums[0];
}

}  // namespace latile::host
