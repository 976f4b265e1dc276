// Lowers one recorded body into the region of a scan. Private to Emit.
#pragma once
#include "compiler/Specialisation.h"
#include "dialect/Tile.h"
#include "dsl/Recorder.h"
#include "mlir/IR/Builders.h"

namespace latile {

mlir::Type element_type(mlir::MLIRContext&, ElementType);
mlir::Location location(mlir::MLIRContext&, const Loc&);

/// The size of a symbol, which may be a product like "K*K" or "C*2".
std::int64_t extent_of(const Recorder&, const Specialisation&, std::int64_t chunk, int symbol);

/// A tile that may not be an op yet: one value everywhere, or ones where a mask holds. Both fold into their users, so
/// that a gate which is not bound leaves nothing behind.
struct Lowered {
  mlir::RankedTensorType type;
  mlir::Value value;  ///< null while one of the others holds
  std::optional<double> splat;
  std::optional<Mask> ones;
  int stair = 1;
};

class BodyEmitter {
public:
  BodyEmitter(const Recorder&, const Body&, const Specialisation&, std::int64_t chunk, mlir::OpBuilder&);
  virtual ~BodyEmitter() = default;

  /// Declarations that the body's results need, prologues included.
  std::vector<int> reads() const;
  void bind(int declaration, mlir::Value block_argument) { arguments[declaration] = block_argument; }
  /// Emits everything that the body's results need.
  void run();
  /// A result in the given element type.
  mlir::Value result(int node, mlir::Type element, const Loc&);

  virtual std::int64_t extent(int symbol) const;
  mlir::RankedTensorType tile_type(Shape, mlir::Type element) const;

protected:
  /// What only a kernel's body has: windows and loops over columns.
  virtual Lowered emit_window(int node);

  const Recorder& r;
  const Body& body;
  const Specialisation& spec;
  std::int64_t chunk;
  mlir::OpBuilder& b;
  mlir::Type f32, io;
  mlir::Block* outermost = nullptr;
  std::map<int, mlir::Value> arguments;
  std::map<int, Lowered> operands;  ///< declarations after their prologues
  std::map<int, Lowered> lowered;   ///< nodes
  /// Equal nodes of one region are emitted once: authors write exp2(G) where they need it.
  std::map<std::tuple<Op, std::vector<int>, int, int, int, bool, double, int, int, Mask, int, bool, bool, bool>, int>
      first_of;
  std::map<int, int> same;
  /// Equal casts, broadcasts and constants of the outermost block, by operation, operand and type.
  std::map<std::tuple<int, const void*, const void*>, mlir::Value> made;
  std::map<std::pair<double, const void*>, mlir::Value> constants;

  void emit_nodes(int region, const std::vector<int>& results);
  Lowered emit_node(int id);
  Lowered emit_elementwise(const Node&, const std::vector<Lowered>&, mlir::RankedTensorType);
  Lowered emit_region(const Node&, const std::vector<Lowered>&, mlir::RankedTensorType);
  /// A decayed op whose gates are all equal.
  Lowered undecayed(const Node&, const std::vector<Lowered>&, mlir::RankedTensorType);
  Lowered emit_loop(const Node&, mlir::Value init);
  /// Least gate of a single row, in log2 units, where `within` states one for all gates of a decayed op; else null.
  mlir::FloatAttr bound(const Node&) const;
  std::optional<Lowered> simplify(const Node&, const std::vector<Lowered>&, mlir::RankedTensorType);
  const Lowered& operand(int declaration);
  Lowered gate(Lowered, mlir::Location);

  Lowered broadcast(const Lowered&, mlir::RankedTensorType, mlir::Location);
  Lowered cast(const Lowered&, mlir::Type element, mlir::Location);
  mlir::Value materialise(const Lowered&, mlir::Location);
  mlir::Value constant(double, mlir::RankedTensorType, mlir::Location);
  template <class F> mlir::Value once(int kind, mlir::Value operand, mlir::Type type, F&& make);
};

}  // namespace latile
