#include "codegen/emulator/Instrument.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/DebugInfo.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/ReplaceConstant.h"
#include <cstddef>

namespace latile::emulator {
namespace {

constexpr unsigned global_space = 1, shared_space = 3;

bool is_kernel(const llvm::Function& f) {
  return !f.isDeclaration() && (f.getCallingConv() == llvm::CallingConv::PTX_Kernel ||
                                f.getCallingConv() == llvm::CallingConv::AMDGPU_KERNEL);
}

/// Memory of the lane itself, or constants: nobody else writes it.
bool is_private(Ir pointer) {
  llvm::SmallVector<const llvm::Value*> objects;
  llvm::getUnderlyingObjects(pointer, objects, nullptr, 0);
  return llvm::all_of(objects, [](const llvm::Value* o) {
    if (llvm::isa<llvm::AllocaInst>(o)) return true;
    auto* g = llvm::dyn_cast<llvm::GlobalVariable>(o);
    return g && g->hasInitializer() && g->isConstant();
  });
}

}  // namespace

void Instrumenter::fail(const llvm::Twine& why) {
  if (failure_.empty()) failure_ = ("emulator: " + why).str();
}

void Instrumenter::fail(const llvm::Instruction& i, const llvm::Twine& why) {
  fail(kernel_name_ + ": " + locations_[location(i)] + ": " + why);
}

std::uint32_t Instrumenter::location(const llvm::Instruction& i) {
  std::string text = "an instruction without a place";
  if (const llvm::DebugLoc& at = i.getDebugLoc()) text = (at->getFilename() + ":" + llvm::Twine(at.getLine())).str();
  auto [it, fresh] = location_numbers_.try_emplace(text, static_cast<std::uint32_t>(locations_.size()));
  if (fresh) locations_.push_back(text);
  return it->second;
}

void Instrumenter::check_globals() {
  for (llvm::GlobalVariable& g : module_.globals()) {
    if (g.getName() == "latile_shared") continue;
    if (g.isDeclaration() || g.getAddressSpace() == shared_space)
      fail("the global " + g.getName() + " has no meaning here; latile_shared is the shared memory of a block");
  }
}

void Instrumenter::run() {
  module_.setTargetTriple(llvm::Triple("x86_64-unknown-linux-gnu"));
  check_globals();
  std::vector<llvm::Function*> kernels;
  for (llvm::Function& f : module_) {
    if (is_kernel(f))
      kernels.push_back(&f);
    else if (!f.isDeclaration())
      fail("the function " + f.getName() + " is no kernel; calls must be inlined");
  }
  if (auto* shared = module_.getGlobalVariable("latile_shared")) llvm::convertUsersOfConstantsToInstructions({shared});
  for (llvm::Function* f : kernels) {
    if (!failure_.empty()) return;
    kernel(*f);
  }
  if (!failure_.empty()) return;
  if (auto* shared = module_.getGlobalVariable("latile_shared"); shared && shared->use_empty())
    shared->eraseFromParent();
  for (llvm::Function& f : llvm::make_early_inc_range(module_))
    if (f.isDeclaration() && f.use_empty()) f.eraseFromParent();
  llvm::StripDebugInfo(module_);
  for (llvm::NamedMDNode& n : llvm::make_early_inc_range(module_.named_metadata())) n.eraseFromParent();
}

void Instrumenter::written_parameters(llvm::Function& f) {
  written_.assign(f.arg_size(), 0);
  all_written_ = false;
  auto written = [&](Ir pointer) {
    if (pointer->getType()->getPointerAddressSpace() == shared_space) return;
    llvm::SmallVector<const llvm::Value*> objects;
    llvm::getUnderlyingObjects(pointer, objects, nullptr, 0);
    for (const llvm::Value* o : objects) {
      if (auto* a = llvm::dyn_cast<llvm::Argument>(o))
        written_[a->getArgNo()] = 1;
      else if (!llvm::isa<llvm::AllocaInst>(o))
        all_written_ = true;
    }
  };
  for (llvm::BasicBlock& block : f)
    for (llvm::Instruction& i : block) {
      if (auto* s = llvm::dyn_cast<llvm::StoreInst>(&i)) written(s->getPointerOperand());
      if (auto* m = llvm::dyn_cast<llvm::MemIntrinsic>(&i)) written(m->getRawDest());
    }
}

/// The kernel's code in a function of the lane and the array of parameters. Its first block reads the parameters, and
/// later fields of the lane and addresses of hooks, once.
llvm::Function* Instrumenter::take_body(llvm::Function& f) {
  llvm::Type* pointer = b_.getPtrTy();
  auto* type = llvm::FunctionType::get(b_.getVoidTy(), {pointer, pointer}, false);
  auto* entry = llvm::Function::Create(type, llvm::Function::PrivateLinkage, f.getName() + ".entry", module_);
  entry->splice(entry->begin(), &f);
  llvm::BasicBlock& first = entry->getEntryBlock();
  auto* begin = llvm::BasicBlock::Create(module_.getContext(), "begin", entry, &first);
  b_.SetInsertPoint(begin);
  b_.SetCurrentDebugLocation({});
  for (llvm::Argument& a : f.args()) {
    Ir word = b_.CreateLoad(b_.getInt64Ty(), b_.CreateConstGEP1_64(b_.getInt64Ty(), entry->getArg(1), a.getArgNo()));
    llvm::Type* t = a.getType();
    if (t->isPointerTy())
      word = b_.CreateIntToPtr(word, t);
    else if (t->isIntegerTy())
      word = b_.CreateTrunc(word, t);
    else if (t->isDoubleTy())
      word = b_.CreateBitCast(word, t);
    else
      fail("the kernel " + f.getName() + " has a parameter that is no pointer, integer or double");
    if (a.getType() == word->getType()) a.replaceAllUsesWith(word);
  }
  auto words = [&](unsigned n) {
    return b_.Insert(new llvm::AllocaInst(b_.getInt32Ty(), 0, b_.getInt32(n), llvm::Align(16)));
  };
  in_ = words(64);
  out_ = words(32);
  b_.CreateBr(&first);
  for (llvm::Instruction& i : llvm::make_early_inc_range(first))
    if (llvm::isa<llvm::AllocaInst>(i)) i.moveBefore(begin->getTerminator()->getIterator());
  return entry;
}

void Instrumenter::kernel(llvm::Function& f) {
  function_ = &f;
  fields_.clear();
  hooks_.clear();
  location_numbers_.clear();
  locations_.clear();
  granule_ = 4;
  written_parameters(f);
  unsigned warp_size = f.getCallingConv() == llvm::CallingConv::AMDGPU_KERNEL &&
                               !f.getFnAttribute("target-features").getValueAsString().contains("+wavefrontsize32")
                           ? 64
                           : 32;
  kernel_name_ = f.getName().str();
  unsigned parameters = static_cast<unsigned>(f.arg_size());
  llvm::Function* entry = take_body(f);
  f.eraseFromParent();
  function_ = entry;
  lane_ = entry->getArg(0);
  llvm::BasicBlock* begin = &entry->getEntryBlock();
  if (auto* shared = module_.getGlobalVariable("latile_shared")) {
    for (llvm::Use& use : llvm::make_early_inc_range(shared->uses()))
      if (auto* i = llvm::dyn_cast<llvm::Instruction>(use.getUser()); i && i->getFunction() == entry)
        use.set(lane_field(offsetof(Lane, shared)));
  }
  std::vector<llvm::Instruction*> all;
  for (llvm::BasicBlock& block : *entry)
    if (&block != begin)
      for (llvm::Instruction& i : block) all.push_back(&i);
  for (llvm::Instruction* i : all) {
    b_.SetInsertPoint(i);
    instruction(*i);
    if (!failure_.empty()) return;
  }
  words_for_bf16(*entry);
  entry->addFnAttr(llvm::Attribute::NoUnwind);
  // A frame may be larger than the page that guards a lane's stack: each of its pages is touched on the way.
  entry->addFnAttr("probe-stack", "inline-asm");
  describe(entry, parameters, warp_size);
}

void Instrumenter::instruction(llvm::Instruction& i) {
  if (auto* load = llvm::dyn_cast<llvm::LoadInst>(&i)) {
    access(i, load->getPointerOperand(), load->getType(), load->getAlign(), false);
    if (load->isAtomic()) load->setAtomic(llvm::AtomicOrdering::NotAtomic);
  } else if (auto* store = llvm::dyn_cast<llvm::StoreInst>(&i)) {
    access(i, store->getPointerOperand(), store->getValueOperand()->getType(), store->getAlign(), true);
    if (store->isAtomic()) store->setAtomic(llvm::AtomicOrdering::NotAtomic);
  } else if (llvm::isa<llvm::AtomicRMWInst, llvm::AtomicCmpXchgInst>(i)) {
    fail(i, "atomic operations are not emulated");
  } else if (llvm::isa<llvm::FenceInst>(i)) {
    i.eraseFromParent();
  } else if (llvm::isa<llvm::ReturnInst, llvm::BranchInst, llvm::PHINode>(i)) {
    return;
  } else if (llvm::isa<llvm::InvokeInst, llvm::CallBrInst>(i)) {
    fail(i, "only plain calls are emulated");
  } else if (auto* c = llvm::dyn_cast<llvm::CallInst>(&i)) {
    call(*c);
  } else if (narrow(i)) {
    i.eraseFromParent();
  }
}

void Instrumenter::access(llvm::Instruction& i, Ir pointer, llvm::Type* type, llvm::Align align, bool write) {
  unsigned space = pointer->getType()->getPointerAddressSpace();
  if (space != shared_space && is_private(pointer)) return;
  std::uint64_t bytes = module_.getDataLayout().getTypeStoreSize(type).getFixedValue();
  std::uint64_t aligned = std::min<std::uint64_t>(align.value(), 4096);
  if (bytes > 4096)
    return fail(i, "an access of " + llvm::Twine(bytes) + " bytes is more than the 4096 of the emulator");
  if (space != global_space)
    while (granule_ > 1 && (bytes % granule_ || aligned % granule_)) granule_ /= 2;
  Hook h = space == shared_space   ? (write ? Hook::write_shared : Hook::read_shared)
           : space == global_space ? (write ? Hook::write_global : Hook::read_global)
                                   : (write ? Hook::write_generic : Hook::read_generic);
  call_hook(h, b_.getVoidTy(), {lane_, pointer, shape(bytes, aligned), where(i)});
}

Ir Instrumenter::lane_field(std::size_t offset) {
  Ir& field = fields_[offset];
  if (field) return field;
  llvm::IRBuilder<>::InsertPointGuard guard(b_);
  b_.SetInsertPoint(function_->getEntryBlock().getTerminator());
  // On a CPU all address spaces are one, and a hook takes an address of any of them; no cast stands in the way of quick
  // instruction selection.
  llvm::Type* type = offset == offsetof(Lane, hooks)    ? b_.getPtrTy()
                     : offset == offsetof(Lane, shared) ? b_.getPtrTy(shared_space)
                                                        : static_cast<llvm::Type*>(b_.getInt32Ty());
  return field = b_.CreateLoad(type, b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), lane_, offset));
}

Ir Instrumenter::hook(Hook h) {
  Ir& pointer = hooks_[h];
  if (pointer) return pointer;
  Ir table = lane_field(offsetof(Lane, hooks));
  llvm::IRBuilder<>::InsertPointGuard guard(b_);
  b_.SetInsertPoint(function_->getEntryBlock().getTerminator());
  return pointer = b_.CreateLoad(b_.getPtrTy(),
                                 b_.CreateConstInBoundsGEP1_64(b_.getPtrTy(), table, static_cast<unsigned>(h)));
}

llvm::CallInst* Instrumenter::call_hook(Hook h, llvm::Type* result, llvm::ArrayRef<Ir> operands) {
  llvm::SmallVector<llvm::Type*> types;
  for (Ir x : operands) types.push_back(x->getType());
  return b_.CreateCall(llvm::FunctionType::get(result, types, false), hook(h), operands);
}

/// A CallSite of its own: its address tells calls apart.
llvm::Constant* Instrumenter::call_site(llvm::Instruction& i, Collective op, unsigned variant) {
  auto* value =
      llvm::ConstantStruct::getAnon({b_.getInt16(static_cast<std::uint16_t>(op)),
                                     b_.getInt16(static_cast<std::uint16_t>(variant)), b_.getInt32(location(i))});
  return constant(value, "site");
}

/// In the CPU's address space, which is not where every target has its constants.
llvm::GlobalVariable* Instrumenter::constant(llvm::Constant* value, const char* name) {
  return new llvm::GlobalVariable(module_, value->getType(), true, llvm::GlobalValue::PrivateLinkage, value, name,
                                  nullptr, llvm::GlobalValue::NotThreadLocal, 0u);
}

void Instrumenter::describe(llvm::Function* entry, unsigned parameters, unsigned warp_size) {
  std::vector<llvm::Constant*> texts;
  for (const std::string& text : locations_)
    texts.push_back(constant(llvm::ConstantDataArray::getString(module_.getContext(), text), "location"));
  auto* array = llvm::ConstantArray::get(llvm::ArrayType::get(b_.getPtrTy(), texts.size()), texts);
  auto word = [&](std::size_t n) { return b_.getInt32(static_cast<std::uint32_t>(n)); };
  static_assert(offsetof(EmulatedKernel, written) == 24 && offsetof(EmulatedKernel, entry) == 40);
  llvm::Constant* kernel = llvm::ConstantStruct::getAnon(
      {word(abi_version), word(warp_size), word(granule_), word(parameters), word(locations_.size()),
       word(all_written_), constant(llvm::ConstantDataArray::get(module_.getContext(), written_), "written"),
       constant(array, "locations"), entry});
  auto* type = llvm::FunctionType::get(b_.getPtrTy(), false);
  auto* exported = llvm::Function::Create(type, llvm::Function::ExternalLinkage, kernel_name_, module_);
  b_.SetInsertPoint(llvm::BasicBlock::Create(module_.getContext(), "", exported));
  b_.CreateRet(constant(kernel, "kernel"));
}

}  // namespace latile::emulator
