#include "codegen/simt/Instructions.h"
#include "llvm/Support/MathExtras.h"

namespace latile::simt {

int bytes_of(llvm::Type* t) { return t->isIntegerTy(1) ? 1 : static_cast<int>(t->getPrimitiveSizeInBits() / 8); }

void Thread::begin() {
  entry_ = b.GetInsertBlock();
  tid = isa.thread_number(*this);
  lane = b.CreateAnd(tid, i32(lanes - 1), "lane");
  warp = threads > lanes ? b.CreateLShr(tid, i32(llvm::Log2_32(static_cast<unsigned>(lanes))), "warp") : i32(0);
}

Ir Thread::i32(std::int64_t v) const { return b.getInt32(static_cast<std::uint32_t>(v)); }
Ir Thread::i64(std::int64_t v) const { return b.getInt64(static_cast<std::uint64_t>(v)); }
Ir Thread::f32(double v) const { return llvm::ConstantFP::get(b.getFloatTy(), v); }

static bool is_constant(Ir x, std::uint64_t value) {
  auto* c = llvm::dyn_cast<llvm::ConstantInt>(x);
  return c && c->equalsInt(value);
}
Ir Thread::add(Ir x, Ir y) const {
  if (is_constant(x, 0)) return y;
  if (is_constant(y, 0)) return x;
  return b.CreateNSWAdd(x, y);
}
Ir Thread::add(Ir x, std::int64_t y) const { return add(x, llvm::ConstantInt::getSigned(x->getType(), y)); }
Ir Thread::mul(Ir x, Ir y) const {
  if (is_constant(x, 1) || is_constant(y, 0)) return y;
  if (is_constant(y, 1) || is_constant(x, 0)) return x;
  return b.CreateNSWMul(x, y);
}
Ir Thread::mul(Ir x, std::int64_t y) const { return mul(x, llvm::ConstantInt::getSigned(x->getType(), y)); }
Ir Thread::div(Ir x, std::int64_t y) const {
  return y == 1 ? x : b.CreateUDiv(x, llvm::ConstantInt::getSigned(x->getType(), y));
}
Ir Thread::rem(Ir x, std::int64_t y) const {
  return y == 1 ? llvm::ConstantInt::getSigned(x->getType(), 0)
                : b.CreateURem(x, llvm::ConstantInt::getSigned(x->getType(), y));
}
Ir Thread::wide(Ir x) const { return x->getType()->isIntegerTy(64) ? x : b.CreateSExt(x, b.getInt64Ty()); }
Ir Thread::at(Ir pointer, Ir bytes) const { return b.CreateGEP(b.getInt8Ty(), pointer, bytes); }

Ir Thread::digit(Ir index, const Digit& d) const {
  Ir part = div(index, d.divisor);
  bool last = index == lane ? d.divisor * d.modulus == lanes : d.divisor * d.modulus * lanes == threads;
  return last ? part : rem(part, d.modulus);
}

PlaceIr Thread::place(const Layout& layout) {
  for (auto& [known, at] : places_)
    if (known == layout) return at;
  llvm::IRBuilder<>::InsertPointGuard guard(b);
  b.SetInsertPoint(entry_);
  b.SetCurrentDebugLocation({});
  PlaceIr out{i32(0), i32(0)};
  for (Carrier carrier : {Carrier::lanes, Carrier::warps})
    for (const Digit& d : layout.digits(carrier)) {
      if (d.modulus == 1 || d.step == Place{}) continue;
      Ir x = digit(carrier == Carrier::lanes ? lane : warp, d);
      if (d.step.row) out.row = add(out.row, mul(x, d.step.row));
      if (d.step.column) out.column = add(out.column, mul(x, d.step.column));
    }
  places_.emplace_back(layout, out);
  return out;
}

Ir Thread::place_of_lane(const Layout& fragment, Axis axis) const {
  auto part = [axis](const Digit& d) { return axis == Axis::rows ? d.step.row : d.step.column; };
  // Bits that follow one another along an axis are one digit.
  SmallVector<Digit> digits;
  for (const Digit& d : fragment.digits(Carrier::lanes)) {
    if (part(d) == 0) continue;
    Digit* last = digits.empty() ? nullptr : &digits.back();
    if (last && d.divisor == last->divisor * last->modulus && part(d) == part(*last) * last->modulus)
      last->modulus *= d.modulus;
    else
      digits.push_back(d);
  }
  auto log2 = [](int x) { return llvm::Log2_32(static_cast<unsigned>(x)); };
  Ir sum = i32(0);
  for (const Digit& d : digits) {
    Ir x = d.divisor == 1 ? lane : b.CreateLShr(lane, log2(d.divisor));
    if (d.divisor * d.modulus != lanes) x = b.CreateAnd(x, i32(d.modulus - 1));
    sum = add(sum, part(d) == 1 ? x : b.CreateShl(x, log2(part(d))));
  }
  return sum;
}

Ir Thread::is_first_replica(const Layout& layout) {
  Ir first = nullptr;
  for (Carrier carrier : {Carrier::lanes, Carrier::warps})
    for (const Digit& d : layout.replicas(carrier)) {
      if (d.modulus == 1) continue;
      Ir zero = b.CreateICmpEQ(digit(carrier == Carrier::lanes ? lane : warp, d), i32(0));
      first = first ? b.CreateAnd(first, zero) : zero;
    }
  return first;
}

Ir Thread::call(llvm::Intrinsic::ID id, ArrayRef<llvm::Type*> overloads, ArrayRef<Ir> operands) const {
  return b.CreateIntrinsic(id, overloads, operands);
}

void Thread::barrier() { isa.barrier(*this); }

Ir Thread::shuffle_xor(Ir x, int mask) const {
  llvm::Type* type = x->getType();
  Ir bits = x;
  if (type->getPrimitiveSizeInBits() == 16)
    bits = b.CreateZExt(b.CreateBitCast(x, b.getInt16Ty()), b.getInt32Ty());
  else if (type->isIntegerTy(1))
    bits = b.CreateZExt(x, b.getInt32Ty());
  Ir y = isa.shuffle_xor(*this, bits, mask);
  if (type->getPrimitiveSizeInBits() == 16) return b.CreateBitCast(b.CreateTrunc(y, b.getInt16Ty()), type);
  return type->isIntegerTy(1) ? b.CreateTrunc(y, type) : y;
}

SmallVector<Ir> Thread::loop(Ir lo, Ir hi, std::int64_t step, ArrayRef<Ir> init,
                             llvm::function_ref<SmallVector<Ir>(Ir, ArrayRef<Ir>)> body) const {
  llvm::Function* f = b.GetInsertBlock()->getParent();
  llvm::LLVMContext& context = f->getContext();
  llvm::BasicBlock* before = b.GetInsertBlock();
  auto* head = llvm::BasicBlock::Create(context, "loop", f);
  auto* turn = llvm::BasicBlock::Create(context, "turn", f);
  auto* done = llvm::BasicBlock::Create(context, "done", f);
  b.CreateBr(head);
  b.SetInsertPoint(head);
  llvm::PHINode* iv = b.CreatePHI(lo->getType(), 2);
  iv->addIncoming(lo, before);
  SmallVector<Ir> carried;
  for (Ir x : init) {
    llvm::PHINode* phi = b.CreatePHI(x->getType(), 2);
    phi->addIncoming(x, before);
    carried.push_back(phi);
  }
  b.CreateCondBr(b.CreateICmpSLT(iv, hi), turn, done);
  b.SetInsertPoint(turn);
  SmallVector<Ir> next = body(iv, carried);
  llvm::BasicBlock* end = b.GetInsertBlock();
  iv->addIncoming(add(iv, step), end);
  for (auto [phi, x] : llvm::zip(carried, next)) llvm::cast<llvm::PHINode>(phi)->addIncoming(x, end);
  b.CreateBr(head);
  b.SetInsertPoint(done);
  return carried;
}

void Thread::loop(Ir lo, Ir hi, std::int64_t step, llvm::function_ref<void(Ir)> body) const {
  loop(lo, hi, step, {}, [&](Ir iv, ArrayRef<Ir>) {
    body(iv);
    return SmallVector<Ir>();
  });
}

void Thread::spread(std::int64_t count, llvm::function_ref<void(Ir)> body) const {
  if (count == threads) return body(tid);
  if (count < threads) return when(b.CreateICmpSLT(tid, i32(count)), [&] { body(tid); });
  loop(tid, i32(count), threads, body);
}

void Thread::when(Ir condition, llvm::function_ref<void()> then) const {
  either(condition, then, [] {});
}

void Thread::either(Ir condition, llvm::function_ref<void()> then, llvm::function_ref<void()> otherwise) const {
  auto without_values = [](llvm::function_ref<void()> side) {
    return [side] {
      side();
      return SmallVector<Ir>();
    };
  };
  choose(condition, without_values(then), without_values(otherwise));
}

SmallVector<Ir> Thread::choose(Ir condition, llvm::function_ref<SmallVector<Ir>()> then,
                               llvm::function_ref<SmallVector<Ir>()> otherwise) const {
  llvm::Function* f = b.GetInsertBlock()->getParent();
  llvm::LLVMContext& context = f->getContext();
  auto* yes = llvm::BasicBlock::Create(context, "then", f);
  auto* no = llvm::BasicBlock::Create(context, "else", f);
  auto* done = llvm::BasicBlock::Create(context, "joined", f);
  b.CreateCondBr(condition, yes, no);
  b.SetInsertPoint(yes);
  SmallVector<Ir> a = then();
  llvm::BasicBlock* yes_end = b.GetInsertBlock();
  b.CreateBr(done);
  b.SetInsertPoint(no);
  SmallVector<Ir> c = otherwise();
  llvm::BasicBlock* no_end = b.GetInsertBlock();
  b.CreateBr(done);
  b.SetInsertPoint(done);
  SmallVector<Ir> out;
  for (auto [x, y] : llvm::zip(a, c)) {
    llvm::PHINode* phi = b.CreatePHI(x->getType(), 2);
    phi->addIncoming(x, yes_end);
    phi->addIncoming(y, no_end);
    out.push_back(phi);
  }
  return out;
}

}  // namespace latile::simt
