// The meaning of instructions that the lanes of a warp execute together.
#include "runtime/emulator/Machine.h"
#include <bit>
#include <cstring>

namespace latile::emulator {
namespace {

std::uint32_t in(const Thread& t, int i) { return static_cast<const std::uint32_t*>(t.in)[i]; }
void out(const Thread& t, int i, std::uint32_t value) { static_cast<std::uint32_t*>(t.out)[i] = value; }

template <class F> void each(std::uint64_t members, F f) {
  for (; members; members &= members - 1) f(std::countr_zero(members));
}

// PTX's shfl.sync: the clamp word holds the first lane that is out of reach in bits 0 to 4 and, in bits 8 to 12, those
// bits of the lane number that stay.
int source(Shuffle kind, int lane, std::uint32_t b, std::uint32_t c, bool& inside) {
  int fixed = c >> 8 & 31, clamp = c & 31, last = (lane & fixed) | (clamp & ~fixed), first = lane & fixed;
  int from = lane, by = static_cast<int>(b & 31);
  switch (kind) {
  case Shuffle::up: inside = (from = lane - by) >= last; break;
  case Shuffle::down: inside = (from = lane + by) <= last; break;
  case Shuffle::butterfly: inside = (from = lane ^ by) <= last; break;
  case Shuffle::index: inside = (from = first | (by & ~fixed)) <= last; break;
  }
  return inside ? from : lane;
}

std::uint32_t reduce(Reduce kind, std::uint32_t a, std::uint32_t b) {
  auto s = [](std::uint32_t x) { return static_cast<std::int32_t>(x); };
  switch (kind) {
  case Reduce::add: return a + b;
  case Reduce::min_signed: return s(a) < s(b) ? a : b;
  case Reduce::max_signed: return s(a) > s(b) ? a : b;
  case Reduce::min_unsigned: return a < b ? a : b;
  case Reduce::max_unsigned: return a > b ? a : b;
  case Reduce::bit_and: return a & b;
  case Reduce::bit_or: return a | b;
  case Reduce::bit_xor: return a ^ b;
  }
  return a;
}

std::uint32_t vote(Vote kind, std::uint64_t members, std::uint64_t yes) {
  switch (kind) {
  case Vote::all: return yes == members;
  case Vote::any: return yes != 0;
  case Vote::uniform: return yes == 0 || yes == members;
  case Vote::ballot: return static_cast<std::uint32_t>(yes);
  }
  return 0;
}

char* address(const Thread& t) {
  char* p;
  std::memcpy(&p, t.in, sizeof p);
  return p;
}

}  // namespace

// ldmatrix and stmatrix: lane 8i + j gives the address of row j of matrix i, 8 elements of 16 bits. Lane l holds of
// each matrix row l / 4, columns 2 (l % 4) and the next; transposed, rows and columns change places.
void Machine::move_matrices(Warp& warp, const CallSite& site) {
  int count = site.variant & 7;
  bool transposed = site.variant & 8, load = site.op == Collective::load_matrices;
  for (int i = 0; i < count; ++i) {
    std::uint16_t rows[8][8];
    for (int j = 0; j < 8; ++j) {
      Thread& t = warp.threads[8 * i + j];
      if (load) {
        read_shared(t, address(t), 16, 16, site.location);
        std::memcpy(rows[j], address(t), 16);
      } else {
        write_shared(t, address(t), 16, 16, site.location);
      }
    }
    for (int l = 0; l < 32; ++l)
      for (int h = 0; h < 2; ++h) {
        int r = l / 4, c = 2 * (l % 4) + h;
        std::uint16_t& element = transposed ? rows[c][r] : rows[r][c];
        Thread& t = warp.threads[l];
        if (load)
          std::memcpy(static_cast<char*>(t.out) + 4 * i + 2 * h, &element, 2);
        else
          std::memcpy(&element, static_cast<const char*>(t.in) + 8 + 4 * i + 2 * h, 2);
      }
    if (!load)
      for (int j = 0; j < 8; ++j) std::memcpy(address(warp.threads[8 * i + j]), rows[j], 16);
  }
}

void Machine::execute(Warp& warp, const CallSite& site, std::uint64_t members) {
  Thread* t = warp.threads;
  switch (site.op) {
  case Collective::warp_barrier:
    if (members != warp.all) {
      report(Report::Kind::unsupported, *current_, site.location, 0, "is a barrier of some lanes of its warp only");
      stop();
    }
    tick(warp.clock);
    return;
  case Collective::shuffle:
    each(members, [&](int l) {
      bool inside = true;
      int from = source(static_cast<Shuffle>(site.variant), l, in(t[l], 2), in(t[l], 3), inside);
      if (!(members >> from & 1)) {
        report(Report::Kind::divergence, t[l], site.location, 0,
               "takes the value of lane " + std::to_string(from) + ", which is not in the mask");
        stop();
      }
      out(t[l], 0, in(t[from], 1));
      out(t[l], 1, inside);
    });
    return;
  case Collective::vote: {
    std::uint64_t yes = 0;
    each(members, [&](int l) { yes |= std::uint64_t{in(t[l], 1) != 0} << l; });
    std::uint32_t answer = vote(static_cast<Vote>(site.variant), members, yes);
    each(members, [&](int l) { out(t[l], 0, answer); });
    return;
  }
  case Collective::reduce: {
    std::uint32_t sum = in(t[std::countr_zero(members)], 0);
    each(members & (members - 1), [&](int l) { sum = reduce(static_cast<Reduce>(site.variant), sum, in(t[l], 0)); });
    each(members, [&](int l) { out(t[l], 0, sum); });
    return;
  }
  case Collective::active_mask:
    each(members, [&](int l) { out(t[l], 0, static_cast<std::uint32_t>(members)); });
    return;
  case Collective::load_matrices:
  case Collective::store_matrices: move_matrices(warp, site); return;
  case Collective::transpose_matrix:
    for (int l = 0; l < 32; ++l)
      for (int h = 0; h < 2; ++h) {
        int r = 2 * (l % 4) + h, c = l / 4;  // of the source
        std::uint32_t word = in(t[4 * r + c / 2], 0);
        std::uint16_t element = static_cast<std::uint16_t>(word >> 16 * (c % 2));
        std::memcpy(static_cast<char*>(t[l].out) + 2 * h, &element, 2);
      }
    return;
  case Collective::permute:
    each(members, [&](int l) {
      int from = static_cast<int>(in(t[l], 0) / 4 % static_cast<std::uint32_t>(launch_->launch.kernel->warp_size));
      out(t[l], 0, members >> from & 1 ? in(t[from], 1) : 0);
    });
    return;
  case Collective::first_lane: each(members, [&](int l) { out(t[l], 0, in(t[std::countr_zero(members)], 0)); }); return;
  default: break;
  }
  const void* ins[64];
  void* outs[64];
  each(members, [&](int l) {
    ins[l] = t[l].in;
    outs[l] = t[l].out;
  });
  multiply(site.op, ins, outs);
}

}  // namespace latile::emulator
