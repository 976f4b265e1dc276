#include "compiler/EmitBody.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include <algorithm>
#include <cmath>
#include <set>

namespace latile {

using mlir::Location;
using mlir::RankedTensorType;
using mlir::Value;

mlir::Type element_type(mlir::MLIRContext& context, ElementType t) {
  mlir::Builder b(&context);
  switch (t) {
  case ElementType::f32: return b.getF32Type();
  case ElementType::f16: return b.getF16Type();
  case ElementType::bf16: return b.getBF16Type();
  case ElementType::i32: return b.getI32Type();
  case ElementType::i64: return b.getI64Type();
  case ElementType::f64: return b.getF64Type();
  }
  return {};
}

Location location(mlir::MLIRContext& context, const Loc& l) {
  if (l.line() == 0) return mlir::UnknownLoc::get(&context);
  return mlir::FileLineColLoc::get(&context, l.file_name(), l.line(), l.column());
}

static constexpr double log2e = 1.4426950408889634074, least_gate = -126;
static tile::MaskKind mask_kind(Mask m) { return static_cast<tile::MaskKind>(static_cast<int>(m)); }
static Lowered whole(Value v) { return {mlir::cast<RankedTensorType>(v.getType()), v, {}, {}, 1}; }
static Lowered uniform(double x, RankedTensorType type) { return {type, {}, x, {}, 1}; }

BodyEmitter::BodyEmitter(const Recorder& recorder, const Body& which, const Specialisation& s, std::int64_t c,
                         mlir::OpBuilder& builder)
    : r(recorder), body(which), spec(s), chunk(c), b(builder), f32(builder.getF32Type()),
      io(element_type(*builder.getContext(), s.io)), outermost(builder.getInsertionBlock()) {}

std::vector<int> BodyEmitter::reads() const {
  std::set<int> found;
  auto visit = [&](auto&& self, int region, const std::vector<int>& results) -> void {
    for (int n : r.ordered(region, results)) {
      const Node& node = r.nodes[n];
      if (node.op == Op::read && found.insert(node.decl).second)
        for (int p : r.decls[node.decl].prologues) self(self, p, {r.regions[p].yield});
      for (int nested : node.regions) self(self, nested, {r.regions[nested].yield});
    }
  };
  visit(visit, body.region, r.results(body));
  return {found.begin(), found.end()};
}

Lowered BodyEmitter::emit_window(int) { llvm_unreachable("only kernels have windows"); }

std::int64_t extent_of(const Recorder& r, const Specialisation& spec, std::int64_t chunk, int symbol) {
  std::int64_t product = 1;
  const std::string& text = r.extents[symbol];
  for (std::size_t at = 0; at <= text.size();) {
    std::size_t cut = std::min(text.find('*', at), text.size());
    std::string factor = text.substr(at, cut - at);
    if (factor == "C")
      product *= chunk;
    else if (auto it = spec.extents.find(factor); it != spec.extents.end())
      product *= it->second;
    else
      product *= std::strtoll(factor.c_str(), nullptr, 10);
    at = cut + 1;
  }
  return product;
}

std::int64_t BodyEmitter::extent(int symbol) const { return extent_of(r, spec, chunk, symbol); }

RankedTensorType BodyEmitter::tile_type(Shape s, mlir::Type element) const {
  return RankedTensorType::get({extent(s.r), extent(s.c)}, element);
}

// Values that are made on demand.

template <class F> Value BodyEmitter::once(int kind, Value operand, mlir::Type type, F&& make) {
  // Only what stands in the outermost block dominates every later user.
  bool shared = b.getInsertionBlock() == outermost;
  auto key = std::tuple(kind, static_cast<const void*>(operand.getAsOpaquePointer()), type.getAsOpaquePointer());
  if (auto it = made.find(key); it != made.end()) return it->second;
  Value v = make();
  if (shared) made[key] = v;
  return v;
}

Value BodyEmitter::constant(double x, RankedTensorType type, Location loc) {
  auto one = RankedTensorType::get({1, 1}, f32);
  Value v;
  if (auto it = constants.find({x, nullptr}); it != constants.end()) {
    v = it->second;
  } else {
    v = tile::ConstantOp::create(b, loc, one, b.getF64FloatAttr(x));
    if (b.getInsertionBlock() == outermost) constants[{x, nullptr}] = v;
  }
  Lowered wide = broadcast(whole(v), RankedTensorType::get(type.getShape(), f32), loc);
  return cast(wide, type.getElementType(), loc).value;
}

Value BodyEmitter::materialise(const Lowered& x, Location loc) {
  if (x.value) return x.value;
  if (x.splat) return constant(*x.splat, x.type, loc);
  Value ones = constant(1, x.type, loc);
  return tile::MaskOp::create(b, loc, x.type, mask_kind(*x.ones), ones, x.stair);
}

Lowered BodyEmitter::broadcast(const Lowered& x, RankedTensorType type, Location loc) {
  auto to = RankedTensorType::get(type.getShape(), x.type.getElementType());
  if (x.type == to) return x;
  if (x.splat) return uniform(*x.splat, to);
  Value v = materialise(x, loc);
  return whole(once(0, v, to, [&] { return tile::BroadcastOp::create(b, loc, to, v); }));
}

Lowered BodyEmitter::cast(const Lowered& x, mlir::Type element, Location loc) {
  if (x.type.getElementType() == element) return x;
  auto to = RankedTensorType::get(x.type.getShape(), element);
  // A constant keeps its 64 bits until a rounding is asked for.
  if (x.splat && element == f32) return uniform(*x.splat, to);
  Value v = x.splat ? constant(*x.splat, RankedTensorType::get(x.type.getShape(), f32), loc) : materialise(x, loc);
  if (auto inner = v.getDefiningOp<tile::CastOp>())
    if (inner.getTile().getType().getElementType() == f32 && inner.getX().getType() == to) return whole(inner.getX());
  return whole(once(1, v, to, [&] { return tile::CastOp::create(b, loc, to, v); }));
}

// Operands: load, prologues, gate, neutral rows.

Lowered BodyEmitter::gate(Lowered x, Location loc) {
  // Natural logarithm to log2 units. 2^-126 is the smallest normal number, so the clamp changes nothing but makes
  // −inf legal: −inf − (−inf) would be NaN.
  if (x.splat) return uniform(std::max(*x.splat * log2e, least_gate), x.type);
  Value scaled = mlir::arith::MulFOp::create(b, loc, x.value, constant(log2e, x.type, loc));
  return whole(mlir::arith::MaximumFOp::create(b, loc, scaled, constant(least_gate, x.type, loc)));
}

const Lowered& BodyEmitter::operand(int declaration) {
  if (auto it = operands.find(declaration); it != operands.end()) return it->second;
  const Declaration& d = r.decls[declaration];
  Location loc = location(*b.getContext(), d.loc);
  Shape shape = d.shape;
  auto argument = arguments.find(declaration);
  Lowered x = argument != arguments.end() ? whole(argument->second) : uniform(0, tile_type(shape, f32));
  if (d.raw() && d.kind != Declaration::Kind::carry) {
    // Another storage type than the operator's own is rounded to it here, so that the body sees one type.
    return operands[declaration] = x.splat ? x : cast(x, io, loc);
  }
  x = cast(x, f32, loc);
  for (int region : d.prologues) {
    lowered[r.regions[region].nodes.front()] = x;
    emit_nodes(region, {r.regions[region].yield});
    x = lowered.at(r.regions[region].yield);
  }
  if (d.gate) x = gate(x, loc);
  bool partial = spec.mode == Mode::prefill && d.kind == Declaration::Kind::sequence;
  if (partial && !keeps_neutral(r, d) && x.splat != d.neutral) {
    Value v = materialise(x, loc);
    x = whole(tile::NeutralOp::create(b, loc, v.getType(), v, Value(), b.getF64FloatAttr(d.neutral),
                                      b.getI64IntegerAttr(d.rate)));
  }
  return operands[declaration] = x;
}

// Nodes.

void BodyEmitter::run() { emit_nodes(body.region, r.results(body)); }

Value BodyEmitter::result(int node, mlir::Type element, const Loc& l) {
  Location loc = location(*b.getContext(), l);
  return materialise(cast(lowered.at(node), element, loc), loc);
}

void BodyEmitter::emit_nodes(int region, const std::vector<int>& results) {
  for (int n : r.ordered(region, results)) {
    const Node& node = r.nodes[n];
    if (node.op == Op::argument || node.op == Op::adjoint || node.op == Op::grid || lowered.count(n)) continue;
    std::vector<int> in;
    for (int i : node.in) in.push_back(same.count(i) ? same[i] : i);
    auto key = std::tuple(node.op, in, node.region, node.shape.r, node.shape.c, node.io, node.value, node.n, node.decl,
                          node.mask, node.stair, node.precise, node.exclusive, node.reverse);
    auto [it, fresh] = first_of.try_emplace(key, n);
    if (fresh || !node.regions.empty() || node.op == Op::load)
      lowered[n] = emit_node(n);
    else
      lowered[n] = lowered.at(it->second), same[n] = it->second;
  }
}

std::optional<Lowered> BodyEmitter::simplify(const Node& n, const std::vector<Lowered>& in, RankedTensorType type) {
  std::vector<std::optional<double>> splats;
  for (auto& x : in) splats.push_back(x.splat);
  if (auto v = fold(n, splats)) return uniform(*v, type);
  Location loc = location(*b.getContext(), n.loc);
  auto is = [&](int i, double v) { return in[i].splat == v; };
  switch (n.op) {
  case Op::add:
    if (is(0, 0)) return broadcast(in[1], type, loc);
    [[fallthrough]];
  case Op::sub:
    if (is(1, 0)) return broadcast(in[0], type, loc);
    return {};
  case Op::mul:
    if (is(0, 1)) return broadcast(in[1], type, loc);
    for (int i : {0, 1})
      if (in[i].ones && in[i].type == type) {
        Value x = materialise(broadcast(in[1 - i], type, loc), loc);
        return whole(tile::MaskOp::create(b, loc, type, mask_kind(*in[i].ones), x, in[i].stair));
      }
    [[fallthrough]];
  case Op::div:
    if (is(1, 1)) return broadcast(in[0], type, loc);
    return {};
  case Op::decay:
    // Equal gates everywhere: the mask alone remains.
    if (!in[0].splat || in[0].splat != in[1].splat) return {};
    if (n.mask == Mask::all) return uniform(1, type);
    return Lowered{type, {}, {}, n.mask, n.stair};
  case Op::mask:
    if (n.mask == Mask::all) return in[0];
    return {};
  case Op::decayed_scores:
  case Op::decayed_apply:
  case Op::decayed_apply_transposed:
    // Equal gates everywhere: a product under the mask.
    if (!in[2].splat || in[2].splat != in[3].splat) return {};
    return undecayed(n, in, type);
  default: return {};
  }
}

Lowered BodyEmitter::emit_node(int id) {
  const Node& n = r.nodes[id];
  Location loc = location(*b.getContext(), n.loc);
  auto type = tile_type(n.shape, n.io ? io : f32);
  // A reference rounds nothing, products of decayed operands included.
  auto operand_type = [&] {
    return io == f32 || body.kind == Body::reference ? mlir::TypeAttr() : mlir::TypeAttr::get(io);
  };
  if (n.op == Op::read) {
    const Lowered& x = operand(n.decl);
    return n.io ? x : cast(x, f32, loc);
  }
  if (n.op >= Op::columns && n.op <= Op::store) return emit_window(id);
  std::vector<Lowered> in;
  for (int i : n.in) in.push_back(lowered.at(i));
  if (auto simple = simplify(n, in, type)) return *simple;
  if (!n.regions.empty()) return emit_region(n, in, type);

  std::vector<Value> v;
  auto operand_values = [&] {
    for (auto& x : in) v.push_back(materialise(x, loc));
  };
  auto row = [&](tile::PickKind pick) -> Lowered {
    if (in[0].type == type && pick != tile::PickKind::LastValid) return in[0];
    return whole(tile::RowOp::create(b, loc, type, pick, v[0], Value(), n.n));
  };
  auto reduce = [&](tile::ReduceKind kind, int axis) -> Lowered {
    return whole(tile::ReduceOp::create(b, loc, type, kind, axis, v[0]));
  };
  switch (n.op) {
  case Op::valid: return whole(tile::ValidOp::create(b, loc, type, Value()));
  case Op::count: return whole(tile::CountOp::create(b, loc, type, Value()));
  case Op::index: return whole(tile::IndexOp::create(b, loc, type, Value()));
  case Op::iota: {
    bool across = type.getDimSize(0) == 1;
    auto down = across ? RankedTensorType::get({type.getDimSize(1), 1}, f32) : type;
    Value ones = constant(1, down, loc);
    Value count = tile::CumsumOp::create(b, loc, down, ones, true, false);
    if (!across || type == down) return whole(count);
    return whole(tile::TransposeOp::create(b, loc, type, count));
  }
  case Op::cast: return cast(in[0], type.getElementType(), loc);
  case Op::stop_gradient: return in[0];
  default: break;
  }
  if (n.op >= Op::add && n.op <= Op::softplus) return emit_elementwise(n, in, type);
  operand_values();
  switch (n.op) {
  case Op::transpose: {
    auto to = RankedTensorType::get(type.getShape(), in[0].type.getElementType());
    if (to == in[0].type && to.getNumElements() == 1) return in[0];
    return whole(once(2, v[0], to, [&] { return tile::TransposeOp::create(b, loc, to, v[0]); }));
  }
  case Op::dot: return whole(tile::DotOp::create(b, loc, type, v[0], v[1], n.precise));
  case Op::reduce_sum: return reduce(tile::ReduceKind::Sum, 1);
  case Op::reduce_mean: return reduce(tile::ReduceKind::Mean, 1);
  case Op::reduce_max: return reduce(tile::ReduceKind::Max, 1);
  case Op::reduce_columns: return reduce(tile::ReduceKind::Sum, 0);
  case Op::cumsum: return whole(tile::CumsumOp::create(b, loc, type, v[0], n.exclusive, n.reverse));
  case Op::last: return row(tile::PickKind::Last);
  case Op::last_valid: return row(tile::PickKind::LastValid);
  case Op::pick: return row(tile::PickKind::At);
  case Op::repeat_rows: return whole(tile::RepeatRowsOp::create(b, loc, type, v[0], n.n));
  case Op::diagonal: return whole(tile::DiagonalOp::create(b, loc, type, v[0]));
  case Op::mask: return whole(tile::MaskOp::create(b, loc, type, mask_kind(n.mask), v[0], n.stair));
  case Op::decay: return whole(tile::DecayOp::create(b, loc, type, v[0], v[1], mask_kind(n.mask), n.stair));
  case Op::inverse_unit_lower: return whole(tile::InverseUnitLowerOp::create(b, loc, type, v[0]));
  case Op::cummax: return whole(tile::CummaxOp::create(b, loc, type, v[0], v[1]));
  case Op::prev:
  case Op::next: return whole(tile::PrevOp::create(b, loc, type, v[0], v[1], n.op == Op::next));
  case Op::kron_rows: return whole(tile::KronRowsOp::create(b, loc, type, v[0], v.size() > 1 ? v[1] : Value()));
  case Op::lookup:
    return whole(
        tile::LookupOp::create(b, loc, type, tile::TableKind::Fenwick, v[0], v.size() > 1 ? v[1] : Value(), false));
  case Op::affine_scan: return whole(tile::AffineScanOp::create(b, loc, type, v[0], v[1], v[2], false));
  case Op::logcumsumexp: return whole(tile::LogcumsumexpOp::create(b, loc, type, v[0], v[1]));
  case Op::decayed_scores:
    return whole(tile::DecayedScoresOp::create(b, loc, type, v[0], v[1], v[2], v[3], mask_kind(n.mask), n.stair,
                                               operand_type(), bound(n)));
  case Op::decayed_apply:
  case Op::decayed_apply_transposed:
    return whole(tile::DecayedApplyOp::create(b, loc, type, v[0], v[1], v[2], v[3], mask_kind(n.mask), n.stair,
                                              n.op == Op::decayed_apply_transposed, operand_type(), bound(n)));
  default: break;
  }
  llvm_unreachable("an operation without lowering is reported before emission");
}

Lowered BodyEmitter::emit_elementwise(const Node& n, const std::vector<Lowered>& in, RankedTensorType type) {
  Location loc = location(*b.getContext(), n.loc);
  std::vector<Value> v;
  for (auto& x : in) v.push_back(materialise(broadcast(x, type, loc), loc));
  switch (n.op) {
  case Op::add: return whole(mlir::arith::AddFOp::create(b, loc, v[0], v[1]));
  case Op::sub: return whole(mlir::arith::SubFOp::create(b, loc, v[0], v[1]));
  case Op::mul: return whole(mlir::arith::MulFOp::create(b, loc, v[0], v[1]));
  case Op::div: return whole(mlir::arith::DivFOp::create(b, loc, v[0], v[1]));
  case Op::max: return whole(mlir::arith::MaximumFOp::create(b, loc, v[0], v[1]));
  case Op::min: return whole(mlir::arith::MinimumFOp::create(b, loc, v[0], v[1]));
  case Op::neg: return whole(mlir::arith::NegFOp::create(b, loc, v[0]));
  case Op::exp: return whole(mlir::math::ExpOp::create(b, loc, v[0]));
  case Op::exp2: return whole(mlir::math::Exp2Op::create(b, loc, v[0]));
  case Op::log: return whole(mlir::math::LogOp::create(b, loc, v[0]));
  case Op::log2: return whole(mlir::math::Log2Op::create(b, loc, v[0]));
  case Op::sqrt: return whole(mlir::math::SqrtOp::create(b, loc, v[0]));
  case Op::rsqrt: return whole(mlir::math::RsqrtOp::create(b, loc, v[0]));
  case Op::tanh: return whole(mlir::math::TanhOp::create(b, loc, v[0]));
  case Op::floor: return whole(mlir::math::FloorOp::create(b, loc, v[0]));
  case Op::sigmoid: return whole(tile::SigmoidOp::create(b, loc, type, v[0]));
  case Op::softplus: return whole(tile::SoftplusOp::create(b, loc, type, v[0]));
  case Op::select: {
    Value zero = constant(0, type, loc);
    Value holds = mlir::arith::CmpFOp::create(b, loc, mlir::arith::CmpFPredicate::UNE, v[0], zero);
    return whole(mlir::arith::SelectOp::create(b, loc, holds, v[1], v[2]));
  }
  default: llvm_unreachable("an operation without lowering is reported before emission");
  }
}

Lowered BodyEmitter::emit_region(const Node& n, const std::vector<Lowered>& in, RankedTensorType type) {
  Location loc = location(*b.getContext(), n.loc);
  int region = n.regions.front(), yield = r.regions[region].yield, first = r.regions[region].nodes.front();
  if (n.op == Op::custom) {  // forward, with_adjoint is its function
    lowered[first] = in[0];
    emit_nodes(region, {yield});
    return lowered.at(yield);
  }
  Value rhs = materialise(in[0], loc);
  if (n.op == Op::loop) return emit_loop(n, rhs);
  auto solve = tile::SolveOp::create(b, loc, type, rhs, n.n);
  mlir::OpBuilder::InsertionGuard guard(b);
  mlir::Block* block = b.createBlock(&solve.getMap(), {}, {type}, {loc});
  lowered[first] = whole(block->getArgument(0));
  emit_nodes(region, {yield});
  tile::YieldOp::create(b, loc, mlir::ValueRange{materialise(lowered.at(yield), loc)});
  return whole(solve.getTile());
}

Lowered BodyEmitter::undecayed(const Node& n, const std::vector<Lowered>& in, RankedTensorType type) {
  Location loc = location(*b.getContext(), n.loc);
  bool precise = body.kind == Body::reference;
  mlir::Type element = precise ? f32 : io;
  auto masked = [&](Value v) -> Value {
    if (n.mask == Mask::all) return v;
    return tile::MaskOp::create(b, loc, v.getType(), mask_kind(n.mask), v, n.stair);
  };
  auto rounded = [&](Value v) { return materialise(cast(whole(v), element, loc), loc); };
  auto transposed = [&](Value v) {
    auto from = mlir::cast<RankedTensorType>(v.getType());
    auto to = RankedTensorType::get({from.getDimSize(1), from.getDimSize(0)}, from.getElementType());
    return once(2, v, to, [&] { return tile::TransposeOp::create(b, loc, to, v); });
  };
  Value x = materialise(in[0], loc), y = rounded(materialise(in[1], loc));
  if (n.op == Op::decayed_scores)
    return whole(masked(tile::DotOp::create(b, loc, type, rounded(x), transposed(y), precise)));
  x = rounded(masked(x));
  if (n.op == Op::decayed_apply_transposed) x = transposed(x);
  return whole(tile::DotOp::create(b, loc, type, x, y, precise));
}

Lowered BodyEmitter::emit_loop(const Node& n, Value init) {
  Location loc = location(*b.getContext(), n.loc);
  int region = n.regions.front(), yield = r.regions[region].yield, first = r.regions[region].nodes.front();
  auto index = [&](std::int64_t x) -> Value { return mlir::arith::ConstantIndexOp::create(b, loc, x); };
  Value begin = index(0), end = index(n.n), step = index(1);
  auto loop = mlir::scf::ForOp::create(b, loc, begin, end, step, mlir::ValueRange{init});
  mlir::OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToEnd(loop.getBody());
  lowered[first] = whole(loop.getRegionIterArgs().front());
  emit_nodes(region, {yield});
  mlir::scf::YieldOp::create(b, loc, mlir::ValueRange{materialise(lowered.at(yield), loc)});
  return whole(loop.getResult(0));
}

mlir::FloatAttr BodyEmitter::bound(const Node& n) const {
  // The gates of single rows are what the cumulative ones differ by, as far as they are running sums of them.
  double least = 0;
  std::set<int> seen;
  std::vector<int> open{n.in[2], n.in[3]};
  while (!open.empty()) {
    int id = open.back();
    open.pop_back();
    if (!seen.insert(id).second) continue;
    const Node& x = r.nodes[id];
    switch (x.op) {
    case Op::cumsum:
    case Op::sub:
    case Op::repeat_rows:
    case Op::cast: open.insert(open.end(), x.in.begin(), x.in.end()); break;
    case Op::read: {
      const Declaration& d = r.decls[x.decl];
      if (!d.gate || !d.range) return {};
      least = std::min(least, d.range->first * log2e);
      break;
    }
    default: return {};
    }
  }
  return b.getF64FloatAttr(std::max(least, least_gate));
}

}  // namespace latile
