// A run allocates nothing: operator new is counted in this program.
#include "FakeCuda.h"
#include "runtime/cuda/Driver.h"
#include "Toy.h"
#include <atomic>
#include <cstdlib>
#include <dlfcn.h>
#include <doctest/doctest.h>
#include <memory>
#include <new>

namespace {
std::atomic<long> allocations = 0;
}

void* operator new(std::size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

using namespace latile::test;

TEST_CASE("a run allocates nothing") {
  latile::api::Context context(3, "");
  Problem ragged;
  ragged.borders = {0, 3, 3, 7, 8}, ragged.T = 8, ragged.initial = ragged.final = ragged.in_place = true,
  ragged.slots = 9;
  ragged.initial_index = {7, -1, 2, -1}, ragged.final_index = {7, 1, -1, -1};
  Problem cut;
  cut.B = 3, cut.T = 50, cut.options = {{"cut", "true"}};
  for (Problem* p : {&ragged, &cut}) {
    p->make();
    latile::api::PlanDescription description("toy", p->mode);
    p->describe(description);
    const latile::api::Plan plan(context, description);
    auto workspace = workspace_of(plan, p->dims);
    const latile::api::Team team(1);
    const long before = allocations;
    for (int i = 0; i < 10; ++i) {
      plan.run(p->data, p->dims, p->strides, workspace);
      plan.run_part(p->data, p->dims, p->strides, workspace, team, 0);
    }
    CHECK(allocations == before);
  }
}

TEST_CASE("a run on a device allocates nothing") {
  std::string why;
  const auto driver = latile::runtime::cuda::Driver::use(FAKE_CUDA, why);
  REQUIRE_MESSAGE(driver, why);
  auto* fake = reinterpret_cast<FakeCuda* (*)()>(dlsym(dlopen(FAKE_CUDA, RTLD_NOW | RTLD_NOLOAD), "fake_cuda"))();
  latile::api::Context context(1, "");
  Problem p;
  p.T = 150, p.borders = {0, 30, 30, 150};
  p.make();
  latile::api::PlanDescription description("toy", p.mode);
  p.describe(description);
  description.device(LATILE_CUDA, 0);
  const latile::api::Plan plan(context, description);
  std::size_t room = plan.workspace(p.dims) + 256;
  std::vector<std::byte> memory(room);
  void* start = memory.data();
  const std::size_t bytes = room - 256;
  auto* workspace = static_cast<std::byte*>(std::align(256, bytes, start, room));
  fake->records_launches = false;
  plan.run(p.data, p.dims, p.strides, {workspace, bytes});
  const long before = allocations;
  for (int i = 0; i < 10; ++i) plan.run(p.data, p.dims, p.strides, {workspace, bytes});
  CHECK(allocations == before);
  fake->records_launches = true;
  CHECK(fake->calls["cuLaunchKernel"] >= 22);
}
