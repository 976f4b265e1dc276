// Writes the region of a scan: each method appends an op and gives its result.
#pragma once
#include <cstdint>
#include <string>

namespace latile::test {

struct Value {
  std::string name;
  std::int64_t rows = 1, cols = 1;
  std::string type = "f32";
  std::string text() const { return "tensor<" + std::to_string(rows) + "x" + std::to_string(cols) + "x" + type + ">"; }
};

class Body {
public:
  std::string text;

  Value constant(double value) {
    char number[64];
    std::snprintf(number, sizeof number, "%.17e", value);
    return define({"", 1, 1, "f32"}, std::string("tile.constant ") + number, "");
  }
  Value cast(const Value& x, const std::string& type) {
    return x.type == type ? x : define({"", x.rows, x.cols, type}, "tile.cast %" + x.name, x.text() + " -> ");
  }
  Value broadcast(const Value& x, std::int64_t rows, std::int64_t cols) {
    if (x.rows == rows && x.cols == cols) return x;
    return define({"", rows, cols, x.type}, "tile.broadcast %" + x.name, x.text() + " -> ");
  }
  Value transpose(const Value& x) {
    return define({"", x.cols, x.rows, x.type}, "tile.transpose %" + x.name, x.text() + " -> ");
  }
  /// An op with operands and result of one type: "math.exp", "tile.sigmoid", "tile.cumsum".
  Value same(const std::string& op, const Value& x, const std::string& flags = "") {
    return define({"", x.rows, x.cols, x.type}, op + " %" + x.name + flags, "");
  }
  /// Any element-wise op of two operands, after broadcasting.
  Value two(const std::string& op, Value a, Value b) {
    const auto rows = std::max(a.rows, b.rows), cols = std::max(a.cols, b.cols);
    a = broadcast(a, rows, cols), b = broadcast(b, rows, cols);
    return define({"", rows, cols, a.type}, op + " %" + a.name + ", %" + b.name, "");
  }
  Value add(const Value& a, const Value& b) { return two("arith.addf", a, b); }
  Value sub(const Value& a, const Value& b) { return two("arith.subf", a, b); }
  Value mul(const Value& a, const Value& b) { return two("arith.mulf", a, b); }
  Value exp2(const Value& x) { return same("math.exp2", x); }
  Value dot(const Value& a, const Value& b) {
    return define({"", a.rows, b.cols, "f32"}, "tile.dot %" + a.name + ", %" + b.name,
                  a.text() + ", " + b.text() + " -> ");
  }
  Value decay(const Value& gr, const Value& gc, const std::string& kind, std::int64_t stair = 1) {
    const auto attribute = stair == 1 ? "" : " {stair = " + std::to_string(stair) + " : i64}";
    return define({"", gr.rows, gc.rows, "f32"}, "tile.decay %" + gr.name + ", %" + gc.name + " " + kind + attribute,
                  gr.text() + ", " + gc.text() + " -> ");
  }
  Value mask(const std::string& kind, const Value& x, std::int64_t stair = 1) {
    return same("tile.mask " + kind, x, stair == 1 ? "" : " {stair = " + std::to_string(stair) + " : i64}");
  }
  Value row(const std::string& pick, const Value& x, std::int64_t at = 0) {
    const auto attribute = pick == "at" ? " {at = " + std::to_string(at) + " : i64}" : "";
    return define({"", 1, x.cols, x.type}, "tile.row " + pick + " %" + x.name + attribute, x.text() + " -> ");
  }
  Value reduce(const std::string& kind, int axis, const Value& x) {
    return define({"", axis == 1 ? x.rows : 1, axis == 1 ? 1 : x.cols, "f32"},
                  "tile.reduce " + kind + " " + std::to_string(axis) + " %" + x.name, x.text() + " -> ");
  }
  Value repeat(const Value& x, std::int64_t n) {
    return define({"", x.rows * n, x.cols, x.type}, "tile.repeat_rows %" + x.name + " times " + std::to_string(n),
                  x.text() + " -> ");
  }
  Value diagonal(const Value& x) {
    return define({"", x.rows, x.rows, "f32"}, "tile.diagonal %" + x.name, x.text() + " -> ");
  }
  Value solve(const Value& a, const Value& b) {
    return define({"", b.rows, b.cols, "f32"}, "tile.solve_unit_lower %" + a.name + ", %" + b.name, a.text() + ", ");
  }
  Value neutral(const Value& x, double value, std::int64_t rate = 1) {
    return same("tile.neutral", x,
                " with " + std::to_string(value) + (rate == 1 ? "" : " {rate = " + std::to_string(rate) + " : i64}"));
  }
  /// x behind, or above, a first row: "tile.cummax", "tile.logcumsumexp", "tile.prev".
  Value from_row(const std::string& op, const Value& x, const Value& from, const std::string& flags = "") {
    return define({"", x.rows, x.cols, "f32"}, op + " %" + x.name + " from %" + from.name + flags, from.text() + ", ");
  }
  Value affine_scan(const Value& g, const Value& x, const Value& from, const std::string& flags = "") {
    return define({"", x.rows, x.cols, "f32"},
                  "tile.affine_scan %" + g.name + ", %" + x.name + " from %" + from.name + flags, from.text() + ", ");
  }
  Value decayed_scores(const Value& q, const Value& k, const Value& gr, const Value& gc, const std::string& kind) {
    return define({"", q.rows, k.rows, "f32"},
                  "tile.decayed_scores %" + q.name + ", %" + k.name + ", %" + gr.name + ", %" + gc.name + " " + kind,
                  q.text() + ", " + k.text() + ", " + gr.text() + ", " + gc.text() + " -> ");
  }
  Value decayed_apply(const Value& a, const Value& x, const Value& gr, const Value& gc, const std::string& kind,
                      bool transposed = false) {
    return define({"", transposed ? a.cols : a.rows, x.cols, "f32"},
                  "tile.decayed_apply %" + a.name + ", %" + x.name + ", %" + gr.name + ", %" + gc.name + " " + kind +
                      (transposed ? " transposed" : ""),
                  a.text() + ", " + x.text() + ", " + gr.text() + ", " + gc.text() + " -> ");
  }
  Value sum_rows(const Value& x, std::int64_t n) {
    return define({"", x.rows / n, x.cols, "f32"}, "tile.sum_rows %" + x.name + " by " + std::to_string(n),
                  x.text() + " -> ");
  }
  Value place_row(const std::string& pick, const Value& x, std::int64_t rows, std::int64_t at = 0) {
    const auto attribute = pick == "at" ? " {at = " + std::to_string(at) + " : i64}" : "";
    return define({"", rows, x.cols, "f32"}, "tile.place_row " + pick + " %" + x.name + attribute, x.text() + " -> ");
  }
  Value kron_rows(const Value& x) {
    return define({"", x.rows, x.cols * x.cols, "f32"}, "tile.kron_rows %" + x.name, x.text() + " -> ");
  }
  Value contract_kron(const Value& m, const Value& x) {
    return define({"", x.rows, x.cols, "f32"}, "tile.contract_kron %" + m.name + ", %" + x.name, m.text() + ", ");
  }
  /// "tile.valid", "tile.count", "tile.index".
  Value about_rows(const std::string& op, std::int64_t rows) { return define({"", rows, 1, "f32"}, op, "", " -> "); }
  /// Appends `op : types result-type` and names the result.
  Value define(Value result, const std::string& op, const std::string& types, const std::string& colon = " : ") {
    result.name = "v" + std::to_string(count_++);
    text += "    %" + result.name + " = " + op + colon + types + result.text() + "\n";
    return result;
  }

private:
  int count_ = 0;
};

}  // namespace latile::test
