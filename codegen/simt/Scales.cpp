#include "codegen/simt/Scales.h"
#include "dialect/Tile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace latile::simt {

using namespace tile;

namespace {

bool from_memory(Value v) { return v.getDefiningOp<LoadOp>() || v.getDefiningOp<LoadRowsOp>(); }
RankedTensorType type_of(Value v) { return cast<RankedTensorType>(v.getType()); }

/// The vector or scalar that a tile repeats, or null.
Value repeated(Value v) {
  auto broadcast = v.getDefiningOp<BroadcastOp>();
  if (!broadcast) return {};
  auto from = broadcast.getX().getType();
  return from.getDimSize(0) == 1 || from.getDimSize(1) == 1 ? broadcast.getX() : Value();
}

/// Whether a value is only on its way to products, so that nobody misses it when they do without.
bool feeds_products_only(Value v) {
  return llvm::all_of(v.getUsers(), [&](Operation* user) {
    if (isa<DotOp>(user)) return true;
    if (isa<CastOp, TransposeOp>(user)) return feeds_products_only(user->getResult(0));
    auto product = dyn_cast<arith::MulFOp>(user);
    return product && (repeated(product.getLhs()) || repeated(product.getRhs())) &&
           feeds_products_only(product.getResult());
  });
}

/// An operand as factors × tile from memory.
struct Scaled {
  SmallVector<Value, 2> of_terms, of_result;  ///< vectors along the axis of terms, along the other one, or scalars
  Value tile;                                 ///< as loaded
  bool turned = false;                        ///< the operand is the tile transposed
};

/// `axis`: the operand's axis of terms, 0 or 1.
std::optional<Scaled> scaled(Value operand, int axis) {
  Scaled out;
  Value v = operand;
  while (!from_memory(v)) {
    Operation* op = v.getDefiningOp();
    if (auto c = dyn_cast_or_null<CastOp>(op)) {
      v = c.getX();
    } else if (auto t = dyn_cast_or_null<TransposeOp>(op)) {
      v = t.getX();
      axis = 1 - axis;
      out.turned = !out.turned;
    } else if (auto product = dyn_cast_or_null<arith::MulFOp>(op)) {
      if (!feeds_products_only(v)) return std::nullopt;
      bool right = repeated(product.getRhs()) != nullptr;
      Value factor = repeated(right ? product.getRhs() : product.getLhs());
      if (!factor) return std::nullopt;
      bool along_terms = type_of(factor).getDimSize(axis) > 1;
      (along_terms ? out.of_terms : out.of_result).push_back(factor);
      v = right ? product.getLhs() : product.getRhs();
    } else {
      return std::nullopt;
    }
  }
  bool any = !out.of_terms.empty() || !out.of_result.empty();
  if (!any || type_of(v).getElementType() != type_of(operand).getElementType()) return std::nullopt;
  out.tile = v;
  return out;
}

Value transposed(OpBuilder& builder, Value v) {
  auto type = type_of(v);
  return TransposeOp::create(builder, v.getLoc(),
                             RankedTensorType::get({type.getDimSize(1), type.getDimSize(0)}, type.getElementType()), v);
}

/// x times factors, [R,1] where `columns`, otherwise [1,C], or scalars.
Value multiplied(OpBuilder& builder, Value x, ArrayRef<Value> factors, bool columns) {
  Value all;
  for (Value factor : factors) {
    auto type = type_of(factor);
    if (type.getNumElements() > 1 && (type.getDimSize(1) == 1) != columns) factor = transposed(builder, factor);
    if (all && type_of(all) != type_of(factor)) {
      Value& narrow = type_of(all).getNumElements() == 1 ? all : factor;
      auto wide = type_of(all).getNumElements() == 1 ? type_of(factor) : type_of(all);
      narrow = BroadcastOp::create(builder, x.getLoc(), wide, narrow);
    }
    all = all ? Value(arith::MulFOp::create(builder, x.getLoc(), all, factor)) : factor;
  }
  Value wide = BroadcastOp::create(builder, x.getLoc(), type_of(x), all);
  return arith::MulFOp::create(builder, x.getLoc(), wide, x);
}

/// The operand beside a tile with factors of the terms, as float32 that may be multiplied; null: it must stay.
Value computed(OpBuilder& builder, Value other, Value operand) {
  if (auto c = other.getDefiningOp<CastOp>(); c && c.getX().getType().getElementType().isF32()) return c.getX();
  Value source = other;
  while (auto t = source.getDefiningOp<TransposeOp>()) source = t.getX();
  bool is_smaller = type_of(other).getNumElements() < type_of(operand).getNumElements();
  if (from_memory(source) && is_smaller) {
    auto type = type_of(other);
    if (type.getElementType().isF32()) return other;
    return CastOp::create(builder, other.getLoc(), RankedTensorType::get(type.getShape(), builder.getF32Type()), other);
  }
  return !from_memory(source) && source == other && type_of(other).getElementType().isF32() ? other : Value();
}

bool move(DotOp dot, bool right) {
  Value operand = right ? dot.getB() : dot.getA(), other = right ? dot.getA() : dot.getB();
  auto found = scaled(operand, right ? 0 : 1);
  if (!found) return false;
  // A factor of the result is no gain where that is much larger than the operand.
  auto result = type_of(dot.getTile());
  if (!found->of_result.empty() && result.getNumElements() > 2 * type_of(operand).getNumElements()) return false;
  OpBuilder builder(dot);
  if (!found->of_terms.empty()) {
    Value plain = computed(builder, other, operand);
    if (!plain) return false;
    Value product = multiplied(builder, plain, found->of_terms, right ? false : true);
    if (product.getType() != other.getType()) product = CastOp::create(builder, dot.getLoc(), other.getType(), product);
    dot->setOperand(right ? 0 : 1, product);
  }
  dot->setOperand(right ? 1 : 0, found->turned ? transposed(builder, found->tile) : found->tile);
  if (found->of_result.empty()) return true;
  builder.setInsertionPointAfter(dot);
  // One factor with that of the only user.
  auto user = dot->hasOneUse() ? dyn_cast<arith::MulFOp>(*dot->user_begin()) : arith::MulFOp();
  Value theirs = user ? repeated(user->getOperand(user.getLhs() == dot.getTile() ? 1 : 0)) : Value();
  if (theirs && type_of(theirs).getDimSize(right ? 1 : 0) > 1) {
    builder.setInsertionPoint(user);
    found->of_result.push_back(theirs);
    Value made = multiplied(builder, dot.getTile(), found->of_result, !right);
    user.replaceAllUsesWith(made);
    user.erase();
    return true;
  }
  Value made = multiplied(builder, dot.getTile(), found->of_result, !right);
  dot.getTile().replaceAllUsesExcept(made, made.getDefiningOp());
  return true;
}

}  // namespace

LogicalResult move_scales(ModuleOp module) {
  module.walk([](KernelOp kernel) {
    SmallVector<DotOp> dots;
    kernel.walk([&](DotOp dot) { dots.push_back(dot); });
    for (DotOp dot : dots) {
      move(dot, true);
      move(dot, false);
    }
  });
  return success();
}

}  // namespace latile::simt
