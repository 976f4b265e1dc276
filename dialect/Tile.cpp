// The dialect itself, and the text form of programs and kernels.
#include "dialect/Tile.h"
#include "dialect/AdjointBuilder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/FoldInterfaces.h"
#include "mlir/Interfaces/FunctionImplementation.h"

using namespace mlir;
using namespace latile::tile;

#include "dialect/TileDialect.cpp.inc"
#include "dialect/TileEnums.cpp.inc"

namespace {
/// Constants that folding makes or moves (bounds of a loop) stay in the scan that uses them: a kernel is made of what
/// its region holds.
struct ScanFolds : DialectFoldInterface {
  using DialectFoldInterface::DialectFoldInterface;
  bool shouldMaterializeInto(Region* region) const final { return isa<ScanOp>(region->getParentOp()); }
};

/// Layouts are long; a type names them by `#layout`.
struct LayoutAliases : OpAsmDialectInterface {
  using OpAsmDialectInterface::OpAsmDialectInterface;
  AliasResult getAlias(Attribute attribute, raw_ostream& out) const final {
    if (!isa<LayoutAttr>(attribute)) return AliasResult::NoAlias;
    out << "layout";
    return AliasResult::FinalAlias;
  }
};
}  // namespace

void TileDialect::initialize() {
  registerTypes();
  addOperations<
#define GET_OP_LIST
#include "dialect/TileOps.cpp.inc"
      >();
  attach_elementwise_adjoints(getContext());
  addInterfaces<ScanFolds, LayoutAliases>();
}

void latile::tile::register_dialects(DialectRegistry& registry) {
  registry.insert<TileDialect, arith::ArithDialect, math::MathDialect, scf::SCFDialect>();
}

namespace {

template <typename Op> ParseResult parse_function(OpAsmParser& parser, OperationState& result) {
  auto type = [](Builder& builder, ArrayRef<Type> arguments, ArrayRef<Type> results,
                 function_interface_impl::VariadicFlag,
                 std::string&) -> Type { return builder.getFunctionType(arguments, results); };
  return function_interface_impl::parseFunctionOp(
      parser, result, /*allowVariadic=*/false, Op::getFunctionTypeAttrName(result.name), type,
      Op::getArgAttrsAttrName(result.name), Op::getResAttrsAttrName(result.name));
}

template <typename Op> void print_function(Op op, OpAsmPrinter& printer) {
  function_interface_impl::printFunctionOp(printer, op, /*isVariadic=*/false, op.getFunctionTypeAttrName(),
                                           op.getArgAttrsAttrName(), op.getResAttrsAttrName());
}

void name_arguments(Region& region, unsigned first, ArrayAttr names, OpAsmSetValueNameFn set_name) {
  if (region.empty()) return;
  for (auto [i, name] : llvm::enumerate(names))
    if (first + i < region.getNumArguments())
      if (auto text = dyn_cast<StringAttr>(name)) set_name(region.getArgument(first + i), text.getValue());
}

// A list of types in parentheses, which may be empty.
ParseResult parseTypes(OpAsmParser& parser, SmallVectorImpl<Type>& types) {
  return parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Paren,
                                        [&] { return parser.parseType(types.emplace_back()); });
}
void printTypes(OpAsmPrinter& printer, Operation*, TypeRange types) { printer << '(' << types << ')'; }

}  // namespace

ParseResult ProgramOp::parse(OpAsmParser& parser, OperationState& result) {
  return parse_function<ProgramOp>(parser, result);
}
void ProgramOp::print(OpAsmPrinter& printer) { print_function(*this, printer); }
void ProgramOp::getAsmBlockArgumentNames(Region& region, OpAsmSetValueNameFn set_name) {
  name_arguments(region, 0, getArgNames(), set_name);
}

ParseResult KernelOp::parse(OpAsmParser& parser, OperationState& result) {
  return parse_function<KernelOp>(parser, result);
}
void KernelOp::print(OpAsmPrinter& printer) { print_function(*this, printer); }
void KernelOp::getAsmBlockArgumentNames(Region& region, OpAsmSetValueNameFn set_name) {
  unsigned axes = getGrid().size();
  for (auto [i, axis] : llvm::enumerate(getGrid())) {
    if (i >= region.getNumArguments()) return;
    StringRef text = cast<StringAttr>(axis).getValue();
    set_name(region.getArgument(i), text == "N" ? "n" : text == "chunks" ? "c" : text == "slice" ? "slice" : "head");
  }
  name_arguments(region, axes, getArgNames(), set_name);
}

void ScanOp::getAsmBlockArgumentNames(Region& region, OpAsmSetValueNameFn set_name) {
  name_arguments(region, 0, getReads(), set_name);
  name_arguments(region, getReads().size(), getCarries(), set_name);
}

// The i-th carry that has an operand uses the operand of that rank among those that have one.
static Value operand_of(ArrayRef<bool> has, OperandRange operands, unsigned i) {
  if (i >= has.size() || !has[i]) return nullptr;
  return operands[llvm::count(has.take_front(i), true)];
}
Value ScanOp::initialOf(unsigned i) { return operand_of(getHasInitial(), getInitial(), i); }
Value ScanOp::initialIndexOf(unsigned i) { return operand_of(getHasInitialIndex(), getInitialIndex(), i); }
Value ScanOp::finalOf(unsigned i) { return operand_of(getHasFinal(), getFinal(), i); }
Value ScanOp::finalIndexOf(unsigned i) { return operand_of(getHasFinalIndex(), getFinalIndex(), i); }
int64_t ScanOp::everyOf(unsigned i) { return getEvery() ? (*getEvery())[i] : 0; }
// Histories are listed for the carries that have one, in their order.
static Value history_of(ScanOp op, OperandRange operands, unsigned i) {
  if (op.everyOf(i) == 0) return nullptr;
  unsigned before = 0;
  for (unsigned k = 0; k < i; ++k) before += op.everyOf(k) != 0;
  return operands[before];
}
Value ScanOp::historyOf(unsigned i) { return history_of(*this, getHistory(), i); }
Value ScanOp::historyIndexOf(unsigned i) { return history_of(*this, getHistoryIndex(), i); }
bool ScanOp::showsAbsence() {
  bool written = false;
  for (unsigned i = 0; i < getCarries().size(); ++i) {
    if (!initialIndexOf(i) || (finalOf(i) && !finalIndexOf(i))) return false;
    written |= finalOf(i) != nullptr;
  }
  return written;
}
StringRef ScanOp::carryAxis() {
  ArrayRef<Attribute> heads = getCarryHeads().getValue();
  if (getHeadRatio() == 1 || heads.empty() || !llvm::all_equal(heads)) return getAxis();
  StringRef axis = cast<StringAttr>(heads.front()).getValue();
  return axis.empty() ? getAxis() : axis;
}

#pragma GCC diagnostic ignored "-Wunused-parameter"
#define GET_OP_CLASSES
#include "dialect/TileOps.cpp.inc"
