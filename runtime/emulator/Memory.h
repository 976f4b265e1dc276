// Allocations of global memory and their shadow. Internal to the emulator.
#pragma once
#include "runtime/emulator/Emulator.h"
#include <atomic>
#include <vector>

namespace latile::emulator {

/// Who touched a granule of global memory last. A block is named by its serial number, which grows over all launches on
/// the Memory, so that nothing is reset between launches. Blocks on several host threads update cells at once: fields
/// are accessed through relaxed atomics, and an update that is lost can only lose a report.
struct GlobalCell {
  std::uint32_t write_block;  ///< 0: none
  std::uint32_t write_stamp;
  std::uint32_t read_block;
  std::uint32_t read_stamp;
  std::uint32_t read_warps;  ///< of the last block that read; 0: several blocks did
  std::uint16_t write_at, read_at;
};

struct Memory::Allocation {
  std::string name;
  char* base = nullptr;
  std::size_t bytes = 0;
  unsigned shift = 1;  ///< log2 of the granule
  GlobalCell* cells = nullptr;
  std::uint8_t* written = nullptr;  ///< for each granule
  bool reachable = false;           ///< in this launch: a parameter points into it
  bool writable = false;            ///< in this launch: one that the kernel stores through

  Allocation() = default;
  Allocation(const Allocation&) = delete;
  ~Allocation();
  std::size_t granules() const { return (bytes + (std::size_t{1} << shift) - 1) >> shift; }
  bool holds(const void* p) const {
    return static_cast<std::size_t>(static_cast<const char*>(p) - base) < bytes && p >= base;
  }
};

struct Memory::State {
  std::vector<std::unique_ptr<Allocation>> allocations;  ///< by address
  std::uint32_t next_serial = 1;

  Allocation* find(const void*) const;
  /// The first of `blocks` serial numbers that no launch had.
  std::uint32_t serials(std::int64_t blocks);
  void mark(const void* base, std::size_t bytes, std::uint8_t written);
};

}  // namespace latile::emulator
