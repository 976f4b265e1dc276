// Arguments, control flow and the order of work of a kernel.
#include "codegen/simt/Instructions.h"
#include "codegen/simt/KernelEmitter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

namespace latile::simt {

using namespace tile;

KernelEmitter::KernelEmitter(KernelOp kernel, llvm::Module& module, llvm::DIBuilder& debug, llvm::DICompileUnit* unit,
                             const Target& target, const Instructions& instructions, int threads, std::size_t room,
                             std::vector<bool> in_arena, std::map<unsigned, double> excess)
    : kernel_(kernel), module_(module), target_(target), choice_(target, threads), debug_(debug), unit_(unit),
      b_(module.getContext()), t_(b_, instructions, target.lanes, threads), scratch_(in_arena),
      has_arena_(llvm::is_contained(in_arena, true) || !kernel.getBody().front().getOps<ScratchOp>().empty()),
      excess_(std::move(excess)), room_(room) {
  facts_.threads = threads;
}

void KernelEmitter::fail(mlir::Operation* op, llvm::Twine why) {
  if (!failure_.empty()) return;
  llvm::raw_string_ostream out(failure_);
  out << "device code generation: " << kernel_.getSymName() << ": " << op->getName().getStringRef() << ": " << why;
}

/// Instructions carry the tile op they come from as their place in the source: file "tile.dot", line: number of the op
/// in the kernel.
void KernelEmitter::locate(mlir::Operation* op) {
  ++op_number_;
  llvm::StringRef name = op->getName().getStringRef();
  llvm::DILexicalBlockFile*& file = op_files_[name];
  if (!file) file = debug_.createLexicalBlockFile(subprogram_, debug_.createFile(name, facts_.symbol));
  b_.SetCurrentDebugLocation(llvm::DILocation::get(module_.getContext(), op_number_, 1, file));
}

static void dims_read(KernelOp kernel, const std::vector<std::string>& grid, std::vector<std::string>& dims) {
  auto need = [&](const std::string& name) {
    if (std::find(dims.begin(), dims.end(), name) == dims.end()) dims.push_back(name);
  };
  for (std::size_t k = 1; k < grid.size(); ++k) need(grid[k]);
  for (mlir::Type type : kernel.getArgumentTypes())
    if (auto s = mlir::dyn_cast<SequencesType>(type)) need(s.isRagged() ? "N" : "T");
  kernel.walk([&](mlir::Operation* op) {
    if (auto h = mlir::dyn_cast<HeadOp>(op); h && h.getMap() != HeadMap::Grouped) need(h.getAxis().str());
    if (auto m = mlir::dyn_cast<MemberOp>(op); m && m.getMap() != HeadMap::Grouped) need(m.getAxis().str());
  });
}

/// Views as pointers, then every stride and dim as i64, then scalars as double; with arenas their address, the bytes of
/// one, and the counts of items and of blocks.
void KernelEmitter::make_function(ArrayRef<std::string> names) {
  facts_.symbol = kernel_.getSymName().str();
  for (mlir::Attribute a : kernel_.getGrid())
    if (auto axis = mlir::cast<mlir::StringAttr>(a).getValue(); axis != "slice") facts_.grid.push_back(axis.str());
  if (auto slices = kernel_->getAttrOfType<mlir::IntegerAttr>("slices"))
    facts_.slices = static_cast<int>(slices.getInt());
  dims_read(kernel_, facts_.grid, facts_.dims);
  auto args = kernel_.getBody().front().getArguments().drop_front(kernel_.getGrid().size());
  SmallVector<llvm::Type*> types;
  for (auto [arg, name] : llvm::zip(args, names)) {
    auto view = mlir::dyn_cast<ViewType>(arg.getType());
    auto sequences = mlir::dyn_cast<SequencesType>(arg.getType());
    if (view)
      facts_.views.push_back({name, static_cast<int>(view.getRank())});
    else if (sequences && sequences.isRagged())
      facts_.views.push_back({"cu_seqlens", 1});
    else if (!sequences)
      facts_.scalars.push_back(name);
  }
  for (const ViewArgument& v : facts_.views) {
    types.push_back(b_.getPtrTy(global_space));
    strides_ += v.rank;
  }
  types.append(static_cast<std::size_t>(strides_) + facts_.dims.size(), b_.getInt64Ty());
  types.append(facts_.scalars.size(), b_.getDoubleTy());
  if (has_arena_) types.append({b_.getPtrTy(global_space), b_.getInt64Ty(), b_.getInt64Ty(), b_.getInt64Ty()});
  function_ = llvm::Function::Create(llvm::FunctionType::get(b_.getVoidTy(), types, false),
                                     llvm::Function::ExternalLinkage, facts_.symbol, module_);
  t_.isa.make_kernel(*function_, t_.threads);
  function_->addFnAttr(llvm::Attribute::NoUnwind);
  llvm::DIFile* file = debug_.createFile(facts_.symbol, "latile");
  subprogram_ = debug_.createFunction(unit_, facts_.symbol, facts_.symbol, file, 1,
                                      debug_.createSubroutineType(debug_.getOrCreateTypeArray({})), 1,
                                      llvm::DINode::FlagZero, llvm::DISubprogram::SPFlagDefinition);
  function_->setSubprogram(subprogram_);
  entry_ = llvm::BasicBlock::Create(module_.getContext(), "entry", function_);
  exit_ = llvm::BasicBlock::Create(module_.getContext(), "exit", function_);
  b_.SetInsertPoint(entry_);
  b_.SetCurrentDebugLocation({});
}

Ir KernelEmitter::dim(const std::string& name) {
  auto slot = std::find(facts_.dims.begin(), facts_.dims.end(), name) - facts_.dims.begin();
  return function_->getArg(static_cast<unsigned>(static_cast<std::int64_t>(facts_.views.size()) + strides_ + slot));
}

void KernelEmitter::bind_arguments(ArrayRef<std::string> names) {
  unsigned pointer = 0, stride = static_cast<unsigned>(facts_.views.size()),
           scalar = stride + static_cast<unsigned>(strides_) + static_cast<unsigned>(facts_.dims.size());
  auto args = kernel_.getBody().front().getArguments().drop_front(kernel_.getGrid().size());
  for (auto [arg, name] : llvm::zip(args, names)) {
    if (auto shape = mlir::dyn_cast<ViewType>(arg.getType())) {
      View view;
      view.pointer = function_->getArg(pointer++);
      view.shape = shape;
      view.element = element_type(shape);
      Ir together = b_.CreatePtrToInt(view.pointer, b_.getInt64Ty());
      for (std::int64_t k = 0; k < shape.getRank(); ++k) {
        Ir s = function_->getArg(stride++);
        bool unit = k == shape.getUnit();
        view.strides.push_back(unit ? t_.i64(1) : s);
        if (!unit) together = b_.CreateOr(together, t_.mul(s, bytes_of(view.element)));
      }
      view.aligned = b_.CreateICmpEQ(b_.CreateAnd(together, t_.i64(15)), t_.i64(0));
      views_[arg] = view;
    } else if (auto s = mlir::dyn_cast<SequencesType>(arg.getType())) {
      Sequences sequences;
      sequences.bits = static_cast<int>(s.getBits());
      if (s.isRagged()) {
        sequences.lengths = function_->getArg(pointer++);
        sequences.stride = function_->getArg(stride++);
      } else {
        sequences.rows = dim("T");
      }
      sequences_[arg] = sequences;
    } else {
      scalars_[arg] = function_->getArg(scalar++);
    }
  }
}

/// The flattened item: the last axis is the fastest.
void KernelEmitter::bind_grid(Ir item) {
  auto args = kernel_.getBody().front().getArguments();
  if (facts_.grid.size() < kernel_.getGrid().size()) {  // the last axis: slices of columns
    indices_[args[facts_.grid.size()]] = t_.wide(t_.rem(item, facts_.slices));
    item = t_.div(item, facts_.slices);
  }
  for (std::size_t k = facts_.grid.size(); k-- > 0;) {
    if (k == 0) {
      indices_[args[k]] = t_.wide(item);
      break;
    }
    Ir count = b_.CreateTrunc(dim(facts_.grid[k]), b_.getInt32Ty());
    indices_[args[k]] = t_.wide(b_.CreateURem(item, count));
    item = b_.CreateUDiv(item, count);
  }
}

void KernelEmitter::emit(ArrayRef<std::string> names) {
  make_function(names);
  shared_ = module_.getGlobalVariable("latile_shared");
  if (!shared_) {
    shared_ = new llvm::GlobalVariable(module_, llvm::ArrayType::get(b_.getInt8Ty(), 0), false,
                                       llvm::GlobalValue::ExternalLinkage, nullptr, "latile_shared", nullptr,
                                       llvm::GlobalValue::NotThreadLocal, shared_space);
    shared_->setAlignment(llvm::Align(1024));
  }
  t_.begin();
  bind_arguments(names);
  find_last_uses();
  auto argument = [&](std::size_t from_last) -> Ir {
    return function_->getArg(static_cast<unsigned>(function_->arg_size() - from_last));
  };
  auto* body = llvm::BasicBlock::Create(module_.getContext(), "body", function_, exit_);
  Ir block = t_.isa.block_number(t_);
  llvm::PHINode* item = nullptr;
  if (has_arena_) {
    arena_ = t_.at(argument(4), t_.mul(t_.wide(block), argument(3)));
    b_.SetInsertPoint(body);
    item = b_.CreatePHI(b_.getInt32Ty(), 2);
    item->addIncoming(block, entry_);
  }
  bind_grid(has_arena_ ? item : block);
  b_.SetInsertPoint(body);
  emit_block(kernel_.getBody().front());
  b_.SetCurrentDebugLocation({});
  b_.CreateBr(exit_);
  b_.SetInsertPoint(exit_);
  if (has_arena_) {
    // Blocks with an arena are few: each goes on to the next of its items, once nobody reads what it writes there.
    barrier();
    Ir next = t_.add(t_.wide(item), argument(1));
    item->addIncoming(b_.CreateTrunc(next, b_.getInt32Ty()), exit_);
    auto* done = llvm::BasicBlock::Create(module_.getContext(), "done", function_);
    b_.CreateCondBr(b_.CreateICmpSLT(next, argument(2)), body, done);
    b_.SetInsertPoint(done);
  }
  b_.CreateRetVoid();
  llvm::IRBuilder<>(entry_).CreateBr(body);
  facts_.shared_bytes = static_cast<std::size_t>(scratch_.peak());
  facts_.arena_bytes = static_cast<std::size_t>(scratch_.arena_peak());
}

// Lifetimes

/// Products whose sums start from the other term of the only sum they are in: emitted there, with no registers of their
/// own.
bool is_added_to(mlir::Operation* op) {
  auto product = [](mlir::Value v) {
    auto dot = v.getDefiningOp<DotOp>();
    return dot && v.hasOneUse() && extents(v)[0] > 1 && extents(v)[1] > 1 && extents(dot.getA())[1] > 1;
  };
  auto dot = mlir::dyn_cast<DotOp>(op);
  if (!dot || !product(dot.getTile())) return false;
  auto sum = mlir::dyn_cast<mlir::arith::AddFOp>(*dot.getTile().getUsers().begin());
  if (!sum || sum->getBlock() != op->getBlock()) return false;
  // One term must be there before.
  return sum.getRhs() == dot.getTile() || !product(sum.getRhs());
}

bool is_alias(mlir::Operation* op) {
  return mlir::isa<TransposeOp, BroadcastOp>(op) || is_added_to(op) || is_row_above(op);
}

// Such a row above is made where something else asks for it.
bool is_row_above(mlir::Operation* op) {
  return mlir::isa<PrevOp>(op) && llvm::any_of(op->getUsers(), reads_row_above);
}

void each_use(mlir::Value v, mlir::Block* block, llvm::function_ref<void(mlir::Operation*)> f) {
  for (mlir::Operation* user : v.getUsers()) {
    if (mlir::Operation* at = block->findAncestorOpInBlock(*user)) f(at);
    if (is_alias(user)) each_use(user->getResult(0), block, f);
  }
}

mlir::Operation* last_use(mlir::Value v) {
  mlir::Operation* last = nullptr;
  each_use(v, v.getParentBlock(), [&](mlir::Operation* at) {
    if (!last || last->isBeforeInBlock(at)) last = at;
  });
  return last;
}

void KernelEmitter::find_last_uses() {
  // Scores read what their operands were cast from.
  llvm::DenseMap<mlir::Value, mlir::Operation*> sources;
  kernel_.walk([&](DecayedScoresOp op) {
    for (mlir::Value v : {op.getQ(), op.getK()})
      if (mlir::Value from = narrow_source(v)) sources[from] = op;
  });
  auto note = [&](mlir::Value v) {
    if (!is_tile(v)) return;
    mlir::Operation* op = last_use(v);
    if (mlir::Operation* scores = sources.lookup(v)) {
      scores = v.getParentBlock()->findAncestorOpInBlock(*scores);
      if (!op || op->isBeforeInBlock(scores)) op = scores;
    }
    if (op) last_uses_[op].push_back(v);
  };
  kernel_.walk([&](mlir::Operation* op) {
    for (mlir::Value v : op->getResults()) note(v);
    for (mlir::Region& region : op->getRegions())
      for (mlir::Block& block : region)
        for (mlir::Value v : block.getArguments()) note(v);
  });
}

void KernelEmitter::release_after(mlir::Operation* op) {
  auto it = last_uses_.find(op);
  if (it == last_uses_.end()) return;
  for (mlir::Value v : it->second) release_copies(v);
}

/// What is made inside does not dominate what comes after, and its memory is free again.
void KernelEmitter::in_scope(llvm::function_ref<void()> body) {
  std::size_t before = added_.size();
  body();
  while (added_.size() > before) {
    auto [value, is_copy] = added_.back();
    added_.pop_back();
    Held& held = held_[value];
    if (is_copy) {
      if (!held.copies.back().borrowed) scratch_.release(held.copies.back().region);
      held.copies.pop_back();
    } else {
      held.forms.pop_back();
    }
  }
}

// Control flow

void KernelEmitter::emit_block(mlir::Block& block) {
  for (mlir::Operation& op : block) {
    if (!failure_.empty()) return;
    if (op.hasTrait<mlir::OpTrait::IsTerminator>()) return;
    locate(&op);
    const unsigned number = op_number_;
    put_aside(&op);
    emit_operation(&op);
    if (op_number_ != number) inner_[number] = op_number_;
    release_after(&op);
  }
}

void KernelEmitter::emit_operation(mlir::Operation* op) {
  if (auto loop = mlir::dyn_cast<mlir::scf::ForOp>(op)) return emit_for(loop);
  if (auto branch = mlir::dyn_cast<mlir::scf::IfOp>(op)) return emit_if(branch);
  if (auto s = mlir::dyn_cast<ScratchOp>(op)) return emit_scratch(s);
  if (emit_index(op)) return;
  if (mlir::isa<LoadOp, LoadRowsOp>(op)) return emit_load(op);
  if (mlir::isa<StoreOp, StoreRowsOp>(op)) return emit_store(op);
  if (op->use_empty() || is_alias(op)) return;
  if (auto c = mlir::dyn_cast<ConvertLayoutOp>(op)) {
    Layout to = layout_of(c.getTile());
    return define(c.getTile(), to, get(c.getX(), to));
  }
  // Rounded where they were made.
  if (auto c = mlir::dyn_cast<CastOp>(op); c && !held_[c.getTile()].copies.empty()) return;
  if (auto d = mlir::dyn_cast<DotOp>(op)) return emit_dot(d);
  if (auto r = mlir::dyn_cast<ReduceOp>(op)) return emit_reduce(r);
  if (mlir::isa<InverseUnitLowerOp, SolveUnitLowerOp>(op)) return emit_triangular(op);
  if (auto d = mlir::dyn_cast<DecayedScoresOp>(op)) return emit_decayed_scores(d);
  if (auto d = mlir::dyn_cast<DecayedApplyOp>(op)) return emit_decayed_apply(d);
  if (auto s = mlir::dyn_cast<SolveOp>(op)) return emit_solve(s);
  if (auto c = mlir::dyn_cast<CustomOp>(op)) return emit_custom(c);
  if (emit_running(op) || emit_gather(op) || emit_elementwise(op)) return;
  fail(op, "has no lowering");
}

void KernelEmitter::emit_if(mlir::scf::IfOp branch) {
  if (branch.getNumResults()) return fail(branch, "results are not supported");
  Ir condition = indices_.lookup(branch.getCondition());
  barrier();
  auto side = [&](mlir::Region& region) {
    if (region.empty()) return;
    in_scope([&] { emit_block(region.front()); });
    barrier();
  };
  t_.either(condition, [&] { side(branch.getThenRegion()); }, [&] { side(branch.getElseRegion()); });
}

// Carried tiles stay in registers, in the layout of their initial value's type. A barrier at the start of a turn parts
// it from the turn before and from what came before the loop; one behind the loop parts the last turn from the rest.
void KernelEmitter::emit_for(mlir::scf::ForOp loop) {
  auto step = loop.getConstantStep();
  if (!step) return fail(loop, "has no constant step");
  mlir::Block& body = *loop.getBody();
  SmallVector<Ir> init;
  SmallVector<Layout> layouts;
  SmallVector<std::size_t> counts;
  for (auto [carry, start] : llvm::zip(loop.getRegionIterArgs(), loop.getInitArgs())) {
    if (!is_tile(carry)) {
      layouts.emplace_back();
      counts.push_back(1);
      init.push_back(indices_.lookup(start));
      continue;
    }
    layouts.push_back(layout_of(carry));
    SmallVector<Ir> values = get(start, layouts.back());
    counts.push_back(values.size());
    init.append(values);
  }
  // Turns that carry nothing on find the right operands that they share in shared memory.
  if (init.empty())
    body.walk([&](DotOp dot) {
      mlir::Value right = dot.getB();
      while (auto t = right.getDefiningOp<TransposeOp>()) right = t.getX();
      if (!loop->isAncestor(right.getParentBlock()->getParentOp()) && extents(dot.getA())[0] > 1 &&
          extents(right)[0] > 1 && extents(right)[1] > 1)
        (void)copy(right);
    });
  // So is what a turn picks columns from.
  body.walk([&](PickColumnsOp pick) {
    if (!loop->isAncestor(pick.getX().getParentBlock()->getParentOp())) (void)copy(pick.getX());
  });
  if (!failure_.empty()) return;
  Ir low = indices_.lookup(loop.getLowerBound()), high = indices_.lookup(loop.getUpperBound());
  std::int64_t stride = step->getSExtValue();
  find_stages(loop);
  const SmallVector<mlir::Operation*> loads = stages_.loads, vectors = stages_.vectors;
  const bool ahead = !loads.empty() || !vectors.empty();
  // Behind the carried tiles: the registers of vectors, the number of the stage.
  const std::size_t tiles = init.size();
  auto start = [&](Ir at, Ir stage) {
    return t_.choose(
        b_.CreateICmpSLT(at, high), [&] { return start_stages(loop, at, stage); },
        [&] {
          SmallVector<Ir> none;
          for (mlir::Operation* op : vectors)
            none.append(static_cast<std::size_t>(layout_of(op->getResult(0)).registers()),
                        llvm::Constant::getNullValue(element_type(op->getResult(0))));
          return none;
        });
  };
  if (ahead) {
    SmallVector<Copy> stages;
    for (mlir::Operation* op : loads) stages.push_back(ahead_[op]);
    accesses({}, stages);
    init.append(start(low, t_.i32(0)));
    init.push_back(t_.i32(0));
  }
  SmallVector<Ir> next_ahead;
  auto bind = [&](mlir::ValueRange values, ArrayRef<Ir> carried) {
    std::size_t at = 0;
    for (auto [v, layout, count] : llvm::zip(values, layouts, counts)) {
      if (is_tile(v))
        define(v, layout, SmallVector<Ir>(carried.slice(at, count)));
      else
        indices_[v] = carried[at];
      at += count;
    }
  };
  auto turn = [&](Ir iv, ArrayRef<Ir> carried) {
    SmallVector<Ir> next;
    if (!loads.empty()) t_.isa.wait_copies(t_);
    barrier();
    if (ahead) {
      // Behind the barrier nobody reads the other stage any more.
      Ir other = b_.CreateXor(carried.back(), t_.i32(1));
      next_ahead = start(t_.add(iv, stride), other);
      next_ahead.push_back(other);
      for (mlir::Operation* op : loads) ahead_[op].stage = t_.mul(carried.back(), stage_bytes(ahead_[op]));
      std::size_t at = tiles;
      for (mlir::Operation* op : vectors) {
        auto count = static_cast<std::size_t>(layout_of(op->getResult(0)).registers());
        waiting_[op] = SmallVector<Ir>(carried.slice(at, count));
        at += count;
      }
    }
    indices_[loop.getInductionVar()] = iv;
    in_scope([&] {
      bind(mlir::ValueRange(loop.getRegionIterArgs()), carried);
      emit_block(body);
      if (!failure_.empty()) return;
      for (auto [v, layout] : llvm::zip(body.getTerminator()->getOperands(), layouts)) {
        if (is_tile(v))
          next.append(get(v, layout));
        else
          next.push_back(indices_.lookup(v));
      }
      release_after(body.getTerminator());
    });
    next.append(next_ahead);
    return failure_.empty() ? next : SmallVector<Ir>(carried);
  };
  SmallVector<Ir> last = t_.loop(low, high, stride, init, turn);
  barrier();
  if (ahead) {
    for (mlir::Operation* op : loads) {
      scratch_.release(ahead_[op].region);
      ahead_.erase(op);
    }
    for (mlir::Operation* op : vectors) waiting_.erase(op);
  }
  bind(loop.getResults(), last);
}

}  // namespace latile::simt
