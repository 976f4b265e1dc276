#include "tests/interpreter/Fixture.h"
#include "dialect/Tile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include <cmath>
#include <doctest/doctest.h>

namespace latile::test {
namespace {

std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const auto& part : parts) text += (text.empty() ? "" : ", ") + part;
  return text;
}

std::string quoted(const std::string& text) { return "\"" + text + "\""; }

std::string view(std::size_t leading, const std::vector<std::int64_t>& inner, const std::string& type, int unit = -1) {
  std::string text = "!tile.view<";
  for (std::size_t i = 0; i < leading; ++i) text += "?x";
  for (auto extent : inner) text += std::to_string(extent) + "x";
  const auto rank = leading + inner.size();
  return text + type +
         (unit < 0 || rank <= static_cast<std::size_t>(unit)
              ? ""
              : ", unit " + std::to_string(rank - 1 - static_cast<std::size_t>(unit))) +
         ">";
}

}  // namespace

Array::Array(std::vector<std::int64_t> extents, double value) : shape(std::move(extents)) {
  std::int64_t count = 1;
  for (auto extent : shape) count *= extent;
  data.assign(static_cast<std::size_t>(count), value);
}

Array Array::random(std::vector<std::int64_t> extents, std::mt19937_64& engine, double low, double high) {
  Array array(std::move(extents));
  std::uniform_real_distribution<double> uniform(low, high);
  for (auto& x : array.data) x = uniform(engine);
  return array;
}

std::int64_t Array::offset(std::initializer_list<std::int64_t> index) const {
  std::int64_t at = 0;
  std::size_t axis = 0;
  for (auto i : index) at = at * shape[axis++] + i;
  return at;
}

InterpreterTensor Array::tensor() {
  InterpreterTensor tensor{data.data(), ElementType::f64, shape, std::vector<std::int64_t>(shape.size(), 1)};
  for (std::size_t axis = shape.size(); axis-- > 1;) tensor.strides[axis - 1] = tensor.strides[axis] * shape[axis];
  return tensor;
}

double largest_difference(const Array& a, const Array& b) {
  if (a.data.size() != b.data.size()) return INFINITY;
  double largest = 0;
  for (std::size_t i = 0; i < a.data.size(); ++i) {
    const double difference = std::fabs(a.data[i] - b.data[i]);
    if (a.data[i] == b.data[i] || (std::isnan(a.data[i]) && std::isnan(b.data[i]))) continue;
    largest = std::isnan(difference) ? INFINITY : std::max(largest, difference / std::max(1.0, std::fabs(b.data[i])));
  }
  return largest;
}

std::string ScanText::text() const {
  std::vector<std::string> arguments{"%seq: !tile.sequences<" + sequences + ">"}, names{quoted("sequences")};
  std::vector<std::string> in, in_types, initial, initial_types, from, from_types, final, final_types, to, to_types,
      out, out_types, history, history_types, kept, kept_types, every, accepted_value, accepted_type;
  std::vector<std::string> read_names, read_heads, rates, carry_names, carry_heads, has[4], write_names, write_heads,
      block;
  const auto argument = [&](const std::string& name, const std::string& type, std::vector<std::string>& operands,
                            std::vector<std::string>& types) {
    const auto value = "%a" + std::to_string(names.size());
    arguments.push_back(value + ": " + type);
    names.push_back(quoted(name));
    operands.push_back(value);
    types.push_back(type);
  };
  const auto tile = [](std::int64_t rows, std::int64_t cols, const std::string& type) {
    return "tensor<" + std::to_string(rows) + "x" + std::to_string(cols) + "x" + type + ">";
  };
  for (const auto& read : reads) {
    const std::size_t leading = (read.rate > 0 ? 2 : 0) + (read.head.empty() ? 0 : 1);
    argument(read.name, view(leading, read.inner, read.type, read.unit), in, in_types);
    read_names.push_back(quoted(read.name));
    read_heads.push_back(quoted(read.head));
    rates.push_back(std::to_string(read.rate));
    const std::int64_t rows = read.rate > 0 ? chunk * read.rate : read.inner.size() > 1 ? read.inner[0] : 1;
    block.push_back("%" + read.name + ": " + tile(rows, read.inner.empty() ? 1 : read.inner.back(), read.type));
  }
  for (const auto& scalar : scalars) {
    argument(scalar, "f64", in, in_types);
    read_names.push_back(quoted(scalar));
    read_heads.push_back(quoted(""));
    rates.push_back("0");
    block.push_back("%" + scalar + ": tensor<1x1xf32>");
  }
  for (const auto& carry : carries) {
    const auto type = view(carry.head.empty() ? 1 : 2, carry.inner, carry.type, carry.unit),
               index = view(1, {}, carry.index_type);
    if (carry.initial) argument(carry.name + ".initial", type, initial, initial_types);
    const auto table = view(2, {}, carry.index_type);
    if (carry.initial_index) argument(carry.name + ".initial_index", accepted ? table : index, from, from_types);
    if (carry.final) argument(carry.name + ".final", type, final, final_types);
    if (carry.final_index) argument(carry.name + ".final_index", index, to, to_types);
    if (carry.every) argument(carry.name + ".history", type, history, history_types);
    if (carry.every) argument(carry.name + ".history_index", table, kept, kept_types);
    every.push_back(std::to_string(carry.every));
    const bool flags[4] = {carry.initial, carry.initial_index, carry.final, carry.final_index};
    for (int i = 0; i < 4; ++i) has[i].push_back(flags[i] ? "true" : "false");
    carry_names.push_back(quoted(carry.name));
    carry_heads.push_back(quoted(carry.head));
    const std::int64_t rows = carry.inner.size() > 1 ? carry.inner[0] : 1;
    block.push_back("%" + carry.name + ": " + tile(rows, carry.inner.empty() ? 1 : carry.inner.back(), "f32"));
  }
  if (accepted) argument("accepted", view(1, {}, "i32"), accepted_value, accepted_type);
  std::vector<std::string> yielded, yielded_types;
  for (const auto& write : writes) {
    argument(write.name, view(write.head.empty() ? 2 : 3, write.inner, write.type, write.unit), out, out_types);
    write_names.push_back(quoted(write.name));
    write_heads.push_back(quoted(write.head));
    yielded_types.push_back(tile(chunk, write.inner.empty() ? 1 : write.inner.back(), write.type));
  }
  for (const auto& carry : carries)
    yielded_types.push_back(
        tile(carry.inner.size() > 1 ? carry.inner[0] : 1, carry.inner.empty() ? 1 : carry.inner.back(), "f32"));
  for (const auto& value : yields) yielded.push_back("%" + value);
  const auto array = [](const char* type, const std::vector<std::string>& values) {
    return "array<" + std::string(type) + (values.empty() ? "" : ": ") + joined(values) + ">";
  };
  const auto groups = [&](const auto& i, const auto& a, const auto& b, const auto& c, const auto& d, const auto& e) {
    return "in(" + joined(i) + ") initial(" + joined(a) + ") at(" + joined(b) + ") final(" + joined(c) + ") at(" +
           joined(d) + ") out(" + joined(e) + ")";
  };
  return "tile.program @program(" + joined(arguments) + ") attributes {" + (step ? "step, " : "") + "arg_names = [" +
         joined(names) + "]} {\n  tile.scan %seq chunk " + std::to_string(chunk) + " axis \"" + axis + "\" " +
         groups(in, initial, from, final, to, out) +
         (history.empty() ? ""
                          : " history(" + joined(history) + " : " + joined(history_types) + ") at(" + joined(kept) +
                                " : " + joined(kept_types) + ")") +
         (accepted ? " accepted(" + accepted_value[0] + " : " + accepted_type[0] + ")" : "") + " {" +
         (reversed ? "reversed, " : "") + (history.empty() ? "" : "every = " + array("i64", every) + ", ") +
         "reads = [" + joined(read_names) + "], read_heads = [" + joined(read_heads) +
         "], rates = " + array("i64", rates) + ", carries = [" + joined(carry_names) + "], carry_heads = [" +
         joined(carry_heads) + "], has_initial = " + array("i1", has[0]) +
         ", has_initial_index = " + array("i1", has[1]) + ", has_final = " + array("i1", has[2]) +
         ", has_final_index = " + array("i1", has[3]) + ", writes = [" + joined(write_names) + "], write_heads = [" +
         joined(write_heads) + "], head_ratio = " + std::to_string(ratio) +
         ", head_map = " + (map == "tiled" ? "1" : "0") + " : i32} : !tile.sequences<" + sequences + ">, " +
         groups(in_types, initial_types, from_types, final_types, to_types, out_types) + " {\n  ^bb0(" + joined(block) +
         "):\n" + body + "    tile.yield " + joined(yielded) + " : " + joined(yielded_types) + "\n  }\n}\n";
}

mlir::MLIRContext& context() {
  static mlir::MLIRContext* made = [] {
    auto* fresh = new mlir::MLIRContext(mlir::MLIRContext::Threading::DISABLED);
    fresh->loadDialect<tile::TileDialect, mlir::arith::ArithDialect, mlir::math::MathDialect, mlir::scf::SCFDialect>();
    return fresh;
  }();
  return *made;
}

mlir::OwningOpRef<mlir::ModuleOp> parse(const std::string& text) {
  std::string diagnostics;
  mlir::ScopedDiagnosticHandler handler(&context(), [&](mlir::Diagnostic& diagnostic) {
    diagnostics += diagnostic.str() + "\n";
    return mlir::success();
  });
  auto module = mlir::parseSourceString<mlir::ModuleOp>(text, mlir::ParserConfig(&context()), "test.mlir");
  INFO(diagnostics);
  INFO(text);
  REQUIRE(module);
  return module;
}

InterpreterInputs Data::inputs() {
  InterpreterInputs made;
  made.sequences = sequences;
  made.rows = rows;
  made.heads = heads;
  made.scalars = scalars;
  for (auto& [name, array] : arrays) made.tensors[name] = array.tensor();
  for (auto& [name, index] : indices)
    made.tensors[name] = {index.data(), ElementType::i32, index_shape(name),
                          columns.contains(name) ? std::vector{columns.at(name), std::int64_t{1}}
                                                 : std::vector{std::int64_t{1}}};
  return made;
}

std::vector<std::int64_t> Data::index_shape(const std::string& name) const {
  const auto size = static_cast<std::int64_t>(indices.at(name).size());
  if (!columns.contains(name)) return {size};
  return {size / columns.at(name), columns.at(name)};
}

void run(mlir::ModuleOp module, Data& data, const InterpreterOptions& options) {
  const auto report = interpret(module, data.inputs(), options);
  for (const auto& problem : report.problems) FAIL_CHECK(problem);
}

}  // namespace latile::test
