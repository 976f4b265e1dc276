// Arguments, control flow and the order of work of a kernel.
#include "codegen/Comparison.h"
#include "codegen/host/KernelEmitter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/IR/IntrinsicsX86.h"
#include "llvm/Support/MathExtras.h"

namespace latile::host {

using namespace tile;

static ElementType element_type(mlir::Type t) {
  if (t.isF16()) return ElementType::f16;
  if (t.isBF16()) return ElementType::bf16;
  if (t.isInteger(32)) return ElementType::i32;
  if (t.isInteger(64)) return ElementType::i64;
  return ElementType::f32;
}

KernelEmitter::KernelEmitter(KernelOp kernel, llvm::Module& module, const HostIsa& isa)
    : kernel_(kernel), module_(module), builder_(module.getContext()), l_(builder_, isa),
      storage_(kernel, bfloat16_engine(isa)), engine_(bfloat16_engine(isa)) {}

void KernelEmitter::fail(mlir::Operation* op, llvm::Twine why) {
  if (!failure_.empty()) return;
  llvm::raw_string_ostream out(failure_);
  out << "host code generation: " << op->getName().getStringRef() << ": " << why;
}

Ir KernelEmitter::integer(std::int64_t slot) {
  llvm::IRBuilder<>::InsertPointGuard guard(builder_);
  builder_.SetInsertPoint(entry_);
  return builder_.CreateAlignedLoad(builder_.getInt64Ty(), l_.at(integers_, l_.index(8 * slot)), llvm::Align(8));
}

Ir KernelEmitter::dim(const std::string& name) {
  auto it = std::find(facts_.dims.begin(), facts_.dims.end(), name);
  std::int64_t slot = it - facts_.dims.begin();
  if (it == facts_.dims.end()) facts_.dims.push_back(name);
  return integer(strides_ + slot);
}

Ir KernelEmitter::allocate(std::int64_t bytes) {
  llvm::IRBuilder<>::InsertPointGuard guard(builder_);
  builder_.SetInsertPoint(entry_);
  Ir base = l_.at(arena_, l_.index(arena_bytes_));
  // An odd number of lines between buffers keeps equal rows of different buffers out of one set of the cache.
  arena_bytes_ += static_cast<std::int64_t>(llvm::alignTo(static_cast<std::uint64_t>(bytes), 64)) + 64;
  return base;
}

void KernelEmitter::bind_arguments(llvm::ArrayRef<std::string> names) {
  auto args = kernel_.getBody().front().getArguments();
  std::size_t axes = kernel_.getGrid().size();
  for (auto [arg, name] : llvm::zip(args.drop_front(axes), names)) {
    if (auto view = mlir::dyn_cast<ViewType>(arg.getType())) {
      facts_.views.push_back({name, static_cast<int>(view.getRank())});
      strides_ += view.getRank();
    } else if (auto s = mlir::dyn_cast<SequencesType>(arg.getType()); s && s.isRagged()) {
      facts_.views.push_back({"cu_seqlens", 1});
      strides_ += 1;
    }
  }
  std::int64_t pointer = 0, stride = 0, scalar = 0;
  Ir pointers = builder_.CreateLoad(builder_.getPtrTy(), arguments_);
  Ir scalars = builder_.CreateLoad(builder_.getPtrTy(), l_.at(arguments_, l_.index(16)));
  auto next_pointer = [&] {
    return builder_.CreateLoad(builder_.getPtrTy(), l_.at(pointers, l_.index(8 * pointer++)));
  };
  for (auto [arg, name] : llvm::zip(args.drop_front(axes), names)) {
    if (auto shape = mlir::dyn_cast<ViewType>(arg.getType())) {
      View view{next_pointer(), {}, element_type(shape.getElementType()), shape};
      for (std::int64_t k = 0; k < shape.getRank(); ++k) {
        Ir s = integer(stride++);
        view.strides.push_back(k == shape.getUnit() ? l_.index(1) : s);
      }
      views_[arg] = view;
    } else if (auto s = mlir::dyn_cast<SequencesType>(arg.getType())) {
      Sequences sequences;
      sequences.bits = static_cast<int>(s.getBits());
      if (s.isRagged()) {
        sequences.lengths = next_pointer();
        stride += 1;
      } else {
        sequences.rows = dim("T");
      }
      sequences_[arg] = sequences;
    } else {
      facts_.scalars.push_back(name);
      scalars_[arg] = builder_.CreateLoad(builder_.getDoubleTy(), l_.at(scalars, l_.index(8 * scalar++)));
    }
  }
}

void KernelEmitter::emit(llvm::ArrayRef<std::string> names) {
  facts_.symbol = kernel_.getSymName().str();
  for (mlir::Attribute a : kernel_.getGrid()) facts_.grid.push_back(mlir::cast<mlir::StringAttr>(a).str());
  auto* type = llvm::FunctionType::get(builder_.getVoidTy(),
                                       {builder_.getPtrTy(), builder_.getInt64Ty(), builder_.getPtrTy()}, false);
  function_ = llvm::Function::Create(type, llvm::Function::ExternalLinkage, facts_.symbol, module_);
  function_->getArg(0)->addAttr(llvm::Attribute::NoAlias);
  function_->getArg(2)->addAttr(llvm::Attribute::NoAlias);
  arguments_ = function_->getArg(0);
  arena_ = function_->getArg(2);
  entry_ = llvm::BasicBlock::Create(module_.getContext(), "entry", function_);
  builder_.SetInsertPoint(entry_);
  integers_ = builder_.CreateLoad(builder_.getPtrTy(), l_.at(arguments_, l_.index(8)));
  bind_arguments(names);

  std::int64_t widest = 64;
  kernel_.walk([&](mlir::Operation* op) {
    for (mlir::Value v : op->getResults())
      if (is_tile(v)) widest = std::max({widest, extents(v)[0], extents(v)[1]});
  });
  std::int64_t row = static_cast<std::int64_t>(llvm::alignTo(static_cast<std::uint64_t>(widest), 64)) * 4 + 64;
  zeros_ = allocate(row);
  trash_ = allocate(row);

  // The flattened item: the last axis is the fastest.
  auto args = kernel_.getBody().front().getArguments();
  Ir item = function_->getArg(1);
  for (std::size_t k = facts_.grid.size(); k-- > 0;) {
    if (k == 0) {
      indices_[args[k]] = item;
      break;
    }
    Ir count = dim(facts_.grid[k]);
    indices_[args[k]] = builder_.CreateSRem(item, count);
    item = builder_.CreateSDiv(item, count);
  }
  auto* body = llvm::BasicBlock::Create(module_.getContext(), "body", function_);
  builder_.SetInsertPoint(body);
  l_.loop(l_.index(0), l_.index(row / 4), l_.width,
          [&](Ir k) { l_.store(l_.splat(0.0), l_.at(zeros_, l_.mul(k, 4)), ElementType::f32, nullptr); });
  bool tiles = false;
  kernel_.walk([&](DotOp d) { tiles |= engine_ == Bfloat16::tiles && is_bfloat16_product(d); });
  kernel_.walk([&](DecayedScoresOp d) { tiles |= splits_into_blocks(d, engine_); });
  if (tiles) configure_tiles();
  emit_block(kernel_.getBody().front());
  if (tiles) builder_.CreateIntrinsic(llvm::Intrinsic::x86_tilerelease, {});
  builder_.CreateRetVoid();
  llvm::IRBuilder<>(entry_).CreateBr(body);
  facts_.arena_bytes = static_cast<std::size_t>(llvm::alignTo(static_cast<std::uint64_t>(arena_bytes_), 4096));
}

void KernelEmitter::emit_block(mlir::Block& block) {
  emit_operations(block);
  run_panels();
}

void KernelEmitter::emit_operations(mlir::Block& block) {
  gather_row_products(block);
  SmallVector<mlir::Operation*> run;
  auto flush = [&] {
    if (&block == unfetched_ && !run.empty()) begin_prefetch(block);
    emit_tiles(run);
    run.clear();
  };
  for (mlir::Operation& op : block) {
    if (!failure_.empty()) return;
    if (auto loop = mlir::dyn_cast<mlir::scf::ForOp>(op)) {
      flush();
      run_panels();
      emit_for(loop);
    } else if (auto branch = mlir::dyn_cast<mlir::scf::IfOp>(op)) {
      flush();
      run_panels();
      emit_if(branch);
    } else if (!emit_index(&op) && !op.hasTrait<mlir::OpTrait::IsTerminator>()) {
      run.push_back(&op);
    }
  }
  flush();
}

bool KernelEmitter::emit_index(mlir::Operation* op) {
  auto in = [&](unsigned k) { return indices_.lookup(op->getOperand(k)); };
  auto& b = builder_;
  if (auto c = mlir::dyn_cast<mlir::arith::ConstantOp>(op)) {
    if (auto i = mlir::dyn_cast<mlir::IntegerAttr>(c.getValue())) {
      if (c.getType().isInteger(1))
        indices_[c] = b.getInt1(i.getValue().getBoolValue());
      else
        indices_[c] = l_.index(i.getValue().getSExtValue());
      return true;
    }
    return false;
  }
  if (auto s = mlir::dyn_cast<SequenceOp>(op)) {
    const Sequences& q = sequences_[s.getSequences()];
    Ir n = in(1);
    if (!q.lengths) {
      indices_[s.getBatch()] = n;
      indices_[s.getBegin()] = l_.index(0);
      indices_[s.getEnd()] = q.rows;
      return true;
    }
    indices_[s.getBatch()] = l_.index(0);
    indices_[s.getBegin()] = border(q, n);
    indices_[s.getEnd()] = border(q, l_.add(n, 1));
    return true;
  }
  if (auto c = mlir::dyn_cast<ChunkOp>(op)) return emit_chunk(c), true;
  if (auto c = mlir::dyn_cast<ChunkBeginOp>(op)) return emit_chunk_begin(c), true;
  if (auto s = mlir::dyn_cast<SlotOp>(op)) {
    const View& v = views_[s.getView()];
    Ir at = l_.mul(in(1), v.strides[0]);
    if (s.getM()) at = l_.add(at, l_.mul(in(2), v.strides[1]));
    if (v.type == ElementType::i64)
      indices_[s.getSlot()] = b.CreateLoad(b.getInt64Ty(), l_.at(v.pointer, l_.mul(at, 8)));
    else
      indices_[s.getSlot()] =
          b.CreateSExt(b.CreateLoad(b.getInt32Ty(), l_.at(v.pointer, l_.mul(at, 4))), b.getInt64Ty());
    return true;
  }
  if (auto h = mlir::dyn_cast<HeadOp>(op)) {
    Ir ratio = l_.index(static_cast<std::int64_t>(h.getRatio()));
    indices_[h.getCoarse()] =
        h.getMap() == HeadMap::Grouped ? b.CreateSDiv(in(0), ratio) : b.CreateSRem(in(0), dim(h.getAxis().str()));
    return true;
  }
  if (auto m = mlir::dyn_cast<MemberOp>(op)) {
    indices_[m.getFine()] = m.getMap() == HeadMap::Grouped
                                ? l_.add(l_.mul(in(1), static_cast<std::int64_t>(m.getRatio())), in(0))
                                : l_.add(l_.mul(in(0), dim(m.getAxis().str())), in(1));
    return true;
  }
  if (auto r = mlir::dyn_cast<RowsOp>(op)) {
    std::int64_t size = r.getRows().getType().getSize();
    Ir left = b.CreateSub(in(2), in(1));
    Ir count = b.CreateBinaryIntrinsic(llvm::Intrinsic::smin, left, l_.index(size));
    Ir done = b.CreateSub(in(1), in(0));
    Ir first = r.getReversed() ? b.CreateSub(b.CreateSub(in(2), l_.index(1)), done) : in(1);
    Ir number = b.CreateSDiv(done, l_.index(size));
    if (auto back = static_cast<std::int64_t>(r.getBack())) {
      if (r.getReversed()) return fail(op, "goes back in reversed rows"), true;
      first = b.CreateSub(in(1), l_.index(back));
      count = b.CreateBinaryIntrinsic(llvm::Intrinsic::smin, b.CreateSub(in(2), first), l_.index(size));
      rows_[r.getRows()] = {first, count, number, false, b.CreateSub(in(0), first)};
      return true;
    }
    rows_[r.getRows()] = {first, count, number, r.getReversed()};
    return true;
  }
  if (auto c = mlir::dyn_cast<ColumnsOp>(op)) {
    View view = views_[c.getView()];
    Ir offset = l_.mul(l_.mul(in(1), view.strides.back()), static_cast<std::int64_t>(size(view.type)));
    view.pointer = l_.at(view.pointer, offset);
    view.shape = c.getColumns().getType();
    views_[c.getColumns()] = view;
    return true;
  }
  if (op->getNumResults() != 1 || is_tile(op->getResult(0))) return false;
  Ir& out = indices_[op->getResult(0)];
  if (auto c = mlir::dyn_cast<mlir::arith::CmpIOp>(op)) {
    const auto predicate = signed_comparison(c.getPredicate());
    if (!predicate) return fail(op, "unsigned comparison"), true;
    out = b.CreateICmp(*predicate, in(0), in(1));
    return true;
  }
  if (mlir::isa<mlir::arith::AddIOp>(op))
    out = l_.add(in(0), in(1));
  else if (mlir::isa<mlir::arith::SubIOp>(op))
    out = b.CreateSub(in(0), in(1));
  else if (mlir::isa<mlir::arith::MulIOp>(op))
    out = l_.mul(in(0), in(1));
  else if (mlir::isa<mlir::arith::DivSIOp>(op))
    out = b.CreateSDiv(in(0), in(1));
  else if (mlir::isa<mlir::arith::RemSIOp>(op))
    out = b.CreateSRem(in(0), in(1));
  else if (mlir::isa<mlir::arith::AndIOp>(op))
    out = b.CreateAnd(in(0), in(1));
  else if (mlir::isa<mlir::arith::OrIOp>(op))
    out = b.CreateOr(in(0), in(1));
  else if (mlir::isa<mlir::arith::MinSIOp>(op))
    out = b.CreateBinaryIntrinsic(llvm::Intrinsic::smin, in(0), in(1));
  else if (mlir::isa<mlir::arith::MaxSIOp>(op))
    out = b.CreateBinaryIntrinsic(llvm::Intrinsic::smax, in(0), in(1));
  else if (mlir::isa<mlir::arith::SelectOp>(op))
    out = b.CreateSelect(in(0), in(1), in(2));
  else
    fail(op, "has no lowering");
  return true;
}

void KernelEmitter::emit_if(mlir::scf::IfOp branch) {
  if (branch.getNumResults()) return fail(branch, "results are not supported");
  Ir condition = indices_.lookup(branch.getCondition());
  l_.when(condition, [&] { emit_block(branch.getThenRegion().front()); });
  if (!branch.getElseRegion().empty())
    l_.when(builder_.CreateNot(condition), [&] { emit_block(branch.getElseRegion().front()); });
}

void KernelEmitter::run_panels() {
  if (panel_work_.empty()) return;
  std::vector<std::function<void()>> work = std::move(panel_work_);
  panel_work_.clear();
  std::int64_t width = 0;
  for (mlir::Value v : panelled_) width = std::max(width, extents(v)[1]);
  std::int64_t panels = (width + panel_columns_ - 1) / panel_columns_;
  l_.loop(l_.index(0), l_.index(panels), 1, [&](Ir p) {
    panel_ = p;
    for (const auto& item : work) item();
  });
  panel_ = nullptr;
}

void KernelEmitter::emit_tiles(llvm::ArrayRef<mlir::Operation*> run) {
  for (std::size_t k = 0; k < run.size() && failure_.empty(); ++k) {
    mlir::Operation* op = run[k];
    std::function<void()> work;
    bool panelled = false;
    if (op->getNumResults() == 0) {
      work = [this, op] { emit_store(op); };
      panelled = in_panel(op->getOperand(0));
    } else {
      mlir::Value v = op->getResult(0);
      if (v.use_empty()) continue;
      panelled = in_panel(v);
      if (mlir::cast<mlir::RankedTensorType>(v.getType()).getElementType().isInteger(1)) continue;
      if (extents(v)[1] == 1) {
        if (extents(v)[0] == 1)
          make_scalar(v);
        else
          make_column(v);
        continue;
      }
      if (!storage_.forms(v) || (storage_.forms(v) == plain && reads_in_place(v))) continue;
      if (auto d = mlir::dyn_cast<DotOp>(op); d && extents(v)[0] == 1 && !is_outer(d)) {
        SmallVector<DotOp> group{d};
        while (k + 1 < run.size())
          if (auto next = mlir::dyn_cast<DotOp>(run[k + 1]); next && extents(next.getTile())[0] == 1 &&
                                                             extents(next.getTile())[1] > 1 && !is_outer(next) &&
                                                             next.getB() == d.getB() && group.size() < 4) {
            group.push_back(next);
            ++k;
          } else {
            break;
          }
        work = [this, group]() mutable { emit_row_products(group); };
      } else {
        work = [this, v] { emit_root(v); };
      }
    }
    if (panelled)
      panel_work_.push_back(work);
    else if (work)
      work();
  }
}

void KernelEmitter::choose_panels(mlir::Block& body, llvm::ArrayRef<mlir::Value> carries) {
  panelled_.clear();
  panel_columns_ = 0;
  // A loop in the body ends the work on all panels before it and begins it again after it, but what is made for one
  // panel has the memory of one.
  for (mlir::Operation& op : body)
    if (mlir::isa<mlir::scf::ForOp, mlir::scf::IfOp>(op)) return;
  Axes axes(body);
  mlir::Value widest;
  for (mlir::Value c : carries) {
    if (extents(c)[0] == 1 || extents(c)[1] <= 64 || !axes.column_only(axes.class_of(c, 1))) continue;
    if (!widest || extents(c)[0] * extents(c)[1] > extents(widest)[0] * extents(widest)[1]) widest = c;
  }
  if (!widest) return;
  int chosen = axes.class_of(widest, 1);
  std::int64_t vectors = (extents(widest)[1] + l_.width - 1) / l_.width, target = 64 / l_.width;
  panel_columns_ = (vectors % target != 0 && vectors % (target * 3 / 4) == 0 ? target * 3 / 4 : target) * l_.width;
  auto add = [&](mlir::Value v) {
    if (is_tile(v) && extents(v)[1] > 1 && axes.class_of(v, 1) == chosen) panelled_.insert(v);
  };
  for (mlir::Value v : body.getArguments()) add(v);
  for (mlir::Operation& op : body)
    for (mlir::Value v : op.getResults()) add(v);
}

void KernelEmitter::emit_for(mlir::scf::ForOp loop) {
  mlir::Block& body = *loop.getBody();
  SmallVector<mlir::Value> carries;
  for (mlir::Value v : loop.getRegionIterArgs()) carries.push_back(v);
  if (llvm::any_of(carries, [](mlir::Value v) { return !is_tile(v); }))
    return fail(loop, "carries a value that is no tile");
  if (depth_ == 0) choose_panels(body, carries);  // a nested loop's values are whole
  ++depth_;
  llvm::scope_exit leave([this] { --depth_; });

  for (auto [carry, init, result] : llvm::zip(carries, loop.getInitArgs(), loop.getResults())) {
    Buffer buffer = new_buffer(carry, true);
    plain_[carry] = buffer;
    plain_[result] = buffer;
    if (in_panel(carry)) panelled_.insert(result);
    if (extents(carry)[1] == 1) {
      l_.loop(l_.index(0), l_.index(extents(carry)[0]), 1, [&, init = init](Ir r) {
        Ir x = extents(init)[0] == 1 ? scalar(init) : read_column_scalar(init, r);
        builder_.CreateStore(x, address(buffer, r, l_.index(0), false));
      });
      continue;
    }
    auto copy = [&, init = init, carry = carry] {
      over_blocks(
          extents(carry)[0], carry,
          [&](const Block& block) {
            Block source = block;
            if (in_panel(carry)) source.j = l_.add(block.j, l_.mul(panel_, panel_columns_));
            Grid grid = evaluate(init, source);
            for (int r = 0; r < block.rows; ++r)
              for (int c = 0; c < block.vectors; ++c)
                l_.store(grid[static_cast<std::size_t>(r * block.vectors + c)],
                         address(buffer, l_.add(block.i, r), l_.add(block.j, c * l_.width), in_panel(carry)),
                         ElementType::f32, nullptr);
          },
          false);
    };
    if (in_panel(carry))
      panel_work_.push_back(copy);
    else
      copy();
    run_panels();
  }

  auto step = loop.getConstantStep();
  if (!step) return fail(loop, "has no constant step");
  // What was made before a nested loop is there in each of its turns; what a turn makes may be gone behind it.
  const auto steps = steps_;
  const auto scaled = scaled_;
  l_.loop(indices_.lookup(loop.getLowerBound()), indices_.lookup(loop.getUpperBound()), step->getSExtValue(),
          [&](Ir iv) {
            indices_[loop.getInductionVar()] = iv;
            for (mlir::Value c : carries) {
              if (extents(c)[0] == 1 && extents(c)[1] == 1)
                scalars_[c] = l_.load_scalar(plain_[c].base, ElementType::f32);
              if (extents(c)[1] == 1 || !(storage_.forms(c) & ~plain)) continue;
              if (in_panel(c))
                panel_work_.push_back([this, c] { store_forms(c); });
              else
                store_forms(c);
            }
            if (depth_ == 1) {
              steps_.clear();
              scaled_.clear();
            }
            if (depth_ == 1) unfetched_ = &body;
            emit_operations(body);
            emit_carries(body.getTerminator(), carries, true);
            emit_carries(body.getTerminator(), carries, false);
          });
  steps_ = steps;
  scaled_ = scaled;
  if (depth_ == 1) prefetch_end_ = nullptr;
  // What follows the loop reads its results in the carries' buffers, panel by panel.
  for (mlir::Value r : loop.getResults()) {
    if (extents(r)[0] == 1 && extents(r)[1] == 1) scalars_[r] = l_.load_scalar(plain_[r].base, ElementType::f32);
    // Products that come after may read another form of a result than the carry's own.
    if (extents(r)[1] == 1 || !(storage_.forms(r) & ~plain)) continue;
    if (in_panel(r))
      panel_work_.push_back([this, r] { store_forms(r); });
    else
      store_forms(r);
  }
}

}  // namespace latile::host
