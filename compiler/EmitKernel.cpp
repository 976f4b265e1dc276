#include "compiler/EmitKernel.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include <algorithm>
#include <limits>

namespace latile {
namespace {

using Kind = Declaration::Kind;
using mlir::Location;
using mlir::RankedTensorType;
using mlir::Value;

/// Columns that a kernel takes at a time: a block of rows of several tensors then stays near between two passes.
constexpr std::int64_t columns_at_once = 512;

/// Terms of the sum that a tap belongs to.
std::int64_t taps_of(const Recorder& r, const Specialisation& spec, int tap) {
  for (const Node& n : r.nodes)
    if (n.op == Op::taps && r.regions[n.regions.front()].nodes.front() == tap) return extent_of(r, spec, 1, n.decl);
  return 1;
}

/// How many rows before the first of a block a window may read.
std::int64_t reach_of(const Recorder& r, const Specialisation& spec, const Node& window) {
  return window.n + (window.tap >= 0 ? taps_of(r, spec, window.tap) - 1 : 0);
}

/// Where a program of the grid stands.
struct Place {
  bool last = false;  ///< at the end of a sequence, on its last rows
  Value n, batch, begin, position, end, head;
};

class KernelBody : public BodyEmitter {
public:
  /// `history`: rows before a sequence's first may be asked for.
  KernelBody(const KernelFrame& f, const Body& which, const Place& at, tile::KernelOp op, mlir::OpBuilder& builder,
             bool history)
      : BodyEmitter(f.recorder, which, f.specialisation, f.chunk, builder), frame(f), place(at), kernel(op),
        with_history(history) {}

  void emit() {
    for (int id : reads()) bind(id, whole_operand(id));
    run();
  }
  std::int64_t extent(int symbol) const override {
    auto it = parts.find(symbol);
    return it != parts.end() ? it->second : BodyEmitter::extent(symbol);
  }

protected:
  Lowered emit_window(int node) override;

private:
  const KernelFrame& frame;
  const Place& place;
  tile::KernelOp kernel;
  bool with_history;
  std::map<int, std::int64_t> parts;  ///< extents of the columns being worked on, by symbol
  std::map<int, Value> columns;       ///< their first column, by node
  std::map<int, std::int64_t> taps;   ///< by node

  Value index(std::int64_t x, Location loc) { return mlir::arith::ConstantIndexOp::create(b, loc, x); }
  static Lowered whole(Value v) { return {mlir::cast<RankedTensorType>(v.getType()), v, {}, {}, 1}; }

  Value argument(int declaration, llvm::StringRef part = "") {
    Value outer = frame.bound(declaration, part);
    if (!outer) return nullptr;
    auto axes = static_cast<unsigned>(kernel.getGrid().size());
    return kernel.getBody().getArgument(axes + mlir::cast<mlir::BlockArgument>(outer).getArgNumber());
  }
  Value head_of(const Declaration& d, Location loc) {
    if (d.head == -1) return nullptr;
    if (d.head == frame.axis || spec.head_ratio == 1) return place.head;
    auto map = spec.tiled_heads ? tile::HeadMap::Tiled : tile::HeadMap::Grouped;
    return tile::HeadOp::create(b, loc, place.head, spec.head_ratio, map, r.extents[d.head]);
  }
  Value whole_operand(int id) {
    const Declaration& d = r.decls[id];
    Location loc = location(*b.getContext(), d.loc);
    if (d.kind == Kind::scalar) return tile::SplatOp::create(b, loc, RankedTensorType::get({1, 1}, f32), argument(id));
    return load(argument(id), d, Window{}, loc);
  }

  /// The part of a node that says which window it is.
  struct Window {
    Value first_column;  ///< null: all columns
    std::int64_t width = 0;
  };
  Window window_of(const Node& n) {
    if (n.cols < 0) return {};
    return {columns.at(n.cols), extent(n.shape.c)};
  }
  /// The view restricted to the window's columns; `rows_dynamic` forgets that a state's rows are a static extent.
  Value restrict(Value view, const Window& w, Location loc, bool rows_dynamic = false) {
    auto type = mlir::cast<tile::ViewType>(view.getType());
    llvm::SmallVector<std::int64_t> shape(type.getShape());
    if (w.width) shape.back() = w.width;
    if (rows_dynamic) shape[shape.size() - 2] = mlir::ShapedType::kDynamic;
    auto to = tile::ViewType::get(b.getContext(), shape, type.getElementType(), type.getUnit());
    if (to == type) return view;
    return tile::ColumnsOp::create(b, loc, to, view, w.first_column ? w.first_column : index(0, loc));
  }
  static RankedTensorType loaded(Value view) {
    auto type = mlir::cast<tile::ViewType>(view.getType());
    auto inner = type.getInner();
    if (inner.size() == 2) return RankedTensorType::get(inner, type.getElementType());
    return RankedTensorType::get({1, inner.empty() ? 1 : inner[0]}, type.getElementType());
  }
  Value load(Value view, const Declaration& d, const Window& w, Location loc) {
    llvm::SmallVector<Value> at;
    if (Value head = head_of(d, loc)) at.push_back(head);
    view = restrict(view, w, loc);
    return tile::LoadOp::create(b, loc, loaded(view), view, at);
  }
  Value rows(const Node& grid, std::int64_t back, Location loc) {
    std::int64_t size = extent(grid.shape.r);
    return tile::RowsOp::create(b, loc, tile::RowsType::get(b.getContext(), size), place.begin, place.position,
                                place.end, false, back + (place.last ? size : 0));
  }
  Value slot(int carry, llvm::StringRef part, Location loc) {
    Value indices = argument(carry, part);
    return indices ? Value(tile::SlotOp::create(b, loc, b.getIndexType(), indices, place.n, Value())) : place.n;
  }

  Lowered emit_load(const Node&);
  Lowered emit_history(const Node&, std::int64_t back, const Window&);
  void emit_store(const Node&);
  Lowered emit_columns(const Node&);
  Lowered emit_taps(const Node&);
  /// The nodes of a region, each time afresh.
  Lowered emit_again(int region);
};

Lowered KernelBody::emit_window(int id) {
  const Node& n = r.nodes[id];
  switch (n.op) {
  case Op::load: return emit_load(n);
  case Op::store: return emit_store(n), Lowered{};
  case Op::taps: return emit_taps(n);
  default: return emit_columns(n);
  }
}

Lowered KernelBody::emit_again(int region) {
  auto kept = std::tuple(lowered, first_of, same, operands);
  int yield = r.regions[region].yield;
  emit_nodes(region, {yield});
  Lowered result = yield < 0 ? Lowered{} : lowered.at(yield);
  std::tie(lowered, first_of, same, operands) = kept;
  return result;
}

Lowered KernelBody::emit_load(const Node& n) {
  const Declaration& d = r.decls[n.decl];
  Location loc = location(*b.getContext(), n.loc);
  Window w = window_of(n);
  std::int64_t tap = n.tap < 0 ? 0 : taps.at(n.tap);
  if (n.reverse) tap = taps_of(r, spec, n.tap) - 1 - tap;
  mlir::Type element = n.io ? io : f32;
  if (n.rows < 0) {
    Value x = load(argument(n.decl), d, w, loc);
    if (n.tap >= 0) {
      auto type = mlir::cast<RankedTensorType>(x.getType());
      x = tile::RowOp::create(b, loc, RankedTensorType::get({1, type.getDimSize(1)}, type.getElementType()),
                              tile::PickKind::At, x, Value(), static_cast<std::uint64_t>(tap));
    }
    return cast(whole(x), element, loc);
  }
  std::int64_t back = n.n + tap;
  Value view = restrict(argument(n.decl), w, loc);
  auto type = RankedTensorType::get({extent(n.shape.r), loaded(view).getDimSize(1)}, loaded(view).getElementType());
  Value x =
      tile::LoadRowsOp::create(b, loc, type, view, place.batch, rows(r.nodes[n.rows], back, loc), head_of(d, loc));
  Lowered own = cast(whole(x), element, loc);
  bool reaches = back > 0 || place.last;
  if (n.before < 0 || !with_history || !reaches || !argument(n.before, "initial")) return own;
  // Of the two one is 0.
  Lowered history = cast(emit_history(n, back, w), f32, loc);
  own = cast(own, f32, loc);
  return cast(whole(mlir::arith::AddFOp::create(b, loc, own.value, history.value)), element, loc);
}

Lowered KernelBody::emit_history(const Node& n, std::int64_t back, const Window& w) {
  Location loc = location(*b.getContext(), n.loc);
  Value at = slot(n.before, "initial_index", loc), state = argument(n.before, "initial");
  std::int64_t size = extent(n.shape.r);
  bool one_row = mlir::cast<tile::ViewType>(state.getType()).getInner().size() == 1;
  Value view = restrict(state, w, loc, !one_row);
  auto type = RankedTensorType::get({size, loaded(view).getDimSize(1)}, loaded(view).getElementType());
  if (one_row) {
    // It reaches back by one row, so that only the first row of a sequence's first block is the state's.
    Value row = tile::LoadOp::create(b, loc, loaded(view), view, mlir::ValueRange{at});
    if (size == 1) return whole(row);
    Value x = cast(whole(row), f32, loc).value;
    return whole(tile::PlaceRowOp::create(b, loc, RankedTensorType::get(type.getShape(), f32), tile::PickKind::At, x,
                                          Value(), 0));
  }
  std::int64_t held = mlir::cast<tile::ViewType>(state.getType()).getInner()[0];
  Value into = mlir::arith::SubIOp::create(b, loc, place.position, place.begin);
  Value position = mlir::arith::AddIOp::create(b, loc, into, index(held, loc));
  Value rows = tile::RowsOp::create(b, loc, tile::RowsType::get(b.getContext(), size), index(0, loc), position,
                                    index(held, loc), false, back + (place.last ? size : 0));
  return whole(tile::LoadRowsOp::create(b, loc, type, view, at, rows, Value()));
}

void KernelBody::emit_store(const Node& n) {
  const Declaration& d = r.decls[n.decl];
  Location loc = location(*b.getContext(), n.loc);
  Value view = argument(n.decl, d.kind == Kind::carry ? "final" : "");
  if (!view) return;
  Window w = window_of(n);
  bool one_row = d.kind == Kind::carry && mlir::cast<tile::ViewType>(view.getType()).getInner().size() == 1;
  view = restrict(view, w, loc, d.kind == Kind::carry && !one_row);
  auto type = RankedTensorType::get({extent(n.shape.r), loaded(view).getDimSize(1)}, loaded(view).getElementType());
  Lowered x = cast(broadcast(lowered.at(n.in[0]), type, loc), type.getElementType(), loc);
  Value value = materialise(x, loc);
  if (d.kind == Kind::output) {
    tile::StoreRowsOp::create(b, loc, value, view, place.batch, rows(r.nodes[n.rows], 0, loc), head_of(d, loc));
    return;
  }
  Value at = slot(n.decl, "final_index", loc);
  if (one_row) {
    tile::StoreOp::create(b, loc, value, view, mlir::ValueRange{at});
    return;
  }
  Value zero = index(0, loc), all = index(type.getDimSize(0), loc);
  Value rows = tile::RowsOp::create(b, loc, tile::RowsType::get(b.getContext(), type.getDimSize(0)), zero, zero, all);
  tile::StoreRowsOp::create(b, loc, value, view, at, rows, Value());
}

Lowered KernelBody::emit_columns(const Node& n) {
  Location loc = location(*b.getContext(), n.loc);
  int region = n.regions.front(), argument = r.regions[region].nodes.front();
  int part = -1;
  for (std::size_t i = 0; i < r.extents.size(); ++i)
    if (r.extents[i] == "part of " + r.extents[n.decl]) part = static_cast<int>(i);
  std::int64_t all = extent(n.decl), full = all / columns_at_once, rest = all % columns_at_once;
  auto what = static_cast<detail::Over>(n.n);
  bool largest = what == detail::Over::max;

  /// The work on one block, added to what is known of those before it.
  auto block = [&](Value first, std::int64_t width, Value before) -> Value {
    auto outer = parts;  // which may be columns of the same dimension
    parts[part] = width;
    columns[argument] = first;
    Lowered x = emit_again(region);
    parts = outer;
    if (what == detail::Over::nothing) return nullptr;
    auto column = RankedTensorType::get({extent(n.shape.r), 1}, f32);
    Value tile = materialise(broadcast(x, RankedTensorType::get({column.getDimSize(0), width}, f32), loc), loc);
    Value reduced =
        tile::ReduceOp::create(b, loc, column, largest ? tile::ReduceKind::Max : tile::ReduceKind::Sum, 1, tile);
    if (!before) return reduced;
    return largest ? Value(mlir::arith::MaximumFOp::create(b, loc, before, reduced))
                   : Value(mlir::arith::AddFOp::create(b, loc, before, reduced));
  };
  Value sum;
  if (full == 1) sum = block(index(0, loc), columns_at_once, sum);
  if (full > 1) {
    llvm::SmallVector<Value> start;
    if (what != detail::Over::nothing)
      start.push_back(constant(largest ? -std::numeric_limits<double>::infinity() : 0,
                               RankedTensorType::get({extent(n.shape.r), 1}, f32), loc));
    auto loop = mlir::scf::ForOp::create(b, loc, index(0, loc), index(full * columns_at_once, loc),
                                         index(columns_at_once, loc), start);
    mlir::OpBuilder::InsertionGuard guard(b);
    mlir::Block& inside = *loop.getBody();
    if (!inside.empty()) inside.back().erase();
    b.setInsertionPointToEnd(&inside);
    Value next = block(loop.getInductionVar(), columns_at_once, start.empty() ? Value() : loop.getRegionIterArg(0));
    mlir::scf::YieldOp::create(b, loc, next ? mlir::ValueRange{next} : mlir::ValueRange{});
    if (next) sum = loop.getResult(0);
  }
  if (rest) sum = block(index(full * columns_at_once, loc), rest, sum);
  if (what == detail::Over::nothing) return {};
  if (what != detail::Over::mean) return whole(sum);
  auto type = mlir::cast<RankedTensorType>(sum.getType());
  Value share = constant(1.0 / static_cast<double>(all), type, loc);
  return whole(mlir::arith::MulFOp::create(b, loc, sum, share));
}

Lowered KernelBody::emit_taps(const Node& n) {
  Location loc = location(*b.getContext(), n.loc);
  int region = n.regions.front(), argument = r.regions[region].nodes.front();
  Value sum;
  for (std::int64_t t = 0; t < extent(n.decl); ++t) {
    taps[argument] = t;
    Value x = materialise(emit_again(region), loc);
    sum = sum ? Value(mlir::arith::AddFOp::create(b, loc, sum, x)) : x;
  }
  return whole(sum);
}

bool writes(const KernelFrame& f, const Body& body) {
  auto any = [&](const std::map<int, int>& written, llvm::StringRef part) {
    return std::any_of(written.begin(), written.end(), [&](auto& w) { return f.bound(w.first, part) != nullptr; });
  };
  return any(body.outputs, "") || any(body.carries, "final");
}

/// Rows before a block that its windows may take from a state; 0: none.
std::int64_t reach_of(const KernelFrame& f, const Body& body) {
  std::int64_t most = 0;
  std::vector<int> open{body.region};
  while (!open.empty()) {
    int region = open.back();
    open.pop_back();
    for (int id : f.recorder.regions[region].nodes) {
      const Node& n = f.recorder.nodes[id];
      open.insert(open.end(), n.regions.begin(), n.regions.end());
      if (n.op != Op::load || n.before < 0 || !f.bound(n.before, "initial")) continue;
      most = std::max(most, reach_of(f.recorder, f.specialisation, n));
      if (f.recorder.nodes[n.rows].n == 1)
        most = std::max(most, reach_of(f.recorder, f.specialisation, n) +
                                  extent_of(f.recorder, f.specialisation, f.chunk, n.shape.r));
    }
  }
  return most;
}

void emit_kernel(const KernelFrame& f, const Body& body, int number, mlir::OpBuilder& launches) {
  tile::ProgramOp program = f.program;
  mlir::OpBuilder b(program);
  const Node& grid = f.recorder.nodes[body.grid];
  Location loc = location(*b.getContext(), grid.loc);
  bool last = grid.n == 1;
  llvm::SmallVector<llvm::StringRef> axes{last ? "N" : "chunks"};
  if (f.axis != -1) axes.push_back(f.recorder.extents[f.axis]);
  llvm::SmallVector<mlir::Type> types(axes.size(), b.getIndexType());
  llvm::append_range(types, program.getArgumentTypes());
  auto kernel = tile::KernelOp::create(b, loc, (program.getSymName() + "_" + std::to_string(number)).str(),
                                       b.getFunctionType(types, {}), b.getStrArrayAttr(axes), program.getArgNames(),
                                       mlir::ArrayAttr(), mlir::ArrayAttr());
  mlir::Block& block = kernel.getBody().emplaceBlock();
  for (mlir::Type type : types) block.addArgument(type, loc);
  b.setInsertionPointToStart(&block);
  Value sequences = block.getArgument(static_cast<unsigned>(axes.size()));
  Place place{last, block.getArgument(0), {}, {}, {}, {}, axes.size() > 1 ? block.getArgument(1) : Value()};
  if (last) {
    auto s = tile::SequenceOp::create(b, loc, sequences, place.n);
    place.batch = s.getBatch(), place.begin = s.getBegin(), place.end = place.position = s.getEnd();
  } else {
    auto c = tile::ChunkOp::create(b, loc, sequences, place.n, static_cast<std::uint64_t>(f.chunk));
    place.n = c.getN(), place.batch = c.getBatch(), place.begin = c.getBegin(), place.end = c.getEnd();
    place.position = c.getPosition();
  }
  auto emit = [&](bool history) { KernelBody(f, body, place, kernel, b, history).emit(); };
  if (std::int64_t reach = reach_of(f, body)) {
    Value into = mlir::arith::SubIOp::create(b, loc, place.position, place.begin);
    Value limit = mlir::arith::ConstantIndexOp::create(b, loc, reach);
    Value near = mlir::arith::CmpIOp::create(b, loc, mlir::arith::CmpIPredicate::slt, into, limit);
    auto branch = mlir::scf::IfOp::create(b, loc, near, /*withElseRegion=*/true);
    b.setInsertionPointToStart(branch.thenBlock());
    emit(true);
    b.setInsertionPointToStart(branch.elseBlock());
    emit(false);
  } else {
    emit(false);
  }

  // What no window reads or writes is no argument.
  llvm::SmallVector<Value> operands;
  llvm::SmallVector<mlir::Attribute> names;
  llvm::BitVector unused(block.getNumArguments());
  for (auto [i, outer] : llvm::enumerate(program.getArguments())) {
    auto at = static_cast<unsigned>(axes.size() + i);
    if (block.getArgument(at).use_empty()) {
      unused.set(at);
    } else {
      operands.push_back(outer);
      names.push_back(program.getArgNames()[i]);
    }
  }
  block.eraseArguments(unused);
  kernel.setFunctionType(b.getFunctionType(block.getArgumentTypes(), {}));
  kernel.setArgNamesAttr(b.getArrayAttr(names));
  tile::LaunchOp::create(launches, loc, kernel.getSymName(), operands);
}

}  // namespace

void emit_kernels(const KernelFrame& frame, mlir::OpBuilder& launches) {
  int number = 0;
  for (const Body& body : frame.recorder.bodies) {
    if (body.kind != Body::kernel) continue;
    ++number;
    if (writes(frame, body)) emit_kernel(frame, body, number, launches);
  }
}

void check_windows(Recorder& r, const Specialisation& spec) {
  if (spec.reversed)
    r.report({}, "prefill is written as kernels, which do not run from the last row; use mode recurrent for reverse");
  for (const BoundTensor& t : spec.tensors)
    if (t.name == "accepted" || t.name.ends_with(".history"))
      r.report({}, "prefill is written as kernels, which take no tensor '" + t.name + "'; use mode recurrent for it");
  for (std::size_t i = 0; i < r.nodes.size(); ++i) {
    const Node n = r.nodes[i];
    if (n.op != Op::load || n.before < 0) continue;
    const Declaration& state = r.decls[n.before];
    std::int64_t held = extent_of(r, spec, 1, state.shape.r), reach = reach_of(r, spec, n);
    if (r.nodes[n.rows].n == 1) reach += extent_of(r, spec, 1, n.shape.r);
    if (reach > held)
      r.report(n.loc, "window of '" + r.decls[n.decl].name + "' reaches " + std::to_string(reach) +
                          " rows before a sequence, and state '" + state.name + "' holds " + std::to_string(held));
  }
}

}  // namespace latile
