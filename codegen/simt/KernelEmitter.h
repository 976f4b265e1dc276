// Turns one tile.kernel into an LLVM function for one thread of a block.
#pragma once
#include "codegen/simt/AssignLayouts.h"
#include "codegen/simt/ScoresFirst.h"
#include "codegen/simt/Scratch.h"
#include "codegen/simt/Thread.h"
#include "dialect/Tile.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "runtime/Artifact.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/IR/DIBuilder.h"
#include "llvm/IR/Module.h"
#include <map>

namespace latile::simt {

inline ArrayRef<std::int64_t> extents(mlir::Value v) {
  return mlir::cast<mlir::RankedTensorType>(v.getType()).getShape();
}
inline bool is_tile(mlir::Value v) { return mlir::isa<mlir::RankedTensorType>(v.getType()); }

/// The registers of a thread that hold its part of a tile.
struct Registers {
  Layout layout;
  SmallVector<Ir> values;
};

/// A tile in shared memory: element (row, column) at base + row * pitch + column * bytes; `transposed`: the roles of
/// row and column are exchanged. Stored are multiples of 16 rows and columns (a vector: one row); what lies past the
/// tile's extents is zero.
struct Copy {
  Region region;
  std::int64_t pitch = 0;              ///< bytes
  std::int64_t rows = 0, columns = 0;  ///< stored
  llvm::Type* element = nullptr;
  bool transposed = false;
  Ir stage = nullptr;     ///< bytes from the region's begin, known at run time; null: 0
  bool borrowed = false;  ///< the region is someone else's to release
  Copy flipped() const {
    Copy c = *this;
    c.transposed = !c.transposed;
    return c;
  }
};

/// Whether a product is emitted as part of the sum that uses it.
bool is_added_to(mlir::Operation*);

/// Whether decayed scores read the rows of the op's operand instead of its result.
bool is_row_above(mlir::Operation*);

/// A value that stands for its operand's memory in another shape, or reads it where it is used itself.
bool is_alias(mlir::Operation*);

/// Calls `f` with the block's ops that use the value, or one that reads its memory or registers.
void each_use(mlir::Value, mlir::Block*, llvm::function_ref<void(mlir::Operation*)> f);

/// The last op of the value's block in which it, or a value that reads its memory, is used.
mlir::Operation* last_use(mlir::Value);

/// Bytes of one of the stages of a tile that is copied ahead.
inline std::int64_t stage_bytes(const Copy& c) { return (c.rows * c.pitch + 127) / 128 * 128; }

class KernelEmitter {
public:
  /// `room`: bytes of shared memory for stages. Tiles that a loop reads come while the turn before works, in twice
  /// their memory, as far as there is room. `in_arena`: the copies that lie in global memory (Scratch::fit). Where
  /// there are such, or a tile.scratch, blocks take several items each. `excess`: by the number of an op, the registers
  /// above the limit there; tiles that wait for a later op while it works do so in shared memory.
  KernelEmitter(tile::KernelOp, llvm::Module&, llvm::DIBuilder&, llvm::DICompileUnit*, const Target&,
                const Instructions&, int threads, std::size_t room, std::vector<bool> in_arena = {},
                std::map<unsigned, double> excess = {});
  /// Emits the function; facts() is complete then. `names` are those of the arguments after the grid's, in order.
  void emit(ArrayRef<std::string> names);
  const KernelFacts& facts() const { return facts_; }
  std::size_t bytes_of_stages() const { return staged_; }
  llvm::Function* function() const { return function_; }
  const std::string& failure() const { return failure_; }
  /// What the function took of shared memory, once it is emitted.
  const Scratch& scratch() const { return scratch_; }
  /// Of each op with ops inside, by its number: the number of the last of them.
  const std::map<unsigned, unsigned>& inner() const { return inner_; }
  /// Of ops, by their number: registers with operands that come early, which can come later.
  const std::map<unsigned, double>& spare() const { return spare_; }

private:
  friend class DecayedScores;
  struct View {
    Ir pointer = nullptr;
    SmallVector<Ir> strides;  ///< in elements, i64
    llvm::Type* element = nullptr;
    tile::ViewType shape;
    Ir aligned = nullptr;  ///< whether pointer and strides are multiples of 16 bytes, but for the unit stride
  };
  struct Sequences {
    Ir lengths = nullptr;  ///< cu_seqlens, null when dense
    Ir rows = nullptr;     ///< T of a dense batch
    Ir stride = nullptr;
    int bits = 0;
  };
  struct Rows {
    Ir first, count, number;  ///< i64
    bool reversed = false;
    bool never_empty = false;
    Ir missing = nullptr;  ///< rows at the tile's start that lie before the sequence; null: none
    Ir here = nullptr;     ///< rows of the tile that exist, the missing ones counted: `count` without `back`
  };
  /// A tile in global memory.
  struct Memory {
    Ir pointer = nullptr;                              ///< of element (0, 0)
    Ir row_stride = nullptr, column_stride = nullptr;  ///< elements; null: 1
    llvm::Type* element = nullptr;
    Ir row_limit = nullptr;  ///< rows at or past it do not exist (i32); null: all do
    Ir row_start = nullptr;  ///< nor do rows before it; null: 0
    Ir safe_row = nullptr;   ///< one that exists; null: 0
    Ir exists = nullptr;     ///< false: nothing is there; null: it is
    Ir base = nullptr;       ///< of the tensor: an address that is always there
    Ir aligned = nullptr;
    std::int64_t rate = 1;
    bool reversed = false;  ///< rows of memory descend in groups of `rate`
  };
  struct Held {
    SmallVector<Registers, 1> forms;
    SmallVector<Copy, 1> copies;
    /// The same elements in the 16 bits from which they were cast; theirs to release unless it is borrowed.
    std::optional<Copy> narrow{};
  };

  // Kernel.cpp: arguments, control flow, order of work
  void make_function(ArrayRef<std::string> names);
  void bind_arguments(ArrayRef<std::string> names);
  void bind_grid(Ir item);
  Ir dim(const std::string& name);
  void emit_block(mlir::Block&);
  void emit_operation(mlir::Operation*);
  void emit_for(mlir::scf::ForOp);
  void emit_if(mlir::scf::IfOp);
  void fail(mlir::Operation*, llvm::Twine why);
  void locate(mlir::Operation*);
  void find_last_uses();
  void release_after(mlir::Operation*);
  void in_scope(llvm::function_ref<void()>);

  // Aside.cpp: tiles that leave the registers to heavier ops
  struct Waiting {
    mlir::Value value;
    double registers = 0;
    mlir::Operation* next = nullptr;  ///< that uses it
    bool free = false;                ///< nothing has to be stored
    bool read = false;                ///< by the op at work, in shared memory
    bool derived = false;             ///< from another value, at no cost
    std::size_t order = 0;
  };
  SmallVector<Waiting> waiting(mlir::Operation* now);
  void put_aside(mlir::Operation* now);
  double registers_aside();
  bool keep_narrow(mlir::Value, mlir::Operation* now);
  void pass_on(const Region&);
  void release_copies(mlir::Value);
  void forget(mlir::Value, bool copies);

  // Positions.cpp: integers, chunks of the whole batch
  bool emit_index(mlir::Operation*);
  Ir border(const Sequences&, Ir k);
  Ir chunks_of(Ir rows, std::int64_t size);
  Ir first_chunk(const Sequences&, Ir n, std::int64_t size);
  void emit_chunk(tile::ChunkOp);
  void emit_chunk_begin(tile::ChunkBeginOp);
  Ir row_place(tile::PickKind, mlir::Value x, std::uint64_t at, mlir::Value rows);

  // Tiles.cpp: what stands for a value
  llvm::Type* element_type(mlir::Value) const;
  /// The layout of a value where nothing asks for another: the accumulators of a product of its shape for a tile.
  Layout layout_of(mlir::Value) const;
  Layout accumulators(std::int64_t rows, std::int64_t columns) const;
  /// The registers of a value in a layout, converted where it has another.
  SmallVector<Ir> get(mlir::Value, const Layout&);
  /// The registers of a value in whatever layout it has.
  const Registers& any(mlir::Value);
  void define(mlir::Value, Layout, SmallVector<Ir>);
  void define(mlir::Value, Copy);
  /// The value in shared memory, put there if it is not yet: transposed if that is asked for.
  Copy copy(mlir::Value, std::optional<bool> transposed = {});
  /// The value or, where it is a cast of 16 bits, what it was cast from; rows of the value are rows in memory.
  Copy copy_by_rows(mlir::Value);
  /// A copy of float32 that belongs to the caller, who releases or defines it.
  Copy fresh_copy(mlir::Value);
  Copy reserve(std::int64_t rows, std::int64_t columns, llvm::Type*, bool transposed = false);
  void store(const Registers&, const Copy&, std::int64_t rows, std::int64_t columns);
  SmallVector<Ir> load(const Copy&, const Layout&);
  /// The same where a lane's part of the layout begins at `at` + `more` and all of it is stored; the caller announces
  /// the access.
  SmallVector<Ir> load_at(const Copy&, const Layout&, PlaceIr at, Place more);
  /// Element (row, column) of a copy; the caller announces the access.
  Ir element(const Copy&, Ir row, Ir column, Place more = {});
  void set_element(const Copy&, Ir row, Ir column, Ir value, Place more = {});
  /// Of the element at (row, column) + more: what many elements have in common is one value, `more` a constant beside
  /// it.
  Ir pointer(const Copy&, Ir row, Ir column, Place more = {});
  void barrier();
  void reads(const Copy& c) { accesses({c}, {}); }
  void writes(const Copy& c) { accesses({}, {c}); }
  /// Announces accesses that follow together, behind a barrier where one of them needs it.
  void accesses(ArrayRef<Copy> read, ArrayRef<Copy> written);
  Ir inside(const PlaceIr&, const Layout&, std::int64_t rows, std::int64_t columns);
  PlaceIr place(const Layout&, int reg);
  /// Each register of a layout from its place.
  SmallVector<Ir> each(const Layout&, llvm::function_ref<Ir(const PlaceIr&)>);

  // Memory.cpp: global memory
  Memory memory_of(const View&, mlir::ValueRange leading);
  Memory memory_of_rows(const View&, Ir batch, const Rows&, Ir head, std::int64_t rate);
  Memory memory_of(mlir::Operation*);
  Ir address(const Memory&, PlaceIr, Place more = {});
  Ir row_exists(const Memory&, Ir row);
  Ir all_rows_exist(const Memory&, std::int64_t rows);
  SmallVector<Ir> load(const Memory&, const Layout&, std::int64_t rows, std::int64_t columns, int vector);
  void store(const Memory&, const Registers&, std::int64_t rows, std::int64_t columns, int vector);
  llvm::Type* element_type(tile::ViewType);
  void emit_part(mlir::Operation*);
  void emit_scratch(tile::ScratchOp);
  void emit_load(mlir::Operation*);
  static bool is_by_rows(const Memory&);
  Registers load_registers(mlir::Operation*, const Memory&);
  bool is_staged(mlir::Operation* load);
  void emit_store(mlir::Operation*);

  // Stages.cpp: loads a turn ahead
  bool comes_in_pieces(mlir::Operation* load);
  void find_stages(mlir::scf::ForOp);
  SmallVector<Ir> start_stages(mlir::scf::ForOp, Ir turn, Ir stage);
  void start_copy(const Memory&, const Copy& to, std::int64_t rows, std::int64_t columns);

  // Elementwise.cpp
  bool emit_elementwise(mlir::Operation*);
  Ir elementwise(mlir::Operation*, ArrayRef<Ir>);
  SmallVector<Ir> emit_placed(mlir::Operation*, const Layout&);
  Ir kept(tile::MaskKind, std::int64_t stair, const PlaceIr&);

  // Gather.cpp: results whose elements lie elsewhere in the operand
  bool emit_gather(mlir::Operation*);

  // Reduce.cpp
  Registers reduce(const Registers&, Axis, std::int64_t rows, std::int64_t columns, double neutral,
                   llvm::function_ref<Ir(Ir, Ir)> combine);
  void emit_reduce(tile::ReduceOp);

  // Products.cpp
  void emit_dot(tile::DotOp);
  SmallVector<Ir> dot(tile::DotOp, const Layout&, ArrayRef<Ir> init);
  /// An operand of a product: a copy in shared memory or, of the one that is free on the target, registers in the
  /// layout of accumulators.
  struct Operand {
    Copy copy;
    SmallVector<Ir> registers;
    Layout layout;
    llvm::Type* element = nullptr;
  };
  Operand operand(mlir::Value, FreeOperand side, const Layout& result);
  /// `layout`: that of `init` and of the result, made of the target's accumulators.
  SmallVector<Ir> product(const Operand& a, const Operand& b, std::int64_t terms, const Layout&, ArrayRef<Ir> init);
  SmallVector<Ir> product(const Operand& a, const Copy& b, std::int64_t terms, const Layout& layout,
                          ArrayRef<Ir> init) {
    return product(a, Operand{b, {}, {}, b.element}, terms, layout, init);
  }
  /// The same for one warp, whose parts of the operands in shared memory begin at `a_at` and `b_at`; the caller
  /// announces the accesses.
  SmallVector<Ir> product_of_warp(const Operand& a, PlaceIr a_at, const Operand& b, PlaceIr b_at, std::int64_t terms,
                                  const Layout&, ArrayRef<Ir> init);
  void emit_vector_product(tile::DotOp);

  // Running.cpp, Triangular.cpp, Decayed.cpp, Systems.cpp
  bool emit_running(mlir::Operation*);
  void emit_triangular(mlir::Operation*);
  void invert(const Copy& factor, const Copy& x, std::int64_t rows);
  void invert_diagonal(const Copy& factor, const Copy& x, std::int64_t rows);
  void merge_inverses(const Copy& factor, const Copy& x, std::int64_t rows, std::int64_t size);
  void substitute(const Copy& factor, const Copy& x, std::int64_t rows, std::int64_t columns);
  void emit_decayed_scores(tile::DecayedScoresOp);
  void scores_of_blocks(tile::DecayedScoresOp);
  void emit_decayed_apply(tile::DecayedApplyOp);
  void apply_of_blocks(tile::DecayedApplyOp, ArrayRef<Copy> operands, const Copy& to);
  llvm::Type* operand_type(std::optional<mlir::Type> wanted);
  void emit_solve(tile::SolveOp);
  void emit_custom(tile::CustomOp);

  tile::KernelOp kernel_;
  llvm::Module& module_;
  const Target& target_;
  const Choice choice_;
  llvm::DIBuilder& debug_;
  llvm::DICompileUnit* unit_;
  llvm::DISubprogram* subprogram_ = nullptr;
  llvm::StringMap<llvm::DILexicalBlockFile*> op_files_;
  llvm::IRBuilder<> b_;
  Thread t_;
  Scratch scratch_;
  KernelFacts facts_;
  std::string failure_;
  llvm::Function* function_ = nullptr;
  llvm::BasicBlock *entry_ = nullptr, *exit_ = nullptr;
  llvm::GlobalVariable* shared_ = nullptr;
  /// Where regions begin.
  Ir memory(bool in_arena) const { return in_arena ? arena_ : shared_; }
  const bool has_arena_;
  Ir arena_ = nullptr;  ///< this block's
  std::int64_t strides_ = 0;
  unsigned op_number_ = 0;
  std::map<unsigned, unsigned> inner_;
  std::map<unsigned, double> spare_;
  const std::map<unsigned, double> excess_;
  llvm::MapVector<mlir::Value, double> aside_;  ///< tiles put aside, with their registers
  llvm::DenseMap<mlir::Value, Ir> indices_, scalars_;
  llvm::DenseMap<mlir::Value, View> views_;
  llvm::DenseMap<mlir::Value, Sequences> sequences_;
  llvm::DenseMap<mlir::Value, Rows> rows_;
  llvm::DenseMap<mlir::Value, Held> held_;
  llvm::DenseMap<mlir::Operation*, SmallVector<mlir::Value>> last_uses_;
  struct Added {
    mlir::Value value;
    bool copy;
  };
  const std::size_t room_;
  std::size_t staged_ = 0;  ///< bytes of stages
  struct Stages {
    SmallVector<mlir::Operation*> positions, loads;  ///< integer ops that the loads need, in order; and those loads
    SmallVector<mlir::Operation*> vectors;           ///< loads whose registers wait a turn
  };
  Stages stages_;                                              ///< of the loop that is emitted
  llvm::DenseMap<mlir::Operation*, Copy> ahead_;               ///< loads that are under way when their turn begins
  llvm::DenseMap<mlir::Operation*, SmallVector<Ir>> waiting_;  ///< registers of vectors that came a turn ahead
  std::vector<Added> added_;  ///< forms and copies in order, so that those of a region can be forgotten at its end
};

}  // namespace latile::simt
