// Arithmetic of bfloat16 and the rounding of tf32 on float32 and its bits, the same on every CPU and without its
// library.
#include "codegen/emulator/Instrument.h"
#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

namespace latile::emulator {
namespace {

bool is_bf16(const llvm::Type* t) { return t->getScalarType()->isBFloatTy(); }

llvm::Type* like(llvm::Type* shape, llvm::Type* element) {
  auto* v = llvm::dyn_cast<llvm::FixedVectorType>(shape);
  return v ? llvm::FixedVectorType::get(element, v->getNumElements()) : element;
}

}  // namespace

Ir Instrumenter::to_bf16(Ir x) {
  llvm::Type* words = like(x->getType(), b_.getInt32Ty());
  auto word = [&](std::uint32_t n) { return llvm::ConstantInt::get(words, n); };
  Ir bits = b_.CreateBitCast(x, words), upper = b_.CreateLShr(bits, word(16));
  Ir rounded = b_.CreateLShr(b_.CreateAdd(bits, b_.CreateAdd(b_.CreateAnd(upper, word(1)), word(0x7fff))), word(16));
  Ir quiet = b_.CreateOr(upper, word(0x40));
  Ir half =
      b_.CreateTrunc(b_.CreateSelect(b_.CreateFCmpUNO(x, x), quiet, rounded), like(x->getType(), b_.getInt16Ty()));
  return b_.CreateBitCast(half, like(x->getType(), b_.getBFloatTy()));
}

Ir Instrumenter::from_bf16(Ir x) {
  llvm::Type* words = like(x->getType(), b_.getInt32Ty());
  Ir half = b_.CreateBitCast(x, like(x->getType(), b_.getInt16Ty()));
  Ir bits = b_.CreateShl(b_.CreateZExt(half, words), llvm::ConstantInt::get(words, 16));
  return b_.CreateBitCast(bits, like(x->getType(), b_.getFloatTy()));
}

/// Ties go away from zero; infinities and NaN keep what they are.
Ir Instrumenter::to_tf32(Ir x) {
  Ir bits = b_.CreateBitCast(x, b_.getInt32Ty());
  Ir rounded = b_.CreateAnd(b_.CreateAdd(bits, b_.getInt32(0x1000)), b_.getInt32(~0x1fffu));
  Ir finite = b_.CreateICmpULT(b_.CreateAnd(bits, b_.getInt32(0x7f800000)), b_.getInt32(0x7f800000));
  return b_.CreateSelect(finite, rounded, bits);
}

/// Gives `i` a value without bfloat16 arithmetic; false: it has none.
bool Instrumenter::narrow(llvm::Instruction& i) {
  llvm::Type* type = i.getType();
  auto widen = [&](Ir x) { return is_bf16(x->getType()) ? from_bf16(x) : x; };
  if (auto* c = llvm::dyn_cast<llvm::FPTruncInst>(&i); c && is_bf16(type)) {
    Ir x = c->getOperand(0);
    if (!x->getType()->getScalarType()->isFloatTy()) {
      fail(i, "bfloat16 is rounded from float only, so that nothing is rounded twice");
      return false;
    }
    i.replaceAllUsesWith(to_bf16(x));
  } else if (auto* e = llvm::dyn_cast<llvm::FPExtInst>(&i); e && is_bf16(e->getOperand(0)->getType())) {
    Ir x = from_bf16(e->getOperand(0));
    i.replaceAllUsesWith(x->getType() == type ? x : b_.CreateFPExt(x, type));
  } else if (auto* op = llvm::dyn_cast<llvm::BinaryOperator>(&i); op && is_bf16(type)) {
    i.replaceAllUsesWith(to_bf16(b_.CreateBinOp(op->getOpcode(), widen(op->getOperand(0)), widen(op->getOperand(1)))));
  } else if (auto* u = llvm::dyn_cast<llvm::UnaryOperator>(&i); u && is_bf16(type)) {
    llvm::Type* bits = like(type, b_.getInt16Ty());
    Ir flipped = b_.CreateXor(b_.CreateBitCast(u->getOperand(0), bits), llvm::ConstantInt::get(bits, 0x8000));
    i.replaceAllUsesWith(b_.CreateBitCast(flipped, type));
  } else if (auto* cmp = llvm::dyn_cast<llvm::FCmpInst>(&i); cmp && is_bf16(cmp->getOperand(0)->getType())) {
    i.replaceAllUsesWith(b_.CreateFCmp(cmp->getPredicate(), widen(cmp->getOperand(0)), widen(cmp->getOperand(1))));
  } else if (llvm::isa<llvm::SIToFPInst, llvm::UIToFPInst>(i) && is_bf16(type)) {
    fail(i, "integers are converted to bfloat16 through float only");
    return false;
  } else if (auto* n = llvm::dyn_cast<llvm::CastInst>(&i);
             n && llvm::isa<llvm::FPToSIInst, llvm::FPToUIInst>(n) && is_bf16(n->getOperand(0)->getType())) {
    i.replaceAllUsesWith(b_.CreateCast(n->getOpcode(), from_bf16(n->getOperand(0)), type));
  } else {
    return false;
  }
  return true;
}

/// Values that are only moved become 16-bit integers: a bfloat16 that lives across blocks would be widened and rounded
/// by functions that a CPU's library has and a kernel must not call.
void Instrumenter::words_for_bf16(llvm::Function& f) {
  llvm::EliminateUnreachableBlocks(f);
  llvm::DenseMap<Ir, Ir> words;
  auto type_of = [&](Ir x) { return like(x->getType(), b_.getInt16Ty()); };
  auto word = [&](Ir x) -> Ir {
    if (!is_bf16(x->getType())) return x;
    if (auto* c = llvm::dyn_cast<llvm::Constant>(x)) return llvm::ConstantExpr::getBitCast(c, type_of(c));
    return words.lookup(x);
  };
  std::vector<llvm::Instruction*> old;
  llvm::ReversePostOrderTraversal<llvm::Function*> order(&f);
  for (llvm::BasicBlock* block : order)
    for (llvm::Instruction& i : *block) {
      bool narrow = is_bf16(i.getType());
      for (Ir x : i.operands()) narrow |= is_bf16(x->getType());
      if (!narrow) continue;
      b_.SetInsertPoint(&i);
      Ir value = nullptr;
      if (auto* load = llvm::dyn_cast<llvm::LoadInst>(&i)) {
        value = b_.CreateAlignedLoad(type_of(load), load->getPointerOperand(), load->getAlign(), load->isVolatile());
      } else if (auto* store = llvm::dyn_cast<llvm::StoreInst>(&i)) {
        b_.CreateAlignedStore(word(store->getValueOperand()), store->getPointerOperand(), store->getAlign(),
                              store->isVolatile());
      } else if (auto* phi = llvm::dyn_cast<llvm::PHINode>(&i)) {
        value = b_.CreatePHI(type_of(phi), phi->getNumIncomingValues());
      } else if (auto* cast = llvm::dyn_cast<llvm::BitCastInst>(&i)) {
        value = b_.CreateBitCast(word(cast->getOperand(0)), is_bf16(i.getType()) ? type_of(&i) : i.getType());
      } else if (llvm::isa<llvm::SelectInst, llvm::InsertElementInst, llvm::ExtractElementInst, llvm::ShuffleVectorInst,
                           llvm::FreezeInst>(i)) {
        llvm::Instruction* same = i.clone();
        for (llvm::Use& use : same->operands()) use.set(word(use.get()));
        same->mutateType(type_of(&i));
        value = b_.Insert(same);
      } else {
        return fail(i, llvm::Twine(i.getOpcodeName()) + " of bfloat16 is not emulated");
      }
      if (value && is_bf16(i.getType()))
        words[&i] = value;
      else if (value)
        i.replaceAllUsesWith(value);
      old.push_back(&i);
    }
  for (llvm::Instruction* i : old)
    if (auto* phi = llvm::dyn_cast<llvm::PHINode>(i))
      for (unsigned n = 0; n < phi->getNumIncomingValues(); ++n)
        llvm::cast<llvm::PHINode>(words[i])->addIncoming(word(phi->getIncomingValue(n)), phi->getIncomingBlock(n));
  for (llvm::Instruction* i : old) i->dropAllReferences();
  for (llvm::Instruction* i : old) i->eraseFromParent();
}

}  // namespace latile::emulator
