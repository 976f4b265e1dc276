// The command on devices: what it refuses, and what it does with a CUDA driver whose kernels do nothing.
#include "compiler/Compile.h"
#include "runtime/cuda/Driver.h"
#include "runtime/EmulatedDevice.h"
#include "tests/tool/Command.h"
#include "tools/latile/CaseRun.h"
#include <cstdlib>
#include <doctest/doctest.h>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>

using latile::runtime::cuda::Driver;

namespace {

void use_fake() {
  ::setenv("FAKE_CUDA_ANY", "1", 1);
  std::string why;
  REQUIRE_MESSAGE(Driver::use(FAKE_CUDA, why) != nullptr, why);
}

}  // namespace

TEST_CASE("devices that are none are refused by name") {
  use_fake();
  const auto refused = [](const char* device, const char* sentence) {
    const Outcome outcome = command({"check", "linear_attn", "--device", device});
    CHECK(outcome.code == 2);
    CHECK_MESSAGE(has(outcome.err, sentence), outcome.err);
  };
  refused("gpu", "there is no device 'gpu'; host, cuda, cuda:N and emulated:sm_80 are offered");
  refused("cuda:x", "'x' is no number of a device");
  refused("cuda:", "'' is no number of a device");
  refused("cuda:9", "there is no CUDA device 9; the driver has 3 (0 to 2)");
  refused("cuda:2", "compute capability 7.5; 8.0 or newer is needed");
  refused("emulated:sm_10", "there is no emulated chip 'sm_10'; sm_80");
  std::string why;
  Driver::use("/no/such/libcuda.so.1", why);
  refused("cuda", "there is no CUDA device 0: the CUDA driver cannot be loaded");
  const Outcome doctor = command({"doctor"});
  CHECK(has(doctor.out, "the CUDA driver cannot be loaded"));
  use_fake();
  for (const char* flag : {"--large", "--graph"}) {
    const Outcome host = command({"check", "linear_attn", flag});
    CHECK(host.code == 2);
    CHECK(has(host.err, std::string(flag) + " is for CUDA devices, not for 'host'"));
  }
  const Outcome isa = command({"check", "linear_attn", "--device", "cuda", "--isa", "avx512"});
  CHECK(isa.code == 2);
  CHECK(has(isa.err, "--isa is for the host"));
}

TEST_CASE("check on a device fails kernels that write nothing") {
  use_fake();
  const Outcome outcome =
      command({"check", "linear_attn", "--device", "cuda:1", "--quick", "--dtype", "f32", "--json"});
  CHECK(outcome.code == 1);
  const auto object = nlohmann::json::parse(outcome.out);
  CHECK(object["device"] == "cuda:1");
  CHECK(has(object["isa"], "Fake, sm_90, 132 multiprocessors, 80 GiB"));
  CHECK(object["cases"].size() > 10);
  for (const auto& c : object["cases"]) {
    CHECK(c["passed"] == false);
    // Errors and no faults: outputs are as they were before the run, NaN, and states in place what they began with.
    CHECK(c["tensors"].size() > 0);
    for (const auto& tensor : c["tensors"])
      CHECK((tensor["error"].is_null() || tensor["error"].get<double>() > tensor["allowed"].get<double>()));
  }
}

TEST_CASE("check in graphs fails kernels that write nothing, too") {
  use_fake();
  const Outcome outcome = command({"check", "linear_attn", "--device", "cuda", "--quick", "--dtype", "f32", "--graph"});
  CHECK(outcome.code == 1);
  CHECK(has(outcome.out, "FAILED"));
  CHECK_FALSE(has(outcome.out, " ok\n"));
}

TEST_CASE("bench on a device prints a row for each shape") {
  use_fake();
  const Outcome outcome = command({"bench", "linear_attn", "--device", "cuda", "--json", "--dtype", "bf16,f32",
                                   "--shape", "2x64x3x32,1x48x2x32x64", "--seconds", "0.01", "--commit", "abc"});
  CHECK_MESSAGE(outcome.code == 0, outcome.err);
  std::istringstream lines(outcome.out);
  std::vector<nlohmann::json> rows;
  for (std::string line; std::getline(lines, line);) rows.push_back(nlohmann::json::parse(line));
  REQUIRE(rows.size() == 8);
  const auto& row = rows[1];
  CHECK(row["op"] == "linear_attn");
  CHECK(row["mode"] == "prefill");
  CHECK(row["dtype"] == "bf16");
  CHECK(row["B"] == 1);
  CHECK(row["T"] == 48);
  CHECK(row["H"] == 2);
  CHECK(row["K"] == 32);
  CHECK(row["V"] == 64);
  CHECK(row["commit"] == "abc");
  CHECK(row["device"] == "Fake");
  CHECK(row["gpu_ms"].get<double>() == doctest::Approx(0.1));  // the fake's clock says 1 ms for a graph of ten runs
  // q, k, v, o in bfloat16 and two states in float32, once each at 4.3 TB/s.
  const double bytes = 48.0 * 2 * (32 + 32 + 64 + 64) * 2 + 2.0 * 2 * 32 * 64 * 4;
  CHECK(row["floor_ms"].get<double>() == doctest::Approx(bytes / 4.3e9));
  CHECK(row["call_us"].get<double>() > 0);
  CHECK(rows[4]["mode"] == "step");
  CHECK(rows[4]["T"] == 1);

  const Outcome wrong = command({"bench", "linear_attn", "--device", "cuda", "--shape", "4x2048x16"});
  CHECK(wrong.code == 2);
  CHECK(has(wrong.err, "--shape 4x2048x16: give BATCHxTOKENSxHEADSxK"));
  const Outcome host = command({"bench", "linear_attn", "--shape", "4x2048x16x128"});
  CHECK(host.code == 2);
  CHECK(has(host.err, "--shape is for devices"));
}

namespace {

/// Ragged batches of so many sequences of 0 to 40 tokens, a third of them empty, whole runs of empty ones among them.
std::vector<std::vector<std::int64_t>> random_lengths(std::initializer_list<int> counts, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::vector<std::int64_t>> batches;
  for (int count : counts) {
    std::vector<std::int64_t>& lengths = batches.emplace_back();
    for (int n = 0; n < count; ++n) lengths.push_back(random() % 3 == 0 ? 0 : static_cast<std::int64_t>(random() % 41));
    for (int n = count / 2; n < count / 2 + count / 8; ++n) lengths[static_cast<std::size_t>(n)] = 0;
    if (std::all_of(lengths.begin(), lengths.end(), [](std::int64_t l) { return l == 0; })) lengths.back() = 17;
  }
  return batches;
}

}  // namespace

// One search step, the border of one, two steps, and the first count with three.
TEST_CASE("kernels over chunks find their sequence in random ragged batches, emulated and watched") {
  latile::install_compiler();
  latile::runtime::install_emulated_devices();
  const latile::ContextHandle context = latile::make_context(1, "");
  latile::CheckSettings settings;
  settings.place = latile::Place::named("emulated:sm_80");
  for (const std::string op : {"l2norm", "simple_gla"})
    for (int bits : {32, 64}) {
      latile::Case c;
      c.extents = {16};
      c.ragged_bits = bits;
      c.chunk = op == "simple_gla" ? 16 : 0;
      c.label = "random ragged batches";
      c.data.push_back({"", random_lengths({1, 2, 31, 32, 33, 300, 1025}, static_cast<std::uint64_t>(bits))});
      const latile::OperatorRow& row = *latile::find_operator(op);
      for (const latile::CaseResult& result :
           latile::run_case(context.get(), row, c, latile::ElementType::f32, settings)) {
        CHECK_MESSAGE(result.failure.empty(), op, ": ", result.failure);
        CHECK(!result.errors.empty());
        for (const latile::TensorError& e : result.errors) CHECK_MESSAGE(!e.exceeds(), op, ": ", e.name, " ", e.error);
      }
    }
}
