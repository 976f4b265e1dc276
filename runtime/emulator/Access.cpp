// What each access does to the shadows, and the reports that come of it.
#include "runtime/emulator/Machine.h"
#include <algorithm>
#include <bit>
#include <cstring>

namespace latile::emulator {
namespace {

template <class T> T get(T& field) { return std::atomic_ref<T>(field).load(std::memory_order_relaxed); }
template <class T> void put(T& field, T value) { std::atomic_ref<T>(field).store(value, std::memory_order_relaxed); }

std::string size(std::uint32_t bytes) { return std::to_string(bytes) + (bytes == 1 ? " byte of " : " bytes of "); }

}  // namespace

bool Machine::before(const Thread& thread, std::uint32_t stamp) const {
  std::uint32_t other = thread_of(stamp);
  if (other == thread.thread) return true;
  return clock_of(stamp) < (threads_[other].warp == thread.warp ? warps_[thread.warp].clock : clock_);
}

std::uint32_t Machine::stamp_of(const Thread& t) const { return warps_[t.warp].clock << 11 | t.thread; }

// Another lane of the thread's warp, and no warp barrier since; or several lanes of it.
bool Machine::is_mate(const Thread& t, std::uint32_t stamp) const {
  return clock_of(stamp) == warps_[t.warp].clock && threads_[thread_of(stamp)].warp == t.warp &&
         (stamp & stamp_flag || thread_of(stamp) != t.thread);
}

void Machine::shared_range(Thread& t, const void* p, std::uint32_t bytes, std::uint32_t align, std::uint32_t where,
                           const char* verb) {
  std::size_t at = static_cast<std::size_t>(static_cast<const char*>(p) - shared_);
  if (at > shared_span || at + bytes > launch_->launch.shared_bytes) {
    std::string what = at < shared_span ? "shared memory at byte " + std::to_string(at) + "; the block has " +
                                              std::to_string(launch_->launch.shared_bytes)
                                        : place(p) + " as shared memory";
    report(Report::Kind::out_of_bounds, t, where, 0, std::string(verb) + " " + size(bytes) + what);
    stop();
  }
  if (at & (align - 1)) {
    report(Report::Kind::misaligned, t, where, 0,
           std::string(verb) + " " + size(bytes) + place(p) + ", which is no multiple of " + std::to_string(align));
    stop();
  }
}

void Machine::read_shared(Thread& t, const void* p, std::uint32_t bytes, std::uint32_t align, std::uint32_t where) {
  shared_range(t, p, bytes, align, where, "reads");
  std::size_t first = static_cast<std::size_t>(static_cast<const char*>(p) - shared_) >> shift_;
  const std::uint32_t stamp = stamp_of(t);
  for (std::size_t c = first, end = first + (bytes >> shift_); c < end; ++c) {
    SharedCell& cell = cells_[c];
    const char* at = shared_ + (c << shift_);
    if (cell.write & stamp_flag && clock_of(cell.write) >= birth_)
      report(Report::Kind::in_flight, t, where, cell.write_at,
             "reads " + place(at) + ", into which the copy of {other} is in flight: its wait is missing or too late");
    else if (clock_of(cell.write) < birth_)
      report(Report::Kind::unwritten, t, where, 0, "reads " + place(at) + ", which this block has not written");
    else if (!before(t, cell.write))
      race(t, at, where, cell.write_at, cell.write, -1, "reads", "wrote");
    // Several lanes of one warp, and no warp barrier since.
    bool several = is_mate(t, cell.read);
    cell.read_warps = (clock_of(cell.read) >= clock_ ? cell.read_warps : 0) | 1u << t.warp;
    cell.read = stamp | (several ? stamp_flag : 0);
    cell.read_at = static_cast<std::uint16_t>(where);
  }
}

void Machine::write_shared(Thread& t, const void* p, std::uint32_t bytes, std::uint32_t align, std::uint32_t where) {
  shared_range(t, p, bytes, align, where, "writes");
  std::size_t first = static_cast<std::size_t>(static_cast<const char*>(p) - shared_) >> shift_;
  const std::uint32_t stamp = stamp_of(t);
  for (std::size_t c = first, end = first + (bytes >> shift_); c < end; ++c) {
    SharedCell& cell = cells_[c];
    const char* at = shared_ + (c << shift_);
    if (clock_of(cell.write) >= birth_) {
      if (cell.write & stamp_flag)
        report(Report::Kind::in_flight, t, where, cell.write_at,
               "writes " + place(at) + ", into which the copy of {other} is in flight");
      else if (!before(t, cell.write))
        race(t, at, where, cell.write_at, cell.write, -1, "writes", "wrote");
    }
    bool others = clock_of(cell.read) >= clock_ && cell.read_warps & ~(1u << t.warp);
    if (others || is_mate(t, cell.read)) race(t, at, where, cell.read_at, cell.read, -1, "writes", "read");
    cell = {stamp, 0, 0, static_cast<std::uint16_t>(where), 0};
  }
}

Memory::Allocation& Machine::global_range(Thread& t, const void* p, std::uint32_t bytes, std::uint32_t align,
                                          std::uint32_t where, const char* verb) {
  if (!last_ || !last_->holds(p)) last_ = launch_->memory.find(p);
  auto fail = [&](Report::Kind kind, const std::string& why) {
    report(kind, t, where, 0, std::string(verb) + " " + size(bytes) + place(p) + why);
    stop();
  };
  Memory::Allocation* a = last_;
  if (!a) fail(Report::Kind::out_of_bounds, "");
  std::size_t at = static_cast<std::size_t>(static_cast<const char*>(p) - a->base);
  if (at + bytes > a->bytes) fail(Report::Kind::out_of_bounds, ", past its end at " + std::to_string(a->bytes));
  if (!a->reachable) fail(Report::Kind::out_of_bounds, ", into which none of the kernel's parameters points");
  if (reinterpret_cast<std::uintptr_t>(p) & (align - 1))
    fail(Report::Kind::misaligned, ", whose address is no multiple of " + std::to_string(align));
  if ((at | bytes) & ((std::size_t{1} << a->shift) - 1))
    fail(Report::Kind::unsupported, "; it was registered with granules of " + std::to_string(1 << a->shift) +
                                        " bytes, and this access is none of whole granules");
  return *a;
}

/// Reports a write of this launch that nothing orders before the access. `writer`: the block that wrote.
void Machine::after_writer(Thread& t, GlobalCell& cell, std::uint32_t writer, const void* at, std::uint32_t where,
                           const char* verb) {
  if (writer < launch_->first_serial) return;
  std::uint32_t stamp = get(cell.write_stamp);
  if (writer != serial_)
    race(t, at, where, get(cell.write_at), stamp, writer - launch_->first_serial, verb, "wrote");
  else if (!before(t, stamp))
    race(t, at, where, get(cell.write_at), stamp, -1, verb, "wrote");
}

void Machine::read_global(Thread& t, const void* p, std::uint32_t bytes, std::uint32_t align, std::uint32_t where) {
  Memory::Allocation& a = global_range(t, p, bytes, align, where, "reads");
  std::size_t first = static_cast<std::size_t>(static_cast<const char*>(p) - a.base) >> a.shift, n = bytes >> a.shift;
  for (std::size_t i = first; i < first + n; ++i)
    if (!a.written[i]) {
      report(Report::Kind::unwritten, t, where, 0,
             "reads " + place(a.base + (i << a.shift)) + ", which nobody has written");
      break;
    }
  if (!a.writable) return;
  const std::uint32_t stamp = stamp_of(t);
  for (std::size_t i = first; i < first + n; ++i) {
    GlobalCell& cell = a.cells[i];
    const char* at = a.base + (i << a.shift);
    std::uint32_t writer = get(cell.write_block);
    after_writer(t, cell, writer, at, where, "reads");
    std::uint32_t reader = get(cell.read_block), last = get(cell.read_stamp), warps = get(cell.read_warps);
    bool several = false;
    if (reader == serial_ && warps) {
      several = is_mate(t, last);
      warps = (clock_of(last) >= clock_ ? warps : 0) | 1u << t.warp;
    } else {
      // Zero, several blocks, stays so until the next launch or write.
      warps = reader >= launch_->first_serial ? 0 : 1u << t.warp;
    }
    put(cell.read_block, serial_);
    put(cell.read_stamp, stamp | (several ? stamp_flag : 0));
    put(cell.read_warps, warps);
    put(cell.read_at, static_cast<std::uint16_t>(where));
  }
}

void Machine::write_global(Thread& t, const void* p, std::uint32_t bytes, std::uint32_t align, std::uint32_t where) {
  Memory::Allocation& a = global_range(t, p, bytes, align, where, "writes");
  std::size_t first = static_cast<std::size_t>(static_cast<const char*>(p) - a.base) >> a.shift, n = bytes >> a.shift;
  if (!a.writable) {
    report(Report::Kind::out_of_bounds, t, where, 0,
           "writes " + size(bytes) + place(p) + ", into which no parameter points that the kernel stores through");
    stop();
  }
  const std::uint32_t stamp = stamp_of(t);
  for (std::size_t i = first; i < first + n; ++i) {
    GlobalCell& cell = a.cells[i];
    const char* at = a.base + (i << a.shift);
    std::uint32_t writer = std::atomic_ref(cell.write_block).exchange(serial_, std::memory_order_relaxed);
    after_writer(t, cell, writer, at, where, "writes");
    std::uint32_t reader = get(cell.read_block);
    if (reader >= launch_->first_serial) {
      std::uint32_t last = get(cell.read_stamp), warps = get(cell.read_warps);
      if (reader != serial_ || warps == 0) {
        race(t, at, where, get(cell.read_at), last, reader - launch_->first_serial, "writes", "read");
      } else {
        bool others = clock_of(last) >= clock_ && warps & ~(1u << t.warp);
        if (others || is_mate(t, last)) race(t, at, where, get(cell.read_at), last, -1, "writes", "read");
      }
      put(cell.read_block, 0u);
    }
    put(cell.write_stamp, stamp);
    put(cell.write_at, static_cast<std::uint16_t>(where));
    a.written[i] = 1;
  }
}

// The destination counts as written from the start on, with the flag that nobody may touch it; the data arrive at the
// wait. When the source is read is the machine's choice.
void Machine::start_copy(Thread& t, void* to, const void* from, std::uint32_t bytes, std::uint32_t read,
                         std::uint32_t where) {
  if (read > bytes) {
    report(Report::Kind::unsupported, t, where, 0,
           "copies " + std::to_string(read) + " bytes into " + std::to_string(bytes));
    stop();
  }
  write_shared(t, to, bytes, bytes, where);
  std::size_t first = static_cast<std::size_t>(static_cast<char*>(to) - shared_) >> shift_;
  for (std::size_t c = first; c < first + (bytes >> shift_); ++c) cells_[c].write |= stamp_flag;
  // Bytes that are not read are zero; where none is, the address need not be one.
  if (read) read_global(t, from, read, read == bytes ? bytes : 1, where);
  Copy copy{
      static_cast<char*>(to), static_cast<const char*>(from), bytes, read, where, t.group, (random() & 1) != 0, {}};
  if (copy.early) std::memcpy(copy.data, from, read);
  t.in_flight.push_back(copy);
}

void Machine::wait_copies(Thread& t, std::uint32_t groups) {
  std::size_t done = 0;
  while (done < t.in_flight.size() && t.in_flight[done].group + groups < t.group) ++done;
  for (std::size_t i = done; i > 1; --i) std::swap(t.in_flight[i - 1], t.in_flight[random() % i]);
  const std::uint32_t stamp = stamp_of(t);
  for (std::size_t i = 0; i < done; ++i) {
    Copy& copy = t.in_flight[i];
    if (!copy.early && copy.read) {
      read_global(t, copy.from, copy.read, 1, copy.where);
      std::memcpy(copy.data, copy.from, copy.read);
    }
    std::memcpy(copy.to, copy.data, copy.read);
    std::memset(copy.to + copy.read, 0, copy.bytes - copy.read);
    std::size_t first = static_cast<std::size_t>(copy.to - shared_) >> shift_;
    for (std::size_t c = first; c < first + (copy.bytes >> shift_); ++c) cells_[c].write = stamp;
  }
  t.in_flight.erase(t.in_flight.begin(), t.in_flight.begin() + static_cast<std::ptrdiff_t>(done));
}

}  // namespace latile::emulator
