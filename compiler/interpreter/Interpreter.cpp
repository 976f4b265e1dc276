// Binds memory to a program's arguments and runs its scan or its launches.
#include "compiler/Interpreter.h"
#include "compiler/interpreter/Machine.h"
#include "compiler/interpreter/Translate.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/SymbolTable.h"
#include <algorithm>
#include <cmath>
#include <cstring>
#include <thread>

namespace latile {
namespace {

using namespace interpreter;

class Run {
public:
  Run(mlir::ModuleOp module, const InterpreterInputs& inputs, const InterpreterOptions& options, Report& report)
      : module_(module), inputs_(inputs), options_(options), report_(report) {}

  void all();

private:
  bool bind(tile::ProgramOp program);
  bool bind_view(mlir::Value argument, tile::ViewType type, const std::string& name);
  bool bind_sequences(tile::SequencesType type);
  void shape_heads();
  void touched(mlir::Operation& op, llvm::SmallVectorImpl<mlir::Value>& reads,
               llvm::SmallVectorImpl<mlir::Value>& writes);
  void watch(tile::ProgramOp program);
  void workspace(tile::WorkspaceOp op);
  void launch(tile::LaunchOp op);
  void scan(tile::ScanOp op);
  void run_code(const Code& code, mlir::OperandRange operands);
  void say(const std::string& sentence) { report_.add(sentence); }

  std::int64_t heads_on(const std::string& axis) const {
    const auto found = coarse_.find(axis);
    return axis.empty()             ? 1
           : found == coarse_.end() ? inputs_.heads
                                    : std::max<std::int64_t>(inputs_.heads / found->second, 1);
  }

  mlir::ModuleOp module_;
  const InterpreterInputs& inputs_;
  const InterpreterOptions& options_;
  Report& report_;
  Sequences sequences_;
  std::map<std::string, std::int64_t> coarse_;  ///< head axes with fewer heads, and the ratio
  std::vector<std::unique_ptr<Memory>> memories_;
  std::vector<std::unique_ptr<std::vector<double>>> workspaces_;
  std::vector<std::unique_ptr<Shadow>> shadows_;
  llvm::DenseMap<mlir::Value, Argument> values_;
  std::uint32_t launches_ = 0;
};

bool Run::bind_sequences(tile::SequencesType type) {
  if (!type.isRagged()) {
    for (std::int64_t n = 0; n < inputs_.sequences; ++n) sequences_.ranges.push_back({n, 0, inputs_.rows});
    return true;
  }
  const auto found = inputs_.tensors.find("cu_seqlens");
  if (found == inputs_.tensors.end()) {
    say("'cu_seqlens' is not bound; the program's sequences are ragged");
    return false;
  }
  const auto& tensor = found->second;
  const auto integer = type.getBits() == 32 ? ElementType::i32 : ElementType::i64;
  if (tensor.type != integer || tensor.shape.size() != 1 || tensor.shape[0] != inputs_.sequences + 1) {
    say("'cu_seqlens' must be a row of " + std::to_string(inputs_.sequences + 1) + " integers of " +
        std::to_string(type.getBits()) + " bits");
    return false;
  }
  const auto at = [&](std::int64_t n) {
    const char* address =
        static_cast<const char*>(tensor.data) + n * tensor.strides[0] * static_cast<std::int64_t>(bytes(tensor.type));
    std::int64_t wide = 0;
    std::int32_t narrow = 0;
    if (integer == ElementType::i64) return std::memcpy(&wide, address, 8), wide;
    return std::memcpy(&narrow, address, 4), static_cast<std::int64_t>(narrow);
  };
  for (std::int64_t n = 0; n < inputs_.sequences; ++n) {
    if (at(n) < 0 || at(n + 1) < at(n)) {
      say("'cu_seqlens' decreases at sequence " + std::to_string(n) + ": from " + std::to_string(at(n)) + " to " +
          std::to_string(at(n + 1)));
      return false;
    }
    sequences_.ranges.push_back({0, at(n), at(n + 1)});
  }
  return true;
}

bool Run::bind_view(mlir::Value argument, tile::ViewType type, const std::string& name) {
  const auto found = inputs_.tensors.find(name);
  if (found == inputs_.tensors.end()) {
    say("'" + name + "' is not bound");
    return false;
  }
  const auto& tensor = found->second;
  const auto rank = static_cast<std::size_t>(type.getRank());
  if (tensor.shape.size() != rank || tensor.strides.size() != rank) {
    say("'" + name + "' has " + std::to_string(tensor.shape.size()) + " axes; the program takes " +
        std::to_string(rank));
    return false;
  }
  for (std::size_t axis = 0; axis < rank; ++axis)
    if (const auto extent = type.getShape()[axis]; extent >= 0 && extent != tensor.shape[axis]) {
      say("'" + name + "' has extent " + std::to_string(tensor.shape[axis]) + " on axis " + std::to_string(axis) +
          "; the program takes " + std::to_string(extent));
      return false;
    }
  const auto declared = element_type(type.getElementType());
  const auto integral = [](ElementType t) { return t == ElementType::i32 || t == ElementType::i64; };
  if (integral(declared) ? declared != tensor.type : integral(tensor.type)) {
    say("'" + name + "' has the wrong element type");
    return false;
  }
  auto memory = std::make_unique<Memory>();
  memory->name = name;
  memory->data = static_cast<char*>(tensor.data);
  memory->type = tensor.type;
  memory->declared = options_.float64 || integral(declared) ? tensor.type : declared;
  memory->shape = tensor.shape;
  memory->strides = tensor.strides;
  if (!tensor.data && std::find(tensor.shape.begin(), tensor.shape.end(), 0) == tensor.shape.end()) {
    say("'" + name + "' has no memory");
    return false;
  }
  values_[argument].memory = memory.get();
  memories_.push_back(std::move(memory));
  return true;
}

bool Run::bind(tile::ProgramOp program) {
  bool bound = true;
  auto& body = program.getBody().front();
  for (auto [argument, attribute] : llvm::zip_equal(body.getArguments(), program.getArgNames())) {
    const auto name = mlir::cast<mlir::StringAttr>(attribute).str();
    if (const auto view = mlir::dyn_cast<tile::ViewType>(argument.getType())) {
      bound &= bind_view(argument, view, name);
    } else if (const auto sequences = mlir::dyn_cast<tile::SequencesType>(argument.getType())) {
      bound &= bind_sequences(sequences);
    } else if (const auto scalar = inputs_.scalars.find(name); scalar != inputs_.scalars.end()) {
      values_[argument].scalar = scalar->second;
    } else {
      say("scalar '" + name + "' is not given");
      bound = false;
    }
  }
  if (program->hasAttr("step") && bound)
    for (const auto& range : sequences_.ranges)
      if (range.end - range.begin > 1) {
        say("a step takes one row for each sequence, not " + std::to_string(range.end - range.begin));
        return false;
      }
  return bound;
}

void Run::shape_heads() {
  module_.walk([&](tile::ScanOp scan) {
    if (scan.getHeadRatio() == 1) return;
    for (auto heads : {scan.getReadHeads(), scan.getCarryHeads(), scan.getWriteHeads()})
      for (auto name : heads.getAsRange<mlir::StringAttr>())
        if (!name.empty() && name.getValue() != scan.getAxis())
          coarse_[name.str()] = static_cast<std::int64_t>(scan.getHeadRatio());
  });
  module_.walk([&](tile::ProgramOp program) {
    if (auto ratios = program->getAttrOfType<mlir::DictionaryAttr>("coarse_heads"))
      for (auto axis : ratios) coarse_[axis.getName().str()] = mlir::cast<mlir::IntegerAttr>(axis.getValue()).getInt();
  });
  module_.walk([&](tile::KernelOp kernel) {
    const auto grid = kernel.getGrid();
    kernel.walk([&](tile::HeadOp head) {
      if (!llvm::is_contained(grid, head.getAxisAttr()))
        coarse_[head.getAxis().str()] = static_cast<std::int64_t>(head.getRatio());
    });
    kernel.walk(
        [&](tile::MemberOp member) { coarse_[member.getAxis().str()] = static_cast<std::int64_t>(member.getRatio()); });
  });
  const auto chunks_of = [&](std::int64_t size) { sequences_.prepare(size); };
  module_.walk([&](mlir::Operation* op) {
    if (auto chunk = mlir::dyn_cast<tile::ChunkOp>(op)) chunks_of(static_cast<std::int64_t>(chunk.getSize()));
    if (auto begin = mlir::dyn_cast<tile::ChunkBeginOp>(op)) chunks_of(static_cast<std::int64_t>(begin.getSize()));
    if (auto space = mlir::dyn_cast<tile::WorkspaceOp>(op)) chunks_of(static_cast<std::int64_t>(space.getChunk()));
  });
}

/// What one op of the program does to its operands.
void Run::touched(mlir::Operation& op, llvm::SmallVectorImpl<mlir::Value>& reads,
                  llvm::SmallVectorImpl<mlir::Value>& writes) {
  if (auto scan = mlir::dyn_cast<tile::ScanOp>(op)) {
    llvm::append_range(reads, scan.getInputs());
    llvm::append_range(reads, scan.getInitial());
    llvm::append_range(writes, scan.getOutputs());
    llvm::append_range(writes, scan.getFinal());
    llvm::append_range(writes, scan.getHistory());
  } else if (auto launch = mlir::dyn_cast<tile::LaunchOp>(op)) {
    auto kernel = module_.lookupSymbol<tile::KernelOp>(launch.getKernel());
    if (!kernel) return;
    const auto axes = kernel.getGrid().size();
    kernel.walk([&](mlir::Operation* inner) {
      if (mlir::isa<tile::ColumnsOp, tile::RowBlockOp>(inner)) return;
      for (auto operand : inner->getOperands()) {
        while (mlir::isa_and_present<tile::ColumnsOp, tile::RowBlockOp>(operand.getDefiningOp()))
          operand = operand.getDefiningOp()->getOperand(0);
        if (const auto argument = mlir::dyn_cast<mlir::BlockArgument>(operand);
            argument && mlir::isa<tile::ViewType>(argument.getType()) &&
            argument.getOwner() == &kernel.getBody().front())
          (mlir::isa<tile::StoreOp, tile::StoreRowsOp>(inner) ? writes : reads)
              .push_back(launch.getOperands()[argument.getArgNumber() - axes]);
      }
    });
  }
}

void Run::watch(tile::ProgramOp program) {
  // An output is what the first op that touches it only writes.
  llvm::DenseSet<mlir::Value> seen, written;
  for (auto& op : program.getBody().front()) {
    llvm::SmallVector<mlir::Value> reads, writes;
    touched(op, reads, writes);
    seen.insert(reads.begin(), reads.end());
    for (auto value : writes)
      if (seen.insert(value).second) written.insert(value);
  }
  std::vector<Memory*> memories;
  std::vector<bool> initialised;
  for (auto argument : program.getBody().front().getArguments())
    if (auto* memory = values_.lookup(argument).memory) {
      memories.push_back(memory);
      initialised.push_back(!written.contains(argument));
    }
  shadows_ = make_shadows(memories, initialised);
}

void Run::workspace(tile::WorkspaceOp op) {
  const auto type = op.getView().getType();
  const auto inner = type.getInner();
  auto memory = std::make_unique<Memory>();
  memory->name = op.getName().str();
  memory->shape = {sequences_.chunks(static_cast<std::int64_t>(op.getChunk())).back()};
  if (type.getDynamicRank() > 1) memory->shape.push_back(heads_on(op.getAxis().str()));
  memory->shape.insert(memory->shape.end(), inner.begin(), inner.end());
  memory->strides.assign(memory->shape.size(), 1);
  std::int64_t count = 1;
  for (std::size_t axis = memory->shape.size(); axis-- > 0; count *= memory->shape[axis]) memory->strides[axis] = count;
  workspaces_.push_back(std::make_unique<std::vector<double>>(static_cast<std::size_t>(count), std::nan("")));
  memory->data = reinterpret_cast<char*>(workspaces_.back()->data());
  memory->declared = options_.float64 ? ElementType::f64 : element_type(type.getElementType());
  values_[op.getView()].memory = memory.get();
  if (options_.sanitize) {
    std::vector<Memory*> one{memory.get()};
    for (auto& shadow : make_shadows(one, {false})) shadows_.push_back(std::move(shadow));
  }
  memories_.push_back(std::move(memory));
}

void Run::run_code(const Code& code, mlir::OperandRange operands) {
  std::vector<Argument> arguments;
  for (auto operand : operands) arguments.push_back(values_.lookup(operand));
  std::vector<std::int64_t> grid;
  for (const auto& axis : code.grid)
    grid.push_back(axis == "N"        ? sequences_.count()
                   : axis == "chunks" ? (code.chunk > 0 ? sequences_.chunks(code.chunk).back() : 0)
                   : axis == "slice"  ? code.slices
                                      : heads_on(axis));
  const auto threads =
      options_.threads > 0 ? options_.threads : static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  interpreter::run({code, arguments, sequences_, grid, inputs_.heads, ++launches_, options_.sanitize ? 1 : threads},
                   report_);
}

void Run::launch(tile::LaunchOp op) {
  auto kernel = module_.lookupSymbol<tile::KernelOp>(op.getKernel());
  std::vector<std::string> problems;
  if (!kernel)
    problems.push_back(place_of(op) + " names no kernel: @" + op.getKernel().str());
  else if (auto code = translate(kernel, options_, problems); problems.empty()) {
    // A kernel over chunks that asks for no rows: its workspace tells their size.
    for (auto operand : op.getOperands())
      if (auto space = operand.getDefiningOp<tile::WorkspaceOp>(); space && code.chunk == 0)
        code.chunk = static_cast<std::int64_t>(space.getChunk());
    if (code.chunk == 0 && llvm::is_contained(code.grid, "chunks"))
      problems.push_back(place_of(op) + " runs over chunks of unknown size: no tile.chunk, no workspace");
    else
      run_code(code, op.getOperands());
  }
  for (const auto& problem : problems) say(problem);
}

void Run::scan(tile::ScanOp op) {
  std::vector<std::string> problems;
  if (const auto code = translate(op, options_, problems); problems.empty()) run_code(code, op->getOperands());
  for (const auto& problem : problems) say(problem);
}

void Run::all() {
  const auto programs = llvm::to_vector(module_.getOps<tile::ProgramOp>());
  if (programs.size() != 1) return say("the module has " + std::to_string(programs.size()) + " programs, not one");
  auto program = programs[0];
  if (program->hasAttr("extern_kernels"))
    return say("the program has kernels that are not written in the language, and have no meaning here");
  if (!bind(program)) return;
  shape_heads();
  if (options_.sanitize) watch(program);
  for (auto& op : program.getBody().front()) {
    if (auto space = mlir::dyn_cast<tile::WorkspaceOp>(op))
      workspace(space);
    else if (auto launched = mlir::dyn_cast<tile::LaunchOp>(op))
      launch(launched);
    else if (auto scanned = mlir::dyn_cast<tile::ScanOp>(op))
      scan(scanned);
    else if (!op.hasTrait<mlir::OpTrait::ConstantLike>() && !mlir::isa<tile::ConstantOp>(op))
      say(place_of(&op) + " has no meaning in a program");
  }
}

}  // namespace

InterpreterReport interpret(mlir::ModuleOp module, const InterpreterInputs& inputs, const InterpreterOptions& options) {
  Report report;
  Run(module, inputs, options, report).all();
  return {report.take()};
}

}  // namespace latile
