#include "tests/passes/ScanData.h"
#include "dialect/Tile.h"
#include "mlir/IR/Verifier.h"
#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <limits>
#include <numeric>

namespace latile::test {
namespace {

using mlir::cast;

struct Filler {
  tile::ScanOp scan;
  const BatchShape& shape;
  std::mt19937_64 engine;
  Data data;
  std::int64_t slots = 0;

  std::string name_of(mlir::Value argument) {
    auto program = scan->getParentOfType<tile::ProgramOp>();
    auto names = program.getArgNames();
    return cast<mlir::StringAttr>(names[cast<mlir::BlockArgument>(argument).getArgNumber()]).str();
  }

  std::int64_t heads(mlir::Attribute head) {
    auto name = cast<mlir::StringAttr>(head).getValue();
    return name == scan.getAxis() ? data.heads : data.heads / scan.getHeadRatio();
  }

  std::vector<std::int64_t> extents(mlir::Value argument, std::vector<std::int64_t> leading, mlir::Attribute head) {
    auto view = cast<tile::ViewType>(argument.getType());
    if (!cast<mlir::StringAttr>(head).empty()) leading.push_back(heads(head));
    for (auto extent : view.getInner()) leading.push_back(extent);
    return leading;
  }

  void gates(Array& array) {
    static const double hard[] = {0, -50, -3000, -std::numeric_limits<double>::infinity()};
    std::uniform_int_distribution<int> pick(0, 39);
    for (auto& x : array.data) {
      int i = pick(engine);
      x = i < 4 ? hard[i] : -std::fabs(x);
    }
  }

  void sequences() {
    bool ragged = scan.getSequences().getType().isRagged();
    data.sequences = static_cast<std::int64_t>(shape.lengths.size());
    data.rows = shape.lengths[0];
    data.heads = shape.coarse_heads * scan.getHeadRatio();
    if (!ragged) return;
    std::vector<std::int32_t> begins{0};
    for (auto length : shape.lengths) begins.push_back(begins.back() + static_cast<std::int32_t>(length));
    data.indices["cu_seqlens"] = begins;
  }

  std::vector<std::int64_t> rows(std::int64_t rate) {
    if (!scan.getSequences().getType().isRagged()) return {data.sequences, data.rows * rate};
    return {1, std::accumulate(shape.lengths.begin(), shape.lengths.end(), std::int64_t{0}) * rate};
  }

  void inputs() {
    for (auto [i, input] : llvm::enumerate(scan.getInputs())) {
      auto name = name_of(input);
      if (input.getType().isF64()) {
        data.scalars[name] = 0.37;
        continue;
      }
      auto rate = scan.getRates()[i];
      auto leading = rate > 0 ? rows(rate) : std::vector<std::int64_t>{};
      data.arrays[name] = Array::random(extents(input, leading, scan.getReadHeads()[i]), engine);
      if (name == "g") gates(data.arrays[name]);
    }
  }

  /// A slot for each sequence, each another one.
  std::vector<std::int32_t> indices() {
    std::vector<std::int32_t> index(static_cast<std::size_t>(slots));
    std::iota(index.begin(), index.end(), 0);
    std::shuffle(index.begin(), index.end(), engine);
    index.resize(static_cast<std::size_t>(data.sequences));
    if (shape.absent) index[0] = -1;
    return index;
  }

  /// A slot for each state of each sequence, each another one, and some that are none.
  void table(const std::string& name, std::int64_t columns) {
    std::vector<std::int32_t> index(static_cast<std::size_t>(slots));
    std::iota(index.begin(), index.end(), 0);
    std::shuffle(index.begin(), index.end(), engine);
    index.resize(static_cast<std::size_t>(data.sequences * columns));
    for (auto& slot : index)
      if (engine() % 5 == 0) slot = -1;
    data.indices[name] = index;
    data.columns[name] = columns;
  }

  std::int64_t most_states(std::int64_t every) const {
    return *std::max_element(shape.lengths.begin(), shape.lengths.end()) / std::max<std::int64_t>(every, 1) + 1;
  }

  void histories() {
    for (unsigned i = 0; i < scan.getCarries().size(); ++i) {
      if (!scan.everyOf(i)) continue;
      const auto columns = most_states(scan.everyOf(i));
      table(name_of(scan.historyIndexOf(i)), columns);
      data.arrays[name_of(scan.historyOf(i))] =
          Array(extents(scan.historyOf(i), {slots}, scan.getCarryHeads()[i]), 777);
    }
    if (!scan.getAccepted()) return;
    auto& accepted = data.indices[name_of(scan.getAccepted())];
    for (std::int64_t n = 0; n < data.sequences; ++n) accepted.push_back(1 + static_cast<std::int32_t>(engine() % 3));
  }

  void carries() {
    slots = data.sequences + 2;
    for (unsigned i = 0; i < scan.getCarries().size(); ++i)
      if (scan.everyOf(i)) slots = std::max(slots, data.sequences * most_states(scan.everyOf(i)) + 2);
    if (scan.getAccepted()) slots = std::max(slots, data.sequences * 3 + 2);
    for (unsigned i = 0; i < scan.getCarries().size(); ++i) {
      for (bool end : {false, true}) {
        mlir::Value view = end ? scan.finalOf(i) : scan.initialOf(i);
        mlir::Value index = end ? scan.finalIndexOf(i) : scan.initialIndexOf(i);
        if (!view) continue;
        auto shape_of = extents(view, {index ? slots : data.sequences}, scan.getCarryHeads()[i]);
        data.arrays[name_of(view)] = end ? Array(shape_of, 777) : Array::random(shape_of, engine, 0.5, 1.5);
        if (index && !end && scan.getAccepted())
          table(name_of(index), 3);
        else if (index)
          data.indices[name_of(index)] = indices();
      }
    }
  }

  void outputs() {
    for (auto [i, output] : llvm::enumerate(scan.getOutputs()))
      data.arrays[name_of(output)] = Array(extents(output, rows(1), scan.getWriteHeads()[i]), 777);
  }
};

}  // namespace

Data data_for(mlir::ModuleOp module, const BatchShape& shape, std::uint64_t seed) {
  tile::ScanOp scan;
  module.walk([&](tile::ScanOp found) { scan = found; });
  REQUIRE(scan);
  Filler filler{scan, shape, std::mt19937_64(seed), {}, 0};
  filler.sequences();
  filler.inputs();
  filler.carries();
  filler.histories();
  filler.outputs();
  return std::move(filler.data);
}

void check_same_meaning(mlir::ModuleOp before, mlir::ModuleOp after, const BatchShape& shape, std::uint64_t seed,
                        double tolerance) {
  Data expected = data_for(before, shape, seed), got = expected;
  run(before, expected, {.float64 = true, .sanitize = true});
  run(after, got, {.float64 = true, .sanitize = true});
  for (auto& [name, array] : expected.arrays) {
    INFO(name);
    CHECK(std::none_of(array.data.begin(), array.data.end(), [](double x) { return std::isnan(x); }));
    CHECK(largest_difference(got.arrays[name], array) <= tolerance);
  }
}

void check_pipeline(mlir::ModuleOp module, Schedule schedule, const BatchShape& shape, std::uint64_t seed) {
  mlir::OwningOpRef<mlir::ModuleOp> before(module.clone()), lowered(module.clone());
  auto after = [&](std::string_view pass, mlir::ModuleOp now) {
    INFO(std::string(pass));
    REQUIRE(mlir::succeeded(mlir::verify(now)));
    check_same_meaning(*before, now, shape, seed);
    return mlir::success();
  };
  REQUIRE(mlir::succeeded(lower_to_kernels(*lowered, {.schedule = schedule, .after = after})));
  int scans = 0;
  lowered->walk([&](tile::ScanOp) { ++scans; });
  CHECK(scans == 0);
}

}  // namespace latile::test
