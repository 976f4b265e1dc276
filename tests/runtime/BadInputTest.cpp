// Bad input: each kind gives its documented status and one sentence that names what is wrong; nothing is written.
#include "Toy.h"
#include <cmath>
#include <cstring>
#include <doctest/doctest.h>
#include <functional>
#include <limits>

using namespace latile::test;
using latile::api::Context;
using latile::api::Plan;
using latile::api::PlanDescription;

namespace {

void check_sentence(const latile_error& error, latile_status status, const std::string& part) {
  INFO(error.text);
  CHECK(error.status == status);
  CHECK(std::strstr(error.text, part.c_str()) != nullptr);
  const std::string text = error.text;
  CHECK(text.size() > 10);
  CHECK(text.find('\n') == std::string::npos);
}

/// Makes a plan from a description that `spoil` has changed.
void refuse_plan(latile_status status, const std::string& part, const std::function<void(latile_plan_desc&)>& spoil) {
  static Context context(1, "");
  Problem p;
  p.initial = p.final = true;
  p.make();
  PlanDescription description("toy", "prefill");
  p.describe(description);
  latile_plan_desc desc = description.get();
  spoil(desc);
  latile_error error = {sizeof error, 0, 0, ""};
  auto* plan = reinterpret_cast<latile_plan*>(0x10);
  const int before = toy().compilations;
  CHECK(latile_plan_create(context.get(), &desc, &plan, &error) == status);
  CHECK(plan == reinterpret_cast<latile_plan*>(0x10));
  CHECK(toy().compilations == before);
  check_sentence(error, status, part);
}

/// Runs with arguments that `spoil` has changed; outputs and states stay as they were.
void refuse_run(latile_status status, const std::string& part, const std::function<void(Problem&, latile_args&)>& spoil,
                const std::function<void(Problem&)>& set = {}) {
  static Context context(2, "");
  Problem p;
  p.B = 3, p.initial = p.final = true;
  if (set) set(p);
  p.make();
  PlanDescription description("toy", p.mode);
  p.describe(description);
  const Plan plan(context, description);
  auto workspace = workspace_of(plan, p.dims);
  const auto arguments = [&] {
    return latile_args{sizeof(latile_args), p.data.data(),    p.dims.data(), p.strides.data(), nullptr,
                       workspace.data(),    workspace.size(), nullptr};
  };
  latile_args args = arguments();
  spoil(p, args);
  latile_error error = {sizeof error, 0, 0, ""};
  CHECK(latile_run(plan.get(), &args, &error) == status);
  check_sentence(error, status, part);
  CHECK(p.untouched());
  latile::api::Team team(1);
  CHECK(latile_run_part(plan.get(), &args, team.get(), 0, &error) == status);
  check_sentence(error, status, part);
  CHECK(p.untouched());
}

}  // namespace

TEST_CASE("plan: nulls, sizes, names, modes, devices") {
  refuse_plan(LATILE_BAD_ARGUMENT, "op is null", [](auto& d) { d.op = nullptr; });
  refuse_plan(LATILE_BAD_ARGUMENT, "size is 8", [](auto& d) { d.size = 8; });
  refuse_plan(LATILE_BAD_ARGUMENT, "no operator 'toi', did you mean 'toy'?", [](auto& d) { d.op = "toi"; });
  refuse_plan(LATILE_BAD_ARGUMENT, "no mode 'prefil', did you mean 'prefill'?", [](auto& d) { d.mode = "prefil"; });
  refuse_plan(LATILE_UNSUPPORTED, "backward", [](auto& d) { d.mode = "backward"; });
  refuse_plan(LATILE_UNSUPPORTED, "chunk body", [](auto& d) { d.op = "reference_only"; });
  refuse_plan(LATILE_NO_DEVICE, "device type 7", [](auto& d) { d.device = {LATILE_VULKAN, 0}; });
  refuse_plan(LATILE_NO_DEVICE, "CPU device 1", [](auto& d) { d.device = {LATILE_CPU, 1}; });
}

TEST_CASE("plan: options") {
  const auto with = [](latile_status status, const std::string& part, std::vector<latile_option> options) {
    refuse_plan(status, part, [&](auto& d) { d.options = options.data(), d.option_count = options.size(); });
  };
  with(LATILE_BAD_ARGUMENT, "option 'wieghted' with these settings, did you mean 'weighted'?", {{"wieghted", "true"}});
  with(LATILE_BAD_ARGUMENT, "option cut is 'yes'; it takes true or false", {{"cut", "yes"}});
  with(LATILE_BAD_ARGUMENT, "one of plain, other", {{"form", "fancy"}});
  with(LATILE_BAD_ARGUMENT, "form is 'recorder says no'", {{"form", "recorder says no"}});
  with(LATILE_BAD_ARGUMENT, "an integer from 1 to 5", {{"n", "6"}});
  with(LATILE_BAD_ARGUMENT, "a number", {{"bound", "half"}});
  with(LATILE_BAD_ARGUMENT, "given twice", {{"n", "1"}, {"n", "2"}});
  with(LATILE_BAD_ARGUMENT, "grouped or tiled", {{"head_map", "mixed"}});
  with(LATILE_BAD_ARGUMENT, "auto, 16, 32 or 64", {{"chunk_size", "48"}});
  with(LATILE_BAD_ARGUMENT, "option reverse is 'backwards'; it takes true or false", {{"reverse", "backwards"}});
  with(LATILE_BAD_ARGUMENT, "host_isa is 'sse2'", {{"host_isa", "sse2"}});
  with(LATILE_BAD_ARGUMENT, "tensor 'weights' is required", {{"weighted", "true"}});
}

TEST_CASE("plan: dimensions") {
  const auto with = [](latile_status status, const std::string& part, std::size_t index, latile_dim dim) {
    refuse_plan(status, part, [&](auto& d) {
      static std::vector<latile_dim> dims;
      dims.assign(d.dims, d.dims + d.dim_count);
      dims[index] = dim;
      d.dims = dims.data();
    });
  };
  with(LATILE_BAD_SHAPE, "dimension K is 640, above the limit of 512", 2, {"K", 640, 640});
  with(LATILE_BAD_SHAPE, "dimension V is 4, below the limit of 8", 3, {"V", 4, 4});
  with(LATILE_BAD_SHAPE, "K has the range 8 to 64", 2, {"K", 8, 64});
  with(LATILE_BAD_SHAPE, "the empty range 9 to 3", 5, {"T", 9, 3});
  with(LATILE_BAD_SHAPE, "HV is 2, which is no multiple of H = 3", 0, {"H", 3, 3});
  with(LATILE_BAD_SHAPE, "the ratio HV/H is 3 at the lower ends", 1, {"HV", 3, 64});
  with(LATILE_BAD_SHAPE, "HV is 0, below", 1, {"HV", 0, 4});
  with(LATILE_BAD_SHAPE, "T is -1, below", 5, {"T", -1, 4});
  with(LATILE_BAD_ARGUMENT, "no dimension 'KK', did you mean 'K'?", 4, {"KK", 8, 8});
  with(LATILE_BAD_ARGUMENT, "dimension T is given twice", 4, {"T", 1, 1});
  with(LATILE_BAD_ARGUMENT, "dimension B is not given", 4, {"slots", 1, 1});
  with(LATILE_BAD_ARGUMENT, "S.every is given without 'S.history'", 6, {"S.every", 16, 16});
  with(LATILE_BAD_SHAPE, "S.every has the range 16 to 32", 6, {"S.every", 16, 32});
  with(LATILE_BAD_SHAPE, "S.every is 0, below the limit of 1", 6, {"S.every", 0, 0});
  with(LATILE_BAD_ARGUMENT, "no dimension 'S.ever', did you mean 'S.every'?", 6, {"S.ever", 16, 16});
  refuse_plan(LATILE_BAD_ARGUMENT, "dimension H is not given", [](auto& d) { d.dim_count = 0; });
}

TEST_CASE("plan: tensors") {
  const auto with = [](latile_status status, const std::string& part, std::size_t index,
                       const std::function<void(latile_tensor&)>& spoil) {
    refuse_plan(status, part, [&](auto& d) {
      static std::vector<latile_tensor> tensors;
      tensors.assign(d.tensors, d.tensors + d.tensor_count);
      spoil(tensors[index]);
      d.tensors = tensors.data();
    });
  };
  static const std::int64_t negative[4] = {-2, 1, 1, 1};
  with(LATILE_BAD_ARGUMENT, "'q' has rank 3; it is [B, T, H, K], rank 4", 0, [](auto& t) { t.ndim = 3; });
  with(LATILE_BAD_TYPE, "'k' is i32; it takes f32, f16 or bf16", 1, [](auto& t) { t.type = LATILE_I32; });
  with(LATILE_BAD_TYPE, "'q' is f32 and 'k' is f16", 1, [](auto& t) { t.type = LATILE_F16; });
  with(LATILE_BAD_TYPE, "code 2, bits 64", 1, [](auto& t) { t.type = LATILE_TYPE(2, 64); });
  with(LATILE_BAD_TYPE, "'S.initial' is f16", 4, [](auto& t) { t.type = LATILE_F16; });
  with(LATILE_BAD_ARGUMENT, "no tensor 'qq' with these options, did you mean 'q'?", 0, [](auto& t) { t.name = "qq"; });
  with(LATILE_BAD_ARGUMENT, "'S' is a state", 4, [](auto& t) { t.name = "S"; });
  with(LATILE_BAD_ARGUMENT, "'S.history' and 'S.history_index' belong together; 'S.history_index' is missing", 4,
       [](auto& t) { t.name = "S.history"; });
  with(LATILE_BAD_ARGUMENT, "no state has an initial_index for it to choose from", 4,
       [](auto& t) { t = {"accepted", LATILE_I32, 0, nullptr, 0, 0}; });
  with(LATILE_BAD_ARGUMENT, "'o' is given twice", 0, [](auto& t) { t.name = "o"; });
  with(LATILE_BAD_ARGUMENT, "'q' is required", 0, [](auto& t) {
    t.name = "g";
    t.ndim = 0;
  });
  with(LATILE_BAD_SHAPE, "stride -2 of dimension B is negative", 0, [](auto& t) { t.strides = negative; });
  with(LATILE_BAD_ARGUMENT, "alignment 24", 0, [](auto& t) { t.alignment = 24; });
  with(LATILE_UNSUPPORTED, "flags are 1", 0, [](auto& t) { t.flags = 1; });
  with(LATILE_BAD_ARGUMENT, "dimension slots is not given", 3,
       [](auto& t) { t = {"S.final_index", LATILE_I32, 0, nullptr, 0, 0}; });
  with(LATILE_BAD_ARGUMENT, "name is null", 3, [](auto& t) { t.name = nullptr; });
}

TEST_CASE("plan: mode step") {
  Context context(1, "");
  Problem p;
  p.borders = {0, 1}, p.mode = "step", p.T = 1;
  p.make();
  PlanDescription description("toy", "step");
  p.describe(description);
  CHECK_THROWS_WITH(Plan(context, description), doctest::Contains("mode step takes no cu_seqlens"));
}

TEST_CASE("run: arguments, dimensions, workspace, pointers") {
  refuse_run(LATILE_BAD_ARGUMENT, "size is 0", [](auto&, auto& a) { a.size = 0; });
  refuse_run(LATILE_BAD_ARGUMENT, "data is null", [](auto&, auto& a) { a.data = nullptr; });
  refuse_run(LATILE_BAD_ARGUMENT, "dims is null", [](auto&, auto& a) { a.dims = nullptr; });
  refuse_run(LATILE_BAD_ARGUMENT, "strides is null", [](auto&, auto& a) { a.strides = nullptr; });
  refuse_run(LATILE_BAD_ARGUMENT, "stream is set", [](auto& p, auto& a) { a.stream = &p; });
  refuse_run(LATILE_BAD_ARGUMENT, "'k' is a null pointer", [](auto& p, auto&) { p.data[1] = nullptr; });
  refuse_run(LATILE_BAD_ARGUMENT, "'v' is not aligned to 4",
             [](auto& p, auto&) { p.data[2] = static_cast<char*>(p.data[2]) + 1; });
  refuse_run(LATILE_BAD_ARGUMENT, "workspace is null", [](auto&, auto& a) { a.workspace = nullptr; });
  refuse_run(LATILE_BAD_ARGUMENT, "workspace has", [](auto&, auto& a) { --a.workspace_size; });
  refuse_run(LATILE_BAD_ARGUMENT, "not aligned to 16",
             [](auto&, auto& a) { a.workspace = static_cast<char*>(a.workspace) + 4; });
  refuse_run(LATILE_BAD_ARGUMENT, "overlaps the workspace", [](auto& p, auto& a) { p.data[3] = a.workspace; });
  refuse_run(LATILE_BAD_SHAPE, "dimension K is 9, outside the plan's range 8 to 8",
             [](auto& p, auto&) { p.dims[2] = 9; });
  refuse_run(LATILE_BAD_SHAPE, "dimension T is -1", [](auto& p, auto&) { p.dims[5] = -1; });
  refuse_run(LATILE_BAD_SHAPE, "not in the plan's ratio of 2", [](auto& p, auto&) { p.dims[1] = 6; });
  refuse_run(LATILE_BAD_SHAPE, "N is 5, but without cu_seqlens it is the batch, B = 3",
             [](auto& p, auto&) { p.dims[6] = 5; });
  refuse_run(LATILE_BAD_SHAPE, "stride -5 of dimension T is negative", [](auto& p, auto&) { p.strides[1] = -5; });
  refuse_run(LATILE_BAD_SHAPE, "spans more than 2^63", [](auto& p, auto&) { p.strides[0] = INT64_MAX / 2; });
  static const double nan[] = {std::numeric_limits<double>::quiet_NaN(), 0};
  refuse_run(LATILE_BAD_ARGUMENT, "scalar scale is nan", [](auto&, auto& a) { a.scalars = nan; });
}

TEST_CASE("run: overlaps") {
  refuse_run(LATILE_BAD_ARGUMENT, "'o' is written and overlaps 'v'", [](auto& p, auto&) { p.data[2] = p.data[3]; });
  refuse_run(LATILE_BAD_ARGUMENT, "'S.initial' and 'S.final' overlap",
             [](auto& p, auto&) { p.data[p.at("S.initial")] = p.S1.data() + 8; });
}

TEST_CASE("run: contents of cu_seqlens and index tensors") {
  const auto ragged = [](Problem& p) { p.B = 1, p.borders = {0, 5, 12, 20}; };
  refuse_run(
      LATILE_BAD_SHAPE, "cu_seqlens[2] is 4, below cu_seqlens[1] = 5", [](auto& p, auto&) { p.narrow[2][2] = 4; },
      ragged);
  refuse_run(LATILE_BAD_SHAPE, "cu_seqlens[0] is 1", [](auto& p, auto&) { p.narrow[2][0] = 1; }, ragged);
  refuse_run(LATILE_BAD_SHAPE, "beyond the 20 tokens", [](auto& p, auto&) { p.narrow[2][3] = 21; }, ragged);
  refuse_run(LATILE_BAD_SHAPE, "dimension B is 2", [](auto& p, auto&) { p.dims[4] = 2; }, ragged);
  const auto pool = [](Problem& p) {
    p.slots = 4, p.initial_index = {0, 1, 2}, p.final_index = {0, 1, 2}, p.in_place = true;
  };
  refuse_run(
      LATILE_BAD_SHAPE, "S.initial_index[1] is 4; slots are 0 to 3", [](auto& p, auto&) { p.narrow[0][1] = 4; }, pool);
  refuse_run(LATILE_BAD_SHAPE, "S.final_index[2] is -2", [](auto& p, auto&) { p.narrow[1][2] = -2; }, pool);
  refuse_run(
      LATILE_BAD_SHAPE, "sends sequences 0 and 2 to one slot, 0", [](auto& p, auto&) { p.narrow[1][2] = 0; }, pool);
  refuse_run(
      LATILE_BAD_SHAPE, "sequence 2 reads slot 0, which sequence 0 writes", [](auto& p, auto&) { p.narrow[0][2] = 0; },
      pool);
  refuse_run(
      LATILE_BAD_SHAPE, "sequence 0 reads slot 2, which sequence 2 writes", [](auto& p, auto&) { p.narrow[0][0] = 2; },
      [](Problem& p) { p.slots = 4, p.initial_index = {0, 1, 2}, p.final_index = {0, 1, 2}, p.in_place = true; });
}

namespace {

/// Three sequences of 40 tokens that keep states in the pool that they start from.
void keep_history(Problem& p) {
  p.T = 40, p.slots = 12, p.states = 3, p.final = false, p.in_place = true;
  p.initial_index = {9, 10, 11}, p.history_index = {0, 1, -5, 2, -1, 99, 4, 5, 6};
}
void accept_some(Problem& p) {
  keep_history(p);
  p.accepted = {1, 2, 3}, p.initial_index = {9, -7, -7, -7, 10, 77, -7, 77, 11};
}

}  // namespace

TEST_CASE("plan: history states") {
  const auto refused = [](const std::string& part, const std::function<void(Problem&)>& set, const char* mode) {
    Context context(1, "");
    Problem p;
    p.initial = true;
    keep_history(p);
    set(p);
    p.make();
    PlanDescription description("toy", mode);
    p.describe(description);
    CHECK_THROWS_WITH(Plan(context, description), doctest::Contains(part.c_str()));
  };
  refused(
      "S.states is not given; tensor 'S.history_index' has so many columns", [](Problem& p) { p.states = 0; },
      "prefill");
  refused("S.every is 24, which is no multiple of 16", [](Problem& p) { p.every = 24; }, "prefill");
  refused(
      "S.every is 16, which is no multiple of 32", [](Problem& p) { p.options = {{"chunk_size", "32"}}; }, "prefill");
  refused("mode step keeps no history", [](Problem& p) { p.T = 1; }, "step");
  refused(
      "mode step takes one token, which has no order", [](Problem& p) { p.options = {{"reverse", "true"}}; }, "step");
}

TEST_CASE("run: slots of histories and accepted counts") {
  const auto history = [](const std::string& part, const std::function<void(Problem&)>& spoil) {
    refuse_run(LATILE_BAD_SHAPE, part, [&](auto& p, auto&) { spoil(p); }, keep_history);
  };
  history("S.history_index[1, 0] is 12; slots are 0 to 11", [](Problem& p) { p.narrow[3][3] = 12; });
  history("S.history_index[0, 1] is -2", [](Problem& p) { p.narrow[3][1] = -2; });
  history("S.history_index sends sequences 0 and 2 to one slot, 1", [](Problem& p) { p.narrow[3][7] = 1; });
  history("sends two states of sequence 2 to one slot, 4", [](Problem& p) { p.narrow[3][7] = 4; });
  history("sequence 1 reads slot 5, which sequence 2 writes", [](Problem& p) { p.narrow[0][1] = 5; });
  refuse_run(
      LATILE_BAD_SHAPE,
      "sequence 0 has 40 tokens, so 2 history states of S 16 tokens apart, but S.history_index has 1 columns",
      [](auto&, auto&) {}, [](Problem& p) { keep_history(p), p.states = 1, p.history_index = {0, 1, 2}; });
  const auto accepted = [](const std::string& part, const std::function<void(Problem&)>& spoil) {
    refuse_run(LATILE_BAD_SHAPE, part, [&](auto& p, auto&) { spoil(p); }, accept_some);
  };
  accepted("accepted[1] is 0; it is 1 to 3, the columns of S.initial_index", [](Problem& p) { p.narrow[4][1] = 0; });
  accepted("accepted[2] is 4", [](Problem& p) { p.narrow[4][2] = 4; });
  accepted("S.initial_index[1, 2] is 77; slots are 0 to 11", [](Problem& p) { p.narrow[4][1] = 3; });
  accepted("sequence 1 reads slot 4, which sequence 2 writes", [](Problem& p) { p.narrow[0][4] = 4; });
}

TEST_CASE("run: mode step has one token") {
  refuse_run(
      LATILE_BAD_SHAPE, "T is 2, but mode step takes one token", [](auto& p, auto&) { p.dims[5] = 2; },
      [](Problem& p) { p.mode = "step", p.T = 1; });
}

TEST_CASE("structures of other versions") {
  struct Newer {
    latile_context_desc now;
    void* later;
  } newer = {{sizeof(Newer), "", 0, nullptr, nullptr, 0}, nullptr};
  latile_error error = {sizeof error, 0, 0, ""};
  latile_context* context = nullptr;
  CHECK(latile_context_create(&newer.now, &context, &error) == LATILE_OK);
  latile_context_release(context);
  newer.later = &newer;
  CHECK(latile_context_create(&newer.now, &context, &error) == LATILE_UNSUPPORTED);
  check_sentence(error, LATILE_UNSUPPORTED, "does not know");
  newer.now.size = 0x7fffffff;
  CHECK(latile_context_create(&newer.now, &context, &error) == LATILE_BAD_ARGUMENT);
  const latile_context_desc many = {sizeof many, "", 5000, nullptr, nullptr, 0};
  CHECK(latile_context_create(&many, &context, &error) == LATILE_BAD_ARGUMENT);
  check_sentence(error, LATILE_BAD_ARGUMENT, "host_threads is 5000");
  // A short error structure gets what it has room for, a missing one nothing.
  latile_error small = {offsetof(latile_error, text) + 10, 0, 0, ""};
  std::memset(small.text, 'x', sizeof small.text);
  CHECK(latile_context_create(&many, &context, &small) == LATILE_BAD_ARGUMENT);
  CHECK(std::string(small.text) == "latile_co");
  CHECK(small.text[10] == 'x');
  CHECK(latile_context_create(&many, &context, nullptr) == LATILE_BAD_ARGUMENT);
}

TEST_CASE("nulls everywhere") {
  latile_error error = {sizeof error, 0, 0, ""};
  CHECK(latile_context_create(nullptr, nullptr, &error) == LATILE_BAD_ARGUMENT);
  CHECK(latile_plan_create(nullptr, nullptr, nullptr, &error) == LATILE_BAD_ARGUMENT);
  CHECK(latile_plan_workspace(nullptr, nullptr, nullptr, nullptr, &error) == LATILE_BAD_ARGUMENT);
  CHECK(latile_plan_shape(nullptr, 0, nullptr, nullptr, nullptr, &error) == LATILE_BAD_ARGUMENT);
  CHECK(latile_plan_parts(nullptr, nullptr) == 0);
  CHECK(latile_plan_stages(nullptr) == nullptr);
  CHECK(latile_run(nullptr, nullptr, &error) == LATILE_BAD_ARGUMENT);
  CHECK(latile_run_part(nullptr, nullptr, nullptr, 0, &error) == LATILE_BAD_ARGUMENT);
  CHECK(latile_team_create(0, nullptr, &error) == LATILE_BAD_ARGUMENT);
  CHECK(latile_operator_count(nullptr) == 0);
  CHECK(latile_operator_json(nullptr, 0) == nullptr);
  latile_context_release(nullptr);
  latile_plan_retain(nullptr);
  latile_plan_release(nullptr);
  latile_team_release(nullptr);
}
