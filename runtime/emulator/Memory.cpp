#include "runtime/emulator/Memory.h"
#include <algorithm>
#include <bit>
#include <cstring>
#include <sys/mman.h>

namespace latile::emulator {
namespace {

// Pages that nobody touches cost nothing: inputs are never written, so their cells stay away.
void* zero_pages(std::size_t bytes) {
  void* p = mmap(nullptr, std::max<std::size_t>(bytes, 1), PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) throw std::bad_alloc();
  return p;
}

}  // namespace

Memory::Allocation::~Allocation() {
  if (cells) munmap(cells, std::max<std::size_t>(granules() * sizeof(GlobalCell), 1));
  if (written) munmap(written, std::max<std::size_t>(granules(), 1));
}

Memory::Memory() : state_(std::make_unique<State>()) {}
Memory::~Memory() = default;

bool Memory::add(const std::string& name, void* base, std::size_t bytes, std::size_t granule) {
  auto& all = state_->allocations;
  char* first = static_cast<char*>(base);
  auto at = std::find_if(all.begin(), all.end(), [&](const auto& a) { return a->base + a->bytes > first; });
  if (at != all.end() && (*at)->base < first + bytes) return false;
  auto a = std::make_unique<Allocation>();
  a->name = name;
  a->base = first;
  a->bytes = bytes;
  a->shift = static_cast<unsigned>(std::countr_zero(granule));
  a->cells = static_cast<GlobalCell*>(zero_pages(a->granules() * sizeof(GlobalCell)));
  a->written = static_cast<std::uint8_t*>(zero_pages(a->granules()));
  all.insert(at, std::move(a));
  return true;
}

bool Memory::remove(const void* base) {
  return std::erase_if(state_->allocations, [&](const auto& a) { return a->base == base; }) > 0;
}

void Memory::mark_written(const void* base, std::size_t bytes) { state_->mark(base, bytes, 1); }
void Memory::mark_unwritten(const void* base, std::size_t bytes) { state_->mark(base, bytes, 0); }
std::size_t Memory::allocations() const { return state_->allocations.size(); }

Memory::Allocation* Memory::State::find(const void* p) const {
  auto it = std::upper_bound(allocations.begin(), allocations.end(), p,
                             [](const void* p, const auto& a) { return p < static_cast<const void*>(a->base); });
  if (it == allocations.begin()) return nullptr;
  Allocation* a = std::prev(it)->get();
  return a->holds(p) ? a : nullptr;
}

std::uint32_t Memory::State::serials(std::int64_t blocks) {
  if (static_cast<std::uint64_t>(next_serial) + static_cast<std::uint64_t>(blocks) > 0xffffffffu) {
    for (auto& a : allocations) std::memset(static_cast<void*>(a->cells), 0, a->granules() * sizeof(GlobalCell));
    next_serial = 1;
  }
  std::uint32_t first = next_serial;
  next_serial += static_cast<std::uint32_t>(blocks);
  return first;
}

void Memory::State::mark(const void* base, std::size_t bytes, std::uint8_t written) {
  Allocation* a = find(base);
  if (!a || bytes == 0) return;
  std::size_t from = static_cast<std::size_t>(static_cast<const char*>(base) - a->base);
  std::size_t to = std::min(from + bytes, a->bytes), granule = std::size_t{1} << a->shift;
  // A granule that the host wrote in part counts as written; one that it clears in part does not become unwritten.
  std::size_t first = written ? from >> a->shift : (from + granule - 1) >> a->shift;
  std::size_t last = written ? (to + granule - 1) >> a->shift : to == a->bytes ? a->granules() : to >> a->shift;
  if (first < last) std::memset(a->written + first, written, last - first);
}

}  // namespace latile::emulator
