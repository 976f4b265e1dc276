// Sums and maxima along one axis, in an order that depends on the layout alone: registers, lanes, then warps.
#include "codegen/simt/KernelEmitter.h"
#include <limits>

namespace latile::simt {

using namespace tile;

Registers KernelEmitter::reduce(const Registers& from, Axis axis, std::int64_t rows, std::int64_t columns,
                                double neutral, llvm::function_ref<Ir(Ir, Ir)> combine) {
  const Layout& layout = from.layout;
  Registers out{layout.slice(axis), {}};
  out.values.resize(static_cast<std::size_t>(out.layout.registers()), nullptr);
  for (int r = 0; r < layout.registers(); ++r) {
    Ir x = from.values[static_cast<std::size_t>(r)];
    if (Ir in = inside(place(layout, r), layout, rows, columns)) x = b_.CreateSelect(in, x, t_.f32(neutral));
    Ir& sum = out.values[static_cast<std::size_t>(layout.slice_register(axis, r))];
    sum = sum ? combine(sum, x) : x;
  }
  auto along = [&](const Digit& d) { return axis == Axis::rows ? d.step.row : d.step.column; };
  for (const Digit& d : layout.digits(Carrier::lanes)) {
    if (along(d) == 0) continue;
    for (Ir& x : out.values)
      for (int k = d.divisor; k < d.divisor * d.modulus; k *= 2) x = combine(x, t_.shuffle_xor(x, k));
  }
  // Warps leave their parts in shared memory; every thread adds up those of its elements in the order of the warps.
  int parts = 1;
  for (const Digit& d : layout.digits(Carrier::warps))
    if (along(d)) parts *= d.modulus;
  if (parts == 1) return out;
  Ir part = t_.i32(0);
  int weight = 1;
  for (const Digit& d : layout.digits(Carrier::warps)) {
    if (!along(d)) continue;
    part = t_.add(part, t_.mul(t_.rem(t_.div(t_.warp, d.divisor), d.modulus), weight));
    weight *= d.modulus;
  }
  std::int64_t stored = axis == Axis::rows ? out.layout.shape().column : out.layout.shape().row;
  Copy c = reserve(parts, std::max<std::int64_t>(stored, 2), b_.getFloatTy());
  writes(c);
  // The slice holds an element in many lanes and, along the axis, in all warps: the first lane of each warp writes.
  Ir writer = nullptr;
  for (const Digit& d : out.layout.replicas(Carrier::lanes)) {
    if (d.modulus == 1) continue;
    Ir zero = b_.CreateICmpEQ(t_.rem(t_.div(t_.lane, d.divisor), d.modulus), t_.i32(0));
    writer = writer ? b_.CreateAnd(writer, zero) : zero;
  }
  // Warps that are replicas of the whole tile leave it to the first of them.
  for (const Digit& d : layout.replicas(Carrier::warps)) {
    if (d.modulus == 1) continue;
    Ir zero = b_.CreateICmpEQ(t_.rem(t_.div(t_.warp, d.divisor), d.modulus), t_.i32(0));
    writer = writer ? b_.CreateAnd(writer, zero) : zero;
  }
  auto index = [&](int r) {
    PlaceIr at = place(out.layout, r);
    return axis == Axis::rows ? at.column : at.row;
  };
  auto put = [&] {
    for (int r = 0; r < out.layout.registers(); ++r)
      set_element(c, part, index(r), out.values[static_cast<std::size_t>(r)]);
  };
  if (writer)
    t_.when(writer, put);
  else
    put();
  reads(c);
  for (int r = 0; r < out.layout.registers(); ++r) {
    Ir sum = element(c, t_.i32(0), index(r));
    for (int k = 1; k < parts; ++k) sum = combine(sum, element(c, t_.i32(k), index(r)));
    out.values[static_cast<std::size_t>(r)] = sum;
  }
  scratch_.release(c.region);
  return out;
}

void KernelEmitter::emit_reduce(ReduceOp op) {
  mlir::Value x = op.getX();
  Axis axis = op.getAxis() == 1 ? Axis::columns : Axis::rows;
  std::int64_t rows = extents(x)[0], columns = extents(x)[1];
  bool largest = op.getKind() == ReduceKind::Max;
  Registers source = any(x);
  if (!failure_.empty()) return;
  constexpr double inf = std::numeric_limits<double>::infinity();
  Registers out = reduce(source, axis, rows, columns, largest ? -inf : 0.0,
                         [&](Ir a, Ir c) { return largest ? t_.maximum(a, c) : b_.CreateFAdd(a, c); });
  if (op.getKind() == ReduceKind::Mean) {
    double scale = 1.0 / static_cast<double>(axis == Axis::columns ? columns : rows);
    for (Ir& v : out.values) v = b_.CreateFMul(v, t_.f32(scale));
  }
  define(op.getTile(), out.layout, out.values);
}

}  // namespace latile::simt
