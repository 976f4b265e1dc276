// Random scans before and after each pass and along each schedule: one meaning.
#include "dialect/Tile.h"
#include "mlir/IR/Verifier.h"
#include "tests/passes/ScanData.h"
#include "tests/random/Programs.h"
#include <algorithm>
#include <doctest/doctest.h>

using namespace latile;
using namespace latile::test;

namespace {

template <class Check> void each_program(bool step, Check check) {
  const auto first = setting("LATILE_RANDOM_SEED", 1), count = setting("LATILE_RANDOM_PROGRAMS", 60);
  for (auto seed = first; seed < first + count; ++seed) {
    const auto text = random_scan(seed, step).text();
    CAPTURE(seed);
    INFO(text);
    const auto module = parse(text);
    BatchShape shape{.lengths = {0, 19, 1, 8, 0, 33}};
    if (text.find("<dense>") != std::string::npos) shape.lengths = {step ? 1 : 19, 1};
    shape.absent = seed % 2 == 0;
    check(*module, shape, seed);
  }
}

void each_pass(mlir::ModuleOp module, const BatchShape& shape, std::uint64_t seed) {
  for (const auto& pass : passes()) {
    INFO(std::string(pass.name));
    mlir::OwningOpRef<mlir::ModuleOp> after(module.clone());
    REQUIRE(mlir::succeeded(pass.run(*after)));
    REQUIRE(mlir::succeeded(mlir::verify(*after)));
    check_same_meaning(module, *after, shape, seed);
  }
}

void each_schedule(mlir::ModuleOp module, const BatchShape& shape, std::uint64_t seed) {
  for (Schedule schedule : {Schedule::fused, Schedule::prepare, Schedule::cut}) {
    INFO(static_cast<int>(schedule));
    check_pipeline(module, schedule, shape, seed);
  }
}

}  // namespace

TEST_CASE("each pass alone, chunks and tokens") { each_program(false, each_pass); }
TEST_CASE("each pass alone, steps") { each_program(true, each_pass); }
TEST_CASE("each schedule, chunks and tokens") { each_program(false, each_schedule); }
TEST_CASE("each schedule, steps") { each_program(true, each_schedule); }

namespace {

/// Changes one op of the region so that its result differs; false for an op that has no such change.
bool spoil(mlir::Operation* op) {
  if (auto mask = mlir::dyn_cast<tile::MaskOp>(op))
    return mask.setKind(mask.getKind() == tile::MaskKind::Lower ? tile::MaskKind::Strict : tile::MaskKind::Lower), true;
  if (auto neutral = mlir::dyn_cast<tile::NeutralOp>(op)) return neutral.setValue(llvm::APFloat(0.75)), true;
  if (auto constant = mlir::dyn_cast<tile::ConstantOp>(op))
    return constant.setValue(llvm::APFloat(constant.getValue().convertToDouble() + 0.125)), true;
  if (auto cumsum = mlir::dyn_cast<tile::CumsumOp>(op)) return cumsum.setExclusive(!cumsum.getExclusive()), true;
  if (op->getName().getStringRef() == "arith.subf" && op->getOperand(0) != op->getOperand(1)) {
    const auto first = op->getOperand(0);
    op->setOperand(0, op->getOperand(1));
    op->setOperand(1, first);
    return true;
  }
  return false;
}

bool lives(mlir::Operation* op) { return mlir::isa<tile::YieldOp>(op) || llvm::any_of(op->getUsers(), lives); }

}  // namespace

TEST_CASE("a wrong pass is noticed") {
  int noticed = 0, spoilt = 0;
  each_program(false, [&](mlir::ModuleOp module, const BatchShape& shape, std::uint64_t seed) {
    mlir::OwningOpRef<mlir::ModuleOp> after(module.clone());
    mlir::SmallVector<mlir::Operation*> candidates;
    after->walk([&](mlir::Operation* op) {
      if (op->getParentOfType<tile::ScanOp>() && lives(op)) candidates.push_back(op);
    });
    std::shuffle(candidates.begin(), candidates.end(), std::mt19937_64(seed));
    if (llvm::none_of(candidates, spoil)) return;
    Data expected = data_for(module, shape, seed), got = expected;
    run(module, expected);
    run(*after, got);
    ++spoilt;
    noticed += llvm::any_of(expected.arrays, [&](const auto& entry) {
      return largest_difference(got.arrays[entry.first], entry.second) > 1e-9;
    });
  });
  MESSAGE(noticed, " of ", spoilt, " spoilt programs differ");
  CHECK(spoilt > 0);
  CHECK(noticed * 10 >= spoilt * 7);
}

TEST_CASE("sharing memory between values changes nothing, in float64 and in declared types") {
  const auto check = [](mlir::ModuleOp module, const BatchShape& shape, std::uint64_t seed) {
    mlir::OwningOpRef<mlir::ModuleOp> kernels(module.clone());
    REQUIRE(mlir::succeeded(lower_to_kernels(*kernels, {.schedule = seed % 2 == 0 ? Schedule::fused : Schedule::cut})));
    for (bool float64 : {true, false})
      for (mlir::ModuleOp form : {module, *kernels}) {
        Data separate = data_for(module, shape, seed), shared = separate;
        run(form, separate, {.float64 = float64, .separate = true});
        run(form, shared, {.float64 = float64, .threads = 2});
        for (auto& [name, array] : separate.arrays) CHECK(largest_difference(shared.arrays[name], array) == 0);
      }
  };
  each_program(false, check);
  each_program(true, check);
}

TEST_CASE("a random scan is the same for the same seed") {
  CHECK(random_scan(7, false).text() == random_scan(7, false).text());
  CHECK(random_scan(7, false).text() != random_scan(8, false).text());
}
