// Turns one tile.kernel into an LLVM function with the calling convention of runtime/Artifact.h.
#pragma once
#include "codegen/host/Lanes.h"
#include "codegen/host/Schedule.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "runtime/Artifact.h"

namespace latile::host {

class KernelEmitter {
public:
  KernelEmitter(tile::KernelOp, llvm::Module&, const HostIsa&);
  /// Emits the function; facts() then has its grid, dims, scalars and arena size. `views` and `scalars` name the
  /// arguments after the grid's, in order.
  void emit(llvm::ArrayRef<std::string> argument_names);
  const KernelFacts& facts() const { return facts_; }
  const std::string& failure() const { return failure_; }

private:
  /// A tensor in memory.
  struct View {
    Ir pointer = nullptr;
    SmallVector<Ir> strides;  ///< in elements
    ElementType type = ElementType::f32;
    tile::ViewType shape;
  };
  struct Sequences {
    Ir lengths = nullptr;  ///< cu_seqlens, null when dense
    Ir rows = nullptr;     ///< T of a dense batch
    int bits = 0;
  };
  struct Rows {
    Ir first, count, number;
    bool reversed = false;  ///< tokens descend from `first`
    Ir before = nullptr;    ///< rows of the tile that lie before the sequence; null: none do
  };
  /// A stored value: element (r, c) is at base + panel * panel_bytes + r * row_bytes + 4 c; flipped: r and c change
  /// roles.
  struct Buffer {
    Ir base = nullptr;
    Ir row_bytes = nullptr;
    std::int64_t panel_bytes = 0;
  };
  /// A register block: rows i … i + rows of a value, and `vectors` vectors of columns from j. Along rows: a column
  /// [R,1] read as `vectors` vectors from row i.
  struct Block {
    Ir i;
    int rows;
    Ir j;
    int vectors;
    bool along_rows = false;
  };
  using Grid = SmallVector<Ir>;  ///< rows × vectors
  /// One row of a tensor in memory: where it starts, and whether it exists (null: it does).
  struct MemoryRow {
    Ir address, valid;
  };

  // Kernel.cpp: arguments, control flow, order of work
  void bind_arguments(llvm::ArrayRef<std::string> names);
  void emit_block(mlir::Block&);
  void emit_operations(mlir::Block&);
  void emit_tiles(llvm::ArrayRef<mlir::Operation*>);
  void emit_for(mlir::scf::ForOp);
  void emit_if(mlir::scf::IfOp);
  bool emit_index(mlir::Operation*);
  Ir dim(const std::string& name);
  Ir integer(std::int64_t slot);
  Ir allocate(std::int64_t bytes);
  void fail(mlir::Operation*, llvm::Twine why);

  // Positions.cpp: chunks of the whole batch
  Ir border(const Sequences&, Ir k);
  Ir chunks_of(Ir rows, std::int64_t size);
  void emit_chunk(tile::ChunkOp);
  void emit_chunk_begin(tile::ChunkBeginOp);

  // Values.cpp: what stands for a value
  Ir scalar(mlir::Value);
  void make_scalar(mlir::Value);
  void make_column(mlir::Value);
  bool in_panel(mlir::Value) const;
  std::int64_t columns(mlir::Value) const;  ///< vectors' worth of columns in the current loop
  Ir column_mask(mlir::Value, Ir j);
  Ir address(const Buffer&, Ir row, Ir column, bool panelled);
  Buffer new_buffer(mlir::Value, bool whole_width);
  /// The buffer of a value in one of its forms. A value that was given none is a fault of Storage, reported by name.
  Buffer stored(const llvm::DenseMap<mlir::Value, Buffer>& form, mlir::Value);
  Ir row_in_memory(const Rows&, Ir row, std::int64_t rate);
  MemoryRow row_of(mlir::Value load, Ir row);
  MemoryRow row_of(const View&, mlir::ValueRange, Ir row);
  MemoryRow row_of_sequence(const View&, mlir::Value batch, mlir::Value rows, mlir::Value head, Ir row,
                            std::int64_t rate);
  Ir read_memory(mlir::Value load, Ir row, Ir j);
  void write_memory(mlir::Operation* store, const Block&, const Grid&);
  Ir read_column_scalar(mlir::Value, Ir row);
  Ir row_times_column(tile::DotOp, Ir row);
  Ir row_place(tile::PickKind, std::int64_t extent, std::uint64_t at, mlir::Value rows);

  // Evaluate.cpp: elementwise work in registers
  Grid evaluate(mlir::Value, const Block&);
  Grid evaluate_column(mlir::Value, const Block&);
  Grid elementwise(mlir::Operation*, llvm::ArrayRef<Grid>);
  Ir elementwise_vector(mlir::Operation*, llvm::ArrayRef<Ir>);
  Ir keep_rows(Ir vector, Ir row, mlir::Value rows, std::int64_t rate, double value);
  /// The factors of an unstored product of two elements, for a fused multiply-add; empty otherwise.
  SmallVector<Grid> factors(mlir::Value, const Block&);
  Grid evaluate_op(mlir::Operation*, mlir::Value, const Block&);

  // Products.cpp
  Grid product(tile::DotOp, const Block&, Grid init, bool negate);
  Grid multiply(OperandForm a, OperandForm c, const Block&, Grid init, bool negate, Ir terms);
  void substitute(mlir::Value factor, mlir::Value x, llvm::function_ref<Grid(const Block&)> right_side);
  void emit_solve(tile::SolveUnitLowerOp);
  void emit_inverse(tile::InverseUnitLowerOp);
  // Bfloat16.cpp: the bfloat16 forms and the products that read them
  Grid multiply_pairs(OperandForm a, OperandForm c, const Block&, Grid init, bool negate, Ir terms);
  void emit_tile_product(tile::DotOp);
  Ir pack(Ir low, Ir high);
  void store_halves(mlir::Value);
  void store_pairs(mlir::Value);
  void flip_words(mlir::Value, Form from, Form to);
  /// Word (r, c) of `from` to (c, r) of `to`; `rows` is a multiple of 16.
  void transpose_words(const Buffer& from, std::int64_t rows, std::int64_t columns, const Buffer& to);
  void store_forms(mlir::Value);
  void configure_tiles();
  void emit_row_products(llvm::MutableArrayRef<tile::DotOp>);

  // Columns.cpp: states with contiguous rows
  bool reads_row_element(mlir::Value row) const;
  Ir read_row_scalar(mlir::Value row, Ir column);
  bool reads_by_columns(mlir::Value);
  Grid evaluate_flipped(mlir::Value, Ir column, Ir first_row, int vectors);
  Ir read_column_memory(mlir::Value load, Ir column, Ir first_row);
  void emit_column_products(llvm::MutableArrayRef<tile::DotOp>);
  void emit_column_store(tile::StoreOp);

  // Prefetch.cpp
  void begin_prefetch(mlir::Block& body);
  void fetch(Ir address);
  /// Fetches as many lines of the next chunk as go with work of so many cycles.
  void pace(std::int64_t cycles);
  /// Of the next item's state, elements of row `turn` (column `turn` where columns are contiguous).
  void fetch_next_state(mlir::Value stored, Ir turn, Ir from, std::int64_t elements);

  // Recurrences.cpp
  void emit_decayed_scores(tile::DecayedScoresOp);
  void emit_decayed_apply(tile::DecayedApplyOp);
  void emit_running(mlir::Operation*);
  void emit_kron_rows(tile::KronRowsOp);
  void emit_lookup(tile::LookupOp);
  void emit_sum_rows(tile::SumRowsOp);
  void emit_solve_system(tile::SolveOp);
  Buffer step_decays(mlir::Value gates);
  Ir first_row(Ir column, tile::MaskKind, std::int64_t stair);
  Ir decay_between(mlir::Value gr, mlir::Value gc, Ir row, Ir column, int distance, Ir j);
  void emit_running_decay(mlir::Value);
  // DecayedBlocks.cpp
  Buffer scaled_halves(mlir::Value x, std::int64_t half, bool columns, llvm::function_ref<Ir(Ir row, Ir j)> start,
                       const Buffer& decays);
  void emit_score_blocks(tile::DecayedScoresOp, const Buffer& to);

  // Roots.cpp: loops over whole values
  void over_blocks(std::int64_t rows, mlir::Value shape, llvm::function_ref<void(const Block&)>, bool has_product,
                   bool upwards = false);
  void store_value(mlir::Value, const Buffer&);
  void store_flipped(mlir::Value);
  void emit_root(mlir::Value);
  void emit_cumsum(tile::CumsumOp);
  void emit_reduce(tile::ReduceOp);
  void emit_store(mlir::Operation*);
  void emit_carries(mlir::Operation* yield, llvm::ArrayRef<mlir::Value> carries, bool panelled);
  void run_panels();
  void choose_panels(mlir::Block& body, llvm::ArrayRef<mlir::Value> carries);

  tile::KernelOp kernel_;
  llvm::Module& module_;
  llvm::IRBuilder<> builder_;
  Lanes l_;
  Storage storage_;
  KernelFacts facts_;
  std::string failure_;
  llvm::Function* function_ = nullptr;
  Ir arguments_ = nullptr, arena_ = nullptr, zeros_ = nullptr, trash_ = nullptr, integers_ = nullptr;
  std::int64_t arena_bytes_ = 0, strides_ = 0;
  llvm::BasicBlock* entry_ = nullptr;
  llvm::DenseMap<mlir::Value, Ir> indices_, scalars_;
  llvm::DenseMap<mlir::Value, Buffer> steps_;  ///< of the current block: exp2 of the differences of a gate's rows
  /// Of the current block: operands of score blocks, by value, gates of rows and of columns, and size.
  std::map<std::tuple<const void*, const void*, const void*, std::int64_t>, Buffer> scaled_;
  int depth_ = 0;  ///< of loops
  llvm::DenseMap<mlir::Value, View> views_;
  llvm::DenseMap<mlir::Value, Sequences> sequences_;
  llvm::DenseMap<mlir::Value, Rows> rows_;
  llvm::DenseMap<mlir::Value, Buffer> plain_, flipped_, halves_, halves_flipped_, pairs_, pairs_flipped_;
  const Bfloat16 engine_;
  mlir::Block* unfetched_ = nullptr;  ///< a loop's body whose table of lines is yet to be made
  Ir prefetch_at_ = nullptr,
     prefetch_end_ = nullptr;             ///< where the address of the next line to fetch is kept; table's end
  llvm::DenseSet<mlir::Value> panelled_;  ///< values that are computed a panel of columns at a time
  std::int64_t panel_columns_ = 0;        ///< 0: no panels in this loop
  Ir panel_ = nullptr;                    ///< number of the current panel
  /// Work on panelled values that waits for the loop over panels: all of it, the carries' update included, is done
  /// for one panel before the next, so that a panel of the state is used and updated while it is near.
  std::vector<std::function<void()>> panel_work_;
};

}  // namespace latile::host
