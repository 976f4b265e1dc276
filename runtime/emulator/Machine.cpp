#include "runtime/emulator/Machine.h"
#include <algorithm>
#include <bit>
#include <cstring>
#include <sys/mman.h>

namespace latile::emulator {

using boost::context::detail::jump_fcontext;
using boost::context::detail::make_fcontext;
using boost::context::detail::transfer_t;

namespace {

constexpr std::size_t page = 4096;
// Hundreds of KiB in a frame: all registers of a GPU's thread, and what the instrumented code keeps beside them. Pages
// that nothing touches take no memory.
constexpr std::size_t stack_size = 256 * page;
// An odd number of pages, so that the same depth of all stacks does not fall into one set of the cache; below are the
// steps that spread them within a page. The lowest page of each is left inaccessible.
constexpr std::size_t stack_stride = stack_size + page;
constexpr std::size_t colour(std::size_t thread) { return thread * 17 * 64 % page; }

void* pages(std::size_t bytes) {
  void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) throw std::bad_alloc();
  return p;
}

// What travels with a jump: where the jump came from.
struct Origin {
  Context* context;
  Thread* thread;
};

void thread_main(transfer_t t) {
  Origin* origin = static_cast<Origin*>(t.data);
  origin->context->at = t.fctx;
  Thread* thread = origin->thread;
  thread->machine->run_thread(*thread);
}

}  // namespace

int Warp::pick() const {
  std::uint64_t turned = std::rotr(runnable, start);
  int at = backwards ? 63 - std::countl_zero(turned) : std::countr_zero(turned);
  return (at + start) & 63;
}

std::uint64_t Machine::random() {
  random_ ^= random_ << 13;
  random_ ^= random_ >> 7;
  random_ ^= random_ << 17;
  return random_;
}

Machine::~Machine() {
  if (stacks_) munmap(stacks_, stack_bytes_);
  if (shared_) munmap(shared_, shared_span);
  if (cells_) munmap(cells_, shared_span * sizeof(SharedCell));
}

void Machine::jump(Context& from, Context& to) {
  Origin origin{&from, current_};
  transfer_t t = jump_fcontext(to.at, &origin);
  static_cast<Origin*>(t.data)->context->at = t.fctx;
}

void Machine::resume(Warp& warp, Context& from) {
  current_ = warp.threads + warp.pick();
  jump(from, current_->context);
}

void Machine::park(Thread& thread) {
  Warp& warp = warps_[thread.warp];
  if (warp.runnable)
    resume(warp, thread.context);
  else
    jump(thread.context, scheduler_);
}

void Machine::run_thread(Thread& thread) {
  launch_->launch.kernel->entry(&thread, launch_->launch.parameters);
  returned(thread);
}

void Machine::returned(Thread& thread) {
  Warp& warp = warps_[thread.warp];
  warp.runnable &= ~(std::uint64_t{1} << thread.lane);
  --live_;
  park(thread);
  __builtin_unreachable();
}

void Machine::stop() {
  launch_->stopped = true;
  jump(current_->context, scheduler_);
  __builtin_unreachable();
}

bool Machine::same_site(const Warp& warp, const CallSite& site, std::uint64_t members) const {
  for (std::uint64_t m = members; m; m &= m - 1) {
    const Thread& t = warp.threads[std::countr_zero(m)];
    if (t.site != &site || t.members != members) return false;
  }
  return true;
}

void Machine::collective(Thread& thread, const CallSite& site, const void* in, void* out) {
  Warp& warp = warps_[thread.warp];
  std::uint64_t bit = std::uint64_t{1} << thread.lane, members = warp.all;
  auto word = [&](int i) { return static_cast<const std::uint32_t*>(in)[i]; };
  switch (site.op) {
  case Collective::warp_barrier:
  case Collective::shuffle:
  case Collective::vote: members = word(0); break;
  case Collective::reduce: members = word(1); break;
  // Which lanes are together is the scheduler's choice here; a warp of a GPU that has not diverged is whole.
  default: break;
  }
  if (!(members & bit))
    report(Report::Kind::divergence, thread, site.location, 0, "is not in the mask of lanes that it gives");
  thread.site = &site;
  thread.in = in;
  thread.out = out;
  thread.members = members;
  warp.mixed = warp.waiting &&
               (warp.mixed || warp.site != &site || warp.threads[std::countr_zero(warp.waiting)].members != members);
  warp.site = &site;
  warp.waiting |= bit;
  warp.runnable &= ~bit;
  if ((warp.waiting & members) == members && (!warp.mixed || same_site(warp, site, members))) {
    execute(warp, site, members);
    warp.waiting &= ~members;
    warp.runnable |= members;
    warp.mixed = warp.waiting != 0;
    std::uint64_t r = random();
    warp.start = static_cast<int>(r & 63) % std::max(1, std::popcount(warp.all));
    warp.backwards = r & 64;
    return;
  }
  park(thread);
}

void Machine::barrier(Thread& thread, const CallSite& site) {
  Warp& warp = warps_[thread.warp];
  std::uint64_t bit = std::uint64_t{1} << thread.lane;
  thread.site = &site;
  warp.runnable &= ~bit;
  warp.at_barrier |= bit;
  if (++at_barrier_ == threads_.size())
    release_barrier();
  else
    park(thread);
}

void Machine::tick(std::uint32_t& clock) {
  if (++clock < clock_limit) return;
  report(Report::Kind::unsupported, *current_, current_->site->location, 0,
         "is past the 2^20 barriers that a block may have");
  stop();
}

void Machine::release_barrier() {
  for (Warp& warp : warps_) {
    clock_ = std::max(clock_, warp.clock);
    for (std::uint64_t m = warp.all; m; m &= m - 1) {
      const Thread& t = warp.threads[std::countr_zero(m)];
      if (t.site != warp.threads->site)
        report(Report::Kind::divergence, t, t.site->location, warp.threads->site->location,
               "waits at this barrier, and lane 0 of its warp at that of {other}");
    }
  }
  tick(clock_);
  for (Warp& warp : warps_) {
    warp.clock = clock_;
    warp.runnable = warp.at_barrier;
    warp.at_barrier = 0;
  }
  at_barrier_ = 0;
}

void Machine::prepare(LaunchState& launch) {
  launch_ = &launch;
  if (!shared_) {
    // Aligned to its size, so that a swizzle of address bits is one of offset bits.
    char* twice = static_cast<char*>(pages(2 * shared_span));
    shared_ = reinterpret_cast<char*>((reinterpret_cast<std::uintptr_t>(twice) + shared_span - 1) & ~(shared_span - 1));
    if (shared_ > twice) munmap(twice, static_cast<std::size_t>(shared_ - twice));
    if (char* end = twice + 2 * shared_span; shared_ + shared_span < end)
      munmap(shared_ + shared_span, static_cast<std::size_t>(end - (shared_ + shared_span)));
    cells_ = static_cast<SharedCell*>(pages(shared_span * sizeof(SharedCell)));
  }
  const EmulatedKernel& kernel = *launch.launch.kernel;
  // Stamps of earlier launches are older than every block to come, whatever the granules were.
  shift_ = static_cast<unsigned>(std::countr_zero(kernel.granule));
  used_ = std::max(used_, launch.launch.shared_bytes >> shift_);
  std::size_t count = static_cast<std::size_t>(launch.launch.threads), width = kernel.warp_size;
  if (stack_bytes_ < count * stack_stride) {
    if (stacks_) munmap(stacks_, stack_bytes_);
    stack_bytes_ = count * stack_stride;
    stacks_ = static_cast<char*>(pages(stack_bytes_));
    for (std::size_t t = 0; t < count; ++t) mprotect(stacks_ + t * stack_stride, page, PROT_NONE);
  }
  threads_ = std::vector<Thread>(count);
  warps_.assign((count + width - 1) / width, Warp());
  for (std::size_t t = 0; t < count; ++t) {
    Thread& thread = threads_[t];
    thread.hooks = hooks();
    thread.shared = shared_;
    thread.thread = static_cast<std::uint32_t>(t);
    thread.lane = static_cast<std::uint32_t>(t % width);
    thread.warp = static_cast<std::uint32_t>(t / width);
    thread.threads = static_cast<std::uint32_t>(count);
    thread.blocks = static_cast<std::uint32_t>(launch.launch.blocks);
    thread.machine = this;
    warps_[t / width].all |= std::uint64_t{1} << (t % width);
    if (t % width == 0) warps_[t / width].threads = &thread;
  }
  last_ = nullptr;
}

void Machine::run_block(std::int64_t block) {
  // Blocks differ in their orders, whichever host thread runs them.
  random_ = (launch_->options.seed * 0x9e3779b97f4a7c15u + static_cast<std::uint64_t>(block) + 1) * 0xbf58476d1ce4e5b9u;
  random_ |= 1;
  for (int i = 0; i < 4; ++i) random();
  std::memset(shared_, 0xff, launch_->launch.shared_bytes);  // NaN in every type
  for (Warp& warp : warps_) clock_ = std::max(clock_, warp.clock);
  if (clock_ > clock_limit / 2) {
    std::memset(static_cast<void*>(cells_), 0, used_ * sizeof(SharedCell));
    clock_ = 1;
  }
  birth_ = ++clock_;
  serial_ = launch_->first_serial + static_cast<std::uint32_t>(block);
  live_ = static_cast<std::uint32_t>(threads_.size());
  at_barrier_ = 0;
  for (Thread& t : threads_) {
    t.block = static_cast<std::uint32_t>(block);
    t.group = 0;
    t.in_flight.clear();
    char* top = stacks_ + (t.thread + 1) * stack_stride - colour(t.thread);
    t.context.at = make_fcontext(top, stack_size - page, thread_main);
  }
  for (Warp& warp : warps_) {
    warp.runnable = warp.all;
    warp.waiting = warp.at_barrier = 0;
    warp.mixed = false;
    warp.clock = clock_;
    warp.start = static_cast<int>(random() % static_cast<std::uint64_t>(std::popcount(warp.all)));
  }
  const std::size_t count = warps_.size();
  while (!launch_->stopped) {
    std::size_t first = random() % count, w = 0;
    while (w < count && !warps_[(first + w) % count].runnable) ++w;
    if (w == count) {
      if (live_) report_deadlock();
      return;
    }
    resume(warps_[(first + w) % count], scheduler_);
  }
}

void Machine::work(LaunchState& launch) {
  prepare(launch);
  for (std::int64_t i; !launch.stopped && (i = launch.next++) < launch.launch.blocks;)
    run_block(static_cast<std::int64_t>((static_cast<unsigned __int128>(i) * static_cast<std::uint64_t>(launch.stride) +
                                         static_cast<std::uint64_t>(launch.offset)) %
                                        static_cast<std::uint64_t>(launch.launch.blocks)));
}

}  // namespace latile::emulator
