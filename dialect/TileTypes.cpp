// Types and attributes: text form and invariants.
#include "codegen/simt/Layout.h"
#include "dialect/Tile.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace latile::tile;

#define GET_TYPEDEF_CLASSES
#include "dialect/TileTypes.cpp.inc"
// Generated code leaves parameters unused.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#define GET_ATTRDEF_CLASSES
#include "dialect/TileAttributes.cpp.inc"
#pragma GCC diagnostic pop

void TileDialect::registerTypes() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialect/TileTypes.cpp.inc"
      >();
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialect/TileAttributes.cpp.inc"
      >();
}

LogicalResult LayoutAttr::verify(function_ref<InFlightDiagnostic()> error, StringRef text) {
  std::string why;
  auto layout = latile::simt::Layout::parse(text, &why);
  if (!layout) return error() << "no layout: " << why;
  if (layout->text() != text) return error() << "this layout is written \"" << layout->text() << "\"";
  return success();
}

Type ViewType::parse(AsmParser& parser) {
  SmallVector<int64_t> shape;
  Type element;
  int64_t unit = -1;
  auto location = parser.getCurrentLocation();
  if (parser.parseLess() || parser.parseDimensionList(shape) || parser.parseType(element)) return {};
  if (succeeded(parser.parseOptionalComma()) && (parser.parseKeyword("unit") || parser.parseInteger(unit))) return {};
  if (parser.parseGreater()) return {};
  return parser.getChecked<ViewType>(location, parser.getContext(), shape, element, unit);
}

void ViewType::print(AsmPrinter& printer) const {
  printer << '<';
  for (int64_t extent : getShape()) {
    if (ShapedType::isDynamic(extent))
      printer << "?x";
    else
      printer << extent << 'x';
  }
  printer << getElementType();
  if (getUnit() >= 0) printer << ", unit " << getUnit();
  printer << '>';
}

int64_t ViewType::getDynamicRank() const {
  return llvm::find_if(getShape(), [](int64_t extent) { return !ShapedType::isDynamic(extent); }) - getShape().begin();
}

LogicalResult ViewType::verify(function_ref<InFlightDiagnostic()> error, ArrayRef<int64_t> shape, Type element,
                               int64_t unit) {
  if (!element.isF16() && !element.isBF16() && !element.isF32() && !element.isF64() && !element.isSignlessInteger(32) &&
      !element.isSignlessInteger(64))
    return error() << "a view's element type is f16, bf16, f32, f64, i32 or i64, not " << element;
  const auto* inner = llvm::find_if(shape, [](int64_t extent) { return !ShapedType::isDynamic(extent); });
  for (const auto* extent = inner; extent != shape.end(); ++extent) {
    if (ShapedType::isDynamic(*extent)) return error() << "a view's dynamic extents come before its static ones";
    if (*extent < 1) return error() << "a view's static extents are positive, not " << *extent;
  }
  if (shape.end() - inner > 2) return error() << "a view has at most two static extents, not " << (shape.end() - inner);
  if (unit < -1 || unit >= static_cast<int64_t>(shape.size()))
    return error() << "unit " << unit << " is no axis of a view with " << shape.size() << " axes";
  return success();
}

Type SequencesType::parse(AsmParser& parser) {
  StringRef word;
  auto location = parser.getCurrentLocation();
  if (parser.parseLess() || parser.parseKeyword(&word) || parser.parseGreater()) return {};
  int64_t bits =
      llvm::StringSwitch<int64_t>(word).Case("dense", 0).Case("ragged32", 32).Case("ragged64", 64).Default(-1);
  if (bits < 0) {
    parser.emitError(location) << "sequences are dense, ragged32 or ragged64, not " << word;
    return {};
  }
  return SequencesType::get(parser.getContext(), bits);
}

void SequencesType::print(AsmPrinter& printer) const {
  printer << '<' << (getBits() == 0 ? "dense" : getBits() == 32 ? "ragged32" : "ragged64") << '>';
}
