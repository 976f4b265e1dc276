// The table through which compiled kernels reach the emulator.
#include "runtime/emulator/Machine.h"
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

namespace latile::emulator {
namespace {

Thread& thread(Lane* lane) { return *static_cast<Thread*>(lane); }
constexpr std::uint32_t bytes(std::uint32_t shape) { return shape & 0xffff; }
constexpr std::uint32_t align(std::uint32_t shape) { return shape >> 16; }

void read_shared(Lane* l, const void* p, std::uint32_t shape, std::uint32_t where) {
  thread(l).machine->read_shared(thread(l), p, bytes(shape), align(shape), where);
}
void write_shared(Lane* l, const void* p, std::uint32_t shape, std::uint32_t where) {
  thread(l).machine->write_shared(thread(l), p, bytes(shape), align(shape), where);
}
void read_global(Lane* l, const void* p, std::uint32_t shape, std::uint32_t where) {
  thread(l).machine->read_global(thread(l), p, bytes(shape), align(shape), where);
}
void write_global(Lane* l, const void* p, std::uint32_t shape, std::uint32_t where) {
  thread(l).machine->write_global(thread(l), p, bytes(shape), align(shape), where);
}
void read_generic(Lane* l, const void* p, std::uint32_t shape, std::uint32_t where) {
  Machine& m = *thread(l).machine;
  if (m.is_shared(p))
    read_shared(l, p, shape, where);
  else if (!m.is_stack(p))
    read_global(l, p, shape, where);
}
void write_generic(Lane* l, const void* p, std::uint32_t shape, std::uint32_t where) {
  Machine& m = *thread(l).machine;
  if (m.is_shared(p))
    write_shared(l, p, shape, where);
  else if (!m.is_stack(p))
    write_global(l, p, shape, where);
}

void collective(Lane* l, const CallSite* site, const void* in, void* out) {
  thread(l).machine->collective(thread(l), *site, in, out);
}
void barrier(Lane* l, const CallSite* site) { thread(l).machine->barrier(thread(l), *site); }
void start_copy(Lane* l, void* to, const void* from, std::uint32_t bytes, std::uint32_t read, std::uint32_t where) {
  thread(l).machine->start_copy(thread(l), to, from, bytes, read, where);
}
void commit_copies(Lane* l) { ++thread(l).group; }
void wait_copies(Lane* l, std::uint32_t groups) { thread(l).machine->wait_copies(thread(l), groups); }

// In pieces, since the shape of an access has 16 bits for its size.
template <class F> void pieces(std::uint64_t bytes, F f) {
  constexpr std::uint64_t most = 4096;
  for (std::uint64_t at = 0; at < bytes; at += most) f(at, static_cast<std::uint32_t>(std::min(most, bytes - at)));
}
void copy(Lane* l, void* to, const void* from, std::uint64_t bytes, std::uint32_t where) {
  pieces(bytes, [&](std::uint64_t at, std::uint32_t n) {
    read_generic(l, static_cast<const char*>(from) + at, n | 1u << 16, where);
    write_generic(l, static_cast<char*>(to) + at, n | 1u << 16, where);
  });
  std::memmove(to, from, bytes);
}
void fill(Lane* l, void* to, std::uint32_t byte, std::uint64_t bytes, std::uint32_t where) {
  pieces(bytes, [&](std::uint64_t at, std::uint32_t n) {
    write_generic(l, static_cast<char*>(to) + at, n | 1u << 16, where);
  });
  std::memset(to, static_cast<int>(byte), bytes);
}

// The approximations of a GPU are within a few units in the last place of these.
float flush(float x) { return std::fabs(x) < std::numeric_limits<float>::min() ? std::copysign(0.0f, x) : x; }
float exp2_32(float x) { return std::exp2(x); }
float exp2_ftz_32(float x) { return flush(std::exp2(flush(x))); }
float log2_32(float x) { return std::log2(x); }
float log2_ftz_32(float x) { return flush(std::log2(flush(x))); }
float exp_32(float x) { return std::exp(x); }
float log_32(float x) { return std::log(x); }
float sin_32(float x) { return std::sin(x); }
float cos_32(float x) { return std::cos(x); }
float tanh_32(float x) { return std::tanh(x); }
float pow_32(float x, float y) { return std::pow(x, y); }
double exp2_64(double x) { return std::exp2(x); }
double log2_64(double x) { return std::log2(x); }
double exp_64(double x) { return std::exp(x); }
double log_64(double x) { return std::log(x); }
double sin_64(double x) { return std::sin(x); }
double cos_64(double x) { return std::cos(x); }
double tanh_64(double x) { return std::tanh(x); }
double pow_64(double x, double y) { return std::pow(x, y); }

std::array<const void*, static_cast<std::size_t>(Hook::count)> table() {
  std::array<const void*, static_cast<std::size_t>(Hook::count)> t{};
  auto set = [&](Hook h, auto* f) { t[static_cast<std::size_t>(h)] = reinterpret_cast<const void*>(f); };
  set(Hook::read_shared, read_shared);
  set(Hook::read_global, read_global);
  set(Hook::read_generic, read_generic);
  set(Hook::write_shared, write_shared);
  set(Hook::write_global, write_global);
  set(Hook::write_generic, write_generic);
  set(Hook::collective, collective);
  set(Hook::barrier, barrier);
  set(Hook::start_copy, start_copy);
  set(Hook::commit_copies, commit_copies);
  set(Hook::wait_copies, wait_copies);
  set(Hook::copy, copy);
  set(Hook::fill, fill);
  set(Hook::exp2_32, exp2_32);
  set(Hook::exp2_ftz_32, exp2_ftz_32);
  set(Hook::log2_32, log2_32);
  set(Hook::log2_ftz_32, log2_ftz_32);
  set(Hook::exp_32, exp_32);
  set(Hook::log_32, log_32);
  set(Hook::sin_32, sin_32);
  set(Hook::cos_32, cos_32);
  set(Hook::tanh_32, tanh_32);
  set(Hook::exp2_64, exp2_64);
  set(Hook::log2_64, log2_64);
  set(Hook::exp_64, exp_64);
  set(Hook::log_64, log_64);
  set(Hook::sin_64, sin_64);
  set(Hook::cos_64, cos_64);
  set(Hook::tanh_64, tanh_64);
  set(Hook::pow_32, pow_32);
  set(Hook::pow_64, pow_64);
  return t;
}

}  // namespace

const void* const* hooks() {
  static const auto all = table();
  return all.data();
}

}  // namespace latile::emulator
