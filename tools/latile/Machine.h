// What this machine can do at most, measured: the floors that `bench` compares with.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

namespace latile {

/// The CPU's name as its maker gives it.
std::string cpu_name();
/// CPUs that this process may use.
int usable_cpus();

/// Multiply-adds of float32 at the widest vectors of this CPU, in GFLOP/s over `threads`.
double fma_gflops(int threads);
/// Products of bfloat16 pairs with float32 sums, in GFLOP/s; 0 where the CPU has none.
double bf16_gflops(int threads);
/// Bytes read plus bytes written by a copy that no cache holds, in GB/s.
double copy_gbs(int threads);
/// Milliseconds of one pass that reads and writes `count` floats in place, split over `threads`: what a decode step
/// cannot be faster than.
double in_place_ms(float* data, std::size_t count, int threads);

}  // namespace latile
