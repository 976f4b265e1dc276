// Tiles that wait in shared memory while ops work that need the registers.
#include "codegen/simt/Instructions.h"
#include "codegen/simt/KernelEmitter.h"

namespace latile::simt {

/// Of values too small to be worth a way to shared memory and back.
static constexpr double fewest = 4;

double KernelEmitter::registers_aside() {
  double sum = 0;
  for (auto& [v, registers] : aside_)
    if (held_[v].forms.empty()) sum += registers;
  return sum;
}

/// Whether a widened value is to be had from the 16 bits that it was cast from, which take half the memory and often
/// are there already; `now`: the op that works next.
bool KernelEmitter::keep_narrow(mlir::Value v, mlir::Operation* now) {
  bool turned = false;
  mlir::Value from = element_type(v)->isFloatTy() ? narrow_source(v, &turned) : mlir::Value();
  if (!from || from.getParentBlock() != now->getBlock()) return false;
  Held& source = held_[from];
  if (source.copies.empty() && source.forms.empty()) return false;
  mlir::Operation* last = last_use(from);
  const bool dead = !last || last->isBeforeInBlock(now), made = source.copies.empty();
  Copy c = made ? copy_by_rows(v) : source.copies.front();
  if (!made && turned) c = c.flipped();
  if (!failure_.empty()) return false;
  held_[v].narrow = c;
  held_[v].narrow->borrowed = !(made && dead);
  if (made && dead) forget(from, /*copies=*/true);
  return true;
}

/// Frees a region, unless a value that is aside still waits in these 16 bits: they are that one's from now on.
void KernelEmitter::pass_on(const Region& region) {
  for (auto& [v, registers] : aside_)
    if (std::optional<Copy>& narrow = held_[v].narrow; narrow && narrow->region.begin == region.begin) {
      narrow->borrowed = false;
      return;
    }
  scratch_.release(region);
}

void KernelEmitter::release_copies(mlir::Value v) {
  Held& held = held_[v];
  aside_.erase(v);
  if (const std::optional<Copy> narrow = std::exchange(held.narrow, {}); narrow && !narrow->borrowed)
    pass_on(narrow->region);
  for (const Copy& c : held.copies)
    if (!c.borrowed) pass_on(c.region);
  forget(v, /*copies=*/true);
}

void KernelEmitter::forget(mlir::Value v, bool copies) {
  if (copies)
    held_[v].copies.clear();
  else
    held_[v].forms.clear();
  llvm::erase_if(added_, [&](const Added& a) { return a.copy == copies && a.value == v; });
}

/// What is held in registers, is not for `now` and wanted later, the cheapest and the longest waiting first.
SmallVector<KernelEmitter::Waiting> KernelEmitter::waiting(mlir::Operation* now) {
  // Registers belong to all the values that they stand for.
  llvm::DenseMap<Ir, int> holders;
  llvm::SetVector<mlir::Value> values;
  for (Added a : added_) {
    if (a.copy || !values.insert(a.value)) continue;
    mlir::Operation* last = last_use(a.value);
    if (a.value.getParentBlock() == now->getBlock() && (!last || last->isBeforeInBlock(now))) continue;
    llvm::DenseSet<Ir> own;
    for (const Registers& form : held_[a.value].forms)
      for (Ir x : form.values)
        if (!llvm::isa<llvm::Constant>(x) && own.insert(x).second) ++holders[x];
  }
  SmallVector<Waiting> out;
  for (mlir::Value v : values) {
    if (v.getParentBlock() != now->getBlock() || element_type(v)->isIntegerTy(1)) continue;
    Waiting w{v};
    bool used = false;
    each_use(v, now->getBlock(), [&](mlir::Operation* user) {
      used |= user == now;
      if (now->isBeforeInBlock(user) && (!w.next || user->isBeforeInBlock(w.next))) w.next = user;
    });
    // Scores read their operands in shared memory.
    w.read = used && mlir::isa<tile::DecayedScoresOp>(now);
    if (!w.next || (used && !w.read)) continue;
    llvm::DenseSet<Ir> own;
    for (const Registers& form : held_[v].forms)
      for (Ir x : form.values)
        if (own.insert(x).second && holders.lookup(x) == 1) w.registers += bytes_of(x->getType()) / 4.0;
    w.derived = mlir::isa_and_nonnull<tile::BroadcastOp>(v.getDefiningOp());
    w.free = w.derived || w.read || !held_[v].copies.empty();
    w.order = out.size();
    if (w.registers >= fewest) out.push_back(w);
  }
  llvm::sort(out, [](const Waiting& a, const Waiting& b) {
    if (a.free != b.free) return a.free;
    if (a.next != b.next) return b.next->isBeforeInBlock(a.next);
    return a.order < b.order;
  });
  return out;
}

void KernelEmitter::put_aside(mlir::Operation* now) {
  auto over = excess_.find(op_number_);
  if (over == excess_.end()) return;
  double wanted = over->second - registers_aside();
  if (wanted <= 0) return;
  for (const Waiting& w : waiting(now)) {
    if (wanted <= 0) return;
    if (held_[w.value].copies.empty() && !w.derived && !keep_narrow(w.value, now)) {
      if (w.read) continue;
      (void)copy(w.value);
    }
    forget(w.value, /*copies=*/false);
    aside_[w.value] = w.registers;
    wanted -= w.registers;
  }
}

}  // namespace latile::simt
