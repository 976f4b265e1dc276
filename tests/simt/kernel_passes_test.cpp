// Passes that prepare kernels for a GPU: the program means the same after each, on random programs and operators.
#include "codegen/simt/AssignLayouts.h"
#include "codegen/simt/Orient.h"
#include "codegen/simt/Scales.h"
#include "codegen/simt/ScoresFirst.h"
#include "codegen/simt/SharedStates.h"
#include "codegen/simt/SinkTransposes.h"
#include "codegen/simt/SliceColumns.h"
#include "compiler/Emit.h"
#include "compiler/passes/Canonicalize.h"
#include "mlir/IR/Verifier.h"
#include "tests/passes/ScanData.h"
#include "tests/random/Programs.h"
#include <doctest/doctest.h>

using namespace latile;
using namespace latile::test;

namespace {

int slice_all(mlir::ModuleOp module) {
  int done = 0;
  for (tile::KernelOp kernel : llvm::to_vector(module.getOps<tile::KernelOp>())) {
    mlir::OpBuilder builder(kernel->getContext());
    builder.setInsertionPointAfter(kernel);
    auto whole = mlir::cast<tile::KernelOp>(builder.clone(*kernel));
    for (std::int64_t slices : {2, 3, 5}) {
      if (!simt::slice_columns(kernel, slices, 1)) continue;
      ++done;
      break;
    }
    simt::store_shared_states(kernel, {}, whole);
  }
  return done;
}

struct Done {
  int sliced = 0, turned = 0;
};

int products_turned(mlir::ModuleOp before, mlir::ModuleOp after) {
  llvm::DenseMap<mlir::Type, int> count;
  before.walk([&](tile::DotOp dot) { ++count[dot.getTile().getType()]; });
  after.walk([&](tile::DotOp dot) { --count[dot.getTile().getType()]; });
  int turned = 0;
  for (const auto& [type, n] : count) turned += n > 0 ? n : 0;
  return turned;
}

Done check(mlir::ModuleOp recorded, Schedule schedule, const std::string& target, const BatchShape& shape,
           std::uint64_t seed) {
  Done done;
  mlir::OwningOpRef<mlir::ModuleOp> module(recorded.clone());
  REQUIRE(mlir::succeeded(lower_to_kernels(*module, {.schedule = schedule})));
  (*module)->setAttr("tile.target", mlir::StringAttr::get(module->getContext(), target));
  auto same = [&](const char* pass) {
    INFO(std::string(pass));
    REQUIRE(mlir::succeeded(mlir::verify(*module)));
    check_same_meaning(recorded, *module, shape, seed);
  };
  done.sliced = slice_all(*module);
  same("slice-columns");
  REQUIRE(mlir::succeeded(simt::sink_transposes(*module)));
  same("sink-transposes");
  mlir::OwningOpRef<mlir::ModuleOp> sliced(module->clone());
  REQUIRE(mlir::succeeded(simt::orient(*module)));
  same("orient");
  REQUIRE(mlir::succeeded(simt::sink_transposes(*module)));
  REQUIRE(mlir::succeeded(canonicalize(*module)));
  same("tile-canonicalize");
  done.turned = products_turned(*sliced, *module);
  REQUIRE(mlir::succeeded(simt::move_scales(*module)));
  same("move-scales");
  REQUIRE(mlir::succeeded(simt::scores_first(*module)));
  same("scores-first");
  REQUIRE(mlir::succeeded(canonicalize(*module)));
  REQUIRE(mlir::succeeded(simt::assign_layouts(*module)));
  REQUIRE(mlir::succeeded(simt::verify_layouts(*module)));
  same("assign-layouts");
  return done;
}

mlir::OwningOpRef<mlir::ModuleOp> emit(const std::string& op, std::vector<std::string> tensors) {
  Specialisation s;
  s.op = op;
  s.chunk = 16;
  s.extents = {{"K", 64}, {"V", 128}};
  s.head_ratio = 2;
  for (auto& name : tensors)
    s.tensors.push_back(
        {name, name.ends_with("_index") || name == "cu_seqlens" ? ElementType::i32 : ElementType::f32, -1});
  std::vector<Diagnostic> mistakes;
  auto module = emit_program(*find_operator(s.op), s, context(), mistakes);
  for (auto& mistake : mistakes) MESSAGE(mistake.message());
  REQUIRE(module);
  return module;
}

}  // namespace

TEST_CASE("random programs") {
  Done all;
  const auto first = setting("LATILE_RANDOM_SEED", 1), count = setting("LATILE_RANDOM_PROGRAMS", 25);
  for (auto seed = first; seed < first + count; ++seed) {
    const auto text = random_scan(seed, seed % 5 == 0).text();
    CAPTURE(seed);
    INFO(text);
    const auto module = parse(text);
    BatchShape shape{.lengths = {0, 19, 1, 8, 0, 33}};
    if (text.find("<dense>") != std::string::npos) shape.lengths = {seed % 5 == 0 ? 1 : 19, 1};
    shape.absent = seed % 2 == 0;
    for (Schedule schedule : {Schedule::fused, Schedule::prepare, Schedule::cut}) {
      Done done = check(*module, schedule, seed % 3 ? "sm_80" : "gfx90a", shape, seed);
      all.sliced += done.sliced;
      all.turned += done.turned;
    }
  }
  MESSAGE("sliced " << all.sliced << ", turned " << all.turned);
  CHECK(all.sliced > 5);
  CHECK(all.turned > 5);
}

TEST_CASE("operators: states in slices, transposed on NVIDIA and as they are on AMD") {
  for (const char* target : {"sm_80", "gfx90a"}) {
    CAPTURE(target);
    for (const auto& [op, tensors] : std::vector<std::pair<std::string, std::vector<std::string>>>{
             {"gated_delta_rule",
              {"q", "k", "v", "g", "beta", "o", "S.initial", "S.final", "S.initial_index", "S.final_index",
               "cu_seqlens"}},
             {"simple_gla", {"q", "k", "v", "g", "o", "S.initial", "S.final"}},
             {"gla", {"q", "k", "v", "g", "o", "S.initial", "S.final"}},
             {"linear_attn", {"q", "k", "v", "o", "S.initial", "S.final", "z.initial", "z.final"}}}) {
      CAPTURE(op);
      auto module = emit(op, tensors);
      BatchShape shape;
      if (tensors.back() == "cu_seqlens") shape.lengths = {0, 5, 40, 0, 16, 1};
      Done done = check(*module, Schedule::prepare, target, shape, 1);
      CHECK(done.sliced >= 1);
      MESSAGE(op << " on " << target << ": turned " << done.turned);
      CHECK((done.turned > 0) == (std::string(target) == "sm_80"));
    }
  }
}
