// One block at a time on one host thread: its threads are fibres, which run until they meet. Internal to the emulator.
#pragma once
#include "runtime/emulator/Memory.h"
#include <boost/context/detail/fcontext.hpp>
#include <mutex>
#include <set>
#include <tuple>

namespace latile::emulator {

class Machine;

/// A place to which a host thread can jump: a fibre or the scheduler.
struct Context {
  boost::context::detail::fcontext_t at = nullptr;
};

/// A part of shared memory that a copy will fill.
struct Copy {
  char* to;
  const char* from;
  std::uint32_t bytes, read, where;
  std::uint32_t group;
  bool early;  ///< the source was read when the copy started; otherwise it is read at the wait
  char data[16];
};

struct Thread : Lane {
  Machine* machine = nullptr;
  Context context;
  const CallSite* site = nullptr;  ///< where it waits
  const void* in = nullptr;
  void* out = nullptr;
  std::uint64_t members = 0;    ///< lanes that the collective needs
  std::uint32_t group = 0;      ///< of the copies that are started next
  std::vector<Copy> in_flight;  ///< oldest first
};

struct Warp {
  std::uint64_t all = 0;       ///< lanes that exist; the other masks are parts of it
  std::uint64_t runnable = 0;  ///< what is in none of the masks has returned
  std::uint64_t waiting = 0;   ///< at a collective
  std::uint64_t at_barrier = 0;
  const CallSite* site = nullptr;
  bool mixed = false;  ///< those that wait may do so at different sites
  bool backwards = false;
  int start = 0;  ///< lane that goes first
  std::uint32_t clock = 0;
  Thread* threads = nullptr;

  int pick() const;  ///< a runnable lane, of which there is one
};

/// Who touched a granule of shared memory last. A stamp is clock << 11 | flag << 10 | thread. Clocks count barriers:
/// an access happened before what another thread does now if its clock is less than that of the last barrier both
/// took part in. Clocks run on from block to block, so that stamps of an earlier block tell unwritten memory.
struct SharedCell {
  std::uint32_t write;  ///< flag: a copy into it is in flight
  std::uint32_t read;   ///< flag: several lanes of the warp since its last barrier
  std::uint32_t read_warps;
  std::uint16_t write_at, read_at;
};

constexpr std::uint32_t stamp_flag = 1u << 10;
constexpr std::uint32_t clock_limit = 1u << 21;
constexpr std::uint32_t clock_of(std::uint32_t stamp) { return stamp >> 11; }
constexpr std::uint32_t thread_of(std::uint32_t stamp) { return stamp & 1023; }

/// What the host threads that run a launch share.
struct LaunchState {
  const Launch& launch;
  const Options& options;
  Memory::State& memory;
  std::uint32_t first_serial;
  std::atomic<std::int64_t> next = 0;
  std::atomic<bool> stopped = false;
  std::int64_t stride = 1, offset = 0;  ///< item i is block (i * stride + offset) % blocks
  std::mutex mutex;
  std::set<std::tuple<Report::Kind, std::uint32_t, std::uint32_t>> known;
  Result result;
};

class Machine {
public:
  Machine() = default;
  Machine(const Machine&) = delete;
  ~Machine();

  /// Takes blocks until none is left.
  void work(LaunchState&);

  // Called by the hooks, on the fibre of the thread. Those that end the launch do not return.
  void read_shared(Thread&, const void*, std::uint32_t bytes, std::uint32_t align, std::uint32_t where);
  void write_shared(Thread&, const void*, std::uint32_t bytes, std::uint32_t align, std::uint32_t where);
  void read_global(Thread&, const void*, std::uint32_t bytes, std::uint32_t align, std::uint32_t where);
  void write_global(Thread&, const void*, std::uint32_t bytes, std::uint32_t align, std::uint32_t where);
  bool is_shared(const void* p) const {
    return static_cast<std::size_t>(static_cast<const char*>(p) - shared_) < shared_span;
  }
  bool is_stack(const void* p) const { return p >= stacks_ && p < stacks_ + stack_bytes_; }
  void start_copy(Thread&, void* to, const void* from, std::uint32_t bytes, std::uint32_t read, std::uint32_t where);
  void wait_copies(Thread&, std::uint32_t groups);
  void collective(Thread&, const CallSite&, const void* in, void* out);
  void barrier(Thread&, const CallSite&);
  void run_thread(Thread&);
  [[noreturn]] void returned(Thread&);

  void report(Report::Kind, const Thread&, std::uint32_t where, std::uint32_t other, const std::string& what);
  [[noreturn]] void stop();

  static constexpr std::size_t shared_span = std::size_t{1} << 20;

private:
  void prepare(LaunchState&);
  void run_block(std::int64_t block);
  void report_deadlock();
  std::string waits(const Thread&) const;
  void park(Thread&);
  void jump(Context& from, Context& to);
  void resume(Warp&, Context& from);
  void execute(Warp&, const CallSite&, std::uint64_t members);
  void move_matrices(Warp&, const CallSite&);
  bool same_site(const Warp&, const CallSite&, std::uint64_t members) const;
  void release_barrier();
  void tick(std::uint32_t& clock);
  void shared_range(Thread&, const void*, std::uint32_t bytes, std::uint32_t align, std::uint32_t where,
                    const char* verb);
  Memory::Allocation& global_range(Thread&, const void*, std::uint32_t bytes, std::uint32_t align, std::uint32_t where,
                                   const char* verb);
  bool before(const Thread&, std::uint32_t stamp) const;
  std::uint32_t stamp_of(const Thread&) const;
  bool is_mate(const Thread&, std::uint32_t stamp) const;
  void after_writer(Thread&, GlobalCell&, std::uint32_t writer, const void*, std::uint32_t where, const char* verb);
  void race(const Thread&, const void*, std::uint32_t where, std::uint32_t other, std::uint32_t other_stamp,
            std::int64_t other_block, const char* verb, const char* other_verb);
  std::string place(const void*) const;
  std::uint64_t random();

  friend struct Poison;

  LaunchState* launch_ = nullptr;
  char* stacks_ = nullptr;
  std::size_t stack_bytes_ = 0;
  char* shared_ = nullptr;
  SharedCell* cells_ = nullptr;
  unsigned shift_ = 1;    ///< of the shared cells
  std::size_t used_ = 0;  ///< shared cells that were ever touched
  std::vector<Thread> threads_;
  std::vector<Warp> warps_;
  std::uint32_t clock_ = 1;  ///< at the last barrier of the block; warps are at this or later
  std::uint32_t birth_ = 1;  ///< of the block
  std::uint32_t serial_ = 0;
  std::uint32_t live_ = 0;  ///< threads that have not returned
  std::uint32_t at_barrier_ = 0;
  Thread* current_ = nullptr;
  Context scheduler_;
  Memory::Allocation* last_ = nullptr;
  std::uint64_t random_ = 1;
};

/// The table that Lane::hooks points to.
const void* const* hooks();

/// Products of fragments: `in[l]` and `out[l]` are the words of lane l.
void multiply(Collective, const void* const* in, void* const* out);

}  // namespace latile::emulator
