// The sentences of reports.
#include "runtime/emulator/Machine.h"
#include <bit>

namespace latile::emulator {

using std::to_string;

void Machine::report(Report::Kind kind, const Thread& thread, std::uint32_t where, std::uint32_t other,
                     const std::string& what) {
  std::lock_guard lock(launch_->mutex);
  Result& result = launch_->result;
  if (!launch_->known.insert({kind, where, other}).second || result.reports.size() >= launch_->options.max_reports) {
    ++result.suppressed;
    return;
  }
  const EmulatedKernel& kernel = *launch_->launch.kernel;
  auto location = [&](std::uint32_t w) { return w < kernel.location_count ? kernel.locations[w] : "an unknown place"; };
  Report r{kind, "", location(where), "", thread.block, static_cast<int>(thread.thread)};
  std::string sentence = what;
  if (auto at = sentence.find("{other}"); at != std::string::npos) {
    r.other = location(other);
    sentence.replace(at, 7, r.other);
  }
  r.text = std::string(name(kind)) + " in kernel " + launch_->launch.name + ": " + r.op + " (thread " +
           to_string(thread.thread) + " of block " + to_string(thread.block) + ") " + sentence;
  result.reports.push_back(std::move(r));
}

std::string Machine::place(const void* p) const {
  if (is_shared(p)) return "shared memory at byte " + to_string(static_cast<const char*>(p) - shared_);
  if (const Memory::Allocation* a = launch_->memory.find(p))
    return a->name + " at byte " + to_string(static_cast<const char*>(p) - a->base);
  const Memory::Allocation* nearest = nullptr;
  for (auto& a : launch_->memory.allocations)
    if (a->base + a->bytes <= static_cast<const char*>(p)) nearest = a.get();
  if (nearest)
    if (auto past = static_cast<const char*>(p) - (nearest->base + nearest->bytes); past < (1 << 24))
      return "global memory " + to_string(past) + " bytes past the end of " + nearest->name + " (" +
             to_string(nearest->bytes) + " bytes)";
  return "an address in no allocation (" + to_string(reinterpret_cast<std::uintptr_t>(p)) + ")";
}

void Machine::race(const Thread& thread, const void* p, std::uint32_t where, std::uint32_t other,
                   std::uint32_t other_stamp, std::int64_t other_block, const char* verb, const char* other_verb) {
  // Where several threads read, the shadow names the last of them, which may be this one.
  std::string who = "thread " + to_string(thread_of(other_stamp));
  if (other_block >= 0)
    who += " of block " + to_string(other_block);
  else if (thread_of(other_stamp) == thread.thread)
    who = "other threads as well as this one";
  report(Report::Kind::race, thread, where, other,
         std::string(verb) + " " + place(p) + ", which {other} (" + who + ") " + other_verb +
             (other_block < 0 ? " with no barrier between" : " in the same launch"));
}

std::string Machine::waits(const Thread& t) const {
  const Warp& warp = warps_[t.warp];
  std::uint64_t bit = std::uint64_t{1} << t.lane;
  const EmulatedKernel& kernel = *launch_->launch.kernel;
  auto location = [&] {
    return t.site->location < kernel.location_count ? std::string(kernel.locations[t.site->location])
                                                    : "an unknown place";
  };
  if (warp.at_barrier & bit) return "wait at the barrier of " + location();
  if (warp.waiting & bit) return "wait for their warp at " + location();
  return "have returned";
}

void Machine::report_deadlock() {
  std::string text;
  const Thread* first = nullptr;
  std::size_t groups = 0;
  for (std::size_t t = 0; t < threads_.size();) {
    std::string state = waits(threads_[t]);
    std::size_t end = t + 1;
    while (end < threads_.size() && waits(threads_[end]) == state) ++end;
    if (!first && state != "have returned") first = &threads_[t];
    if (++groups <= 8)
      text += (text.empty() ? "" : "; ") + std::string(end == t + 1 ? "thread " : "threads ") + to_string(t) +
              (end == t + 1 ? "" : " to " + to_string(end - 1)) + " " + state;
    t = end;
  }
  if (groups > 8) text += "; and " + to_string(groups - 8) + " more groups";
  report(Report::Kind::divergence, *first, first->site->location, 0, "waits for threads that never come: " + text);
  launch_->stopped = true;
}

}  // namespace latile::emulator
